/* show.c: reachctl show: a fingerprint on one screen, and the evidence of its numbers. */
#include "clients/reachctl/show.h"

#include "clients/reachctl/client.h"
#include "clients/reachctl/picture.h"
#include "clients/reachctl/text.h"

#include "planner/next_step.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_t *get(const json_t *object, const char *name)
{
    return json_object_get(object, name);
}

static void show_head(const json_t *fp)
{
    const char *origin = json_string_value(get(fp, "origin"));

    text_print(fp, "{gpu.name}  {gpu.uuid}\n{gpu.sm_count:d} SMs");
    if (origin && strcmp(origin, "imported") == 0)
        puts("; its files do not tell memory and driver");
    else
        text_print(fp, ", {gpu.memory_bytes:B}, driver {gpu.driver_version}\n");
    text_print(fp, "fingerprint {id}, taken {taken_at}, depth {depth}, in {duration_ms:d} ms with "
                   "{device_memory_bytes:B} of device memory\n");
    if (origin && strcmp(origin, "measured") != 0)
        printf("%s: not measured on this hardware\n", origin);
}

/* "64 x 8", or why not, once; "1 x 17 + 6 x 8" for sets of unequal size. */
static const char *format_sets(const json_t *level, char *out)
{
    const json_t *sizes = get(level, "set_sizes");
    size_t at = 0;
    size_t i;
    json_t *size;

    if (json_array_size(sizes) < 2) {
        const bool known =
            json_is_integer(get(level, "sets")) && json_is_integer(get(level, "ways"));
        return text_expand(level,
                           known                              ? "{sets:d} x {ways:d}"
                           : json_is_null(get(level, "sets")) ? "{sets:d}"
                                                              : "{ways:d}",
                           out, TEXT_CELL_BYTES);
    }
    json_array_foreach(sizes, i, size)
    {
        if (at < TEXT_CELL_BYTES)
            at += strlen(text_expand(size, i ? " + {sets:d} x {ways:d}" : "{sets:d} x {ways:d}",
                                     out + at, TEXT_CELL_BYTES - at));
    }
    return out;
}

static void show_levels(const json_t *levels)
{
    static const char columns[] =
        ">level {level:d}|shared by {shared_by}|>entries {entries:d}|>each {entry_bytes:B}|"
        ">reach {reach_bytes:B}|>onset {onset_bytes:B}|>saturated {saturation_bytes:B}|"
        ">a miss costs {miss_penalty_cycles:1 cycles}|>confidence {confidence:2}|"
        "replacement {replacement}|sets x ways {sets_by_ways}|filled {fill}";
    json_t *rows = json_array();
    size_t i;
    json_t *level;

    json_array_foreach(levels, i, level)
    {
        char sets[TEXT_CELL_BYTES];
        json_t *row = json_copy(level);
        json_object_set_new(row, "sets_by_ways", json_string(format_sets(level, sets)));
        json_array_append_new(rows, row);
    }
    if (json_array_size(levels) == 0) {
        puts("\nTLB: no level was seen");
    } else {
        puts("\nTLB");
        text_table(rows, columns);
    }
    json_decref(rows);
}

static void show_groups(const json_t *topology)
{
    const json_t *groups = get(topology, "groups");
    size_t i;
    json_t *group;

    if (json_array_size(groups) == 0) {
        puts("\nSM groups: not known");
        return;
    }
    text_print(topology, "\n{groups:n} SM groups that share level {level:d}, confidence "
                         "{confidence:2}\n");
    json_array_foreach(groups, i, group)
    {
        printf("%5zu  %3zu SMs  ", i, json_array_size(get(group, "sms")));
        if (!json_is_null(get(group, "random_read_gbps")))
            text_print(group, "{random_read_gbps:0 GB/s}  ");
        text_print(group, "{sms:r}\n");
    }
}

/* "full die: 15 SMs in groups of 3; 2 disabled, pattern 5x3/10,11", and which these can be. */
static void show_die(const json_t *topology)
{
    const json_t *disabled = get(topology, "disabled");
    size_t i;
    json_t *element;

    if (!json_is_object(disabled))
        return;
    text_print(topology, "\nfull die: {full_sm_count:d}");
    if (!json_is_integer(get(topology, "full_sm_count"))) {
        puts("");
        return;
    }
    text_print(topology, " SMs in groups of {nominal_group_sms:d}; {disabled.sm_count:d} disabled");
    if (json_is_string(get(disabled, "signature")))
        printf(", pattern %s", json_string_value(get(disabled, "signature")));
    puts("");
    json_array_foreach(get(disabled, "by_group"), i, element)
    {
        text_print(element, "  group {group:d} lacks {sms:d}\n");
    }
    if (json_integer_value(get(disabled, "lost_groups")) > 0)
        text_print(disabled, "  groups lost whole: {lost_groups:d}\n");
    text_print(disabled, "  candidates for which SMs of the die: {candidate_count:d}\n");
    json_array_foreach(get(disabled, "candidates"), i, element)
    {
        json_t *candidate = json_pack("{s:O}", "sms", element);
        if (json_array_size(element) > 0)
            text_print(candidate, "    {sms:r}\n");
        json_decref(candidate);
    }
}

/* What each group does alone, and pairs of groups; nothing if that was not measured. */
static void show_group_reads(const json_t *topology)
{
    static const char columns[] =
        ">group {id:d}|>SMs {sms:n}|>alone {alone_gbps:1 GB/s}|"
        ">out of reach {beyond_gbps:1 GB/s}|>all at work {random_read_gbps:1 GB/s}|"
        ">a miss costs {miss_penalty_cycles:1 cycles}|>class {penalty_class:d}";
    const json_t *groups = get(topology, "groups");
    size_t i;
    json_t *pair;

    if (!json_is_number(get(json_array_get(groups, 0), "alone_gbps")))
        return;
    text_table(groups, columns);
    text_print(
        topology,
        "classes by a miss: {penalty_classes:d}, by speed: {speed_classes:d}; speed follows "
        "the number of SMs: {speed_follows_sms}\n"
        "pairs of groups: {pairs.measured:d} measured, the worst reads {pairs.worst_ratio:3} "
        "of what its groups read alone; any that share a TLB: {pairs.share_tlb}\n");
    json_array_foreach(get(get(topology, "pairs"), "slow"), i, pair)
    {
        text_print(pair, "  groups {groups.0:d} and {groups.1:d}: {ratio:2} of what they read "
                         "alone, by {cause}\n");
    }
}

static void show_throughput(const json_t *fp)
{
    static const char columns[] =
        ">region {region_bytes:B}|>naive {naive_gbps:0 GB/s}|"
        ">by group {by_group_gbps:0 GB/s}|>by SM (control) {by_sm_gbps:0 GB/s}|"
        ">windows {windows:d}";
    const json_t *curve = get(get(fp, "throughput"), "curve");

    text_print(fp, "\nwindows: a group reaches {windows.reach_bytes:B}; recommended at most "
                   "{windows.recommended_bytes:B}, window bounds at multiples of "
                   "{windows.entry_bytes:B}\n"
                   "random reads: {throughput.plateau_gbps:0 GB/s} within the reach, "
                   "{throughput.whole_memory_gbps:0 GB/s} over the largest region\n");
    if (json_array_size(curve) > 0)
        text_table(curve, columns);
}

/* Copies a number, or why it is null, to a row; `scale` is a factor. */
static void copy_number(json_t *row, const char *to, const json_t *from, const char *name,
                        double scale)
{
    const json_t *value = get(from, name);
    char to_reason[64];
    char name_reason[64];

    snprintf(to_reason, sizeof(to_reason), "%s_reason", to);
    snprintf(name_reason, sizeof(name_reason), "%s_reason", name);
    json_object_set_new(
        row, to, json_is_number(value) ? json_real(json_number_value(value) * scale) : json_null());
    json_object_set(row, to_reason, get(from, name_reason));
}

/* Of one region: GB/s, and what a job counts in, 10^9 accesses per second. */
static json_t *rate_row(const json_t *rate, const json_t *from, const char *naive)
{
    const double bytes = json_number_value(get(rate, "transaction_bytes"));
    json_t *row =
        json_pack("{s:O,s:O,s:O*}", "access", get(rate, "access"), "transaction_bytes",
                  get(rate, "transaction_bytes"), "region_bytes", get(from, "region_bytes"));

    copy_number(row, "naive_gbps", from, naive, 1);
    copy_number(row, "naive_gps", from, naive, 1 / bytes);
    if (json_is_number(get(from, "by_group_gbps"))) {
        copy_number(row, "by_group_gbps", from, "by_group_gbps", 1);
        copy_number(row, "by_group_gps", from, "by_group_gbps", 1 / bytes);
    }
    return row;
}

/* Other kinds of access: a row for the plateau and one for each region out of reach. */
static void show_rates(const json_t *rates)
{
    static const char columns[] =
        "access {access}|>bytes {transaction_bytes:d}|>region {in_reach?}{region_bytes?:B}|"
        ">naive {naive_gbps:0 GB/s}|>by group {by_group_gbps?:0 GB/s}|"
        ">10^9/s naive {naive_gps:2}|>10^9/s by group {by_group_gps?:2}";
    json_t *rows = json_array();
    size_t i;
    size_t k;
    json_t *rate;
    json_t *point;

    json_array_foreach(rates, i, rate)
    {
        json_t *plateau = rate_row(rate, rate, "plateau_gbps");
        json_object_set_new(plateau, "in_reach", json_string("in reach"));
        json_array_append_new(rows, plateau);
        json_array_foreach(get(rate, "points"), k, point)
        {
            json_array_append_new(rows, rate_row(rate, point, "naive_gbps"));
        }
    }
    if (json_array_size(rates) > 0) {
        puts("\nrandom accesses of other kinds");
        text_table(rows, columns);
    }
    json_decref(rows);
}

static void show_contiguity(const json_t *contiguity)
{
    if (!json_is_object(contiguity))
        return;
    text_print(contiguity, "\nphysical contiguity: frames of {frame_bytes:B}; a miss takes "
                           "{contiguous_miss_ns:3 ns} of the whole GPU in contiguous memory, "
                           "{scattered_miss_ns:3 ns} in scattered\n");
}

/* How many SMs are on a side of the L2. */
static void show_l2(const json_t *l2)
{
    const json_t *const sms = get(l2, "sms");

    if (!json_is_object(l2))
        return;
    if (json_is_null(get(l2, "sides"))) {
        text_print(l2, "\nL2 cache: sides {sides:d}\n");
        return;
    }
    printf("\nL2 cache: %zu and %zu SMs on its two sides", json_array_size(json_array_get(sms, 0)),
           json_array_size(json_array_get(sms, 1)));
    text_print(l2, ", granules of {granule_bytes:B}; an atomic takes {atomic_near_cycles:0} cycles "
                   "near, {atomic_far_cycles:0} far\n");
}

/* "640 MiB", "at least 16 GiB", or why there is none. */
static const char *format_reach(const json_t *kind, const char *reach, char *out)
{
    const bool is_all = json_is_null(get(kind, reach)) && !json_is_null(get(kind, "probed_bytes"));
    char format[64];

    if (json_is_null(get(kind, "probed_bytes")))
        return text_expand(kind, "{probed_bytes_reason}", out, TEXT_CELL_BYTES);
    snprintf(format, sizeof(format), "{%s_reason?}", reach);
    if (is_all && strstr(text_expand(kind, format, out, TEXT_CELL_BYTES), "beyond-memory"))
        return text_expand(kind, "at least {probed_bytes:B}", out, TEXT_CELL_BYTES);
    snprintf(format, sizeof(format), "{%s?:B}", reach);
    return text_expand(kind, format, out, TEXT_CELL_BYTES);
}

/* A copy without the fields that are null: most are at depth full. */
static json_t *copy_known(json_t *object)
{
    json_t *const copy = json_copy(object);
    const char *name;
    json_t *value;
    void *next;

    json_object_foreach_safe(copy, next, name, value)
    {
        if (json_is_null(value))
            json_object_del(copy, name);
    }
    return copy;
}

void show_memory(const json_t *memory)
{
    static const char columns[] =
        "memory {kind}|>plateau {plateau_gbps?:1 GB/s}|>reach {reach}|>by group {by_group}|"
        ">out of reach {beyond_gbps?:1 GB/s}|>entry {entry_bytes?:B}|>latency {latency_cycles?:0 "
        "cycles}|"
        ">SMs {sms_to_fill?:d}|>writes {write_gbps?:1 GB/s}|>atomics {atomic_gbps?:1 GB/s}";
    json_t *rows = json_array();
    size_t i;
    json_t *kind;

    json_array_foreach(memory, i, kind)
    {
        const char *const why = json_string_value(get(kind, "probed_bytes_reason"));
        json_t *const row = copy_known(kind);
        char reach[TEXT_CELL_BYTES];

        json_object_set_new(row, "reach", json_string(format_reach(kind, "reach_bytes", reach)));
        json_object_set_new(
            row, "by_group",
            json_string(why ? "-" : format_reach(kind, "windows_reach_bytes", reach)));
        if (!why || strcmp(why, "not-measured") != 0)
            json_array_append(rows, row);
        json_decref(row);
    }
    if (json_array_size(rows) > 0) {
        puts("\nother memory, random reads of 128 bytes");
        text_table(rows, columns);
    }
    json_decref(rows);
}

static void show_conditions(const json_t *conditions)
{
    size_t i;
    json_t *note;

    text_print(conditions, "\nconditions: {verdict}, arena {arena} of {range_bytes:B} over "
                           "{backing_bytes:B} of memory, other processes: {other_processes:d}\n");
    json_array_foreach(get(conditions, "notes"), i, note)
    {
        printf("  note: %s\n", json_string_value(note));
    }
}

void show_fingerprint(const json_t *fp)
{
    const json_t *topology = get(fp, "topology");

    show_head(fp);
    show_levels(get(get(fp, "tlb"), "levels"));
    show_groups(topology);
    show_die(topology);
    show_group_reads(topology);
    show_throughput(fp);
    show_rates(get(get(fp, "throughput"), "rates"));
    show_contiguity(get(fp, "contiguity"));
    show_l2(get(fp, "l2"));
    show_memory(get(fp, "memory"));
    show_conditions(get(fp, "conditions"));
}

/* ---- evidence ---- */

/* One number of the object that `of` names. */
static void add_evidence(json_t *rows, const char *of, const char *number, json_t *evidence)
{
    json_t *row = json_pack("{s:s,s:s}", "of", of, "number", number);

    json_object_update(row, evidence);
    json_array_append_new(rows, row);
}

/* The evidence of an object's own numbers. */
static void add_object(json_t *rows, const char *of, const json_t *object)
{
    const char *number;
    json_t *evidence;

    json_object_foreach(get(object, "evidence"), number, evidence)
    {
        add_evidence(rows, of, number, evidence);
    }
}

/* The evidence of the numbers of an array's elements, which `of` names. It is in each element, or
 * in columns beside the array (docs/formats.md): a list, or one value for
 * all. */
static void add_array(json_t *rows, const char *of, const json_t *array, json_t *columns)
{
    static const char *const parts[] = {"method", "repeats", "margin"};
    const char *number;
    size_t i;
    json_t *object;
    json_t *column;

    json_array_foreach(array, i, object)
    {
        char name[TEXT_CELL_BYTES];
        add_object(rows, text_expand(object, of, name, sizeof(name)), object);
        json_object_foreach(columns, number, column)
        {
            json_t *one = json_object();
            for (size_t k = 0; k < sizeof(parts) / sizeof(parts[0]); k++) {
                json_t *part = get(column, parts[k]);
                (void)json_object_set(one, parts[k],
                                      json_is_array(part) ? json_array_get(part, i) : part);
            }
            if (json_is_number(get(one, "margin")))
                add_evidence(rows, name, number, one);
            json_decref(one);
        }
    }
}

static void add_rates(json_t *rows, const json_t *rates)
{
    size_t i;
    json_t *rate;

    json_array_foreach(rates, i, rate)
    {
        char of[TEXT_CELL_BYTES];
        add_object(rows,
                   text_expand(rate, "{access} of {transaction_bytes:d} bytes", of, sizeof(of)),
                   rate);
        snprintf(of, sizeof(of), "%.20s {region_bytes:B}", json_string_value(get(rate, "access")));
        add_array(rows, of, get(rate, "points"), get(rate, "point_evidence"));
    }
}

static void add_memory(json_t *rows, const json_t *memory)
{
    size_t i;
    json_t *kind;

    json_array_foreach(memory, i, kind)
    {
        char of[TEXT_CELL_BYTES];
        add_object(rows, text_expand(kind, "{kind} memory", of, sizeof(of)), kind);
        snprintf(of, sizeof(of), "%.20s {region_bytes:B}", json_string_value(get(kind, "kind")));
        add_array(rows, of, get(kind, "curve"), get(kind, "curve_evidence"));
    }
}

void show_evidence(const json_t *fp)
{
    static const char columns[] =
        "of {of}|number {number}|method {method}|>repeats {repeats:d}|>margin {margin:3}";
    const json_t *topology = get(fp, "topology");
    const json_t *throughput = get(fp, "throughput");
    json_t *rows = json_array();

    puts("\nevidence (margin: 0 at the threshold, 1 as far from it as can be)");
    add_array(rows, "level {level:d}", get(get(fp, "tlb"), "levels"), NULL);
    add_object(rows, "SM groups", topology);
    add_array(rows, "group {id:d}", get(topology, "groups"), get(topology, "group_evidence"));
    add_object(rows, "throughput", throughput);
    add_array(rows, "region {region_bytes:B}", get(throughput, "curve"),
              get(throughput, "curve_evidence"));
    add_rates(rows, get(throughput, "rates"));
    add_object(rows, "contiguity", get(fp, "contiguity"));
    add_object(rows, "L2", get(fp, "l2"));
    add_memory(rows, get(fp, "memory"));
    text_table(rows, columns);
    json_decref(rows);
}

/* ---- the command ---- */

static void print_show(const struct options *options, const json_t *fp)
{
    show_fingerprint(fp);
    if (options->evidence)
        show_evidence(fp);
}

static enum exit_code show_curve(struct client *client, const struct options *options)
{
    char id[FINGERPRINT_ID_BYTES];
    enum exit_code exit_code;
    struct fingerprint *const fp = client_load_fingerprint(
        client, options, options->at ? options->at : "current", id, &exit_code);

    if (fp && !picture_curve(fp, id)) {
        fprintf(stderr, "reachctl: fingerprint %s has no curve\n  next step: %s\n", id,
                next_step_full(fp, REASON_NOT_MEASURED));
        exit_code = EXIT_FAILED;
    }
    free(fp);
    return exit_code;
}

enum exit_code command_show(struct client *client, const struct options *options)
{
    char path[CLIENT_PATH_BYTES];

    if ((options->svg != NULL) != (options->operand != NULL) ||
        (options->operand && strcmp(options->operand, "curve") != 0))
        return client_usage_error("only the curve can be drawn: show --svg curve", NULL);
    if (options->svg)
        return show_curve(client, options);
    client_gpu_path(options, "/fingerprint", path);
    client_add_param(path, "at", options->at);
    return client_print(client, options, path, print_show);
}
