/* access_pattern.c: see access_pattern.h. */
#include "clients/profile/access_pattern.h"

#include "clients/lab/trace/trace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    FAR_SHARE = 10, /* a class is at random if more than one in ten pairs is far */
    SLACK = 2,      /* a pair may be at twice its expected distance */
    DRIFT = 100,    /* the distance of two warps may change by one part in a hundred of the span */
    DIGIT_BITS = 11 /* of the numbers by which records are sorted */
};

/* The first line of each record, from which neighbors are found. */
struct first_line {
    uint64_t address;
    uint64_t block;
    uint32_t warp;
    uint32_t class;
};

struct reading {
    const struct place_map *map;
    struct access_pattern *p;
    struct rlt_record record;
    uint32_t granule;
    uint32_t region; /* region of the last line */
    uint64_t room;
    struct first_line *firsts;
};

static enum status no_memory(struct err *err)
{
    return err_no_memory(err, "the accesses of a launch");
}

/* ---- classes ---- */

static uint32_t find_region(struct reading *g, uint64_t address)
{
    const struct place_region *const last =
        g->region < g->map->count ? &g->map->regions[g->region] : NULL;

    if (!last || address - last->address >= last->bytes)
        g->region = place_map_find(g->map, address);
    return g->region;
}

static uint32_t first_slot(const struct access_pattern *p, uint32_t region, enum rlt_kind kind,
                           uint32_t width_log2)
{
    const uint32_t key = (region * RLT_KIND_COUNT + (uint32_t)kind) * 8 + width_log2;

    return (key * 2654435761u) & (p->slot_count - 1);
}

/* Returns the class, or NULL if there is none. */
static struct access_class *find_class(const struct access_pattern *p, uint32_t region,
                                       enum rlt_kind kind, uint32_t width_log2)
{
    for (uint32_t i = p->slot_count > 0 ? first_slot(p, region, kind, width_log2) : 0;
         p->slot_count > 0 && p->slots[i] != 0; i = (i + 1) & (p->slot_count - 1)) {
        struct access_class *const c = &p->classes[p->slots[i] - 1];
        if (c->region == region && c->kind == kind && c->width_log2 == width_log2)
            return c;
    }
    return NULL;
}

static void fill_slot(struct access_pattern *p, uint32_t index)
{
    const struct access_class *const c = &p->classes[index];
    uint32_t i = first_slot(p, c->region, c->kind, c->width_log2);

    while (p->slots[i] != 0)
        i = (i + 1) & (p->slot_count - 1);
    p->slots[i] = index + 1;
}

/* Keeps at least half of the slots free. */
static bool grow_classes(struct access_pattern *p)
{
    const uint32_t slots = p->slot_count > 0 ? 2 * p->slot_count : 64;
    struct access_class *classes;
    uint32_t *table;

    if (2 * (p->class_count + 1) <= p->slot_count)
        return true;
    classes = realloc(p->classes, slots / 2 * sizeof(*classes));
    if (classes)
        p->classes = classes;
    table = classes ? calloc(slots, sizeof(*table)) : NULL;
    if (!table)
        return false;
    free(p->slots);
    p->slots = table;
    p->slot_count = slots;
    for (uint32_t i = 0; i < p->class_count; i++)
        fill_slot(p, i);
    return true;
}

/* Returns the class of an access, which is added if it is new, or NULL if out of memory. */
static struct access_class *add_class(struct reading *g, uint64_t address)
{
    struct access_pattern *const p = g->p;
    const struct rlt_record *const r = &g->record;
    const uint32_t region = find_region(g, address);
    struct access_class *c = find_class(p, region, r->kind, r->width_log2);

    if (c || !grow_classes(p))
        return c;
    c = &p->classes[p->class_count];
    *c = (struct access_class){.region = region,
                               .place = region < g->map->count ? g->map->regions[region].place
                                                               : PLACE_UNKNOWN,
                               .kind = r->kind,
                               .width_log2 = r->width_log2,
                               .low = UINT64_MAX};
    fill_slot(p, p->class_count++);
    return c;
}

/* Returns the bytes that memory moves for each line if the lanes are spread evenly over the
 * lines. */
static uint64_t line_bytes(const struct rlt_record *r, uint32_t granule)
{
    const uint32_t bytes = (uint32_t)__builtin_popcount(r->mask) << r->width_log2;
    const uint32_t each = (bytes + r->line_count - 1) / r->line_count;
    const uint32_t moved =
        (each + TRACE_SECTOR_BYTES - 1) / TRACE_SECTOR_BYTES * TRACE_SECTOR_BYTES;

    return moved < granule ? moved : granule;
}

static bool begins_run(const struct rlt_record *r, uint32_t i)
{
    return i == 0 || r->lines[i] - r->lines[i - 1] > 1;
}

static void add_line(struct access_class *c, uint64_t address, uint64_t bytes, uint32_t granule)
{
    const uint64_t moved = c->lines > 0 && address == c->last_line ? c->last_bytes : 0;
    const uint64_t left = granule - moved;

    c->lines++;
    c->moved_bytes += bytes < left ? bytes : left;
    c->last_line = address;
    c->last_bytes = moved + (bytes < left ? bytes : left);
    c->low = address < c->low ? address : c->low;
    c->high = address + granule > c->high ? address + granule : c->high;
}

static enum status add_record(struct reading *g, struct err *err)
{
    struct access_pattern *const p = g->p;
    const struct rlt_record *const r = &g->record;
    const uint64_t bytes = line_bytes(r, g->granule);

    if (p->records == UINT32_MAX)
        return err_set(err, STATUS_NOT_APPLICABLE, "the trace has more than 2^32 records");
    if (p->records == g->room) {
        const uint64_t room = g->room > 0 ? 2 * g->room : 4096;
        struct first_line *const more = realloc(g->firsts, room * sizeof(*more));
        if (!more)
            return no_memory(err);
        g->firsts = more;
        g->room = room;
    }
    for (uint32_t i = 0; i < r->line_count; i++) {
        const uint64_t address = r->lines[i] * g->granule;
        struct access_class *const c = add_class(g, address);
        if (!c)
            return no_memory(err);
        add_line(c, address, bytes, g->granule);
        c->runs += begins_run(r, i);
        if (i == 0)
            g->firsts[p->records] =
                (struct first_line){address, r->block, r->warp, (uint32_t)(c - p->classes)};
    }
    p->records++;
    p->records_of[r->kind][r->width_log2]++;
    p->lines += r->line_count;
    return STATUS_OK;
}

/* ---- neighbors ---- */

/* The numbers by which records are sorted, the most important last. */
enum sort_by { BY_BLOCK, BY_WARP, BY_CLASS, SORTS };

static inline uint64_t sort_number(const struct first_line *f, enum sort_by by)
{
    return by == BY_BLOCK ? f->block : by == BY_WARP ? f->warp : f->class;
}

/* Copies the records, sorted by the digit at `shift`. Equal records keep their order. */
static void sort_by_digit(const struct first_line *from, struct first_line *to, uint64_t count,
                          enum sort_by by, int shift)
{
    enum { DIGITS = 1 << DIGIT_BITS };
    uint64_t next[DIGITS + 1] = {0};

    for (uint64_t i = 0; i < count; i++)
        next[(sort_number(&from[i], by) >> shift) % DIGITS + 1]++;
    for (int k = 0; k < DIGITS; k++)
        next[k + 1] += next[k];
    for (uint64_t i = 0; i < count; i++)
        to[next[(sort_number(&from[i], by) >> shift) % DIGITS]++] = from[i];
}

/* Returns the largest number if the records are not in its order, otherwise 0. */
static uint64_t largest_unsorted(const struct first_line *firsts, uint64_t count, enum sort_by by)
{
    uint64_t largest = 0;
    bool sorted = true;

    for (uint64_t i = 0; i < count; i++) {
        const uint64_t number = sort_number(&firsts[i], by);
        sorted = sorted && number >= largest;
        largest = number > largest ? number : largest;
    }
    return sorted ? 0 : largest;
}

/* Sorts the records by class, by warp, by block, and then in the order of the trace. */
static bool sort_by_class(struct reading *g)
{
    const uint64_t count = g->p->records;
    struct first_line *other = malloc(count * sizeof(*other));

    for (enum sort_by by = BY_BLOCK; other && by < SORTS; by++) {
        const uint64_t largest = largest_unsorted(g->firsts, count, by);
        for (int shift = 0; shift < 64 && largest >> shift > 0; shift += DIGIT_BITS) {
            struct first_line *const from = g->firsts;
            sort_by_digit(from, other, count, by, shift);
            g->firsts = other;
            other = from;
        }
    }
    free(other);
    return other != NULL;
}

/* Compares the accesses [begin, middle) of a warp of one block with those of the same warp of the
 * next block in the trace, [middle, end). The n-th accesses are a pair. If a kernel has few blocks,
 * or few of them are in the trace, all addresses are near enough for their distance in blocks. Then
 * the distance within the pairs shows the order: two warps of an access in order advance together.
 */
static void compare_blocks(struct access_class *c, const struct first_line *firsts, uint64_t begin,
                           uint64_t middle, uint64_t end, double blocks)
{
    const double span = (double)access_class_span(c);
    const double apart = (double)(firsts[middle].block - firsts[begin].block);
    const double near = SLACK * span * apart / blocks + (double)(1 << RECORDING_PAGE_SHIFT);
    const double steady = span / DRIFT + (double)(1 << RECORDING_PAGE_SHIFT);
    const double first = (double)firsts[middle].address - (double)firsts[begin].address;

    for (uint64_t i = 0; begin + i < middle && middle + i < end; i++) {
        const double distance =
            (double)firsts[middle + i].address - (double)firsts[begin + i].address;
        c->pairs++;
        c->far_pairs += fabs(distance) > near || fabs(distance - first) > steady;
    }
}

/* Returns the end of the accesses of one warp of one block that begin at `begin`. */
static uint64_t warp_end(const struct first_line *firsts, uint64_t begin, uint64_t count)
{
    uint64_t end = begin;

    while (end < count && firsts[end].class == firsts[begin].class &&
           firsts[end].warp == firsts[begin].warp && firsts[end].block == firsts[begin].block)
        end++;
    return end;
}

static enum status compare_neighbors(struct reading *g, const uint32_t grid[3], struct err *err)
{
    struct access_pattern *const p = g->p;
    const double blocks = (double)grid[0] * grid[1] * grid[2];
    uint64_t begin = 0;

    if (!g->firsts)
        return STATUS_OK;
    if (!sort_by_class(g))
        return no_memory(err);
    for (uint64_t end; begin < p->records; begin = end) {
        end = warp_end(g->firsts, begin, p->records);
        if (end < p->records && g->firsts[end].class == g->firsts[begin].class &&
            g->firsts[end].warp == g->firsts[begin].warp)
            compare_blocks(&p->classes[g->firsts[begin].class], g->firsts, begin, end,
                           warp_end(g->firsts, end, p->records), blocks > 0 ? blocks : 1);
    }
    for (uint32_t i = 0; i < p->class_count; i++) {
        struct access_class *const c = &p->classes[i];
        c->random = c->pairs == 0 || FAR_SHARE * c->far_pairs > c->pairs;
    }
    return STATUS_OK;
}

/* ---- public functions ---- */

enum status access_pattern_read(FILE *in, const struct place_map *map, const uint32_t grid[3],
                                struct access_pattern *out, struct err *err)
{
    struct reading g = {.map = map, .p = out, .region = UINT32_MAX};
    struct err own = {0};
    struct rlt_reader *const reader = rlt_reader_new(in, &own);
    enum status s = STATUS_OK;

    *out = (struct access_pattern){0};
    g.granule = reader ? rlt_tables(reader)->granule_bytes : 0;
    out->granule_bytes = g.granule;
    while (reader && s == STATUS_OK && rlt_read(reader, &g.record, &own))
        s = add_record(&g, &own);
    if (own.status == STATUS_OK)
        (void)compare_neighbors(&g, grid, &own);
    if (reader)
        out->left_out = rlt_tables(reader)->left_out;
    rlt_reader_free(reader);
    free(g.firsts);
    return own.status == STATUS_OK ? STATUS_OK : err_set(err, own.status, "%s", own.text);
}

void access_pattern_free(struct access_pattern *take)
{
    free(take->classes);
    free(take->slots);
    *take = (struct access_pattern){0};
}

static bool is_chosen(struct reading *g, uint64_t address, const struct access_class **out)
{
    *out = find_class(g->p, find_region(g, address), g->record.kind, g->record.width_log2);
    return *out && (*out)->chosen;
}

enum status access_pattern_walk(FILE *in, const struct place_map *map,
                                const struct access_pattern *p, access_pattern_visit *visit,
                                void *context, struct err *err)
{
    struct access_pattern same = *p;
    struct reading g = {.map = map, .p = &same, .region = UINT32_MAX};
    struct err own = {0};
    struct rlt_reader *const reader = rlt_reader_new(in, &own);
    const struct access_class *c;
    enum status s = STATUS_OK;

    g.granule = reader ? rlt_tables(reader)->granule_bytes : 0;
    while (reader && s == STATUS_OK && rlt_read(reader, &g.record, &own)) {
        for (uint32_t i = 0; s == STATUS_OK && i < g.record.line_count; i++) {
            const uint64_t address = g.record.lines[i] * g.granule;
            if (begins_run(&g.record, i) && is_chosen(&g, address, &c))
                s = visit(context, c, address, &own);
        }
    }
    rlt_reader_free(reader);
    return own.status == STATUS_OK ? STATUS_OK : err_set(err, own.status, "%s", own.text);
}

/* ---- copies ---- */

struct copying {
    struct reading reading;
    const struct access_copy *copy;
    struct rlt_writer *writer;
    uint64_t blocks; /* of the grid */
    bool begun;
};

/* Sets the range of the chosen classes of a region. */
static void find_span(const struct access_pattern *p, uint32_t region, uint64_t *low,
                      uint64_t *high)
{
    *low = UINT64_MAX;
    *high = 0;
    for (uint32_t i = 0; i < p->class_count; i++) {
        const struct access_class *const c = &p->classes[i];
        if (!c->chosen || c->region != region)
            continue;
        *low = c->low < *low ? c->low : *low;
        *high = c->high > *high ? c->high : *high;
    }
}

bool access_pattern_region(const struct access_pattern *p, uint32_t i, uint64_t *low,
                           uint64_t *high)
{
    for (uint32_t k = 0; k < i; k++)
        if (p->classes[k].chosen && p->classes[k].region == p->classes[i].region)
            return false;
    find_span(p, p->classes[i].region, low, high);
    return p->classes[i].chosen;
}

/* Writes an allocation for the region of class `i`, unless an earlier class has written it. */
static void write_allocation(struct rlt_writer *w, const struct access_pattern *p, uint32_t i)
{
    struct rlt_allocation a = {0};
    uint64_t end;

    if (!access_pattern_region(p, i, &a.base, &end))
        return;
    a.bytes = end - a.base;
    (void)snprintf(a.name, sizeof(a.name), "%s", place_name(p->classes[i].place));
    rlt_write_allocation(w, &a);
}

/* Writes what comes before the records, from the first kernel of the trace. */
static void write_beginning(struct copying *c, const struct rlt_reader *reader)
{
    const struct access_pattern *const p = c->reading.p;
    struct rlt_kernel kernel = rlt_tables(reader)->kernels[0];

    c->begun = true;
    c->blocks = (uint64_t)kernel.grid[0] * kernel.grid[1] * kernel.grid[2];
    if (c->copy->repeats > 1)
        memset(kernel.grid, 0, sizeof(kernel.grid)); /* there are more blocks than in the grid */
    kernel.app = rlt_write_app(c->writer, "reach-profile");
    for (uint32_t i = 0; i < p->class_count; i++)
        write_allocation(c->writer, p, i);
    (void)rlt_write_kernel(c->writer, &kernel);
}

/* Returns the address in a repetition. The golden ratio distributes the repetitions evenly. */
static uint64_t moved_address(const struct copying *c, uint32_t region, uint64_t address,
                              uint32_t repetition)
{
    static const uint64_t GOLDEN = 0x9e3779b9u; /* 2^32 divided by the golden ratio */
    const uint64_t unit = c->copy->spread_bytes;
    uint64_t low;
    uint64_t high;

    if (unit == 0 || repetition == 0)
        return address;
    find_span(c->reading.p, region, &low, &high);
    const uint64_t units = (high - low) / unit;
    const uint64_t shift = ((uint32_t)(repetition * GOLDEN) * units >> 32) * unit;
    return low + (address - low + shift) % (high - low);
}

static void write_chosen(struct copying *c, uint32_t repetition)
{
    struct reading *const g = &c->reading;
    struct rlt_record r = g->record;
    const struct access_class *class;

    r.line_count = 0;
    r.kernel = 0;
    r.block += repetition * c->blocks;
    for (uint32_t i = 0; i < g->record.line_count; i++) {
        const uint64_t address = g->record.lines[i] * g->granule;
        if (is_chosen(g, address, &class))
            r.lines[r.line_count++] =
                moved_address(c, class->region, address, repetition) / g->granule;
    }
    if (r.line_count > 0)
        rlt_write_record(c->writer, &r);
}

/* Copies the records [from, to) of the trace. */
static enum status copy_records(struct copying *c, FILE *in, uint64_t from, uint64_t to,
                                uint32_t repetition, struct err *err)
{
    struct rlt_reader *reader;
    struct err own = {0};

    rewind(in);
    reader = rlt_reader_new(in, &own);
    c->reading.granule = reader ? rlt_tables(reader)->granule_bytes : RLT_MIN_GRANULE;
    for (uint64_t i = 0; reader && i < to && rlt_read(reader, &c->reading.record, &own); i++) {
        if (!c->begun)
            write_beginning(c, reader);
        if (i >= from)
            write_chosen(c, repetition);
    }
    rlt_reader_free(reader);
    return own.status == STATUS_OK ? STATUS_OK : err_set(err, own.status, "%s", own.text);
}

enum status access_pattern_copy(FILE *in, const struct place_map *map,
                                const struct access_pattern *p, const struct access_copy *copy,
                                FILE *out, struct err *err)
{
    struct access_pattern same = *p;
    struct copying c = {.reading = {.map = map, .p = &same, .region = UINT32_MAX}, .copy = copy};
    enum status s = STATUS_OK;

    c.writer = rlt_writer_new(out, p->granule_bytes);
    if (!c.writer)
        return no_memory(err);
    for (uint32_t i = 0; s == STATUS_OK && i < copy->repeats; i++) {
        const uint64_t begin = p->records * i / copy->repeats;
        s = copy_records(&c, in, begin, p->records, i, err);
        if (s == STATUS_OK && begin > 0)
            s = copy_records(&c, in, 0, begin, i, err);
    }
    if (s == STATUS_OK)
        return rlt_writer_end(c.writer, err);
    rlt_writer_abandon(c.writer);
    return s;
}
