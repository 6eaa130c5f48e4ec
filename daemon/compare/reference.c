/* reference.c: reads the documents of a folder into one tree, kind by kind, and converts the tree
 * to the tables of reference.h. */
#include "compare/reference.h"

#include "compare/share.h"

#include "base/json_load.h"
#include "base/stats.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_FILE_BYTES = 256 << 10, MAX_FILES = 65536, PATH_BYTES = 4096, MAX_NAME = 95 };

static bool is_same_memory(uint64_t a, uint64_t b)
{
    return fabs((double)a - (double)b) < 0.02 * (double)a;
}

/* ---- the tree: [{"gpu", "chips", "numbers": {name: [v..]}, "properties": {name: {text: count}},
 * "maps": {hash: count}}] ---- */

/* Returns the member called `name`, which is created from `take_new` if it is absent. The result is
 * borrowed; NULL if memory runs out. */
static json_t *member(json_t *object, const char *name, json_t *take_new)
{
    json_t *const found = json_object_get(object, name);

    if (found) {
        json_decref(take_new);
        return found;
    }
    return json_object_set_new(object, name, take_new) == 0 ? take_new : NULL;
}

/* Increments the count of `name`. Returns false if memory runs out. */
static bool count(json_t *object, const char *name)
{
    json_t *const n = member(object, name, json_integer(0));

    return n && json_integer_set(n, json_integer_value(n) + 1) == 0;
}

static uint64_t integer_of(const json_t *object, const char *name)
{
    const json_int_t v = json_integer_value(json_object_get(object, name));

    return v > 0 ? (uint64_t)v : 0;
}

static const char *text_of(const json_t *object, const char *name)
{
    const char *const text = json_string_value(json_object_get(object, name));

    return text && strlen(text) <= MAX_NAME ? text : NULL;
}

static bool is_same_kind(const json_t *a, const json_t *b)
{
    return strcmp(text_of(a, "name"), text_of(b, "name")) == 0 &&
           strcmp(text_of(a, "compute_capability"), text_of(b, "compute_capability")) == 0 &&
           integer_of(a, "sm_count") == integer_of(b, "sm_count") &&
           is_same_memory(integer_of(a, "memory_bytes"), integer_of(b, "memory_bytes"));
}

/* Returns the kind of a chip in the tree, which is created if it is absent. The result is borrowed;
 * NULL if memory runs out. */
static json_t *kind_for(json_t *tree, json_t *gpu)
{
    json_t *kind;
    size_t i;

    json_array_foreach(tree, i, kind)
    {
        if (is_same_kind(json_object_get(kind, "gpu"), gpu))
            return kind;
    }
    kind = json_pack("{s:O,s:i,s:{},s:{},s:{}}", "gpu", gpu, "chips", 0, "numbers", "properties",
                     "maps");
    return kind && json_array_append_new(tree, kind) == 0 ? kind : NULL;
}

static bool is_share(const json_t *json)
{
    const char *const format = text_of(json, "format");
    const json_t *const gpu = json_object_get(json, "gpu");
    const json_t *const lists[] = {json_object_get(json, "numbers"),
                                   json_object_get(json, "properties")};
    const char *name;
    json_t *v;

    if (!format || strcmp(format, SHARE_FORMAT) != 0 || !text_of(gpu, "name") ||
        !text_of(gpu, "compute_capability") || !integer_of(gpu, "sm_count") ||
        !integer_of(gpu, "memory_bytes") || !json_is_object(lists[0]) || !json_is_object(lists[1]))
        return false;
    for (int i = 0; i < 2; i++) {
        json_object_foreach((json_t *)(uintptr_t)lists[i], name, v)
        {
            if (strlen(name) > MAX_NAME || (i == 0 ? !json_is_number(v) : !json_is_string(v)))
                return false;
        }
    }
    return true;
}

static bool add_chip(json_t *tree, json_t *json)
{
    json_t *const kind = kind_for(tree, json_object_get(json, "gpu"));
    json_t *const numbers = json_object_get(kind, "numbers");
    json_t *const properties = json_object_get(kind, "properties");
    const char *const map = text_of(json, "map");
    bool done = kind && count(kind, "chips");
    const char *name;
    json_t *v;

    json_object_foreach(json_object_get(json, "numbers"), name, v)
    {
        done = done && json_array_append_new(member(numbers, name, json_array()),
                                             json_real(json_number_value(v))) == 0;
    }
    json_object_foreach(json_object_get(json, "properties"), name, v)
    {
        json_t *const values = done ? member(properties, name, json_object()) : NULL;
        done = values && count(values, json_string_value(v));
    }
    return done && (!map || count(json_object_get(kind, "maps"), map));
}

/* ---- the tables ---- */

/* Copies a text to the common buffer of texts. */
static const char *keep(char **at, const char *text)
{
    const char *const kept = *at;

    *at = stpcpy(*at, text) + 1;
    return kept;
}

static bool condense_number(struct reference_number *out, const json_t *values)
{
    const size_t n = json_array_size(values);
    double *const v = malloc(n * sizeof(*v));

    out->values = v;
    if (!v)
        return false;
    for (size_t i = 0; i < n; i++)
        v[i] = json_number_value(json_array_get(values, i));
    out->chips = (uint32_t)n;
    out->least = stats_quantile_f64(v, n, 0);
    out->median = stats_median_f64(v, n);
    out->most = stats_quantile_f64(v, n, 1);
    out->deviation = stats_mad_f64(v, n);
    return true;
}

static void condense_property(struct reference_property *out, json_t *values, char **texts)
{
    const char *usual = "";
    const char *text;
    json_t *n;

    json_object_foreach(values, text, n)
    {
        const uint32_t have = (uint32_t)json_integer_value(n);
        out->chips += have;
        if (have > out->have || (have == out->have && strcmp(text, usual) < 0)) {
            out->have = have;
            usual = text;
        }
    }
    out->usual = keep(texts, usual);
}

static bool condense_kind(struct reference_kind *out, json_t *kind, char **texts)
{
    const json_t *const gpu = json_object_get(kind, "gpu");
    const char *name;
    json_t *v;
    bool done = true;

    out->name = keep(texts, text_of(gpu, "name"));
    out->compute_capability = keep(texts, text_of(gpu, "compute_capability"));
    out->sm_count = (uint32_t)integer_of(gpu, "sm_count");
    out->memory_bytes = integer_of(gpu, "memory_bytes");
    out->chips = (uint32_t)integer_of(kind, "chips");
    json_object_foreach(json_object_get(kind, "numbers"), name, v)
    {
        struct reference_number *const number = &out->numbers[out->number_count++];
        number->name = keep(texts, name);
        done = done && condense_number(number, v);
    }
    json_object_foreach(json_object_get(kind, "properties"), name, v)
    {
        struct reference_property *const property = &out->properties[out->property_count++];
        property->name = keep(texts, name);
        condense_property(property, v, texts);
    }
    json_object_foreach(json_object_get(kind, "maps"), name, v)
    {
        out->maps[out->map_count++] =
            (struct reference_map){keep(texts, name), (uint32_t)json_integer_value(v)};
    }
    return done;
}

static size_t count_values(const json_t *kind)
{
    size_t n = 0;
    const char *name;
    json_t *v;

    json_object_foreach(json_object_get(kind, "numbers"), name, v)
    {
        n += json_array_size(v);
    }
    return n * sizeof(double);
}

/* Allocates the rows of a kind. Returns their size in bytes, or 0 if memory runs out. */
static size_t allocate_kind(struct reference_kind *out, json_t *kind)
{
    const size_t numbers = json_object_size(json_object_get(kind, "numbers"));
    const size_t properties = json_object_size(json_object_get(kind, "properties"));
    const size_t maps = json_object_size(json_object_get(kind, "maps"));

    out->numbers = calloc(numbers + 1, sizeof(*out->numbers));
    out->properties = calloc(properties + 1, sizeof(*out->properties));
    out->maps = calloc(maps + 1, sizeof(*out->maps));
    return !out->numbers || !out->properties || !out->maps
               ? 0
               : sizeof(*out) + numbers * sizeof(*out->numbers) + count_values(kind) +
                     properties * sizeof(*out->properties) + maps * sizeof(*out->maps);
}

/* Returns an upper bound for the bytes of all texts in the tables. */
static size_t text_bytes(const json_t *json)
{
    size_t n = json_is_string(json) ? json_string_length(json) + 1 : 0;
    const char *name;
    json_t *v;
    size_t i;

    json_object_foreach((json_t *)(uintptr_t)json, name, v)
    {
        n += strlen(name) + 1 + text_bytes(v);
    }
    json_array_foreach(json, i, v)
    {
        n += text_bytes(v);
    }
    return n;
}

/* Computes the spreads that all other kinds lend to the numbers of kind `to`. */
static void borrow(struct reference *r, struct reference_kind *to)
{
    for (uint32_t i = 0; i < r->kind_count; i++) {
        const struct reference_kind *const from = &r->kinds[i];
        uint32_t next = 0;
        for (uint32_t k = 0; from != to && k < to->number_count; k++) {
            const struct reference_number *const found =
                reference_find_number(from, next, to->numbers[k].name);
            if (!found)
                continue;
            const struct outlier_spread spread =
                outlier_compute_spread(found->values, found->chips);
            outlier_lend(&to->numbers[k].lent, &spread);
            next = (uint32_t)(found - from->numbers) + 1;
        }
    }
}

static struct reference *condense(json_t *tree)
{
    struct reference *const r = calloc(1, sizeof(*r));
    const size_t kinds = json_array_size(tree);
    const size_t room = text_bytes(tree) + 1;
    bool done;
    char *texts;

    if (!r)
        return NULL;
    r->kinds = calloc(kinds + 1, sizeof(*r->kinds));
    r->texts = texts = malloc(room);
    r->bytes = sizeof(*r) + room;
    done = r->kinds && r->texts;
    for (size_t i = 0; done && i < kinds; i++) {
        json_t *const kind = json_array_get(tree, i);
        const size_t bytes = allocate_kind(&r->kinds[r->kind_count++], kind);
        done = bytes > 0 && condense_kind(&r->kinds[i], kind, &texts);
        r->bytes += bytes;
    }
    for (uint32_t i = 0; done && i < r->kind_count; i++) {
        if (r->kinds[i].chips < OUTLIER_LEAST_CHIPS)
            borrow(r, &r->kinds[i]);
    }
    if (done)
        return r;
    reference_free(r);
    return NULL;
}

void reference_free(struct reference *take)
{
    if (!take)
        return;
    for (uint32_t i = 0; i < take->kind_count; i++) {
        for (uint32_t k = 0; k < take->kinds[i].number_count; k++)
            free(take->kinds[i].numbers[k].values);
        free(take->kinds[i].numbers);
        free(take->kinds[i].properties);
        free(take->kinds[i].maps);
    }
    free(take->kinds);
    free(take->texts);
    free(take);
}

/* ---- the folder ---- */

/* Returns the content of a file, or NULL with errno set if the file cannot be read. */
static char *read_file(const char *path, size_t *out_bytes)
{
    FILE *const file = fopen(path, "re");
    char *text = file ? malloc(MAX_FILE_BYTES + 1) : NULL;
    int error = errno;

    if (text) {
        *out_bytes = fread(text, 1, MAX_FILE_BYTES + 1, file);
        error = ferror(file) ? EIO : *out_bytes > MAX_FILE_BYTES ? EFBIG : 0;
    }
    if (file)
        (void)fclose(file);
    if (error != 0) {
        free(text);
        text = NULL;
    }
    errno = error;
    return text;
}

static enum status add_file(json_t *tree, const char *folder, const char *name, struct err *err)
{
    char path[PATH_BYTES];
    enum status s = STATUS_OK;
    size_t bytes = 0;
    json_t *json;
    char *text;

    if ((size_t)snprintf(path, sizeof(path), "%s/%s", folder, name) >= sizeof(path))
        return err_set(err, STATUS_INVALID_ARGUMENT, "the path of %.100s is too long", name);
    text = read_file(path, &bytes);
    if (!text)
        return err_set(err, STATUS_CORRUPT, "cannot read %.200s: %s", path, strerror(errno));
    json = json_load_whole(text, bytes, NULL);
    free(text);
    if (!json || !is_share(json))
        s = err_set_hint(
            err, STATUS_CORRUPT,
            "Remove the file; reachctl share writes files of a reference set from fingerprints.",
            "%.200s is not a reference-set file", path);
    else if (!add_chip(tree, json))
        s = err_no_memory(err, "the reference set");
    json_decref(json);
    return s;
}

static int is_document(const struct dirent *entry)
{
    const size_t n = strlen(entry->d_name);

    return n > strlen(".json") && strcmp(entry->d_name + n - strlen(".json"), ".json") == 0 &&
           entry->d_name[0] != '.';
}

enum status reference_load(const char *folder, struct reference **out, struct err *err)
{
    struct dirent **names = NULL;
    const int n = scandir(folder, &names, is_document, alphasort);
    json_t *const tree = json_array();
    enum status s = STATUS_OK;

    *out = NULL;
    if (n < 0)
        s = err_set_hint(err, STATUS_NOT_FOUND, "Name the folder with --reference.",
                         "cannot open the reference set %.200s: %s", folder, strerror(errno));
    else if (!tree)
        s = err_no_memory(err, "the reference set");
    else if (n > MAX_FILES)
        s = err_set(err, STATUS_TOO_MANY_BYTES, "%.200s has more than %d files", folder, MAX_FILES);
    for (int i = 0; i < n; i++) {
        if (s == STATUS_OK)
            s = add_file(tree, folder, names[i]->d_name, err);
        free(names[i]);
    }
    free(names);
    if (s == STATUS_OK)
        *out = condense(tree);
    if (s == STATUS_OK && !*out)
        s = err_no_memory(err, "the reference set");
    json_decref(tree);
    return s;
}

bool reference_find_folder(char *out, size_t size)
{
    static const char *const places[] = {"../share/reachd/reference", "reference"};
    char program[PATH_BYTES];
    const ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);
    struct stat st;

    if (n <= 0)
        return false;
    program[n] = '\0';
    *strrchr(program, '/') = '\0';
    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
        if ((size_t)snprintf(out, size, "%s/%s", program, places[i]) < size &&
            stat(out, &st) == 0 && S_ISDIR(st.st_mode))
            return true;
    }
    return false;
}

const struct reference_kind *reference_find_kind(const struct reference *reference,
                                                 const struct gpu_identity *gpu)
{
    char capability[24];

    (void)snprintf(capability, sizeof(capability), "%u.%u", gpu->compute_major, gpu->compute_minor);
    for (uint32_t i = 0; reference && i < reference->kind_count; i++) {
        const struct reference_kind *const kind = &reference->kinds[i];
        if (strcmp(kind->name, gpu->name) == 0 && kind->sm_count == gpu->sm_count &&
            strcmp(kind->compute_capability, capability) == 0 &&
            is_same_memory(kind->memory_bytes, gpu->memory_bytes))
            return kind;
    }
    return NULL;
}

/* The numbers of all kinds and of fingerprints are in the order of metrics.h, so the next number
 * nearly always follows the last one. */
const struct reference_number *reference_find_number(const struct reference_kind *kind,
                                                     uint32_t from, const char *name)
{
    for (uint32_t i = 0; i < kind->number_count; i++) {
        const uint32_t at = (from + i) % kind->number_count;
        if (strcmp(kind->numbers[at].name, name) == 0)
            return &kind->numbers[at];
    }
    return NULL;
}
