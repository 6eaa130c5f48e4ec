/* show.c: reachctl show: a fingerprint on one screen. */
#include "clients/reachctl/show.h"

#include "clients/reachctl/client.h"
#include "clients/reachctl/text.h"

#include <string.h>

enum { RANGES_BYTES = 1024 };

static void show_head(const json_t *fp)
{
    const json_t *gpu = json_object_get(fp, "gpu");
    const char *origin = json_string_value(json_object_get(fp, "origin"));
    char a[TEXT_CELL_BYTES];
    char b[TEXT_CELL_BYTES];
    char c[TEXT_CELL_BYTES];

    printf("%s  %s\n", text_word(gpu, "name", a), text_word(gpu, "uuid", b));
    if (origin && strcmp(origin, "imported") == 0)
        printf("%s SMs; its files do not tell memory and driver\n", text_count(gpu, "sm_count", a));
    else
        printf("%s SMs, %s, driver %s\n", text_count(gpu, "sm_count", a),
               text_size(gpu, "memory_bytes", b), text_word(gpu, "driver_version", c));
    printf("fingerprint %s, taken %s, depth %s", text_word(fp, "id", a),
           text_word(fp, "taken_at", b), text_word(fp, "depth", c));
    printf(", in %s ms", text_count(fp, "duration_ms", a));
    printf(" with %s of device memory\n", text_size(fp, "device_memory_bytes", a));
    if (origin && strcmp(origin, "measured") != 0)
        printf("%s: not measured on this hardware\n", origin);
}

/* "1 x 17 + 6 x 8": sets of unequal size. False where they are equal or not known. */
static bool text_unequal_sets(const json_t *level, char *out)
{
    const json_t *sizes = json_object_get(level, "set_sizes");
    size_t used = 0;
    size_t i;
    json_t *size;

    if (json_array_size(sizes) < 2)
        return false;
    json_array_foreach(sizes, i, size)
    {
        const int n =
            snprintf(out + used, TEXT_CELL_BYTES - used, "%s%lld x %lld", i > 0 ? " + " : "",
                     json_integer_value(json_object_get(size, "sets")),
                     json_integer_value(json_object_get(size, "ways")));
        if (n < 0 || used + (size_t)n >= TEXT_CELL_BYTES)
            break;
        used += (size_t)n;
    }
    return true;
}

/* "64 x 8", or why not, once. */
static void text_sets(const json_t *level, char *out)
{
    char sets[TEXT_CELL_BYTES];
    char ways[TEXT_CELL_BYTES];

    if (text_unequal_sets(level, out))
        return;
    text_count(level, "sets", sets);
    text_count(level, "ways", ways);
    if (json_is_integer(json_object_get(level, "sets")) &&
        json_is_integer(json_object_get(level, "ways")))
        snprintf(out, TEXT_CELL_BYTES, "%.20s x %.20s", sets, ways);
    else
        memcpy(out, json_is_null(json_object_get(level, "sets")) ? sets : ways, TEXT_CELL_BYTES);
}

static void show_levels(const json_t *levels)
{
    struct text_table t;
    size_t i;
    json_t *level;

    if (json_array_size(levels) == 0) {
        puts("\nTLB: no level was seen");
        return;
    }
    puts("\nTLB");
    text_table_begin(&t, ">level|shared by|>entries|>each|>reach|>onset|>saturated|>a miss costs|"
                         ">confidence|replacement|sets x ways|filled");
    json_array_foreach(levels, i, level)
    {
        char(*cells)[TEXT_CELL_BYTES] = text_table_row(&t);
        text_count(level, "level", cells[0]);
        text_word(level, "shared_by", cells[1]);
        text_count(level, "entries", cells[2]);
        text_size(level, "entry_bytes", cells[3]);
        text_size(level, "reach_bytes", cells[4]);
        text_size(level, "onset_bytes", cells[5]);
        text_size(level, "saturation_bytes", cells[6]);
        text_real(level, "miss_penalty_cycles", 1, "cycles", cells[7]);
        text_real(level, "confidence", 2, "", cells[8]);
        text_word(level, "replacement", cells[9]);
        text_sets(level, cells[10]);
        text_word(level, "fill", cells[11]);
    }
    text_table_end(&t, stdout);
}

static void show_groups(const json_t *topology)
{
    const json_t *groups = json_object_get(topology, "groups");
    char level[TEXT_CELL_BYTES];
    char confidence[TEXT_CELL_BYTES];
    size_t i;
    json_t *group;

    if (json_array_size(groups) == 0) {
        puts("\nSM groups: not known");
        return;
    }
    printf("\n%zu SM groups that share level %s, confidence %s\n", json_array_size(groups),
           text_count(topology, "level", level),
           text_real(topology, "confidence", 2, "", confidence));
    json_array_foreach(groups, i, group)
    {
        const json_t *sms = json_object_get(group, "sms");
        char ranges[RANGES_BYTES];
        char gbps[TEXT_CELL_BYTES];
        text_real(group, "random_read_gbps", 0, "GB/s", gbps);
        printf("%5zu  %3zu SMs  %s%s%s\n", i, json_array_size(sms),
               json_is_null(json_object_get(group, "random_read_gbps")) ? "" : gbps,
               json_is_null(json_object_get(group, "random_read_gbps")) ? "" : "  ",
               text_ranges(sms, ranges, sizeof(ranges)));
    }
}

/* "full die: 15 SMs in groups of 3; 2 disabled, pattern 5x3/10,11", and what they can be. */
static void show_die(const json_t *topology)
{
    const json_t *disabled = json_object_get(topology, "disabled");
    const json_t *candidates = json_object_get(disabled, "candidates");
    char a[TEXT_CELL_BYTES];
    char b[TEXT_CELL_BYTES];
    size_t i;
    json_t *candidate;
    json_t *lost;

    if (!json_is_object(disabled))
        return;
    printf("\nfull die: %s", text_count(topology, "full_sm_count", a));
    if (!json_is_integer(json_object_get(topology, "full_sm_count"))) {
        puts("");
        return;
    }
    printf(" SMs in groups of %s; ", text_count(topology, "nominal_group_sms", b));
    printf("%s disabled", text_count(disabled, "sm_count", a));
    if (json_is_string(json_object_get(disabled, "signature")))
        printf(", pattern %s", json_string_value(json_object_get(disabled, "signature")));
    puts("");
    json_array_foreach(json_object_get(disabled, "by_group"), i, lost)
    {
        printf("  group %s lacks %s\n", text_count(lost, "group", a), text_count(lost, "sms", b));
    }
    if (json_integer_value(json_object_get(disabled, "lost_groups")) > 0)
        printf("  groups lost whole: %s\n", text_count(disabled, "lost_groups", a));
    printf("  candidates for which SMs of the die: %s\n",
           text_count(disabled, "candidate_count", a));
    json_array_foreach(candidates, i, candidate)
    {
        char ranges[RANGES_BYTES];
        if (json_array_size(candidate) > 0)
            printf("    %s\n", text_ranges(candidate, ranges, sizeof(ranges)));
    }
}

static void show_slow_pairs(const json_t *pairs)
{
    const json_t *slow = json_object_get(pairs, "slow");
    char ratio[TEXT_CELL_BYTES];
    size_t i;
    json_t *pair;

    json_array_foreach(slow, i, pair)
    {
        const json_t *groups = json_object_get(pair, "groups");
        printf("  groups %lld and %lld: %s of what they read alone, by %s\n",
               json_integer_value(json_array_get(groups, 0)),
               json_integer_value(json_array_get(groups, 1)),
               text_real(pair, "ratio", 2, "", ratio),
               json_string_value(json_object_get(pair, "cause")));
    }
}

/* What each group does alone, and pairs of groups; nothing where it was not measured. */
static void show_group_reads(const json_t *topology)
{
    const json_t *groups = json_object_get(topology, "groups");
    const json_t *pairs = json_object_get(topology, "pairs");
    struct text_table t;
    char a[TEXT_CELL_BYTES];
    char b[TEXT_CELL_BYTES];
    size_t i;
    json_t *group;

    if (!json_is_number(json_object_get(json_array_get(groups, 0), "alone_gbps")))
        return;
    text_table_begin(&t, ">group|>SMs|>alone|>beyond the reach|>all at work|>a miss costs|>class");
    json_array_foreach(groups, i, group)
    {
        char(*cells)[TEXT_CELL_BYTES] = text_table_row(&t);
        text_count(group, "id", cells[0]);
        snprintf(cells[1], TEXT_CELL_BYTES, "%zu", json_array_size(json_object_get(group, "sms")));
        text_real(group, "alone_gbps", 1, "GB/s", cells[2]);
        text_real(group, "beyond_gbps", 1, "GB/s", cells[3]);
        text_real(group, "random_read_gbps", 1, "GB/s", cells[4]);
        text_real(group, "miss_penalty_cycles", 1, "cycles", cells[5]);
        text_count(group, "penalty_class", cells[6]);
    }
    text_table_end(&t, stdout);
    printf("classes by a miss: %s, by speed: %s", text_count(topology, "penalty_classes", a),
           text_count(topology, "speed_classes", b));
    printf("; speed follows the number of SMs: %s\n", text_word(topology, "speed_follows_sms", a));
    printf("pairs of groups: %s measured, the worst reads %s of what its groups read alone",
           text_count(pairs, "measured", a), text_real(pairs, "worst_ratio", 3, "", b));
    printf("; any that share a TLB: %s\n", text_word(pairs, "share_tlb", a));
    show_slow_pairs(pairs);
}

static void show_throughput(const json_t *fp)
{
    const json_t *windows = json_object_get(fp, "windows");
    const json_t *throughput = json_object_get(fp, "throughput");
    const json_t *curve = json_object_get(throughput, "curve");
    struct text_table t;
    char a[TEXT_CELL_BYTES];
    char b[TEXT_CELL_BYTES];
    size_t i;
    json_t *point;

    printf("\nwindows: a group reaches %s; recommended at most %s",
           text_size(windows, "reach_bytes", a), text_size(windows, "recommended_bytes", b));
    printf(", window bounds at multiples of %s\n", text_size(windows, "entry_bytes", a));
    printf("random reads: %s inside the reach, %s over the largest region\n",
           text_real(throughput, "plateau_gbps", 0, "GB/s", a),
           text_real(throughput, "whole_memory_gbps", 0, "GB/s", b));
    if (json_array_size(curve) == 0)
        return;
    text_table_begin(&t, ">region|>naive|>by group|>by SM (control)|>windows");
    json_array_foreach(curve, i, point)
    {
        char(*cells)[TEXT_CELL_BYTES] = text_table_row(&t);
        text_size(point, "region_bytes", cells[0]);
        text_real(point, "naive_gbps", 0, "GB/s", cells[1]);
        text_real(point, "by_group_gbps", 0, "GB/s", cells[2]);
        text_real(point, "by_sm_gbps", 0, "GB/s", cells[3]);
        text_count(point, "windows", cells[4]);
    }
    text_table_end(&t, stdout);
}

/* "0.99 x 10^9/s": what a job counts in, whatever one access moves. */
static void text_accesses(const json_t *object, const char *name, double bytes, char *out)
{
    const json_t *gbps = json_object_get(object, name);

    if (json_is_number(gbps) && bytes > 0)
        snprintf(out, TEXT_CELL_BYTES, "%.2f", json_number_value(gbps) / bytes);
    else
        text_real(object, name, 0, "", out);
}

/* Other kinds of access: a row for the plateau and one for each region beyond the reach. */
static void show_rates(const json_t *rates)
{
    struct text_table t;
    size_t i;
    size_t k;
    json_t *rate;
    json_t *point;

    if (json_array_size(rates) == 0)
        return;
    puts("\nrandom accesses of other kinds");
    text_table_begin(&t, "access|>bytes|>region|>naive|>by group|>10^9/s naive|>10^9/s by group");
    json_array_foreach(rates, i, rate)
    {
        const double bytes = json_number_value(json_object_get(rate, "transaction_bytes"));
        char(*cells)[TEXT_CELL_BYTES] = text_table_row(&t);
        text_word(rate, "access", cells[0]);
        text_count(rate, "transaction_bytes", cells[1]);
        snprintf(cells[2], TEXT_CELL_BYTES, "in reach");
        text_real(rate, "plateau_gbps", 0, "GB/s", cells[3]);
        text_accesses(rate, "plateau_gbps", bytes, cells[5]);
        json_array_foreach(json_object_get(rate, "points"), k, point)
        {
            cells = text_table_row(&t);
            text_word(rate, "access", cells[0]);
            text_count(rate, "transaction_bytes", cells[1]);
            text_size(point, "region_bytes", cells[2]);
            text_real(point, "naive_gbps", 0, "GB/s", cells[3]);
            text_accesses(point, "naive_gbps", bytes, cells[5]);
            if (!json_is_number(json_object_get(point, "by_group_gbps")))
                continue;
            text_real(point, "by_group_gbps", 0, "GB/s", cells[4]);
            text_accesses(point, "by_group_gbps", bytes, cells[6]);
        }
    }
    text_table_end(&t, stdout);
}

static void show_conditions(const json_t *conditions)
{
    char a[TEXT_CELL_BYTES];
    char b[TEXT_CELL_BYTES];
    size_t i;
    json_t *note;

    printf("\nconditions: %s, arena %s", text_word(conditions, "verdict", a),
           text_word(conditions, "arena", b));
    printf(" of %s over %s of memory", text_size(conditions, "range_bytes", a),
           text_size(conditions, "backing_bytes", b));
    printf(", other processes: %s\n", text_count(conditions, "other_processes", a));
    json_array_foreach(json_object_get(conditions, "notes"), i, note)
    {
        printf("  note: %s\n", json_string_value(note));
    }
}

void show_fingerprint(const json_t *fp)
{
    show_head(fp);
    show_levels(json_object_get(json_object_get(fp, "tlb"), "levels"));
    show_groups(json_object_get(fp, "topology"));
    show_die(json_object_get(fp, "topology"));
    show_group_reads(json_object_get(fp, "topology"));
    show_throughput(fp);
    show_rates(json_object_get(json_object_get(fp, "throughput"), "rates"));
    show_conditions(json_object_get(fp, "conditions"));
}

enum exit_code command_show(struct client *client, const struct options *options)
{
    struct client_answer answer;
    char path[CLIENT_PATH_BYTES];
    enum exit_code exit_code;

    client_gpu_path(options, "/fingerprint", path);
    client_add_param(path, "at", options->at);
    exit_code = client_get(client, path, NULL, &answer);
    if (exit_code != EXIT_DONE)
        return exit_code;
    if (options->json) {
        fputs(answer.body, stdout);
    } else {
        show_fingerprint(answer.json);
        if (options->given & OPTION_EVIDENCE)
            show_evidence(answer.json);
    }
    client_answer_free(&answer);
    return EXIT_DONE;
}
