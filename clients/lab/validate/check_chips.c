/* check_chips.c: see check_chips.h. Each line is a target with a number, a band and a verdict.
 *
 *   V1  the naive curve of each GPU out of reach. The cost of a miss comes from the largest
 *       region, so this region is not judged.
 *   V3  random reads of a plain allocation while others hold a share of memory in random pages of
 *       2 MiB. A frame is contiguous if its 15 pages behind the first were free. The probability
 *       is (1 - share)^15. The cost of a scattered miss comes from the fingerprint.
 *   V4  latency traces: each timed load of each walk at the stride of an entry hits or misses as in
 *       the model (latency_replay.h).
 *
 * No parameter is fitted to a judged number.
 */
#include "clients/lab/validate/check_chips.h"

#include "base/units.h"
#include "batch/export.h"
#include "clients/lab/exit_status.h"
#include "clients/lab/validate/latency_replay.h"
#include "clients/lab/validate/measured.h"
#include "clients/lab/whatif/machine.h"
#include "clients/lab/whatif/random_reads.h"

#include <math.h>
#include <stdlib.h>

enum { LINE_BYTES = 128, SEED = 1, FRAME_PAGES = 16, MAX_PERCENT = 100 };

static const double CURVE_BAND = 0.02;
static const double SCATTERED_BAND = 0.02;

static void print_verdict(struct measured_tally *t, bool good)
{
    puts(good ? "  reproduced" : "  not reproduced");
    t->reproduced += good;
    t->not_reproduced += !good;
}

static void leave_out(struct measured_tally *t, const char *target, const char *name,
                      const char *why)
{
    printf("%s  %-42s left out: %s\n", target, name, why);
    t->left_out++;
}

/* ---- V1 ---- */

static double predicted_gbps(const struct random_reads_misses *m, double plateau_gbps,
                             double contiguous_ns, double scattered_ns)
{
    const double ns = (m->walked - m->scattered) * contiguous_ns + m->scattered * scattered_ns;
    const double gbps = ns > 0 ? LINE_BYTES / ns : plateau_gbps;
    return gbps < plateau_gbps ? gbps : plateau_gbps;
}

static enum status count_region(const struct sim_desc *machine, uint64_t bytes,
                                struct random_reads_misses *out, struct err *err)
{
    const struct random_reads reads = {.region_bytes = bytes, .seed = SEED};
    return random_reads_count(machine, &reads, out, err);
}

/* Finds the point with the largest deviation. Returns false if there is no point to judge. */
static bool worst_point(const struct fingerprint *fp, const struct sim_desc *machine,
                        const struct curve_point **out_worst, double *out_gbps, uint32_t *out_count)
{
    const struct throughput *t = &fp->throughput;
    const struct curve_point *largest = t->curve_count > 0 ? &t->curve[t->curve_count - 1] : NULL;
    struct random_reads_misses m;
    double worst = -1;
    *out_worst = NULL;
    *out_count = 0;
    if (!largest || count_region(machine, largest->region_bytes, &m, NULL) != STATUS_OK ||
        !(largest->naive_gbps.v > 0) || !(m.walked > 0))
        return false;
    const double miss_ns = LINE_BYTES / largest->naive_gbps.v / m.walked;
    for (const struct curve_point *p = t->curve; p < largest; p++) {
        if (p->region_bytes <= fp->windows.reach_bytes.v || !(p->naive_gbps.v > 0) ||
            count_region(machine, p->region_bytes, &m, NULL) != STATUS_OK)
            continue;
        const double gbps = predicted_gbps(&m, t->plateau_gbps.v, miss_ns, miss_ns);
        const double off = fabs(gbps / p->naive_gbps.v - 1);
        ++*out_count;
        if (off <= worst)
            continue;
        worst = off;
        *out_worst = p;
        *out_gbps = gbps;
    }
    return *out_worst;
}

static void check_curve(const char *name, const struct fingerprint *fp,
                        const struct sim_desc *machine, struct measured_tally *tally)
{
    const struct curve_point *worst = NULL;
    double gbps = 0;
    uint32_t count = 0;
    if (!worst_point(fp, machine, &worst, &gbps, &count)) {
        leave_out(tally, "V1", name, "the curve has no point to judge beyond the reach");
        return;
    }
    const double off = gbps / worst->naive_gbps.v - 1;
    printf("V1  %-42s %+5.1f %% at %.1f GiB, the worst of %u: %.0f GB/s for %.0f  within %.0f %%",
           name, 100 * off, (double)worst->region_bytes / GIB, count, gbps, worst->naive_gbps.v,
           100 * CURVE_BAND);
    print_verdict(tally, fabs(off) <= CURVE_BAND);
}

/* ---- V3 ---- */

static void check_held_share(const struct fingerprint *fp, const struct sim_desc *machine,
                             const json_t *row, double whole_gbps, uint64_t bytes,
                             struct measured_tally *tally)
{
    const double held = json_number_value(json_object_get(row, "held_percent")) / MAX_PERCENT;
    const double measured = json_number_value(json_object_get(row, "malloc_gbps"));
    const double times = contiguity_factor(&fp->contiguity).v;
    const struct random_reads reads = {.region_bytes = bytes,
                                       .frame_bytes = fp->contiguity.frame_bytes.v,
                                       .scattered_share = 1 - pow(1 - held, FRAME_PAGES - 1),
                                       .seed = SEED};
    struct random_reads_misses m;
    if (random_reads_count(machine, &reads, &m, NULL) != STATUS_OK || !(m.walked > 0)) {
        tally->failed = true;
        return;
    }
    const double miss_ns = LINE_BYTES / whole_gbps / m.walked;
    const double gbps = predicted_gbps(&m, fp->throughput.plateau_gbps.v, miss_ns, miss_ns * times);
    printf(
        "V3  %2.0f %% of memory held by others %11s %+5.1f %%: %.0f GB/s for %.0f  within %.0f %%",
        MAX_PERCENT * held, "", 100 * (gbps / measured - 1), gbps, measured, 100 * SCATTERED_BAND);
    print_verdict(tally, fabs(gbps / measured - 1) <= SCATTERED_BAND);
}

static void check_scattered(const char *folder, struct measured_tally *tally)
{
    static const char chip[] =
        "nvidia-h200-2ea0ea17-2026-11-22"; /* one of the two GPUs of the visit below */
    static const char file[] = "visit-memory-h200-2026-11-22/fragmented.json";
    struct err err = {0};
    struct fingerprint *fp = calloc(1, sizeof *fp);
    struct sim_desc *machine = calloc(1, sizeof *machine);
    char path[MEASURED_PATH_BYTES];
    const json_t *row;
    size_t i;

    (void)snprintf(path, sizeof path, "%s/%s", folder, file);
    json_t *json = json_load_file(path, 0, NULL);
    const json_t *rows = json_object_get(json, "rows");
    const uint64_t bytes = (uint64_t)json_integer_value(json_object_get(json, "bytes"));
    const double whole = json_number_value(json_object_get(json_array_get(rows, 0), "malloc_gbps"));
    if (!fp || !machine || !(whole > 0) || !measured_fingerprint(folder, chip, fp, &err) ||
        fp->contiguity.frame_bytes.known != MAYBE_KNOWN ||
        machine_from_fingerprint(fp, machine, &err) != STATUS_OK)
        leave_out(tally, "V3", "scattered memory", "its files are not in this folder");
    else
        json_array_foreach(rows, i, row)
        {
            if (i > 0)
                check_held_share(fp, machine, row, whole, bytes, tally);
        }
    json_decref(json);
    free(machine);
    free(fp);
}

/* ---- V4 ---- */

static void check_latency(const char *folder, const char *name, const struct fingerprint *fp,
                          const struct sim_desc *machine, struct measured_tally *tally)
{
    struct observation_set set = {0};
    struct latency_score score = {0};
    struct err err = {0};
    enum depth depth;
    struct unpack in;
    if (!measured_observations(folder, name, &in)) {
        leave_out(tally, "V4", name, "no raw observations are stored");
        return;
    }
    enum status s = export_read_observations(in.in, &set, &depth, &err);
    s = unpack_close(&in, s, &err);
    if (s == STATUS_OK)
        s = latency_replay(&set, fp, machine, &score, &err);
    observation_set_free(&set);
    if (s != STATUS_OK) {
        (void)fprintf(stderr, "reach-lab check: cannot read the observations of %s: %s\n", name,
                      err.text);
        tally->failed = true;
    }
    if (score.walks == 0) {
        leave_out(tally, "V4", name, "no walk goes beyond the last level");
        return;
    }
    printf("V4  %-42s %llu of %llu loads in %llu walks are wrong (%llu without the page of the "
           "values; %llu and %llu with one recent miss less and more)  none",
           name, (unsigned long long)score.wrong, (unsigned long long)score.loads,
           (unsigned long long)score.walks, (unsigned long long)score.wrong_alone,
           (unsigned long long)score.wrong_fewer, (unsigned long long)score.wrong_more);
    print_verdict(tally, score.wrong == 0);
}

/* ---- all ---- */

static void check_chip(const char *folder, const char *name, struct measured_tally *tally)
{
    struct err err = {0};
    struct fingerprint *fp = calloc(1, sizeof *fp);
    struct sim_desc *machine = calloc(1, sizeof *machine);
    if (!fp || !machine) {
        tally->failed = true;
    } else if (!measured_fingerprint(folder, name, fp, &err)) {
        leave_out(tally, "V1", name, err.text[0] ? err.text : "no full fingerprint");
    } else if (machine_from_fingerprint(fp, machine, &err) != STATUS_OK) {
        leave_out(tally, "V1", name, err.text);
    } else {
        check_curve(name, fp, machine, tally);
        if (machine->levels[machine->level_count - 1].recent > 0)
            check_latency(folder, name, fp, machine, tally);
        else
            leave_out(tally, "V4", name, "the sets are not known");
    }
    free(machine);
    free(fp);
}

int check_chips(const char *folder)
{
    struct measured_tally tally = {0};
    if (!measured_each(folder, "nvidia-", check_chip, &tally))
        return LAB_ERROR;
    check_scattered(folder, &tally);
    printf("%u reproduced, %u not reproduced, %u left out\n", tally.reproduced,
           tally.not_reproduced, tally.left_out);
    return measured_exit(&tally);
}
