/* picture_map.c: a chip as nested boxes: the chip, the classes of groups, the groups, the SMs.
 *
 * All sizes are in the units of the picture. A group has a place for each SM of a full group;
 * one that is not there is dashed. SMs come in pairs of neighboring ids, so a row of a group has
 * two or four.
 */
#include "clients/reachctl/picture.h"
#include "clients/reachctl/svg.h"

#include "planner/format_size.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    MARGIN = 24,
    SM_WIDTH = 36,
    SM_HEIGHT = 21,
    SM_GAP = 3,
    GROUP_PAD = 7,
    GROUP_HEAD = 19,
    GROUP_GAP = 10,
    CLASS_PAD = 12,
    CLASS_HEAD = 26,
    CLASS_GAP = 16,
    TOP = 78, /* title and line below it */
    LEGEND_ROW = 24,
    LEAST_WIDTH = 640,
    MAX_CLASSES = 8,
};

/* What follows from the chip, before anything is drawn. */
struct map_layout {
    uint32_t classes;
    uint32_t in_class[MAX_CLASSES]; /* groups */
    uint32_t places;                /* of a group */
    uint32_t place_columns;
    uint32_t group_columns; /* in a class */
    double group_width;
    double group_height;
    double class_width;
    double class_height;
    uint32_t class_columns;
    double width;
    double height;
    double legend_top;
};

static uint32_t class_of(const struct chip *chip, const struct map_layout *l, uint32_t group)
{
    const struct maybe_u32 class = chip->fp.topology.groups[group].penalty_class;

    return l->classes > 1 && IS_KNOWN(class) && class.v < l->classes ? class.v : 0;
}

/* The row that place `i` is in. */
static double row_of(uint32_t i, uint32_t columns)
{
    const uint32_t row = i / columns;

    return row;
}

static uint32_t rows_of(uint32_t count, uint32_t columns)
{
    return (count + columns - 1) / columns;
}

static void count_groups(const struct chip *chip, struct map_layout *l)
{
    const struct maybe_u32 classes = chip->fp.topology.penalty_classes;

    l->classes = IS_KNOWN(classes) && classes.v >= 1 && classes.v <= MAX_CLASSES ? classes.v : 1;
    for (uint32_t g = 0; g < chip->group_count; g++) {
        const uint32_t places = chip->fp.topology.groups[g].sm_count + chip_group_lacks(chip, g);
        l->in_class[class_of(chip, l, g)]++;
        l->places = places > l->places ? places : l->places;
    }
}

static bool lacks_any(const struct chip *chip)
{
    for (uint32_t g = 0; g < chip->group_count; g++) {
        if (chip_group_lacks(chip, g) > 0)
            return true;
    }
    return false;
}

static uint32_t legend_rows(const struct chip *chip)
{
    return (chip->planned && chip->plan.window_count > 0 ? chip->plan.window_count : 1) +
           lacks_any(chip);
}

static struct map_layout lay_out(const struct chip *chip)
{
    struct map_layout l = {.places = 1};
    uint32_t most = 1;
    double width;

    count_groups(chip, &l);
    for (uint32_t c = 0; c < l.classes; c++)
        most = l.in_class[c] > most ? l.in_class[c] : most;
    l.place_columns = l.places == 1 ? 1 : l.places <= 8 ? 2 : l.places <= 32 ? 4 : 8;
    l.group_width = 2 * GROUP_PAD + l.place_columns * (SM_WIDTH + SM_GAP) - SM_GAP;
    l.group_height =
        GROUP_HEAD + GROUP_PAD + rows_of(l.places, l.place_columns) * (SM_HEIGHT + SM_GAP) - SM_GAP;
    l.class_columns = l.classes > 1 ? 2 : 1;
    l.group_columns =
        (uint32_t)ceil(sqrt(most * (l.group_height + GROUP_GAP) / (l.group_width + GROUP_GAP) *
                            (l.class_columns > 1 ? 1.0 : 2.0)));
    l.group_columns = l.group_columns < 1 ? 1 : l.group_columns < most ? l.group_columns : most;
    l.class_width = 2 * CLASS_PAD + l.group_columns * (l.group_width + GROUP_GAP) - GROUP_GAP;
    l.class_height = CLASS_HEAD + CLASS_PAD +
                     rows_of(most, l.group_columns) * (l.group_height + GROUP_GAP) - GROUP_GAP;
    width = 2 * MARGIN + l.class_columns * (l.class_width + CLASS_GAP) - CLASS_GAP;
    l.width = width > LEAST_WIDTH ? width : LEAST_WIDTH;
    l.legend_top = TOP + rows_of(l.classes, l.class_columns) * (l.class_height + CLASS_GAP) + 14;
    l.height = l.legend_top + legend_rows(chip) * LEGEND_ROW + MARGIN + 8;
    return l;
}

/* ---- the boxes ---- */

static void draw_sm(const struct map_layout *l, double left, double top, uint32_t place,
                    const char *color, int sm)
{
    const double x = left + GROUP_PAD + place % l->place_columns * (SM_WIDTH + SM_GAP);
    const double y = top + GROUP_HEAD + row_of(place, l->place_columns) * (SM_HEIGHT + SM_GAP);
    char attributes[128];

    if (sm < 0) {
        svg_rect(x, y, SM_WIDTH, SM_HEIGHT, 3,
                 "fill=\"none\" stroke=\"#8c959f\" stroke-dasharray=\"3 2\"");
        svg_text(x + SM_WIDTH / 2.0, y + 15, 11, "fill=\"#6e7781\" text-anchor=\"middle\"", "–");
        return;
    }
    (void)snprintf(attributes, sizeof(attributes),
                   "fill=\"#fff\" stroke=\"%s\" stroke-width=\".8\"", color);
    svg_rect(x, y, SM_WIDTH, SM_HEIGHT, 3, attributes);
    svg_text(x + SM_WIDTH / 2.0, y + 15, 11.5, "fill=\"" SVG_INK "\" text-anchor=\"middle\"", "%d",
             sm);
}

/* A group without a window is gray. */
static const char *color_of(int window)
{
    return window == CHIP_NO_WINDOW ? "#6e7781" : svg_color((unsigned)window);
}

static void draw_group(const struct chip *chip, const struct map_layout *l, uint32_t group,
                       double x, double y)
{
    const int window = chip->window_of_group[group];
    const char *const color = color_of(window);
    const uint32_t lacks = chip_group_lacks(chip, group);
    uint16_t sms[REACH_MAX_SMS];
    const uint32_t count = chip_group_sms(chip, group, sms);
    char list[SVG_TEXT_BYTES / 2];
    char name[32] = "no window";
    char attributes[160];

    if (window != CHIP_NO_WINDOW)
        (void)snprintf(name, sizeof(name), "window %d", window);
    svg_group("group %u, %s: SMs %s%s", group, name,
              chip_format_list(sms, count, list, sizeof(list)),
              lacks > 0 ? "; some of a full group are not there" : "");
    (void)snprintf(attributes, sizeof(attributes),
                   "fill=\"%s\" fill-opacity=\".16\" stroke=\"%s\" stroke-width=\"1.4\"", color,
                   color);
    svg_rect(x, y, l->group_width, l->group_height, 5, attributes);
    svg_text(x + GROUP_PAD, y + 13.5, 10.5, "fill=\"" SVG_INK "\"", "%u", group);
    (void)snprintf(attributes, sizeof(attributes),
                   "fill=\"" SVG_INK "\" text-anchor=\"end\" font-weight=\"600\"");
    if (window != CHIP_NO_WINDOW)
        svg_text(x + l->group_width - GROUP_PAD, y + 13.5, 10.5, attributes, "w%d", window);
    for (uint32_t i = 0; i < count; i++)
        draw_sm(l, x, y, i, color, sms[i]);
    for (uint32_t i = 0; i < lacks; i++)
        draw_sm(l, x, y, count + i, color, -1);
    svg_group_end();
}

/* "a miss costs 84 to 106 cycles", of the groups of a class. */
static void title_class(const struct chip *chip, const struct map_layout *l, uint32_t class,
                        char *out, size_t size)
{
    double least = INFINITY;
    double most = 0;

    for (uint32_t g = 0; g < chip->group_count; g++) {
        const struct maybe_f64 cost = chip->fp.topology.groups[g].miss_penalty_cycles;
        if (class_of(chip, l, g) == class && IS_KNOWN(cost)) {
            least = fmin(least, cost.v);
            most = fmax(most, cost.v);
        }
    }
    if (most > 0)
        (void)snprintf(out, size, "%u groups: a miss costs %.0f to %.0f cycles", l->in_class[class],
                       least, most);
    else
        (void)snprintf(out, size, "%u groups", l->in_class[class]);
}

static void draw_class(const struct chip *chip, const struct map_layout *l, uint32_t class)
{
    const double x = MARGIN + class % l->class_columns * (l->class_width + CLASS_GAP);
    const double y = TOP + row_of(class, l->class_columns) * (l->class_height + CLASS_GAP);
    uint32_t place = 0;
    char title[96];

    title_class(chip, l, class, title, sizeof(title));
    svg_rect(x, y, l->class_width, l->class_height, 8, "fill=\"#f6f8fa\" stroke=\"" SVG_LINE "\"");
    svg_text(x + CLASS_PAD, y + 18, 12, "fill=\"" SVG_QUIET "\"", "%s", title);
    for (uint32_t g = 0; g < chip->group_count; g++) {
        if (class_of(chip, l, g) != class)
            continue;
        draw_group(
            chip, l, g, x + CLASS_PAD + place % l->group_columns * (l->group_width + GROUP_GAP),
            y + CLASS_HEAD + row_of(place, l->group_columns) * (l->group_height + GROUP_GAP));
        place++;
    }
}

/* ---- around them ---- */

static void draw_window(const struct chip *chip, uint32_t window, double y)
{
    const struct placement_window *const w = &chip->plan.windows[window];
    char first[FORMAT_SIZE_BYTES];
    char last[FORMAT_SIZE_BYTES];
    char length[FORMAT_SIZE_BYTES];
    char attributes[160];

    (void)snprintf(attributes, sizeof(attributes),
                   "fill=\"%s\" fill-opacity=\".25\" stroke=\"%s\" stroke-width=\"1.4\"",
                   svg_color(window), svg_color(window));
    svg_rect(MARGIN, y, 26, 16, 3, attributes);
    svg_text(MARGIN + 13, y + 12, 10.5,
             "fill=\"" SVG_INK "\" text-anchor=\"middle\" font-weight=\"600\"", "w%u", window);
    svg_text(MARGIN + 38, y + 12.5, 12.5, "", "window %u: %s, from %s to %s; %u SMs in %u groups",
             window, format_size(w->length_bytes, length), format_size(w->first_byte, first),
             format_size(w->first_byte + w->length_bytes, last), w->sm_count, w->group_count);
}

static void draw_legend(const struct chip *chip, const struct map_layout *l)
{
    const double last = l->legend_top + (legend_rows(chip) - 1) * LEGEND_ROW;

    if (lacks_any(chip)) {
        svg_rect(MARGIN, last, 26, 16, 3,
                 "fill=\"none\" stroke=\"#8c959f\" stroke-dasharray=\"3 2\"");
        svg_text(MARGIN + 38, last + 12.5, 12.5, "", "an SM of a full group that is not there");
    }
    if (!chip->planned || chip->plan.window_count == 0) {
        svg_text(MARGIN, l->legend_top + 12.5, 12.5, "", "no windows: %.300s",
                 chip->planned ? chip->plan.reason : chip->why.text);
        return;
    }
    for (uint32_t w = 0; w < chip->plan.window_count; w++)
        draw_window(chip, w, l->legend_top + w * LEGEND_ROW);
}

void picture_map(const struct chip *chip)
{
    const struct gpu_identity *const gpu = &chip->fp.gpu;
    const struct map_layout l = lay_out(chip);
    char size[FORMAT_SIZE_BYTES];
    char title[SVG_TEXT_BYTES];
    char groups[64] = "; which of them share a TLB is not known";
    char windows[64] = "";

    format_size(chip->bytes, size);
    if (chip->group_count > 0)
        (void)snprintf(groups, sizeof(groups), " in %u groups that share a TLB", chip->group_count);
    if (chip->planned && chip->plan.window_count > 0)
        (void)snprintf(windows, sizeof(windows), "%u windows over %s; ", chip->plan.window_count,
                       size);
    (void)snprintf(title, sizeof(title), "%s: %u SMs%s", gpu->name, gpu->sm_count, groups);
    svg_begin(
        l.width, l.height, title,
        "Each box is a group of SMs with their ids; its color and the label w0, w1, ... are the "
        "window of memory in which the group works. A dashed place is an SM of a full group "
        "that is not there.");
    svg_text(MARGIN, 38, 20, "fill=\"" SVG_INK "\" font-weight=\"600\"", "%s", title);
    svg_text(MARGIN, 60, 12.5, "fill=\"" SVG_QUIET "\"", "%s%s%s, fingerprint %s", windows,
             gpu->origin == ORIGIN_MEASURED ? "" : "NOT OF THIS HARDWARE: ",
             origin_name(gpu->origin), chip->id);
    for (uint32_t c = 0; chip->group_count > 0 && c < l.classes; c++)
        draw_class(chip, &l, c);
    draw_legend(chip, &l);
    svg_end();
}
