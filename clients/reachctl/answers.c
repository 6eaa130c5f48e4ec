/* answers.c: the commands that send a request to the planner: scope, placement, plan, split,
 * explain, memory, fit and caches. */
#include "clients/reachctl/client.h"
#include "clients/reachctl/green_contexts.h"
#include "clients/reachctl/text.h"

#include "batch/report.h"

#include <stdio.h>
#include <string.h>

enum { SIZES_BYTES = 512, IDLE = -1 };

/* Prints the reason, and the origin of the numbers unless they are measured. */
static void print_foot(const json_t *answer)
{
    const char *origin = json_string_value(json_object_get(answer, "origin"));

    text_print(answer, "reason      {reason}\n");
    if (origin && strcmp(origin, "measured") != 0)
        printf("origin      %s: not measured on this hardware\n", origin);
}

/* Shows how the sizes of the request were read. */
#define BYTES_LINE "bytes       {bytes:d}, {bytes:B}\n"

static void print_predictions(const json_t *answer)
{
    text_print(answer, "with        {predicted_gbps:0 GB/s predicted}\n"
                       "without     {naive_gbps:0 GB/s predicted}\n");
}

/* ---- windows ---- */

/* Prints the SMs of one window, or the SMs without work (IDLE). */
static void print_sms(const char *label, const json_t *window_of_sm, json_int_t window)
{
    json_t *sms = json_array();
    json_t *line = json_pack("{s:o}", "sms", sms);
    size_t sm;
    json_t *value;

    json_array_foreach(window_of_sm, sm, value)
    {
        if ((json_is_integer(value) ? json_integer_value(value) : IDLE) == window)
            json_array_append_new(sms, json_integer((json_int_t)sm));
    }
    if (json_array_size(sms) > 0) {
        printf("%-10s  SMs ", label);
        text_print(line, "{sms:r}\n");
    }
    json_decref(line);
}

/* Prints a row for each allocation in each item of a list; prints nothing if there is one
 * allocation. */
static void print_parts(const json_t *list, const char *columns)
{
    json_t *rows = json_array();
    size_t k;
    json_t *one;

    json_array_foreach(list, k, one)
    {
        size_t i;
        json_t *part;
        json_array_foreach(json_object_get(one, "parts"), i, part)
        {
            json_t *row = json_copy(part);
            json_object_set_new(row, "index", json_integer((json_int_t)k));
            json_object_set_new(row, "allocation", json_integer((json_int_t)i));
            json_array_append_new(rows, row);
        }
    }
    if (json_array_size(rows) > 0)
        text_table(rows, columns);
    json_decref(rows);
}

#define PART_COLUMNS                                                                               \
    "|>allocation {allocation:d}|>first byte {first_byte:d}|>length {length_bytes:B}|"             \
    ">bytes {length_bytes:d}"

/* Prints the windows of an answer and the SMs of each; prints nothing if there are no windows. */
static void print_windows(const json_t *answer)
{
    static const char columns[] =
        ">window {index:d}|>first byte {first_byte:d}|>length {length_bytes:B}|"
        ">bytes {length_bytes:d}|>SMs {sm_count:d}|>groups {group_count:d}";
    const json_t *windows = json_object_get(answer, "windows");
    const json_t *window_of_sm = json_object_get(answer, "window_of_sm");

    if (json_array_size(windows) == 0)
        return;
    text_table(windows, columns);
    print_parts(windows, ">window {index:d}" PART_COLUMNS);
    for (size_t i = 0; i < json_array_size(windows); i++) {
        char label[TEXT_CELL_BYTES];
        snprintf(label, sizeof(label), "window %zu", i);
        print_sms(label, window_of_sm, (json_int_t)i);
    }
    print_sms("no work", window_of_sm, IDLE);
}

/* ---- the answers ---- */

static void print_scope(const struct options *options, const json_t *answer)
{
    static const char columns[] =
        ">pass {#}|>first byte {first_byte:d}|>length {length_bytes:B}|>bytes {length_bytes:d}";
    const json_t *scopes = json_object_get(answer, "scopes");

    (void)options;
    text_print(answer, BYTES_LINE
               "advice      {advice}\nscope       {scope_bytes:B}\npasses      {passes:d}\n");
    if (json_array_size(scopes) > 1)
        text_table(scopes, columns);
    print_parts(scopes, ">pass {index:d}" PART_COLUMNS);
    print_predictions(answer);
    print_foot(answer);
}

static void print_placement(const struct options *options, const json_t *answer)
{
    (void)options;
    text_print(answer, BYTES_LINE "advice      {advice}\n");
    print_windows(answer);
    if (json_is_integer(json_object_get(answer, "headroom_bytes")))
        text_print(answer, "margin      {headroom_bytes:B}\n");
    print_predictions(answer);
    print_foot(answer);
}

/* Returns the row of a strategy; an impossible strategy has no numbers. */
static json_t *option_row(json_t *option)
{
    if (json_is_true(json_object_get(option, "possible")))
        return json_incref(option);
    return json_pack("{s:O,s:s}", "strategy", json_object_get(option, "strategy"), "impossible",
                     "not possible");
}

static void print_plan(const struct options *options, const json_t *answer)
{
    static const char columns[] =
        "strategy {strategy}|>GB/s {impossible?}{gbps?:0}|>x naive {times_naive?:2}|"
        ">passes {passes?:-d}|>windows {windows?:-d}|>scope {scope_bytes?:-B}|"
        ">extra B {extra_bytes_per_access?:1}|limit {bound?}";
    static const char allocations[] =
        ">allocation {#}|>bytes {bytes:d}|>size {bytes:B}|>touches {touches:2}|>element "
        "{element_bytes:d}|"
        ">transaction {transaction_bytes:d}|>granularity {granularity_bytes:d}|basis {basis}";
    const json_t *placement = json_object_get(answer, "placement");
    json_t *rows = json_array();
    size_t i;
    json_t *option;

    (void)options;
    if (json_object_get(answer, "allocations"))
        text_table(json_object_get(answer, "allocations"), allocations);
    json_array_foreach(json_object_get(answer, "options"), i, option)
    {
        json_array_append_new(rows, option_row(option));
    }
    text_print(answer,
               BYTES_LINE "recommended {recommended}\n"
                          "within      {in_reach_gbps:0 GB/s within the reach} ({basis})\n");
    text_table(rows, columns);
    json_array_foreach(json_object_get(answer, "options"), i, option)
    {
        char strategy[TEXT_CELL_BYTES];
        printf("%-20s ", text_expand(option, "{strategy}", strategy, sizeof(strategy)));
        text_print(option, "{why}\n");
    }
    if (json_is_object(placement))
        print_windows(placement);
    print_parts(json_object_get(json_object_get(answer, "scope"), "scopes"),
                ">pass {index:d}" PART_COLUMNS);
    print_foot(answer);
    json_decref(rows);
}

static void print_split(const struct options *options, const json_t *answer)
{
    static const char columns[] =
        ">job {#}|>bytes {bytes:d}|>size {bytes:B}|>SMs {sm_count:d}|>groups {group_count:d}|"
        ">windows {window_count:d}|>GB/s {gbps:0}|>GB/s unsplit {unsplit_gbps:0}|"
        "fits {fits:y}";
    const json_t *jobs = json_object_get(answer, "jobs");
    size_t i;
    json_t *job;

    (void)options;
    text_table(jobs, columns);
    json_array_foreach(jobs, i, job)
    {
        printf("job %zu: ", i);
        text_print(job, "{why}\nSMs of it   {sms:r}\n");
        print_windows(job);
    }
    print_foot(answer);
}

static void print_explain(const struct options *options, const json_t *answer)
{
    const json_t *share = json_object_get(answer, "translation_share");
    size_t i;
    json_t *check;

    (void)options;
    text_print(answer, BYTES_LINE "verdict     {verdict}\n"
                                  "seen        {observed_gbps:0 GB/s}\n"
                                  "here        {expected_gbps:0 GB/s expected}\n"
                                  "within      {in_reach_gbps:0 GB/s expected}\n"
                                  "loss        {loss_gbps:0 GB/s}\n");
    if (json_is_number(share))
        printf("translation %.0f%% of the time lost\n", json_number_value(share) * 100);
    print_foot(answer);
    json_array_foreach(json_object_get(answer, "checks"), i, check)
    {
        printf("check %zu     %s\n", i + 1, json_string_value(check));
    }
}

/* Prints the kinds of memory, or the choices if a size is given. */
static void print_memory(const struct options *options, const json_t *answer)
{
    static const char columns[] =
        "memory {kind}|>has {capacity_bytes:B}|strategy {strategy}|>GB/s {gbps:1}|basis "
        "{basis}|>probed {probed_bytes:B}|"
        ">GB/s there {probed_gbps:1}|>SMs {sms:d}|>windows {windows:-d}|>of {window_bytes:-B}|"
        ">passes {passes:d}|allocate {allocate}";
    size_t i;
    json_t *left_out;

    text_print(answer, "memory of the GPU {device_memory_bytes:B}, of the host "
                       "{host_memory_bytes:B}\n");
    if (!options->operand) {
        puts("device");
        report_numbers(stdout, json_object_get(answer, "device"));
        report_member(stdout, "memory", json_object_get(answer, "memory"), false);
        return;
    }
    text_print(answer, BYTES_LINE);
    text_table(json_object_get(answer, "choices"), columns);
    text_print(json_array_get(json_object_get(answer, "choices"), 0), "why         {why}\n");
    json_array_foreach(json_object_get(answer, "left_out"), i, left_out)
    {
        text_print(left_out, "left out    {kind}: {why}\n");
    }
    print_foot(answer);
}

/* Prints a dash for an unknown number; --json has the reason. */
static void print_fit(const struct options *options, const json_t *answer)
{
    (void)options;
    text_print(
        answer, BYTES_LINE
        "stays       {stays}\n"
        "reads       {gbps:0 GB/s} anywhere, {near_gbps:0 GB/s} near, {outside_gbps:0 GB/s} "
        "if it grows out\n"
        "L1          {l1.size_bytes:B} of each SM; sets up to {l1.keeps_bytes:B} at "
        "{l1.gbps:0 GB/s}, {l1.latency_cycles:0} cycles\n"
        "L2          {l2.size_bytes:B}; sets up to {l2.keeps_bytes:B}, near ones up to "
        "{near_keeps_bytes:B}, at {l2.gbps:0 GB/s}, {l2.latency_cycles:0} cycles\n"
        "memory      {memory_latency_cycles:0} cycles; an SM group reaches {reach_bytes:B}\n"
        "ask for     {carveout_bytes:B} of shared memory an SM; {padding_bytes:B} behind each "
        "row of all banks\n"
        "enough      {loads_enough:d} loads in flight an SM ({loads_short:d} are not), "
        "{sms_enough:d} SMs ({sms_short:d} are not)\n"
        "cluster     {cluster_sms:d} SMs hold what one reads\n");
    print_foot(answer);
}

static void print_caches(const struct options *options, const json_t *answer)
{
    static const char *const parts[] = {"l2",     "caches",   "latency",
                                        "shared", "clusters", "parallelism"};
    const char *const origin = json_string_value(json_object_get(answer, "origin"));

    (void)options;
    text_print(answer, "L2          {l2_cache_bytes:B}\n");
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        report_member(stdout, parts[i], json_object_get(answer, parts[i]), true);
    if (origin && strcmp(origin, "measured") != 0)
        printf("origin      %s: not measured on this hardware\n", origin);
}

/* ---- the request ---- */

enum exit_code command_answer(struct client *client, const struct options *options)
{
    static const struct {
        const char *command;
        client_print_fn *print;
    } answers[] = {{"scope", print_scope}, {"placement", print_placement}, {"plan", print_plan},
                   {"split", print_split}, {"explain", print_explain},     {"memory", print_memory},
                   {"fit", print_fit},     {"caches", print_caches}};
    char resource[32];
    char path[CLIENT_PATH_BYTES];
    char sizes[SIZES_BYTES] = "";
    size_t at = 0;
    size_t i = 0;

    while (strcmp(answers[i].command, options->command) != 0)
        i++;
    /* The operands "20G 40G" and "20G,40G" have the same meaning. */
    for (int k = 0; k < options->operand_count && at + 1 < sizeof(sizes); k++)
        at += (size_t)snprintf(sizes + at, sizeof(sizes) - at, "%s%s", k > 0 ? "," : "",
                               options->operands[k]);
    snprintf(resource, sizeof(resource), "/%s", options->command);
    client_gpu_path(options, resource, path);
    client_add_param(path, "bytes", options->operand ? sizes : NULL);
    client_add_options(path, options);
    if (!options->format)
        return client_print(client, options, path, answers[i].print);
    if (strcmp(options->format, "green-context") != 0)
        return client_usage_error("--format must be green-context, not", options->format);
    return green_contexts_print(client, options, path);
}
