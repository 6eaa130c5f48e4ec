/* job_env_read.c: the words of job_env.h -> a fingerprint. Anyone can write into an environment, so
 * nothing is taken that the writer would not have written; the hash at the end is there to find
 * accidents, not attacks. The first word that makes no sense ends the reading. */
#include "planner/job_env.h"

#include "base/hash.h"

#include <inttypes.h>
#include <locale.h>
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
    struct span rest;  /* words not read yet */
    const char *word;  /* being read, for the error */
    locale_t c_locale; /* a job may have one in which a decimal point is a comma */
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

/* Cuts off what stands before the separator; all of it where there is none. False: nothing left. */
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

/* A list that may be empty. */
static struct span list_of(struct span value)
{
    return value.at == value.end ? (struct span){NULL, NULL} : value;
}

/* The next part, or a failure. */
static struct span need(struct reader *r, struct span *rest, char separator)
{
    struct span part = {"", ""};

    if (!cut(rest, separator, &part))
        fail(r, "ends too early");
    return part;
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
            fail(r, "is no text of its kind");
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
        fail(r, "has a number that is none");
    for (; !r->failed && s.at < s.end; s.at++) {
        const unsigned digit = (unsigned)(*s.at - '0');
        if (digit > 9 || digit > most || v > (most - digit) / 10) {
            fail(r, "has a number that is none, or too large");
            return 0;
        }
        v = v * 10 + digit;
    }
    return v;
}

/* MAYBE_KNOWN: the number stands there. A reason of a newer release is read as any. */
static enum known read_absent(struct reader *r, struct span s, enum reason *out_reason)
{
    char slug[NUMBER_BYTES];

    *out_reason = REASON_NONE;
    if (s.at == s.end || (*s.at != '?' && *s.at != '!'))
        return MAYBE_KNOWN;
    copy(r, (struct span){s.at + 1, s.end}, slug, sizeof(slug));
    if (slug[0] == '\0' || slug[strspn(slug, "abcdefghijklmnopqrstuvwxyz-")] != '\0')
        fail(r, "has a reason that is none");
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
        fail(r, "has a number that is none");
        return m;
    }
    m.v = strtod_l(text, &end, r->c_locale);
    if (*end != '\0')
        fail(r, "has a number that is none");
    return m;
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
        fail(r, "is not there");
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

/* As text: "" fails the look-up that follows. */
static void short_text(struct reader *r, const char *which, char *out, size_t room)
{
    copy(r, word(r, which), out, room);
}

static void read_identity(struct reader *r, struct fingerprint *fp, char *out_id)
{
    struct gpu_identity *gpu = &fp->gpu;
    char text[NUMBER_BYTES];

    read_text(r, word(r, "gpu"), gpu->uuid, sizeof(gpu->uuid));
    read_text(r, word(r, "name"), gpu->name, sizeof(gpu->name));
    read_text(r, word(r, "driver"), gpu->driver_version, sizeof(gpu->driver_version));
    gpu->mig = number(r, "mig", 1) == 1;
    short_text(r, "origin", text, sizeof(text));
    if (!r->failed && !origin_from_name(text, &gpu->origin))
        fail(r, "is none");
    gpu->sm_count = (uint32_t)number(r, "sms", REACH_MAX_SMS);
    gpu->memory_bytes = number(r, "memory", INT64_MAX);
    short_text(r, "id", out_id, FINGERPRINT_ID_BYTES);
    if (!r->failed &&
        (strncmp(out_id, "fp", 2) != 0 || strlen(out_id) != FINGERPRINT_ID_BYTES - 2 ||
         out_id[2 + strspn(out_id + 2, "0123456789abcdef")] != '\0'))
        fail(r, "is none");
    short_text(r, "depth", text, sizeof(text));
    if (!r->failed && !depth_from_name(text, &fp->depth))
        fail(r, "is none");
    fp->taken_at = (int64_t)number(r, "taken", INT64_MAX);
    short_text(r, "verdict", text, sizeof(text));
    if (!r->failed && !verdict_from_name(text, &fp->conditions.verdict))
        fail(r, "is none");
    fp->conditions.range_bytes = number(r, "range", INT64_MAX);
}

static void read_shared_by(struct reader *r, struct span part, enum shared_by *out)
{
    char text[NUMBER_BYTES];

    copy(r, part, text, sizeof(text));
    for (int s = SHARED_UNKNOWN; s <= SHARED_GPU; s++) {
        if (strcmp(text, shared_by_name((enum shared_by)s)) == 0) {
            *out = (enum shared_by)s;
            return;
        }
    }
    fail(r, "has a sharing that is none");
}

static void read_reach(struct reader *r, struct fingerprint *fp)
{
    struct span list;
    struct span part;

    fp->windows.reach_bytes = read_maybe_u64(r, word(r, "reach"));
    fp->windows.entry_bytes = read_maybe_u64(r, word(r, "entry"));
    fp->windows.recommended_bytes = read_maybe_u64(r, word(r, "recommended"));
    list = list_of(word(r, "levels"));
    while (!r->failed && cut(&list, ',', &part)) {
        struct tlb_level *level = &fp->levels[fp->level_count];
        if (fp->level_count == FINGERPRINT_MAX_LEVELS) {
            fail(r, "has too many");
            break;
        }
        level->level = ++fp->level_count;
        level->reach_bytes = read_maybe_u64(r, need(r, &part, ':'));
        level->entry_bytes = read_maybe_u64(r, need(r, &part, ':'));
        read_shared_by(r, need(r, &part, ':'), &level->shared_by);
        if (part.at)
            fail(r, "has a level of too many parts");
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

static void read_groups(struct reader *r, struct topology *t)
{
    struct sm_partition *p = &t->partition;
    struct span list = list_of(word(r, "groups"));
    struct span part;
    uint32_t sm = 0;
    uint32_t g = 0;

    for (uint32_t i = 0; i < REACH_MAX_SMS; i++)
        p->group_of_sm[i] = FINGERPRINT_NO_GROUP;
    while (!r->failed && cut(&list, ',', &part)) {
        uint16_t group = FINGERPRINT_NO_GROUP;
        const uint32_t times = read_run(r, part, &group);
        if (r->failed || times > REACH_MAX_SMS - sm) {
            fail(r, "has too many SMs");
            break;
        }
        for (uint32_t end = sm + times; sm < end; sm++)
            p->group_of_sm[sm] = group;
        if (group == FINGERPRINT_NO_GROUP)
            continue;
        t->groups[group].sm_count += times;
        p->group_count = group >= p->group_count ? group + 1u : p->group_count;
    }
    list = list_of(word(r, "group_gbps"));
    for (; !r->failed && g < p->group_count; g++)
        t->groups[g].random_read_gbps = read_maybe_f64(r, need(r, &list, ','));
    if (list.at)
        fail(r, "has more numbers than there are groups");
}

static void read_point(struct reader *r, struct span part, uint64_t *out_bytes,
                       struct maybe_f64 *out_naive, struct maybe_f64 *out_by_group)
{
    *out_bytes = read_u64(r, need(r, &part, ':'), INT64_MAX);
    *out_naive = read_maybe_f64(r, need(r, &part, ':'));
    *out_by_group = read_maybe_f64(r, need(r, &part, ':'));
    if (part.at)
        fail(r, "has a point of too many parts");
}

static void read_rate(struct reader *r, struct span list, struct access_rate *rate)
{
    struct span head = need(r, &list, ',');
    char text[NUMBER_BYTES];
    struct span part;

    copy(r, need(r, &head, ':'), text, sizeof(text));
    if (!access_from_name(text, &rate->access))
        fail(r, "has an access that is none");
    rate->transaction_bytes = (uint32_t)read_u64(r, need(r, &head, ':'), UINT32_MAX);
    rate->plateau_gbps = read_maybe_f64(r, need(r, &head, ':'));
    if (head.at)
        fail(r, "has a rate of too many parts");
    while (!r->failed && cut(&list, ',', &part)) {
        struct rate_point *p = &rate->points[rate->point_count];
        if (rate->point_count++ == FINGERPRINT_MAX_RATE_POINTS) {
            rate->point_count--;
            fail(r, "has too many points");
            break;
        }
        read_point(r, part, &p->region_bytes, &p->naive_gbps, &p->by_group_gbps);
    }
}

static void read_throughput(struct reader *r, struct throughput *t)
{
    struct span list = list_of(word(r, "curve"));
    struct span part;

    while (!r->failed && cut(&list, ',', &part)) {
        struct curve_point *p = &t->curve[t->curve_count];
        if (t->curve_count == FINGERPRINT_MAX_CURVE) {
            fail(r, "has too many points");
            break;
        }
        read_point(r, part, &p->region_bytes, &p->naive_gbps, &p->by_group_gbps);
        t->curve_count++;
    }
    list = list_of(word(r, "rates"));
    while (!r->failed && cut(&list, '/', &part)) {
        if (t->rate_count == FINGERPRINT_MAX_RATES) {
            fail(r, "has too many");
            break;
        }
        read_rate(r, part, &t->rates[t->rate_count++]);
    }
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
            fail(r, "is none");
        for (const char *c = part.at; c < part.end; c++) {
            if (*c <= ' ' || *c > '~')
                fail(r, "is none");
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
        return err_set(err, STATUS_CORRUPT, "it was cut or changed on its way");
    r.c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!r.c_locale)
        return err_set(err, STATUS_NO_MEMORY, "no memory to read it");
    r.rest = (struct span){line, end};
    (void)cut(&r.rest, ' ', &version);
    read_identity(&r, out, out_id);
    read_reach(&r, out);
    out->throughput.plateau_gbps = read_maybe_f64(&r, word(&r, "plateau"));
    out->throughput.whole_memory_gbps = read_maybe_f64(&r, word(&r, "whole"));
    read_groups(&r, &out->topology);
    read_throughput(&r, &out->throughput);
    skip_newer(&r);
    freelocale(r.c_locale);
    if (r.failed)
        return STATUS_CORRUPT;
    if (!out->gpu.uuid[0])
        return err_set(err, STATUS_CORRUPT, "gpu is not there");
    return fingerprint_check(out, err) == STATUS_OK ? STATUS_OK : STATUS_CORRUPT;
}
