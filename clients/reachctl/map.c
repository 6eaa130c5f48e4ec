/* map.c: reachctl map: a chip as text of 80 columns: a line for each SM group, with a place for
 * each SM of a full group, the windows that the groups would work in, and what the die lacks. */
#include "clients/reachctl/chip.h"
#include "clients/reachctl/client.h"
#include "clients/reachctl/fetch.h"
#include "clients/reachctl/map_json.h"
#include "clients/reachctl/wrap.h"

#include "planner/format_size.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PLACE_COLUMNS = 4,    /* of an SM id and the blanks before it */
    SMS_COLUMN = 20,      /* where the SM ids of a group begin */
    GROUPS_COLUMN = 40,   /* where the groups of a window begin */
    CANDIDATES_SHOWN = 8, /* the pattern stands for all of them */
};

/* "not observable (no-trace)", or "not known (not-measured)". */
static void print_absent(enum known known, enum reason reason)
{
    printf("%s (%s)", known == MAYBE_NOT_OBSERVABLE ? "not observable" : "not known",
           reason_slug(reason));
}

static void print_head(const struct chip *chip)
{
    const struct gpu_identity *gpu = &chip->fp->gpu;
    const struct maybe_u32 level = chip->fp->topology.level;

    printf("%s\n%s, fingerprint %s\n", gpu->name, gpu->uuid, chip->id);
    if (gpu->origin != ORIGIN_MEASURED)
        printf("%s: not measured on this hardware\n", origin_name(gpu->origin));
    printf("%u SMs", gpu->sm_count);
    if (chip->group_count == 0) {
        puts("; which of them share a TLB is not known");
        return;
    }
    printf(" in %u groups that share TLB level ", chip->group_count);
    if (IS_KNOWN(level))
        printf("%u", level.v);
    else
        print_absent(level.known, level.reason);
    printf("; %s\n", chip->map);
}

static int print_place(int column, const char *text)
{
    if (column + PLACE_COLUMNS > WRAP_COLUMNS) {
        printf("\n%*s", SMS_COLUMN, "");
        column = SMS_COLUMN;
    }
    printf("%*s", PLACE_COLUMNS, text);
    return column + PLACE_COLUMNS;
}

/* A number for each SM, and a dash for each place of a full group that is not there. */
static void print_group(const struct chip *chip, uint32_t group)
{
    const int window = chip->window_of_group[group];
    uint16_t sms[REACH_MAX_SMS];
    const uint32_t count = chip_group_sms(chip, group, sms);
    const uint32_t lacks = chip_group_lacks(chip, group);
    char text[16] = "-";
    int column = SMS_COLUMN;

    if (window != CHIP_NO_WINDOW)
        snprintf(text, sizeof(text), "%d", window);
    printf("%5u  %6s  %3u  ", group, text, count);
    for (uint32_t i = 0; i < count; i++) {
        snprintf(text, sizeof(text), "%u", sms[i]);
        column = print_place(column, text);
    }
    for (uint32_t i = 0; i < lacks; i++)
        column = print_place(column, "-");
    putchar('\n');
}

static void print_groups(const struct chip *chip)
{
    const struct maybe_u32 lost = chip->fp->topology.disabled.lost_groups;

    if (chip->group_count == 0)
        return;
    printf("\ngroup  window  SMs   their ids; - is an SM of a full group that is not there\n");
    for (uint32_t g = 0; g < chip->group_count; g++)
        print_group(chip, g);
    if (IS_KNOWN(lost) && lost.v > 0)
        printf("%5s  groups of the die of which nothing is left: %u\n", "-", lost.v);
}

static void print_reason(const char *text)
{
    struct wrap w = wrap_begin(0, 0);

    printf("  ");
    w.indent = w.column = 2;
    wrap_sentence(&w, text);
    wrap_end(&w);
}

static void print_window(const struct chip *chip, uint32_t window)
{
    const struct placement_window *p = &chip->plan.windows[window];
    char from[FORMAT_SIZE_BYTES];
    char length[FORMAT_SIZE_BYTES];
    uint16_t groups[REACH_MAX_GROUPS];
    const uint32_t count = chip_window_groups(chip, (int)window, groups);
    struct wrap w = wrap_begin(GROUPS_COLUMN, GROUPS_COLUMN);

    printf("%6u  %12s  %10s  %4u  ", window, format_size(p->first_byte, from),
           format_size(p->length_bytes, length), p->sm_count);
    wrap_ranges(&w, groups, count);
    wrap_end(&w);
}

static void print_windows(const struct chip *chip)
{
    char memory[FORMAT_SIZE_BYTES];
    uint16_t idle[REACH_MAX_GROUPS];
    const uint32_t idle_count = chip_window_groups(chip, CHIP_NO_WINDOW, idle);

    if (!chip->planned) {
        puts("\nwindows over all of its memory: not known");
        print_reason(chip->why.text);
        return;
    }
    format_size(chip->fp->gpu.memory_bytes, memory);
    if (chip->plan.window_count == 0) {
        printf("\nwindows over all of its %s: none (%s)\n", memory, advice_name(chip->plan.advice));
        print_reason(chip->plan.reason);
        return;
    }
    printf("\nwindows over all of its %s\nwindow    first byte      length   SMs  groups\n",
           memory);
    for (uint32_t i = 0; i < chip->plan.window_count; i++)
        print_window(chip, i);
    if (idle_count > 0) {
        struct wrap w = wrap_begin(GROUPS_COLUMN, GROUPS_COLUMN);
        printf("%-*s", GROUPS_COLUMN, "  no work");
        wrap_ranges(&w, idle, idle_count);
        wrap_end(&w);
    }
}

/* A pattern is long on some chips: it may be broken behind its commas. */
static void print_pattern(const char *pattern)
{
    int column = printf("pattern ");

    while (*pattern) {
        const int length = (int)strcspn(pattern, ",") + (strchr(pattern, ',') != NULL);
        if (column + length > WRAP_COLUMNS) {
            printf("\n%8s", "");
            column = 8;
        }
        column += printf("%.*s", length, pattern);
        pattern += length;
    }
    putchar('\n');
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
        struct wrap w = wrap_begin(2, 2);
        printf("  ");
        wrap_ranges(&w, disabled->candidates[i], disabled->sm_count.v);
        wrap_end(&w);
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
        print_pattern(disabled->signature);
    if (IS_KNOWN(disabled->sm_count) && disabled->sm_count.v > 0)
        print_candidates(disabled);
}

enum exit_code command_map(struct client *client, const struct options *options)
{
    const char *which = options->operand ? options->operand : options->at ? options->at : "current";
    struct fingerprint *fp = calloc(1, sizeof(*fp));
    struct chip *chip = calloc(1, sizeof(*chip));
    char id[FINGERPRINT_ID_BYTES];
    enum exit_code exit_code = EXIT_FAILED;

    if (options->operand && options->at) {
        fputs("reachctl: map takes a file or --at, not both\n  next step: reachctl --help\n",
              stderr);
        exit_code = EXIT_USAGE;
        goto out;
    }
    if (!fp || !chip) {
        fputs("reachctl: no memory\n", stderr);
        goto out;
    }
    exit_code = fetch_fingerprint(client, options, which, fp, id);
    if (exit_code != EXIT_DONE)
        goto out;
    chip_read(fp, id, chip);
    if (options->json) {
        exit_code = map_print_json(chip);
    } else {
        print_head(chip);
        print_groups(chip);
        print_windows(chip);
        print_die(&fp->topology);
    }
out:
    free(chip);
    free(fp);
    return exit_code;
}
