/* import.c: see import.h. Distinguishes the two kinds of text and combines their facts about the
 * GPU. All files must describe the same GPU. */
#include "import/import.h"

#include "analysis/analysis.h"
#include "base/hash.h"
#include "fingerprint/fingerprint_check.h"
#include "import/formats.h"

#include <stdio.h>
#include <string.h>

/* Reads ", reduction mode: avg". */
static enum status read_mode(struct lines *l, struct field f, struct import_head *out,
                             struct err *err)
{
    struct field word;
    char shown[FIELD_TEXT_BYTES];

    (void)field_cut(&f, ':', &word);
    f = field_trim(f);
    if (!field_is(f, "avg") && !field_is(f, "min"))
        return lines_wrong(l, err, "the reduction mode '%s' is neither avg nor min",
                           field_text(f, shown));
    out->smallest = field_is(f, "min");
    return STATUS_OK;
}

/* Reads a compute capability like "3.7". */
static bool read_version(struct field f, struct import_head *out)
{
    struct field major;
    uint64_t a = 0;
    uint64_t b = 0;

    if (!field_cut(&f, '.', &major) || !field_u64(field_trim(major), 999, &a) || !f.at ||
        !field_u64(field_trim(f), 999, &b))
        return false;
    out->compute_major = (uint32_t)a;
    out->compute_minor = (uint32_t)b;
    return true;
}

static enum status read_head(struct lines *l, struct import_head *out, struct err *err)
{
    static const char mark[] = ": cuda ";
    struct field rest = {l->at, l->bytes};
    struct field version;
    const char *const found = l->bytes ? memmem(l->at, l->bytes, mark, sizeof mark - 1) : NULL;

    *out = (struct import_head){0};
    if (!field_begins(rest, "#") || !found)
        return lines_wrong(l, err, "does not begin with '#NAME: cuda MAJOR.MINOR'");
    const struct field name = field_trim((struct field){l->at + 1, (size_t)(found - l->at) - 1});
    if (name.bytes == 0 || name.bytes >= sizeof out->name)
        return lines_wrong(l, err, "the GPU's name has %zu bytes, must have 1 to %zu", name.bytes,
                           sizeof out->name - 1);
    memcpy(out->name, name.at, name.bytes);
    rest.at = found + sizeof mark - 1;
    rest.bytes = (size_t)(l->at + l->bytes - rest.at);
    (void)field_cut(&rest, ',', &version);
    if (!read_version(field_trim(version), out))
        return lines_wrong(l, err, "has no compute capability like 3.7 after 'cuda'");
    return rest.at ? read_mode(l, rest, out, err) : STATUS_OK;
}

/* Reads the rest of a text: its first line that is not empty determines its kind. */
static enum status read_body(struct lines *l, struct import_head *head, struct observation_set *set,
                             struct err *err)
{
    enum status s;

    while ((s = lines_next(l, err)) == STATUS_OK) {
        const struct field f = field_trim((struct field){l->at, l->bytes});
        if (f.bytes == 0 || field_begins(f, "#--"))
            continue;
        if (field_begins(f, ", reduction mode")) {
            s = read_mode(l, f, head, err);
            if (s != STATUS_OK)
                return s;
            continue;
        }
        if (field_begins((struct field){l->at, l->bytes}, "#,"))
            return import_read_curves(l, set, err);
        if (field_begins((struct field){l->at, l->bytes}, "# "))
            return import_read_sharing(l, head, set, err);
        return lines_wrong(l, err,
                           "is neither the head of a curve ('#,64,128,') nor of a sharing matrix "
                           "('#   000 001')");
    }
    return s == STATUS_NOT_FOUND ? lines_wrong(l, err, "ends before any number") : s;
}

static enum status read_file(const struct import_file *file, struct import_head *head,
                             struct observation_set *set, struct err *err)
{
    struct lines l;

    lines_begin(&l, file->name, file->text, file->bytes);
    if (file->bytes > IMPORT_MAX_FILE_BYTES)
        return lines_wrong(&l, err, "the file has %zu bytes, at most %d are read", file->bytes,
                           IMPORT_MAX_FILE_BYTES);
    enum status s = lines_next(&l, err);
    if (s == STATUS_NOT_FOUND)
        return lines_wrong(&l, err, "the file is empty");
    if (s == STATUS_OK)
        s = read_head(&l, head, err);
    return s == STATUS_OK ? read_body(&l, head, set, err) : s;
}

/* Checks that this file describes the same GPU as the preceding files. */
static enum status check_same(const struct import_file *file, const struct import_head *head,
                              const struct import_head *first, struct err *err)
{
    struct lines l;

    lines_begin(&l, file->name, file->text, file->bytes);
    if (strcmp(head->name, first->name) == 0 && head->compute_major == first->compute_major &&
        head->compute_minor == first->compute_minor)
        return STATUS_OK;
    return lines_wrong(&l, err, "is about '%s', but the files before it are about '%s'", head->name,
                       first->name);
}

/* Sets the number of SMs. All sharing matrices must have the same SMs. */
static enum status set_sms(struct observation_set *set, struct err *err)
{
    const struct probe_result *first = NULL;

    for (size_t i = 0; i < set->count; i++) {
        const struct probe_result *const r = &set->items[i].result;
        if (set->items[i].spec.kind != PROBE_MEAN_PAIRS)
            continue;
        if (first && (first->sm_count != r->sm_count ||
                      memcmp(first->sm_ids, r->sm_ids, sizeof r->sm_ids) != 0))
            return err_set(err, STATUS_INVALID_ARGUMENT,
                           "one sharing file has %u SMs, another has %u SMs or other SMs: the "
                           "files must be of one GPU",
                           first->sm_count, r->sm_count);
        first = r;
    }
    set->gpu.sm_count = first ? first->sm_count : 0;
    set->limits.sm_count = set->gpu.sm_count;
    return STATUS_OK;
}

static void set_gpu(const struct import_head *head, const struct import_options *options,
                    struct observation_set *set)
{
    struct gpu_identity *const gpu = &set->gpu;
    const char *const name = options->gpu_name ? options->gpu_name : head->name;

    snprintf(gpu->name, sizeof gpu->name, "%s", name);
    snprintf(gpu->uuid, sizeof gpu->uuid, "IMPORTED-%016llx",
             (unsigned long long)hash_bytes(HASH_START, name, strlen(name)));
    gpu->compute_major = head->compute_major;
    gpu->compute_minor = head->compute_minor;
    gpu->origin = ORIGIN_IMPORTED;
}

/* Sets the conditions of all observations. The benchmark makes a plain allocation that is at least
 * as long as the longest walk. */
static void set_conditions(const struct import_options *options, struct observation_set *set)
{
    uint64_t range = 0;

    for (size_t i = 0; i < set->count; i++) {
        const uint64_t one = probe_range_bytes(&set->items[i].spec, set->gpu.sm_count);
        range = one > range ? one : range;
    }
    set->limits.arena = ARENA_PLAIN;
    set->limits.range_bytes = range;
    set->limits.backing_bytes = range;
    for (size_t i = 0; i < set->count; i++) {
        struct probe_conditions *const c = &set->items[i].result.conditions;
        probe_conditions_init(&set->limits, c);
        c->started_at = options->imported_at;
    }
}

/* Checks that a name from the command line is printable and not too long. */
static enum status check_name(const char *name, struct err *err)
{
    const size_t n = name ? strlen(name) : 1;

    if (n == 0 || n >= sizeof((struct gpu_identity *)0)->name)
        return err_set(err, STATUS_INVALID_ARGUMENT,
                       "the GPU's name has %zu bytes, must have 1 to %zu", n,
                       sizeof((struct gpu_identity *)0)->name - 1);
    for (size_t i = 0; name && i < n; i++) {
        if ((unsigned char)name[i] < ' ' || name[i] == 0x7f)
            return err_set(err, STATUS_INVALID_ARGUMENT,
                           "the GPU's name contains a control character");
    }
    return STATUS_OK;
}

enum status import_read(const struct import_file *files, size_t count,
                        const struct import_options *options, struct observation_set *out,
                        struct err *err)
{
    struct import_head first = {0};
    struct import_head head = {0};
    enum status s = check_name(options->gpu_name, err);

    *out = (struct observation_set){0};
    if (s == STATUS_OK && (count == 0 || count > IMPORT_MAX_FILES))
        s = err_set(err, STATUS_INVALID_ARGUMENT,
                    "%zu files are given, 1 to %d can be read at once", count, IMPORT_MAX_FILES);
    for (size_t i = 0; i < count && s == STATUS_OK; i++) {
        s = read_file(&files[i], &head, out, err);
        if (i == 0)
            first = head;
        else if (s == STATUS_OK)
            s = check_same(&files[i], &head, &first, err);
    }
    if (s == STATUS_OK)
        s = set_sms(out, err);
    if (s == STATUS_OK) {
        set_gpu(&first, options, out);
        set_conditions(options, out);
        return STATUS_OK;
    }
    observation_set_free(out);
    return s;
}

enum status import_derive(const struct import_file *files, size_t count,
                          const struct import_options *options, struct observation_set *out_set,
                          struct fingerprint *out_fp, struct err *err)
{
    enum status s = import_read(files, count, options, out_set, err);

    if (s != STATUS_OK)
        return s;
    s = analysis_derive(out_set, DEPTH_QUICK, out_fp, err);
    if (s == STATUS_OK)
        s = fingerprint_check(out_fp, err);
    if (s != STATUS_OK)
        observation_set_free(out_set);
    return s;
}
