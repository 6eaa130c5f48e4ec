/* mosaic_command.c: see mosaic_command.h. A target is reproduced if all its parts hold. */
#include "clients/lab/papers/mosaic/mosaic_command.h"

#include "base/format_number.h"
#include "base/json_writer.h"
#include "clients/lab/exit_status.h"
#include "clients/lab/papers/mosaic/mosaic_figures.h"
#include "clients/lab/papers/mosaic/mosaic_picture.h"
#include "clients/lab/papers/mosaic/mosaic_sweeps.h"

#include <stdio.h>
#include <string.h>

enum { TARGETS = 15, GROUPS = 7 };

/* The figure of each target, and the reason for a target that is not reproduced, if the reason is
 * known. */
static const struct {
    const char *id, *figure, *why;
} targets[TARGETS] = {
    {"M1", "figure 3", "the generator is fitted to it"},
    {"M2", "figure 4",
     "with five applications each computes and transfers at a fifth of the speed, so paging costs "
     "the same share of the time as with one; in the paper it costs seven times as much"},
    {"M3", "figure 4",
     "one pass uses most of each large page, so 2 MiB bring the same bytes with fewer faults; "
     "the paper's losses need large pages of which few base pages are used"},
    {"M4", "section 3.2", "the number of allocations is fitted to its mean"},
    {"M5", "figure 8", "none found"},
    {"M6", "figure 9",
     "Mosaic is nearly ideal: few base pages are left, and their conflicts in the second level "
     "cost little"},
    {"M7", "figure 11", "as M6: Mosaic is nearly ideal for most applications"},
    {"M8", "figure 12", "as M6"},
    {"M9", "figure 13",
     "what Mosaic misses are base pages, those of small arrays and of the ends of allocations; in "
     "the paper nearly all accesses go to large ones"},
    {"M10", "figure 14",
     "few of Mosaic's accesses go to base pages, and memory hides what their misses cost"},
    {"M11", "figure 15",
     "with fewer large entries Mosaic loses a thousandth: what misses in a core hits the second "
     "level, and memory hides that"},
    {"M12", "figure 16a",
     "each frame that compaction frees costs and gains the same, however many there are; the paper "
     "finds compaction very frequent at 100 %"},
    {"M13", "figure 16b", "memory is taken once, at the launch: a frame pays for a whole run"},
    {"M14", "table 2",
     "one frame of each application is reserved at most, with any index; the paper's fragmented "
     "memory reserves more and its other memory less"},
    {"M15", "section 3.1",
     "it depends on the time of a hit of the walk cache, which the text does not say"},
};

static const struct {
    const char *figures, *ids; /* names of figures and targets, each between spaces */
    enum status (*simulate)(struct mosaic_report *, struct err *);
} groups[GROUPS] = {
    {" 3 ", " M1 ", mosaic_page_sizes},
    {" 4 ", " M2 M3 ", mosaic_paging},
    {" table2 ", " M4 M14 ", mosaic_bloat},
    {" 8 9 11 12 13 ", " M5 M6 M7 M8 M9 ", mosaic_speedups},
    {" 14 15 ", " M10 M11 ", mosaic_entries},
    {" 16 ", " M12 M13 ", mosaic_compaction},
    {" ", " M15 ", mosaic_walk_cache},
};

/* ---- verdicts ---- */

static bool is_in(const char *name, const char *names)
{
    char text[32];
    (void)snprintf(text, sizeof text, " %s ", name);
    return strstr(names, text) != NULL;
}

/* Returns whether the target has parts and all parts hold. */
static bool is_reproduced(const struct mosaic_report *r, const char *id, bool *out_there)
{
    bool good = true;
    *out_there = false;
    for (uint32_t i = 0; i < r->part_count; i++) {
        if (strcmp(r->parts[i].id, id) != 0)
            continue;
        *out_there = true;
        good = good && r->parts[i].holds;
    }
    return good && *out_there;
}

static void print_parts(const struct mosaic_report *r, const char *id)
{
    for (uint32_t i = 0; i < r->part_count; i++) {
        const struct mosaic_part *p = &r->parts[i];
        if (strcmp(p->id, id) != 0)
            continue;
        if (p->unit)
            printf("%-4s %-48s %7.1f%-1s  paper %-7s %g to %g%s\n", id, p->what, p->value, p->unit,
                   p->paper, p->low, p->high, p->holds ? "  yes" : "  no");
        else
            printf("%-4s %-48s %s\n", id, p->what, p->holds ? "yes" : "no");
    }
}

/* Returns the number of targets that are reproduced. */
static uint32_t print_targets(const struct mosaic_report *r, const char *ids, uint32_t *out_asked)
{
    uint32_t good = 0;
    *out_asked = 0;
    for (uint32_t t = 0; t < TARGETS; t++) {
        bool there;
        const bool holds = is_reproduced(r, targets[t].id, &there);
        if (!there || (ids && !is_in(targets[t].id, ids)))
            continue;
        print_parts(r, targets[t].id);
        printf("     %s: %s%s%s\n", targets[t].figure, holds ? "reproduced" : "not reproduced",
               holds ? "" : ": ", holds ? "" : targets[t].why);
        good += holds;
        ++*out_asked;
    }
    return good;
}

static bool is_known(const char *id)
{
    for (uint32_t t = 0; t < TARGETS; t++) {
        if (strcmp(id, targets[t].id) == 0)
            return true;
    }
    (void)fprintf(stderr, "reach-lab-papers: unknown target %s; targets are M1 to M15\n", id);
    return false;
}

/* Joins the names, each between spaces. The result is NULL if there are no names. Returns false if
 * a name is not a target. */
static bool join_ids(char **ids, int count, char *text, size_t size, const char **out)
{
    size_t length = 0;
    *out = count > 0 ? text : NULL;
    for (int i = 0; i < count; i++) {
        if (!is_known(ids[i]) || length + strlen(ids[i]) + 2 >= size)
            return false;
        length += (size_t)snprintf(text + length, size - length, " %s ", ids[i]);
    }
    return true;
}

static bool has_any(const char *ids, const char *of_group)
{
    for (uint32_t t = 0; t < TARGETS; t++) {
        if (is_in(targets[t].id, ids) && is_in(targets[t].id, of_group))
            return true;
    }
    return false;
}

static enum status simulate_groups(struct mosaic_report *r, const char *ids, const char *figure)
{
    struct err err = {0};
    enum status s = STATUS_OK;
    for (uint32_t g = 0; g < GROUPS && s == STATUS_OK; g++) {
        if ((ids && !has_any(ids, groups[g].ids)) || (figure && !is_in(figure, groups[g].figures)))
            continue;
        s = groups[g].simulate(r, &err);
    }
    if (s != STATUS_OK)
        (void)fprintf(stderr, "reach-lab-papers: %s\n", err.text);
    return s;
}

int mosaic_check(int argc, char **argv)
{
    const bool whole = argc > 0 && strcmp(argv[0], "--all") == 0;
    struct mosaic_report r = {.whole = whole, .quiet = true};
    char text[256];
    const char *asked_ids;
    uint32_t asked;
    if (!join_ids(argv + whole, argc - whole, text, sizeof text, &asked_ids) ||
        simulate_groups(&r, asked_ids, NULL) != STATUS_OK)
        return LAB_ERROR;
    puts("Mosaic 2017, simulated");
    const uint32_t good = print_targets(&r, asked_ids, &asked);
    printf("%u of %u reproduced\n", good, asked);
    return good == asked ? LAB_OK : LAB_DIFFERS;
}

/* ---- one figure ---- */

static void write_parts(struct json_writer *t, const struct mosaic_report *r, const char *id)
{
    json_writer_open(t, "parts", '[');
    for (uint32_t i = 0; i < r->part_count; i++) {
        const struct mosaic_part *p = &r->parts[i];
        if (strcmp(p->id, id) != 0)
            continue;
        json_writer_open(t, NULL, '{');
        json_writer_text(t, "what", p->what);
        json_writer_bool(t, "within", p->holds);
        if (p->unit) {
            json_writer_real(t, "value", round_six_digits(p->value));
            json_writer_text(t, "paper", p->paper);
            json_writer_real(t, "low", round_six_digits(p->low));
            json_writer_real(t, "high", round_six_digits(p->high));
        }
        json_writer_close(t, '}');
    }
    json_writer_close(t, ']');
}

static void print_json(const struct mosaic_report *r, const char *figure)
{
    struct json_writer t;
    json_writer_begin(&t, 0);
    t.indent = 1;
    json_writer_open(&t, NULL, '{');
    json_writer_text(&t, "paper", "mosaic2017");
    json_writer_text(&t, "figure", figure);
    json_writer_bool(&t, "simulated", true);
    json_writer_open(&t, "targets", '[');
    for (uint32_t i = 0; i < TARGETS; i++) {
        bool there;
        const bool holds = is_reproduced(r, targets[i].id, &there);
        if (!there)
            continue;
        json_writer_open(&t, NULL, '{');
        json_writer_text(&t, "id", targets[i].id);
        json_writer_text(&t, "figure", targets[i].figure);
        json_writer_bool(&t, "reproduced", holds);
        write_parts(&t, r, targets[i].id);
        json_writer_close(&t, '}');
    }
    json_writer_close(&t, ']');
    json_writer_close(&t, '}');
    (void)json_writer_print(&t, stdout, NULL); /* the end of the program checks the stream */
}

int mosaic_figure_command(int argc, char **argv)
{
    const char *figure = argc > 0 ? argv[0] : "";
    const char *option = argc > 1 ? argv[1] : NULL;
    const bool json = option && strcmp(option, "--json") == 0;
    const bool svg = option && strcmp(option, "--svg") == 0;
    struct mosaic_report r = {.quiet = option != NULL};
    bool known = false;
    uint32_t asked;
    for (uint32_t g = 0; g < GROUPS; g++)
        known = known || is_in(figure, groups[g].figures);
    if (!known || argc > 2 || (option && !json && !svg)) {
        (void)fprintf(
            stderr,
            "reach-lab-papers: unknown figure or option: figures are 3, 4, 8, 9, 11 to 16 and "
            "table2, options are --json and --svg\n");
        return LAB_ERROR;
    }
    if (!option)
        printf("Mosaic 2017, figure %s (simulated)\n", figure);
    if (simulate_groups(&r, NULL, figure) != STATUS_OK)
        return LAB_ERROR;
    if (json)
        print_json(&r, figure);
    else if (svg)
        mosaic_print_svg(&r, figure);
    else
        (void)print_targets(&r, NULL, &asked);
    return LAB_OK;
}
