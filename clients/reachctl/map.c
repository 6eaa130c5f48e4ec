/* map.c: reachctl map prints a chip as text of 80 columns, or as JSON. There is a line for each SM
 * group with a place for each SM of a full group. The windows and the disabled SMs of the die
 * follow. */
#include "clients/reachctl/chip.h"
#include "clients/reachctl/client.h"
#include "clients/reachctl/picture.h"

#include "base/units.h"
#include "base/format_size.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    COLUMNS = 80,
    PLACE_COLUMNS = 4,    /* width of an SM id with the blanks before it */
    SMS_COLUMN = 20,      /* column of the SM ids of a group */
    GROUPS_COLUMN = 40,   /* column of the groups of a window */
    CANDIDATES_SHOWN = 8, /* candidates that are printed; the pattern covers all */
    LIST_BYTES = 3072,    /* room for 512 SM ids */
    JSON_BYTES = 1 << 14, /* size for one chip; the buffer grows */
};

/* Prints the parts of a text on lines of 80 columns, with `blank` between them, and ends the line.
 * A part ends with `end`, which is printed only if it is a comma. The cursor is at column `indent`,
 * where the other lines also begin. A part longer than a line gets a line of its own. */
static void print_parts(int indent, const char *text, char end, const char *blank)
{
    const int apart = (int)strlen(blank);
    int column = indent;

    while (*text) {
        const char *found = strchrnul(text, end);
        const int length = (int)(found - text) + (*found == ',');
        if (column > indent && column + apart + length > COLUMNS)
            column = printf("\n%*s", indent, "") - 1;
        else if (column > indent)
            column += printf("%s", blank);
        column += printf("%.*s", length, text);
        text = found + (*found != '\0');
    }
    putchar('\n');
}

static void print_numbers(int indent, const uint16_t *numbers, uint32_t count)
{
    char text[LIST_BYTES];

    print_parts(indent, chip_format_list(numbers, count, text, sizeof(text)), ',', " ");
}

/* Prints "not observable (no-trace)" or "not known (not-measured)". */
static void print_absent(enum known known, enum reason reason)
{
    printf("%s (%s)", known == MAYBE_NOT_OBSERVABLE ? "not observable" : "not known",
           reason_slug(reason));
}

static void print_head(const struct chip *chip)
{
    const struct gpu_identity *gpu = &chip->fp.gpu;
    const struct maybe_u32 level = chip->fp.topology.level;

    printf("%s\n%s, fingerprint %s\n", gpu->name, gpu->uuid, chip->id);
    if (gpu->origin != ORIGIN_MEASURED)
        printf("%s: not measured on this hardware\n", origin_name(gpu->origin));
    printf("%u SMs", gpu->sm_count);
    if (chip->group_count == 0) {
        puts("; the SMs that share a TLB are unknown");
        return;
    }
    printf(" in %u groups that share TLB level ", chip->group_count);
    if (IS_KNOWN(level))
        printf("%u", level.v);
    else
        print_absent(level.known, level.reason);
    printf("; %s\n", chip->map);
}

/* Prints the locality domains of the driver beside the measured sides, if the driver reports any.
 */
static void print_domains(const struct fingerprint_l2 *l2)
{
    if (!IS_KNOWN(l2->locality_domains))
        return;
    printf("locality domains of the driver: %u", l2->locality_domains.v);
    if (IS_KNOWN(l2->locality_domain_sms))
        printf(" with %u SMs each", l2->locality_domain_sms.v);
    printf("; measured sides of the L2: ");
    if (IS_KNOWN(l2->sides))
        printf("%u", l2->sides.v);
    else
        print_absent(l2->sides.known, l2->sides.reason);
    if (l2->sides_match_domains != FINDING_UNKNOWN)
        printf(l2->sides_match_domains == FINDING_YES ? ", which match" : ", which do not match");
    putchar('\n');
}

/* Prints a number for each SM, and a dash for each missing SM of a full group. */
static void print_group(const struct chip *chip, uint32_t group)
{
    const int window = chip->window_of_group[group];
    uint16_t sms[REACH_MAX_SMS];
    const uint32_t count = chip_group_sms(chip, group, sms);
    const uint32_t lacks = chip_group_lacks(chip, group);
    char window_text[16] = "-";
    char text[LIST_BYTES] = "";
    size_t at = 0;

    if (window != CHIP_NO_WINDOW)
        snprintf(window_text, sizeof(window_text), "%d", window);
    printf("%5u  %6s  %3u  ", group, window_text, count);
    for (uint32_t i = 0; i < count; i++)
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%*u\n", PLACE_COLUMNS, sms[i]);
    for (uint32_t i = 0; i < lacks && at < sizeof(text); i++)
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%*s\n", PLACE_COLUMNS, "-");
    print_parts(SMS_COLUMN, text, '\n', "");
}

static void print_groups(const struct chip *chip)
{
    const struct maybe_u32 lost = chip->fp.topology.disabled.lost_groups;

    if (chip->group_count == 0)
        return;
    printf("\ngroup  window  SMs   their ids; - is a missing SM of a full group\n");
    for (uint32_t g = 0; g < chip->group_count; g++)
        print_group(chip, g);
    if (IS_KNOWN(lost) && lost.v > 0)
        printf("%5s  groups of the die without a working SM: %u\n", "-", lost.v);
}

static void print_reason(const char *text)
{
    printf("  ");
    print_parts(2, text, ' ', " ");
}

static void print_window(const struct chip *chip, uint32_t window)
{
    const struct placement_window *p = &chip->plan.windows[window];
    char from[FORMAT_SIZE_BYTES];
    char length[FORMAT_SIZE_BYTES];
    uint16_t groups[REACH_MAX_GROUPS];
    const uint32_t count = chip_window_groups(chip, (int)window, groups);

    printf("%6u  %12s  %10s  %4u  ", window, format_size(p->first_byte, from),
           format_size(p->length_bytes, length), p->sm_count);
    print_numbers(GROUPS_COLUMN, groups, count);
}

static void print_windows(const struct chip *chip)
{
    char memory[FORMAT_SIZE_BYTES];
    uint16_t idle[REACH_MAX_GROUPS];
    const uint32_t idle_count = chip_window_groups(chip, CHIP_NO_WINDOW, idle);

    const char *const of = chip->bytes == chip->fp.gpu.memory_bytes ? "all of its " : "";

    if (!chip->planned) {
        printf("\nwindows over %smemory: unknown\n", of);
        print_reason(chip->why.text);
        return;
    }
    format_size(chip->bytes, memory);
    if (chip->plan.window_count == 0) {
        printf("\nwindows over %s%s: none (%s)\n", of, memory, advice_name(chip->plan.advice));
        print_reason(chip->plan.reason);
        return;
    }
    printf("\nwindows over %s%s\nwindow    first byte      length   SMs  groups\n", of, memory);
    for (uint32_t i = 0; i < chip->plan.window_count; i++)
        print_window(chip, i);
    if (idle_count > 0) {
        printf("%-*s", GROUPS_COLUMN, "  no work");
        print_numbers(GROUPS_COLUMN, idle, idle_count);
    }
}

static void print_candidates(const struct disabled_sms *disabled)
{
    const uint32_t count = disabled->candidate_count.v;

    if (!IS_KNOWN(disabled->candidate_count)) {
        printf("%u lost, position ", disabled->sm_count.v);
        print_absent(disabled->candidate_count.known, disabled->candidate_count.reason);
        putchar('\n');
        return;
    }
    printf("%u lost, by the ids of the full die%s\n", disabled->sm_count.v,
           count == 1 ? "" : "; nothing tells these apart");
    for (uint32_t i = 0; i < disabled->listed && i < CANDIDATES_SHOWN; i++) {
        printf("  ");
        print_numbers(2, disabled->candidates[i], disabled->sm_count.v);
    }
    if (count > CANDIDATES_SHOWN)
        printf("  and %u more\n", count - CANDIDATES_SHOWN);
}

static void print_die(const struct topology *topology)
{
    const struct disabled_sms *disabled = &topology->disabled;

    putchar('\n');
    if (!IS_KNOWN(topology->full_sm_count)) {
        printf("full die: ");
        print_absent(topology->full_sm_count.known, topology->full_sm_count.reason);
        putchar('\n');
        return;
    }
    printf("full die: %u SMs", topology->full_sm_count.v);
    if (IS_KNOWN(topology->nominal_group_sms))
        printf(" in groups of %u", topology->nominal_group_sms.v);
    putchar('\n');
    if (disabled->signature[0])
        print_parts(printf("pattern "), disabled->signature, ',', "");
    if (IS_KNOWN(disabled->sm_count) && disabled->sm_count.v > 0)
        print_candidates(disabled);
}

static enum exit_code print_text(const struct chip *chip)
{
    print_head(chip);
    print_domains(&chip->fp.l2);
    print_groups(chip);
    print_windows(chip);
    print_die(&chip->fp.topology);
    return EXIT_DONE;
}

/* ---- JSON ---- */

static void write_groups(struct json_writer *t, const struct chip *chip)
{
    json_writer_open(t, "groups", '[');
    for (uint32_t g = 0; g < chip->group_count; g++) {
        const int window = chip->window_of_group[g];
        uint16_t sms[REACH_MAX_SMS];
        json_writer_open(t, NULL, '{');
        json_writer_u64(t, "id", g);
        chip_write_numbers(t, "sms", sms, chip_group_sms(chip, g, sms));
        if (window == CHIP_NO_WINDOW)
            json_writer_null(t, "window");
        else
            json_writer_u64(t, "window", (uint64_t)window);
        json_writer_u64(t, "lacks", chip_group_lacks(chip, g));
        json_writer_f64_maybe(t, "random_read_gbps", chip->fp.topology.groups[g].random_read_gbps);
        json_writer_close(t, '}');
    }
    json_writer_close(t, ']');
}

static void write_windows(struct json_writer *t, const struct chip *chip)
{
    json_writer_open(t, "windows", '[');
    for (uint32_t i = 0; chip->planned && i < chip->plan.window_count; i++) {
        const struct placement_window *w = &chip->plan.windows[i];
        uint16_t groups[REACH_MAX_GROUPS];
        json_writer_open(t, NULL, '{');
        json_writer_u64(t, "first_byte", w->first_byte);
        json_writer_u64(t, "length_bytes", w->length_bytes);
        chip_write_numbers(t, "groups", groups, chip_window_groups(chip, (int)i, groups));
        json_writer_close(t, '}');
    }
    json_writer_close(t, ']');
}

/* Groups and windows are given by number. An unknown value is null. */
static void write_map(struct json_writer *t, const char *name, const struct chip *chip)
{
    const struct gpu_identity *gpu = &chip->fp.gpu;

    json_writer_open(t, name, '{');
    json_writer_text(t, "fingerprint_id", chip->id);
    json_writer_text(t, "uuid", gpu->uuid);
    json_writer_text(t, "name", gpu->name);
    json_writer_text(t, "origin", origin_name(gpu->origin));
    json_writer_text(t, "verdict", verdict_name(chip->fp.conditions.verdict));
    json_writer_text_or_null(t, "pci_bus_id", gpu->pci_bus_id);
    json_writer_text_or_null(t, "map", chip->map);
    json_writer_u64(t, "sm_count", gpu->sm_count);
    json_writer_u64_maybe(t, "reach_bytes", chip->fp.windows.reach_bytes);
    json_writer_u32_maybe(t, "l2_sides", chip->fp.l2.sides);
    json_writer_u32_maybe(t, "locality_domains", chip->fp.l2.locality_domains);
    json_writer_u32_maybe(t, "locality_domain_sms", chip->fp.l2.locality_domain_sms);
    json_writer_text(t, "sides_match_domains", finding_name(chip->fp.l2.sides_match_domains));
    write_groups(t, chip);
    json_writer_text_or_null(t, "advice", chip->planned ? advice_name(chip->plan.advice) : "");
    json_writer_text(t, "reason", chip->planned ? chip->plan.reason : chip->why.text);
    write_windows(t, chip);
    json_writer_text_or_null(t, "signature", chip->fp.topology.disabled.signature);
    json_writer_close(t, '}');
}

static void begin_json(struct json_writer *t)
{
    json_writer_begin(t, JSON_BYTES);
    t->indent = 1;
}

/* ---- all GPUs of the daemon ---- */

/* Prints one GPU of GET /v1/fingerprints as text, or as an element of the list in `t`. */
static void print_listed(const struct options *options, const json_t *gpu, struct chip *chip,
                         struct json_writer *t)
{
    const json_t *const document = json_object_get(gpu, "fingerprint");
    const char *const uuid = json_string_value(json_object_get(gpu, "uuid"));
    struct err err = {.text = "no fingerprint"};
    bool found = json_is_object(document);

    *chip = (struct chip){.job_bytes = chip->job_bytes};
    found = found && client_parse_fingerprint(document, &chip->fp, chip->id, &err) == STATUS_OK;
    if (found)
        chip_derive(chip);
    if (!options->json) {
        if (found)
            (void)print_text(chip);
        else
            printf("%s: %s\n", uuid ? uuid : "-", err.text);
        return;
    }
    json_writer_open(t, NULL, '{');
    json_writer_value(t, "gpu", gpu);
    if (found)
        write_map(t, "map", chip);
    else
        json_writer_null(t, "map");
    json_writer_text_or_null(t, "map_reason", found ? "" : err.text);
    json_writer_close(t, '}');
}

static enum exit_code map_all(struct client *client, const struct options *options,
                              struct chip *chip)
{
    struct client_answer answer;
    struct json_writer t;
    const json_t *gpus;
    const json_t *gpu;
    size_t i;
    enum exit_code exit_code = client_get(client, "/v1/fingerprints", NULL, &answer);

    if (exit_code != EXIT_DONE)
        return exit_code;
    gpus = json_object_get(answer.json, "gpus");
    if (!json_is_array(gpus) || json_array_size(gpus) > REACH_MAX_GPUS) {
        fprintf(stderr, "reachctl: the response has no list of at most %d GPUs\n", REACH_MAX_GPUS);
        client_answer_free(&answer);
        return EXIT_FAILED;
    }
    begin_json(&t);
    json_writer_open(&t, NULL, '{');
    json_writer_open(&t, "gpus", '[');
    json_array_foreach(gpus, i, gpu)
    {
        if (i > 0 && !options->json)
            putchar('\n');
        print_listed(options, gpu, chip, &t);
    }
    json_writer_close(&t, ']');
    json_writer_close(&t, '}');
    client_answer_free(&answer);
    if (options->json)
        return client_print_json(&t);
    free(t.text);
    return EXIT_DONE;
}

static enum exit_code map_one(struct client *client, const struct options *options,
                              struct chip *chip)
{
    const char *which = options->operand ? options->operand : options->at ? options->at : "current";
    struct json_writer t;
    enum exit_code exit_code = client_get_fingerprint(client, options, which, &chip->fp, chip->id);

    if (exit_code != EXIT_DONE)
        return exit_code;
    chip_derive(chip);
    if (!options->json)
        return options->svg ? (picture_map(chip), EXIT_DONE) : print_text(chip);
    begin_json(&t);
    write_map(&t, NULL, chip);
    return client_print_json(&t);
}

/* ---- the command ---- */

enum exit_code command_map(struct client *client, const struct options *options)
{
    struct chip *chip;
    uint64_t bytes = 0;
    struct err err;
    enum exit_code exit_code;

    if (options->operand && options->at)
        return client_usage_error("a file and --at exclude each other", NULL);
    if (options->all && (options->operand || options->at || options->svg))
        return client_usage_error("--all excludes a file, --at and --svg", NULL);
    if (options->bytes && units_parse_bytes(options->bytes, &bytes, &err) != STATUS_OK)
        return client_usage_error("--bytes:", err.text);
    chip = calloc(1, sizeof(*chip));
    if (!chip)
        return client_no_memory();
    chip->job_bytes = bytes;
    exit_code = options->all ? map_all(client, options, chip) : map_one(client, options, chip);
    free(chip);
    return exit_code;
}
