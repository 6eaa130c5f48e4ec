/* job_env_read.c: reads the words of job_env.h into a fingerprint. Anyone can write into an
 * environment, so only what the writer would have written is accepted; the hash at the end finds
 * accidents, not attacks. Reading ends at the first invalid word. */
#include "planner/job_env.h"

#include "base/hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_BYTES = 40 };

/* A part of the line. */
struct span {
    const char *at;
    const char *end;
};

struct reader {
    struct span rest; /* words not read yet */
    const char *word; /* being read, for the error */
    struct err *err;
    bool failed;
};

static void fail(struct reader *r, const char *what)
{
    if (!r->failed)
        err_set(r->err, STATUS_CORRUPT, "%s %s", r->word, what);
    r->failed = true;
}

/* ---- parts of a value ---- */

/* Cuts off the text before the separator, or all of it. False: nothing is left. */
static bool cut(struct span *rest, char separator, struct span *out)
{
    const char *to;

    if (!rest->at)
        return false;
    to = memchr(rest->at, separator, (size_t)(rest->end - rest->at));
    *out = (struct span){rest->at, to ? to : rest->end};
    *rest = to ? (struct span){to + 1, rest->end} : (struct span){NULL, NULL};
    return true;
}

/* The next element of a list that may be empty, as element `*count` of at most `max`, which it
 * counts. False at the end, and after a failure. */
static bool next(struct reader *r, struct span *list, char separator, uint32_t max, uint32_t *count,
                 struct span *out)
{
    if (r->failed || list->at == list->end || !cut(list, separator, out))
        return false;
    if (*count == max)
        fail(r, "has too many elements");
    else
        *count += 1;
    return !r->failed;
}

/* The next part, or a failure. */
static struct span need(struct reader *r, struct span *rest, char separator)
{
    struct span part = {"", ""};

    if (!cut(rest, separator, &part))
        fail(r, "ends too early");
    return part;
}

/* Nothing may follow the last value of a tuple. */
static void end_tuple(struct reader *r, struct span rest)
{
    if (rest.at)
        fail(r, "has an element with too many values");
}

/* A terminated copy; "" and a failure where it does not fit. */
static void copy(struct reader *r, struct span s, char *out, size_t room)
{
    const size_t n = (size_t)(s.end - s.at);

    out[0] = '\0';
    if (n >= room) {
        fail(r, "is too long");
        return;
    }
    memcpy(out, s.at, n);
    out[n] = '\0';
}

static int hex_digit(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = c ? strchr(digits, c) : NULL;

    return at ? (int)(at - digits) : -1;
}

/* Undoes put_text. */
static void read_text(struct reader *r, struct span s, char *out, size_t room)
{
    size_t n = 0;

    while (!r->failed && s.at < s.end) {
        int c = (unsigned char)*s.at++;
        if (c == '%') {
            const int high = s.end - s.at >= 2 ? hex_digit(s.at[0]) : -1;
            const int low = s.end - s.at >= 2 ? hex_digit(s.at[1]) : -1;
            c = high >= 0 && low >= 0 ? high * 16 + low : 0;
            s.at += 2;
        }
        if (c == 0 || n + 1 >= room) {
            fail(r, "is not a valid text");
            break;
        }
        out[n++] = (char)c;
    }
    out[n] = '\0';
}

static uint64_t read_u64(struct reader *r, struct span s, uint64_t most)
{
    uint64_t v = 0;

    if (s.at == s.end || (*s.at == '0' && s.end - s.at > 1))
        fail(r, "has an invalid number");
    for (; !r->failed && s.at < s.end; s.at++) {
        const unsigned digit = (unsigned)(*s.at - '0');
        if (digit > 9 || digit > most || v > (most - digit) / 10) {
            fail(r, "has an invalid number, or one that is too large");
            return 0;
        }
        v = v * 10 + digit;
    }
    return v;
}

/* MAYBE_KNOWN: the number is there. An unknown reason is one of a newer release. */
static enum known read_absent(struct reader *r, struct span s, enum reason *out_reason)
{
    char slug[NUMBER_BYTES];

    *out_reason = REASON_NONE;
    if (s.at == s.end || (*s.at != '?' && *s.at != '!'))
        return MAYBE_KNOWN;
    copy(r, (struct span){s.at + 1, s.end}, slug, sizeof(slug));
    if (slug[0] == '\0' || slug[strspn(slug, "abcdefghijklmnopqrstuvwxyz-")] != '\0')
        fail(r, "has an invalid reason");
    *out_reason = reason_from_slug(slug);
    return *s.at == '!' ? MAYBE_NOT_OBSERVABLE : MAYBE_UNKNOWN;
}

static struct maybe_u64 read_maybe_u64(struct reader *r, struct span s)
{
    struct maybe_u64 m = {.known = MAYBE_KNOWN};

    m.known = read_absent(r, s, &m.reason);
    if (m.known == MAYBE_KNOWN)
        m.v = read_u64(r, s, INT64_MAX);
    return m;
}

static struct maybe_f64 read_maybe_f64(struct reader *r, struct span s)
{
    struct maybe_f64 m = {.known = MAYBE_KNOWN};
    char text[NUMBER_BYTES];
    char *end;

    m.known = read_absent(r, s, &m.reason);
    if (m.known != MAYBE_KNOWN)
        return m;
    copy(r, s, text, sizeof(text));
    if (text[0] < '0' || text[0] > '9' || text[strspn(text, "0123456789.e+-")] != '\0') {
        fail(r, "has an invalid number");
        return m;
    }
    m.v = strtod(text, &end);
    if (*end != '\0')
        fail(r, "has an invalid number");
    return m;
}

/* One of `count` enumerators, by its name. */
static void read_name(struct reader *r, struct span s, const char *(*name_of)(unsigned),
                      unsigned count, unsigned *out)
{
    char text[NUMBER_BYTES];
    unsigned value = 0;

    copy(r, s, text, sizeof(text));
    while (value < count && strcmp(text, name_of(value)) != 0)
        value++;
    if (value < count)
        *out = value;
    else
        fail(r, "has an unknown name");
}

/* ---- words ---- */

/* The value of the next word, which must be this one. */
static struct span word(struct reader *r, const char *name)
{
    struct span value = {"", ""};
    const size_t n = strlen(name);

    r->word = name;
    if (r->failed)
        return value;
    if (!cut(&r->rest, ' ', &value) || (size_t)(value.end - value.at) <= n ||
        memcmp(value.at, name, n) != 0 || value.at[n] != '=') {
        fail(r, "is missing");
        return (struct span){"", ""};
    }
    value.at += n + 1;
    return value;
}

static uint64_t number(struct reader *r, const char *name, uint64_t most)
{
    const struct span value = word(r, name);

    return r->failed ? 0 : read_u64(r, value, most);
}

static void read_id(struct reader *r, char *out)
{
    copy(r, word(r, "id"), out, FINGERPRINT_ID_BYTES);
    if (strncmp(out, "fp", 2) != 0 || strlen(out) != FINGERPRINT_ID_BYTES - 2 ||
        out[2 + strspn(out + 2, "0123456789abcdef")] != '\0')
        fail(r, "is not the id of a fingerprint");
}

static void read_identity(struct reader *r, struct fingerprint *fp, char *out_id)
{
    struct gpu_identity *gpu = &fp->gpu;

    read_text(r, word(r, "gpu"), gpu->uuid, sizeof(gpu->uuid));
    read_text(r, word(r, "name"), gpu->name, sizeof(gpu->name));
    read_text(r, word(r, "driver"), gpu->driver_version, sizeof(gpu->driver_version));
    gpu->mig = number(r, "mig", 1) == 1;
    read_name(r, word(r, "origin"), origin_name, ORIGIN_IMPORTED + 1, &gpu->origin);
    gpu->sm_count = (uint32_t)number(r, "sms", REACH_MAX_SMS);
    gpu->memory_bytes = number(r, "memory", INT64_MAX);
    read_id(r, out_id);
    read_name(r, word(r, "depth"), depth_name, DEPTH_COUNT, &fp->depth);
    fp->taken_at = (int64_t)number(r, "taken", INT64_MAX);
    read_name(r, word(r, "verdict"), verdict_name, VERDICT_UNUSABLE + 1, &fp->conditions.verdict);
    fp->conditions.range_bytes = number(r, "range", INT64_MAX);
}

static void read_reach(struct reader *r, struct fingerprint *fp)
{
    struct span list;
    struct span part;

    fp->windows.reach_bytes = read_maybe_u64(r, word(r, "reach"));
    fp->windows.entry_bytes = read_maybe_u64(r, word(r, "entry"));
    fp->windows.recommended_bytes = read_maybe_u64(r, word(r, "recommended"));
    list = word(r, "levels");
    while (next(r, &list, ',', FINGERPRINT_MAX_LEVELS, &fp->level_count, &part)) {
        struct tlb_level *level = &fp->levels[fp->level_count - 1];

        level->level = fp->level_count;
        level->reach_bytes = read_maybe_u64(r, need(r, &part, ':'));
        level->entry_bytes = read_maybe_u64(r, need(r, &part, ':'));
        read_name(r, need(r, &part, ':'), shared_by_name, SHARED_GPU + 1, &level->shared_by);
        end_tuple(r, part);
    }
}

/* "7x4" or "-": the group, and how often. */
static uint32_t read_run(struct reader *r, struct span part, uint16_t *out_group)
{
    const struct span group = need(r, &part, 'x');
    uint32_t times = 1;

    if (group.end - group.at == 1 && *group.at == '-')
        *out_group = FINGERPRINT_NO_GROUP;
    else
        *out_group = (uint16_t)read_u64(r, group, REACH_MAX_GROUPS - 1);
    if (part.at)
        times = (uint32_t)read_u64(r, part, REACH_MAX_SMS);
    return times;
}

/* The partition that a list of runs describes, with at most `most` groups. */
static void read_runs(struct reader *r, struct span list, uint32_t most, struct sm_partition *out)
{
    struct span part;
    uint32_t runs = 0;
    uint32_t sm = 0;

    while (next(r, &list, ',', REACH_MAX_SMS, &runs, &part)) {
        uint16_t group = FINGERPRINT_NO_GROUP;
        const uint32_t times = read_run(r, part, &group);

        if (r->failed || times > REACH_MAX_SMS - sm) {
            fail(r, "has too many SMs");
            break;
        }
        for (uint32_t end = sm + times; sm < end; sm++)
            out->group_of_sm[sm] = group;
        if (group == FINGERPRINT_NO_GROUP)
            continue;
        if (group >= most)
            fail(r, "has too many groups");
        out->group_count = group >= out->group_count ? group + 1u : out->group_count;
    }
}

static void read_groups(struct reader *r, struct topology *t)
{
    struct sm_partition *p = &t->partition;
    struct span list = word(r, "groups");
    struct span part;
    uint32_t g = 0;

    read_runs(r, list, REACH_MAX_GROUPS, p);
    for (uint32_t sm = 0; !r->failed && sm < REACH_MAX_SMS; sm++)
        if (p->group_of_sm[sm] != FINGERPRINT_NO_GROUP)
            t->groups[p->group_of_sm[sm]].sm_count++;
    list = word(r, "group_gbps");
    while (next(r, &list, ',', p->group_count, &g, &part))
        t->groups[g - 1].random_read_gbps = read_maybe_f64(r, part);
    if (g < p->group_count)
        fail(r, "has fewer numbers than there are groups");
}

static void read_point(struct reader *r, struct span part, struct curve_point *out)
{
    out->region_bytes = read_u64(r, need(r, &part, ':'), INT64_MAX);
    out->naive_gbps = read_maybe_f64(r, need(r, &part, ':'));
    out->by_group_gbps = read_maybe_f64(r, need(r, &part, ':'));
    end_tuple(r, part);
}

static void read_rate(struct reader *r, struct span list, struct access_rate *rate)
{
    struct span head = need(r, &list, ',');
    struct span part;

    read_name(r, need(r, &head, ':'), access_name, ACCESS_COUNT, &rate->access);
    rate->transaction_bytes = (uint32_t)read_u64(r, need(r, &head, ':'), UINT32_MAX);
    rate->plateau_gbps = read_maybe_f64(r, need(r, &head, ':'));
    end_tuple(r, head);
    while (next(r, &list, ',', FINGERPRINT_MAX_RATE_POINTS, &rate->point_count, &part))
        read_point(r, part, &rate->points[rate->point_count - 1]);
}

static void read_throughput(struct reader *r, struct throughput *t)
{
    struct span list = word(r, "curve");
    struct span part;

    while (next(r, &list, ',', FINGERPRINT_MAX_CURVE, &t->curve_count, &part))
        read_point(r, part, &t->curve[t->curve_count - 1]);
    list = word(r, "rates");
    while (next(r, &list, '/', FINGERPRINT_MAX_RATES, &t->rate_count, &part))
        read_rate(r, part, &t->rates[t->rate_count - 1]);
}

/* Does this word follow? Older lines end before some. */
static bool has_word(const struct reader *r, const char *name)
{
    const size_t n = strlen(name);

    return r->rest.at && (size_t)(r->rest.end - r->rest.at) > n &&
           memcmp(r->rest.at, name, n) == 0 && r->rest.at[n] == '=';
}

static void read_contiguity(struct reader *r, struct fingerprint_contiguity *out)
{
    struct span part;

    if (!has_word(r, "contiguity"))
        return;
    part = word(r, "contiguity");
    out->frame_bytes = read_maybe_u64(r, need(r, &part, ':'));
    out->contiguous_miss_ns = read_maybe_f64(r, need(r, &part, ':'));
    out->scattered_miss_ns = read_maybe_f64(r, need(r, &part, ':'));
    end_tuple(r, part);
}

static void read_kind(struct reader *r, struct span list, struct memory_facts *out)
{
    struct span head = need(r, &list, ',');
    struct span part;
    struct maybe_u64 sms;
    uint32_t windows;

    read_name(r, need(r, &head, ':'), memory_kind_name, MEMORY_KIND_COUNT, &out->kind);
    read_text(r, need(r, &head, ':'), out->peer_uuid, sizeof(out->peer_uuid));
    out->probed_bytes = read_maybe_u64(r, need(r, &head, ':'));
    out->plateau_gbps = read_maybe_f64(r, need(r, &head, ':'));
    out->reach_bytes = read_maybe_u64(r, need(r, &head, ':'));
    out->windows_reach_bytes = read_maybe_u64(r, need(r, &head, ':'));
    sms = read_maybe_u64(r, need(r, &head, ':'));
    if (sms.v > UINT32_MAX)
        fail(r, "has too many SMs");
    out->sms_to_fill = (struct maybe_u32){sms.known, sms.reason, (uint32_t)sms.v};
    out->write_gbps = read_maybe_f64(r, need(r, &head, ':'));
    out->atomic_gbps = read_maybe_f64(r, need(r, &head, ':'));
    windows = (uint32_t)read_u64(r, need(r, &head, ':'), UINT32_MAX);
    end_tuple(r, head);
    while (next(r, &list, ',', FINGERPRINT_MAX_MEMORY_CURVE, &out->curve_count, &part)) {
        struct curve_point *const p = &out->curve[out->curve_count - 1];
        read_point(r, part, p);
        p->windows = IS_KNOWN(p->by_group_gbps) ? windows : 1;
    }
}

static void read_memory(struct reader *r, struct fingerprint *out)
{
    struct span list;
    struct span part;

    if (has_word(r, "host"))
        out->conditions.host_memory_bytes = KNOWN_U64(number(r, "host", INT64_MAX));
    if (!has_word(r, "kinds"))
        return;
    list = word(r, "kinds");
    while (next(r, &list, '/', FINGERPRINT_MAX_MEMORY, &out->memory_count, &part))
        read_kind(r, part, &out->memory[out->memory_count - 1]);
}

static void read_sides(struct reader *r, struct fingerprint_l2 *out)
{
    struct maybe_u64 granule;
    struct span list;
    struct span head;

    if (!has_word(r, "sides"))
        return;
    list = word(r, "sides");
    head = need(r, &list, ',');
    granule = read_maybe_u64(r, need(r, &head, ':'));
    out->sides = (struct maybe_u32){granule.known, granule.reason, IS_KNOWN(granule) ? 2 : 0};
    if (!IS_KNOWN(granule))
        return;
    out->granule_bytes = granule;
    out->atomic_near_cycles = read_maybe_f64(r, need(r, &head, ':'));
    out->atomic_far_cycles = read_maybe_f64(r, need(r, &head, ':'));
    end_tuple(r, head);
    read_runs(r, list, 2, &out->sharing);
}

static void read_sets(struct reader *r, struct fingerprint *out)
{
    struct span list;
    struct span part;

    if (!has_word(r, "sets"))
        return;
    list = word(r, "sets");
    while (next(r, &list, ',', FINGERPRINT_MAX_WORKING_SETS, &out->working_set_count, &part)) {
        struct working_set *const w = &out->working_sets[out->working_set_count - 1];
        w->transaction_bytes = (uint32_t)read_u64(r, need(r, &part, ':'), UINT32_MAX);
        w->set_bytes = read_u64(r, need(r, &part, ':'), INT64_MAX);
        w->same_gbps = read_maybe_f64(r, need(r, &part, ':'));
        w->own_gbps = read_maybe_f64(r, need(r, &part, ':'));
        w->near_gbps = read_maybe_f64(r, need(r, &part, ':'));
        end_tuple(r, part);
    }
}

static void read_peers(struct reader *r, struct fingerprint *out)
{
    uint32_t i = MEMORY_PEER - 1;
    struct span list;
    struct span part;

    if (!has_word(r, "peers"))
        return;
    list = word(r, "peers");
    while (next(r, &list, ',', out->memory_count, &i, &part))
        out->memory[i - 1].peer_memory_bytes = read_maybe_u64(r, part);
}

/* ---- the whole ---- */

/* The end of the words that count; NULL where the hash says that this is not what was written. */
static const char *checked_end(const char *line)
{
    static const char mark[] = " check=";
    const size_t n = strnlen(line, JOB_ENV_LINE_BYTES);
    const size_t tail = sizeof(mark) - 1 + 16;
    char want[24];

    if (n >= JOB_ENV_LINE_BYTES || n < tail || memcmp(line + n - tail, mark, sizeof(mark) - 1) != 0)
        return NULL;
    snprintf(want, sizeof(want), "%016" PRIx64, hash_bytes(HASH_START, line, n - tail));
    return strcmp(line + n - 16, want) == 0 ? line + n - tail : NULL;
}

/* Words of a newer release: "name=value" with nothing but printing characters. */
static void skip_newer(struct reader *r)
{
    struct span part;

    r->word = "a later word";
    while (!r->failed && cut(&r->rest, ' ', &part)) {
        const char *equals = memchr(part.at, '=', (size_t)(part.end - part.at));
        if (!equals || equals == part.at)
            fail(r, "is invalid");
        for (const char *c = part.at; c < part.end; c++) {
            if (*c <= ' ' || *c > '~')
                fail(r, "is invalid");
        }
    }
}

enum status job_env_read(const char *line, struct fingerprint *out, char *out_id, struct err *err)
{
    struct reader r = {.err = err, .word = "the line"};
    struct span version;
    const char *end;

    fingerprint_init(out);
    out_id[0] = '\0';
    if (strncmp(line, "v1 ", 3) != 0)
        return err_set(err, line[0] == 'v' ? STATUS_NOT_SUPPORTED : STATUS_CORRUPT,
                       "it is not of version v1 but begins with \"%.8s\"", line);
    end = checked_end(line);
    if (!end)
        return err_set(err, STATUS_CORRUPT, "it was truncated or changed");
    r.rest = (struct span){line, end};
    (void)cut(&r.rest, ' ', &version);
    read_identity(&r, out, out_id);
    read_reach(&r, out);
    out->throughput.plateau_gbps = read_maybe_f64(&r, word(&r, "plateau"));
    out->throughput.whole_memory_gbps = read_maybe_f64(&r, word(&r, "whole"));
    read_groups(&r, &out->topology);
    read_throughput(&r, &out->throughput);
    read_contiguity(&r, &out->contiguity);
    read_memory(&r, out);
    read_sides(&r, &out->l2);
    read_sets(&r, out);
    read_peers(&r, out);
    skip_newer(&r);
    if (r.failed)
        return STATUS_CORRUPT;
    if (!out->gpu.uuid[0])
        return err_set(err, STATUS_CORRUPT, "gpu is missing");
    return fingerprint_check(out, err) == STATUS_OK ? STATUS_OK : STATUS_CORRUPT;
}
