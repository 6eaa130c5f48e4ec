/* job_env_write.c: writes a fingerprint as the words of job_env.h. */
#include "planner/job_env.h"

#include "base/hash.h"
#include "base/units.h"
#include "planner/placement.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHECK_BYTES = sizeof(" check=0123456789abcdef") };

/* A text that grows within a fixed buffer. */
struct room {
    char *text;
    size_t room;
    size_t bytes; /* without the end */
    bool full;
};

static void put(struct room *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(struct room *r, const char *format, ...)
{
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(r->text + r->bytes, r->room - r->bytes, format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= r->room - r->bytes) {
        r->full = true;
        r->text[r->bytes] = '\0';
    } else {
        r->bytes += (size_t)n;
    }
}

/* ---- values ---- */

/* Letters, digits and some signs as they are; of all else its bytes in hexadecimal. */
static void put_text(struct room *r, const char *text)
{
    static const char PLAIN[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.+";

    for (const char *c = text; *c; c++)
        put(r, strchr(PLAIN, *c) ? "%c" : "%%%02x", (unsigned char)*c);
}

static bool put_absent(struct room *r, enum known known, enum reason reason)
{
    if (known == MAYBE_KNOWN)
        return false;
    put(r, "%c%s", known == MAYBE_NOT_OBSERVABLE ? '!' : '?', reason_slug(reason));
    return true;
}

static void put_u64(struct room *r, struct maybe_u64 m)
{
    if (!put_absent(r, m.known, m.reason))
        put(r, "%" PRIu64, m.v);
}

/* The shortest text that reads back as the same number. */
static void put_f64(struct room *r, struct maybe_f64 m)
{
    char text[40];

    if (put_absent(r, m.known, m.reason))
        return;
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, m.v);
        if (strtod(text, NULL) == m.v)
            break;
    }
    put(r, "%s", text);
}

/* ---- words ---- */

static void put_identity(struct room *r, const struct fingerprint *fp, const char *id)
{
    const struct gpu_identity *gpu = &fp->gpu;

    put(r, "v1 gpu=");
    put_text(r, gpu->uuid);
    put(r, " name=");
    put_text(r, gpu->name);
    put(r, " driver=");
    put_text(r, gpu->driver_version);
    put(r, " mig=%d origin=%s sms=%" PRIu32 " memory=%" PRIu64, gpu->mig, origin_name(gpu->origin),
        gpu->sm_count, gpu->memory_bytes);
    put(r, " id=%s depth=%s taken=%" PRId64 " verdict=%s range=%" PRIu64, id, depth_name(fp->depth),
        fp->taken_at, verdict_name(fp->conditions.verdict), fp->conditions.range_bytes);
}

static void put_reach(struct room *r, const struct fingerprint *fp)
{
    put(r, " reach=");
    put_u64(r, fp->windows.reach_bytes);
    put(r, " entry=");
    put_u64(r, fp->windows.entry_bytes);
    put(r, " recommended=");
    put_u64(r, fp->windows.recommended_bytes);
    put(r, " levels=");
    for (uint32_t i = 0; i < fp->level_count; i++) {
        put(r, "%s", i ? "," : "");
        put_u64(r, fp->levels[i].reach_bytes);
        put(r, ":");
        put_u64(r, fp->levels[i].entry_bytes);
        put(r, ":%s", shared_by_name(fp->levels[i].shared_by));
    }
}

/* Runs of SM ids with the same group, up to the last SM that has one. */
static void put_runs(struct room *r, const struct sm_partition *p)
{
    uint32_t slots = 0;

    for (uint32_t sm = 0; p->group_count > 0 && sm < REACH_MAX_SMS; sm++)
        slots = p->group_of_sm[sm] == FINGERPRINT_NO_GROUP ? slots : sm + 1;
    for (uint32_t sm = 0, run; sm < slots; sm += run) {
        const uint16_t group = p->group_of_sm[sm];
        for (run = 1; sm + run < slots && p->group_of_sm[sm + run] == group; run++)
            ;
        put(r, "%s", sm ? "," : "");
        if (group == FINGERPRINT_NO_GROUP)
            put(r, "-");
        else
            put(r, "%u", group);
        if (run > 1)
            put(r, "x%" PRIu32, run);
    }
}

static void put_groups(struct room *r, const struct topology *t)
{
    const struct sm_partition *p = &t->partition;

    put(r, " groups=");
    put_runs(r, p);
    put(r, " group_gbps=");
    for (uint32_t g = 0; g < p->group_count; g++) {
        put(r, "%s", g ? "," : "");
        put_f64(r, t->groups[g].random_read_gbps);
    }
}

static void put_point(struct room *r, const char *comma, const struct curve_point *p)
{
    put(r, "%s%" PRIu64 ":", comma, p->region_bytes);
    put_f64(r, p->naive_gbps);
    put(r, ":");
    put_f64(r, p->by_group_gbps);
}

static void put_throughput(struct room *r, const struct throughput *t)
{
    put(r, " curve=");
    for (uint32_t i = 0; i < t->curve_count; i++)
        put_point(r, i ? "," : "", &t->curve[i]);
    put(r, " rates=");
    for (uint32_t i = 0; i < t->rate_count; i++) {
        const struct access_rate *rate = &t->rates[i];
        put(r, "%s%s:%" PRIu32 ":", i ? "/" : "", access_name(rate->access),
            rate->transaction_bytes);
        put_f64(r, rate->plateau_gbps);
        for (uint32_t k = 0; k < rate->point_count; k++)
            put_point(r, ",", &rate->points[k]);
    }
}

static void put_contiguity(struct room *r, const struct fingerprint_contiguity *c)
{
    if (c->contiguous_miss_ns.known == MAYBE_UNKNOWN &&
        c->contiguous_miss_ns.reason == REASON_NOT_MEASURED)
        return;
    put(r, " contiguity=");
    put_u64(r, c->frame_bytes);
    put(r, ":");
    put_f64(r, c->contiguous_miss_ns);
    put(r, ":");
    put_f64(r, c->scattered_miss_ns);
}

/* WINDOWS is the number of windows of the third column; 1: not probed in windows. */
static void put_kind(struct room *r, const struct memory_facts *m)
{
    uint32_t windows = 1;

    for (uint32_t i = 0; i < m->curve_count; i++)
        windows = IS_KNOWN(m->curve[i].by_group_gbps) ? m->curve[i].windows : windows;
    put(r, "%s:", memory_kind_name(m->kind));
    put_text(r, m->peer_uuid);
    put(r, ":");
    put_u64(r, m->probed_bytes);
    put(r, ":");
    put_f64(r, m->plateau_gbps);
    put(r, ":");
    put_u64(r, m->reach_bytes);
    put(r, ":");
    put_u64(r, m->windows_reach_bytes);
    put(r, ":");
    put_u64(r, (struct maybe_u64){m->sms_to_fill.known, m->sms_to_fill.reason, m->sms_to_fill.v});
    put(r, ":");
    put_f64(r, m->write_gbps);
    put(r, ":");
    put_f64(r, m->atomic_gbps);
    put(r, ":%" PRIu32, windows);
    for (uint32_t i = 0; i < m->curve_count; i++)
        put_point(r, ",", &m->curve[i]);
}

/* Behind all older words, which readers of older releases look for in their order. */
static void put_peers(struct room *r, const struct fingerprint *fp)
{
    for (uint32_t i = MEMORY_PEER - 1; i < fp->memory_count; i++) {
        put(r, i == MEMORY_PEER - 1 ? " peers=" : ",");
        put_u64(r, fp->memory[i].peer_memory_bytes);
    }
}

/* All of them or, if they do not fit together with the word of the peers, none: false. */
static bool put_memory(struct room *r, const struct fingerprint *fp)
{
    const size_t before = r->bytes;
    size_t after;
    bool fits;

    for (uint32_t i = 0; i < fp->memory_count; i++) {
        put(r, i ? "/" : " kinds=");
        put_kind(r, &fp->memory[i]);
    }
    after = r->bytes;
    put_peers(r, fp);
    fits = !r->full && r->room - r->bytes > CHECK_BYTES;
    r->full = false;
    r->bytes = fits ? after : before;
    return fits;
}

static void put_sides(struct room *r, const struct fingerprint_l2 *l2)
{
    if (l2->sides.known == MAYBE_UNKNOWN && l2->sides.reason == REASON_NOT_MEASURED)
        return;
    put(r, " sides=");
    if (put_absent(r, l2->sides.known, l2->sides.reason))
        return;
    put_u64(r, l2->granule_bytes);
    put(r, ":");
    put_f64(r, l2->atomic_near_cycles);
    put(r, ":");
    put_f64(r, l2->atomic_far_cycles);
    put(r, ",");
    put_runs(r, &l2->sharing);
}

static void put_sets(struct room *r, const struct fingerprint *fp)
{
    for (uint32_t i = 0; i < fp->working_set_count; i++) {
        const struct working_set *const w = &fp->working_sets[i];
        put(r, "%s%" PRIu32 ":%" PRIu64 ":", i ? "," : " sets=", w->transaction_bytes,
            w->set_bytes);
        put_f64(r, w->same_gbps);
        put(r, ":");
        put_f64(r, w->own_gbps);
        put(r, ":");
        put_f64(r, w->near_gbps);
    }
}

/* The kinds of memory, then the sides and the sets of caches, which are shorter and go first where
 * there is no room for both. */
static void put_what_fits(struct room *r, const struct fingerprint *fp)
{
    const size_t before = r->bytes;
    const size_t room = r->room;
    bool sets_fit;
    bool memory_fits;

    put_sides(r, &fp->l2);
    put_sets(r, fp);
    sets_fit = !r->full && r->room - r->bytes > CHECK_BYTES;
    if (sets_fit)
        r->room -= r->bytes - before;
    r->bytes = before;
    r->full = false;
    memory_fits = put_memory(r, fp);
    r->room = room;
    if (sets_fit) {
        put_sides(r, &fp->l2);
        put_sets(r, fp);
    }
    if (memory_fits)
        put_peers(r, fp);
}

enum status job_env_line(const struct fingerprint *fp, const char *id, char *out, struct err *err)
{
    struct room r = {.text = out, .room = JOB_ENV_LINE_BYTES};

    put_identity(&r, fp, id);
    put_reach(&r, fp);
    put(&r, " plateau=");
    put_f64(&r, fp->throughput.plateau_gbps);
    put(&r, " whole=");
    put_f64(&r, fp->throughput.whole_memory_gbps);
    put_groups(&r, &fp->topology);
    put_throughput(&r, &fp->throughput);
    put_contiguity(&r, &fp->contiguity);
    if (IS_KNOWN(fp->conditions.host_memory_bytes))
        put(&r, " host=%" PRIu64, fp->conditions.host_memory_bytes.v);
    if (!r.full)
        put_what_fits(&r, fp);
    put(&r, " check=%016" PRIx64, hash_bytes(HASH_START, out, r.bytes));
    if (r.full)
        return err_set(err, STATUS_INTERNAL,
                       "the environment line of GPU %s is longer than %d bytes", fp->gpu.uuid,
                       (int)JOB_ENV_LINE_BYTES);
    return STATUS_OK;
}

/* ---- variables ---- */

static void put_windows(struct room *r, const struct placement_answer *answer)
{
    if (answer->window_count == 0)
        return;
    put(r, "REACH_WINDOWS=");
    for (uint32_t w = 0; w < answer->window_count; w++)
        put(r, "%s%" PRIu64, w ? "," : "", answer->windows[w].length_bytes);
    put(r, "\nREACH_WINDOW_OF_SM=");
    for (uint32_t sm = 0; sm < answer->sm_slots; sm++)
        put(r, "%s%d", sm ? "," : "", answer->window_of_sm[sm]);
    put(r, "\n");
}

/* What scripts use; nothing for a GPU whose memory is not known (an imported one). */
static enum status put_whole(struct room *r, const struct fingerprint *fp, const char *id,
                             struct err *err)
{
    const struct scope_request scope = {.layout = layout_single(fp->gpu.memory_bytes),
                                        .fingerprint_id = id};
    const struct placement_request whole = {.bytes = fp->gpu.memory_bytes, .fingerprint_id = id};
    struct placement_answer answer;
    struct scope_answer pass;
    enum status s;

    if (fp->gpu.memory_bytes == 0)
        return STATUS_OK;
    s = placement_scope(fp, &scope, &pass, err);
    if (s == STATUS_OK)
        s = placement_plan(fp, &whole, &answer, err);
    if (s != STATUS_OK)
        return s;
    put(r, "REACH_SCOPE_BYTES=%" PRIu64 "\n", pass.scope_bytes);
    put_windows(r, &answer);
    return STATUS_OK;
}

enum status job_env_variables(const struct fingerprint *fp, const char *id, char *out,
                              struct err *err)
{
    struct room r = {.text = out, .room = JOB_ENV_BYTES};
    enum status s;

    put(&r, "REACH_FINGERPRINT_ID=%s\n", id);
    put(&r, "REACH_GPU_UUID=%s\n", fp->gpu.uuid);
    s = put_whole(&r, fp, id, err);
    if (s != STATUS_OK)
        return s;
    put(&r, "REACH_JOB=");
    if (r.room - r.bytes < (size_t)JOB_ENV_LINE_BYTES + 2)
        return err_set(err, STATUS_INTERNAL, "the environment variables of GPU %s are too long",
                       fp->gpu.uuid);
    s = job_env_line(fp, id, out + r.bytes, err);
    if (s == STATUS_OK)
        strcat(out + r.bytes, "\n");
    return s;
}
