/* fake_kernels.c: the work of the device code, done on the MMU model. A kernel gets the real
 * structs of kernels/abi.h, reads its tables from device memory, and writes its answers there. */
#include "gpu/probe.h"
#include "gpu/sim/sim_machine.h"
#include "kernels/abi.h"
#include "tests/fakecuda/fake_state.h"

#include <stdlib.h>
#include <string.h>

enum { LAUNCH_NS = 5000, WARP = 32 };

static const char *const kernel_names[FAKE_KERNELS] = {"reach_census",
                                                       "reach_chase",
                                                       "reach_round",
                                                       "reach_pairs",
                                                       "reach_sides",
                                                       "reach_read",
                                                       "reach_read_sectors",
                                                       "reach_read_blocks",
                                                       "reach_atomic",
                                                       "reach_write",
                                                       "reach_read_far",
                                                       "reach_atomic_far",
                                                       "reach_write_far",
                                                       "reach_copy_far",
                                                       "reach_read_concurrent",
                                                       "reach_shared",
                                                       "reach_peer",
                                                       "reach_cache",
                                                       "reach_working_set_sort",
                                                       "reach_working_set_lines",
                                                       "reach_working_set_blocks"};

enum {
    FIRST_READ = 5,
    COPY_FAR = 13,
    READ_CONCURRENT = 14,
    SHARED = 15,
    PEER = 16,
    CACHE_KERNEL = 17,
    FIRST_SPREAD = 18,
    COMPRESSED_COSTS = 5
};

static const enum probe_kind walks[FIRST_READ] = {
    [1] = PROBE_CHASE, [2] = PROBE_ROUND, [3] = PROBE_PAIRS, [4] = PROBE_SIDES};

/* The accesses of each kernel from FIRST_READ on; 0 bytes stand for row_bytes of the arguments. */
static const struct sim_access accesses[SHARED - FIRST_READ] = {
    {.access = ACCESS_READ, .bytes = 128},
    {.access = ACCESS_READ, .bytes = 32},
    {.access = ACCESS_READ, .bytes = 512},
    {.access = ACCESS_ATOMIC, .bytes = 32},
    {.access = ACCESS_WRITE, .bytes = 32},
    {.access = ACCESS_READ},
    {.access = ACCESS_ATOMIC},
    {.access = ACCESS_WRITE},
    {.access = ACCESS_READ},
    {.access = ACCESS_READ, .bytes = 128},
};

const char *fake_kernel_name(const char *name)
{
    for (int i = 0; i < FAKE_KERNELS; i++) {
        if (strcmp(name, kernel_names[i]) == 0)
            return kernel_names[i];
    }
    return NULL;
}

/* The current launch of a kernel. */
struct launch {
    const struct sim_desc *desc;
    struct fake_device *device;
    const struct reach_grid *grid;
};

static cu_result illegal(const char *what)
{
    fake.sticky = CU_ERROR_ILLEGAL_ADDRESS;
    return fake_misuse(CU_ERROR_ILLEGAL_ADDRESS, "a kernel touches memory that is not there: %s",
                       what);
}

/* Checks that the counters are zero before the blocks meet, and that positions are the SM ids in
 * ascending order. */
static cu_result check_grid(const struct launch *l, unsigned blocks, bool positions_too)
{
    const struct reach_grid *g = l->grid;
    uint32_t slots = l->desc->sm_ids[l->desc->sm_count - 1] + 1u;
    uint32_t *arrived = fake_host(g->arrived, sizeof *arrived);
    uint32_t *gave_up = fake_host(g->gave_up, sizeof *gave_up);
    if (!arrived || !gave_up || *arrived != 0 || *gave_up != 0)
        return fake_misuse(CU_ERROR_LAUNCH_FAILED, "the counters of a grid are not zero");
    if (g->blocks != blocks || blocks != l->desc->sm_count || g->sm_slots < slots)
        return fake_misuse(CU_ERROR_LAUNCH_FAILED, "%u blocks, %u said, %u SMs", blocks, g->blocks,
                           l->desc->sm_count);
    if (!positions_too)
        return CU_SUCCESS;
    const uint32_t *positions = fake_host(g->positions, slots * sizeof *positions);
    if (!positions)
        return illegal("positions");
    for (uint32_t i = 0; i < l->desc->sm_count; i++) {
        if (positions[l->desc->sm_ids[i]] != i)
            return fake_misuse(CU_ERROR_LAUNCH_FAILED, "SM %u is not at position %u",
                               l->desc->sm_ids[i], i);
    }
    return CU_SUCCESS;
}

static bool pages_are_mapped(uint64_t base, uint64_t stride, uint64_t pages)
{
    for (uint64_t i = 0; i < pages; i++) {
        if (!fake_is_mapped(base + i * stride, PROBE_LINE_BYTES))
            return false;
    }
    return true;
}

static cu_result run_census(const struct launch *l, const struct reach_census_args *a)
{
    uint32_t *seen = fake_host(a->seen, a->grid.sm_slots * sizeof *seen);
    if (!seen)
        return illegal("seen");
    for (uint32_t i = 0; i < l->desc->sm_count; i++)
        seen[l->desc->sm_ids[i]]++;
    return CU_SUCCESS;
}

/* Computes the answer to `spec` at address `base` and stores the values in device memory at
 * `values`. */
static cu_result answer(const struct launch *l, const struct probe_spec *spec, uint64_t base,
                        uint64_t values)
{
    struct err err = {.status = STATUS_OK};
    size_t count = probe_value_count(spec, l->desc->sm_count);
    uint64_t bytes = probe_range_bytes(spec, l->desc->sm_count);
    uint64_t pages = (bytes + spec->stride_bytes - 1) / spec->stride_bytes;
    uint32_t *out = fake_host(values, count * sizeof *out);
    if (probe_check(spec, NULL, &err) != STATUS_OK)
        return fake_misuse(CU_ERROR_LAUNCH_FAILED, "%s", err.text);
    if (!out || !pages_are_mapped(base, spec->stride_bytes, pages))
        return illegal(probe_kind_name(spec->kind));
    uint64_t first = 0;
    struct sim_machine *const machine = fake_machine_at(l->device, base, &first);
    uint32_t *away = fake_host(l->grid->away, REACH_AWAY_WORDS * sizeof *away);
    if (!away || away[REACH_AWAY_INTERRUPTED] != 0)
        return fake_misuse(CU_ERROR_LAUNCH_FAILED, "the words for interruptions are not zero");
    if (sim_machine_run(machine, spec, base - first, out, &err) != STATUS_OK)
        return fake_misuse(CU_ERROR_LAUNCH_FAILED, "%s", err.text);
    away[REACH_AWAY_INTERRUPTED] = sim_machine_interruptions(machine);
    return CU_SUCCESS;
}

static cu_result run_walk(const struct launch *l, enum probe_kind kind,
                          const struct reach_walk_args *a)
{
    const bool has_list = kind == PROBE_PAIRS || kind == PROBE_SIDES;
    struct probe_spec spec = {
        .kind = kind,
        .stride_bytes = a->stride_bytes,
        .samples = a->samples,
        .warm_laps = a->laps,
        .slice_pages = a->slice_pages,
        .flush_pages = a->flush_pages,
        .thrash_pages = a->thrash_pages,
        .repeats = kind == PROBE_ROUND ? a->count : a->repeats,
        .sm_count = has_list ? a->count : 1,
        .sms = {(uint16_t)a->sm},
    };
    const uint64_t *points = fake_host(a->points, a->count * sizeof *points);
    const uint32_t *pivots = fake_host(a->pivots, a->count * sizeof *pivots);
    if (kind == PROBE_CHASE && a->count > PROBE_MAX_POINTS)
        return fake_misuse(CU_ERROR_LAUNCH_FAILED, "%u points", a->count);
    if (has_list && a->count > REACH_MAX_SMS)
        return fake_misuse(CU_ERROR_LAUNCH_FAILED, "%u pivots", a->count);
    if (!points || !pivots)
        return illegal("points or pivots");
    spec.point_count = kind == PROBE_CHASE ? a->count : 0;
    memcpy(spec.points, points, spec.point_count * sizeof *points);
    for (uint32_t i = 0; has_list && i < a->count; i++)
        spec.sms[i] = (uint16_t)pivots[i];
    return answer(l, &spec, a->base, a->values);
}

/* Returns the length of a window without gaps that needs the same entries. Pieces with gaps take an
 * entry each, or share entries. Returns 0 if a part of the memory is missing. */
static uint64_t bytes_of_pieces(const struct launch *l, const struct reach_read_args *a,
                                uint64_t lines, bool far)
{
    const uint64_t piece = (uint64_t)REACH_PIECE_LINES * PROBE_LINE_BYTES;
    const uint64_t stride = piece + (uint64_t)a->gap_lines * PROBE_LINE_BYTES;
    const uint64_t pieces = lines / REACH_PIECE_LINES;
    const uint64_t entry = far ? l->desc->kinds[l->device->far_kind].entry_bytes
                               : l->desc->levels[l->desc->level_count - 1].entry_bytes;
    if (pieces == 0 || !fake_is_mapped(a->base, (pieces - 1) * stride + piece))
        return 0;
    return pieces * (stride < entry ? stride : entry);
}

/* Collects the distinct windows of all SMs. */
static cu_result collect_windows(const struct launch *l, const struct reach_read_args *a,
                                 uint64_t first, bool far, struct sim_window *windows,
                                 uint16_t *window_of)
{
    uint32_t count = 0;
    const struct reach_window *table = fake_host(a->windows, a->grid.sm_slots * sizeof *table);
    if (!table)
        return illegal("windows");
    for (uint32_t i = 0; i < l->desc->sm_count; i++) {
        const struct reach_window *w = &table[l->desc->sm_ids[i]];
        struct sim_window here = {
            .va = a->base + w->first_line * PROBE_LINE_BYTES - first,
            .bytes = w->lines * PROBE_LINE_BYTES,
        };
        uint32_t k = 0;
        window_of[i] = PROBE_SM_IDLE;
        if (w->lines == 0)
            continue;
        if (a->gap_lines > 0)
            here.bytes = bytes_of_pieces(l, a, w->lines, far);
        if (here.bytes == 0)
            return illegal("pieces");
        while (k < count && (windows[k].va != here.va || windows[k].bytes != here.bytes))
            k++;
        if (k == PROBE_MAX_WINDOWS && a->in_flight > 0)
            k = PROBE_MAX_WINDOWS - 1; /* the model treats all parts of the same length alike */
        if (k == PROBE_MAX_WINDOWS)
            return fake_misuse(CU_ERROR_LAUNCH_FAILED, "too many different windows");
        if (k == count && !fake_is_mapped(here.va + first, here.bytes))
            return illegal("a window");
        windows[k] = here;
        count += k == count;
        window_of[i] = (uint16_t)k;
    }
    return CU_SUCCESS;
}

/* Mappings shorter than a frame are adjacent, at the start of a region. */
static void find_scattered(const struct launch *l, const struct sim_window *region, uint64_t first,
                           struct sim_access *access)
{
    const struct fake_map *maps = fake.maps.items;
    uint64_t end = region->va + first;

    for (size_t i = 0; i < fake.maps.count; i++) {
        if (maps[i].va == end && maps[i].bytes < l->desc->frame_bytes)
            end += maps[i].bytes;
    }
    access->scattered_va = region->va;
    access->scattered_bytes = end - first - region->va;
}

/* The output is memory of the device, and longer than what all warps write at a time. */
static bool is_output(const struct launch *l, const struct reach_read_args *a)
{
    const uint64_t least =
        (uint64_t)a->readers * REACH_READ_THREADS / WARP * REACH_FAR_UNROLL * 128;
    uint64_t first;

    return a->output_bytes > least && (a->output_bytes & (a->output_bytes - 1)) == 0 &&
           fake_is_mapped(a->output, a->output_bytes) &&
           fake_machine_at(l->device, a->output, &first) == l->device->machine;
}

static cu_result run_read(const struct launch *l, struct sim_access access,
                          const struct reach_read_args *a)
{
    struct sim_window windows[PROBE_MAX_WINDOWS];
    uint16_t window_of[REACH_MAX_SMS];
    uint32_t row[1 + REACH_MAX_SMS];
    uint32_t sms = l->desc->sm_count;
    uint64_t first = 0;
    struct sim_machine *const machine = fake_machine_at(l->device, a->base, &first);
    cu_result r = collect_windows(l, a, first, machine != l->device->machine, windows, window_of);
    if (r != CU_SUCCESS)
        return r;
    find_scattered(l, &windows[0], first, &access);
    if (access.bytes == 0)
        access.bytes = a->row_bytes;
    if (fake_is_compressed(a->base))
        access.bytes *= COMPRESSED_COSTS;
    uint32_t *lines = fake_host(a->lines, sms * sizeof *lines);
    uint64_t *started = fake_host(a->started, sms * sizeof *started);
    uint64_t *ended = fake_host(a->ended, sms * sizeof *ended);
    if (!lines || !started || !ended || !fake_host(a->sink, sizeof(uint32_t)))
        return illegal("lines");
    if (a->zero != 0)
        return fake_misuse(CU_ERROR_LAUNCH_FAILED, "the memory would not stay zero");
    sim_machine_read(machine, access, windows, window_of, (uint32_t)(a->run_ns / 1000), 1, row);
    uint64_t start = l->device->timer_ns + a->warm_ns;
    for (uint32_t i = 0; i < sms; i++) {
        lines[i] = row[1 + i];
        started[i] = start;
        ended[i] = start + row[0];
    }
    return CU_SUCCESS;
}

/* Every SM has a rank on its side that no other SM there has, below the number of SMs of the
 * side. */
static bool sides_are_whole(const struct launch *l, const struct reach_working_set_sm *sms)
{
    bool taken[2][REACH_MAX_SMS] = {{false}};

    for (uint32_t i = 0; i < l->desc->sm_count; i++) {
        const struct reach_working_set_sm *const sm = &sms[l->desc->sm_ids[i]];
        if (sm->side > 1 || sm->rank >= sm->side_sms || taken[sm->side][sm->rank])
            return false;
        taken[sm->side][sm->rank] = true;
    }
    return true;
}

static cu_result run_working_set_read(const struct launch *l, const char *name,
                                      const struct reach_working_set_args *a)
{
    const uint32_t sms = l->desc->sm_count;
    const bool sorts = strcmp(name, "reach_working_set_sort") == 0;
    const uint64_t bytes = sorts ? (uint64_t)a->granules << a->granule_bits : a->set_bytes;
    const struct reach_working_set_sm *const table =
        fake_host(a->sms, a->grid.sm_slots * sizeof *table);
    struct probe_spec spec = {
        .kind = PROBE_WORKING_SET_READ,
        .set_read = a->own            ? SET_READ_OWN
                    : a->granules > 0 ? SET_READ_NEAR
                                      : SET_READ_SAME,
        .transaction_bytes =
            strcmp(name, "reach_working_set_blocks") == 0 ? PROBE_BLOCK_BYTES : PROBE_LINE_BYTES,
        .point_count = 1,
        .points = {bytes},
        .repeats = 1,
        .duration_us = (uint32_t)(a->run_ns / 1000),
        .seed = a->seed,
    };
    uint32_t row[1 + REACH_MAX_SMS];
    struct err err;

    if (!table || !fake_is_mapped(a->base, bytes))
        return illegal("a set");
    if (!sides_are_whole(l, table))
        return fake_misuse(CU_ERROR_LAUNCH_FAILED, "the sides of the SMs contradict each other");
    if (a->granules > 0 && (!fake_host(a->bits, (a->granules / 32 + 1) * sizeof(uint32_t)) ||
                            !fake_host(a->cycles, 2ULL * a->granules * sizeof(uint16_t))))
        return illegal("granules");
    if (sorts)
        return CU_SUCCESS;
    uint32_t *const lines = fake_host(a->lines, sms * sizeof *lines);
    uint64_t *const started = fake_host(a->started, sms * sizeof *started);
    uint64_t *const ended = fake_host(a->ended, sms * sizeof *ended);
    if (!lines || !started || !ended || !fake_host(a->sink, sizeof(uint32_t)))
        return illegal("lines");
    if (sim_machine_run(l->device->machine, &spec, 0, row, &err) != STATUS_OK)
        return fake_misuse(CU_ERROR_LAUNCH_FAILED, "%s", err.text);
    for (uint32_t i = 0; i < sms; i++) {
        lines[i] = row[1 + i];
        started[i] = l->device->timer_ns + a->warm_ns;
        ended[i] = started[i] + row[0];
    }
    return CU_SUCCESS;
}

/* The kernel has one block per SM. */
static cu_result run_cache(const struct launch *l, const struct reach_cache_args *a)
{
    const struct reach_cache_point *points = fake_host(a->points, a->count * sizeof *points);
    uint32_t *claimed = fake_host(a->claimed, a->grid.sm_slots * sizeof *claimed);
    uint32_t *out = fake_host(a->values, (size_t)a->count * a->samples * sizeof *out);
    struct probe_spec spec = {
        .kind = PROBE_CACHE,
        .stride_bytes = a->stride_bytes,
        .point_count = a->count,
        .samples = a->samples,
        .warm_laps = a->laps,
        .path = (enum probe_path)a->path,
        .warm_path = (enum probe_path)a->warm_path,
        .sweep_footprint = a->sweep_footprint,
        .sweep_bytes = a->sweep_bytes,
        .touch_bytes = a->touch_bytes,
        .evict_bytes = a->evict_bytes,
        .shared_bytes = fake_shared_of_sm(kernel_names[CACHE_KERNEL]),
        .sm_count = a->count,
    };
    struct err err = {.status = STATUS_OK};
    uint64_t first = 0;

    if (!points || !claimed || !out || a->count > PROBE_MAX_POINTS)
        return illegal("points of a cache probe");
    for (uint32_t i = 0; i < a->count; i++) {
        spec.points[i] = points[i].elements;
        spec.sms[i] = (uint16_t)points[i].sm;
        spec.scattered |= points[i].step > 1;
    }
    for (uint32_t i = 0; i < l->desc->sm_count; i++)
        claimed[l->desc->sm_ids[i]] = 1;
    if (probe_check(&spec, NULL, &err) != STATUS_OK)
        return fake_misuse(CU_ERROR_LAUNCH_FAILED, "%s", err.text);
    if (spec.path != PATH_CONSTANT && !fake_is_mapped(a->base, probe_range_bytes(&spec, 0)))
        return illegal("the footprint of a cache probe");
    struct sim_machine *const machine = fake_machine_at(l->device, a->base, &first);
    if (sim_machine_run(machine, &spec, a->base - first, out, &err) != STATUS_OK)
        return fake_misuse(CU_ERROR_LAUNCH_FAILED, "%s", err.text);
    return CU_SUCCESS;
}

/* SHARED and PEER access only the memory that their arguments name. */
static cu_result answer_chip(const struct launch *l, const struct probe_spec *spec, uint32_t *out)
{
    struct err err = {.status = STATUS_OK};
    if (probe_check(spec, NULL, &err) != STATUS_OK ||
        sim_machine_run(l->device->machine, spec, 0, out, &err) != STATUS_OK)
        return fake_misuse(CU_ERROR_LAUNCH_FAILED, "%s", err.text);
    return CU_SUCCESS;
}

static cu_result run_shared(const struct launch *l, unsigned threads,
                            const struct reach_shared_args *a)
{
    struct probe_spec spec = {.kind = PROBE_SHARED,
                              .point_count = a->count,
                              .samples = a->samples,
                              .warm_laps = a->laps,
                              .repeats = a->repeats,
                              .transaction_bytes = a->width,
                              .warps = a->warps,
                              .in_flight = a->in_flight,
                              .sm_count = a->sm_count};
    const uint32_t *sms = fake_host(a->sms, a->sm_count * sizeof *sms);
    const uint64_t *points = fake_host(a->points, a->count * sizeof *points);
    uint32_t *out = fake_host(a->values, (uint64_t)a->repeats * a->sm_count * a->count * 4);
    if (threads != a->warps * WARP || a->count > PROBE_MAX_POINTS || a->sm_count > REACH_MAX_SMS)
        return fake_misuse(CU_ERROR_LAUNCH_FAILED, "%u threads, %u warps", threads, a->warps);
    if (!sms || !points || !out)
        return illegal("shared");
    memcpy(spec.points, points, a->count * sizeof *points);
    for (uint32_t i = 0; i < a->sm_count; i++)
        spec.sms[i] = (uint16_t)sms[i];
    if (l->desc->shared.latency_cycles ==
        0) { /* the model has no latency, so any cycles are valid */
        for (uint64_t i = 0; i < (uint64_t)a->repeats * a->sm_count * a->count; i++)
            out[i] = a->samples;
        return CU_SUCCESS;
    }
    return answer_chip(l, &spec, out);
}

/* Row 0 belongs to the host. */
static cu_result run_peer(const struct launch *l, unsigned cluster_sms,
                          const struct reach_peer_args *a)
{
    const struct probe_spec spec = {
        .kind = PROBE_PEER, .samples = a->samples, .repeats = 1, .cluster_sms = cluster_sms};
    const uint64_t count = probe_value_count(&spec, l->desc->sm_count);
    uint32_t *const out = fake_host(a->values, count * sizeof *out);
    if (a->columns != probe_peer_columns(&spec) || a->ring_bytes != PROBE_RING_BYTES)
        return fake_misuse(CU_ERROR_LAUNCH_FAILED, "%u columns", a->columns);
    if (!out)
        return illegal("peer");
    for (uint64_t i = 0; i < count; i++)
        if (out[i] != 0)
            return fake_misuse(CU_ERROR_LAUNCH_FAILED, "the rows of a cluster launch are not 0");
    const cu_result r = answer_chip(l, &spec, out);
    memset(out, 0, a->columns * sizeof *out);
    return r;
}

cu_result fake_kernel_run_clusters(const char *name, int device, unsigned blocks, unsigned threads,
                                   unsigned cluster_sms, const void *args)
{
    struct launch l = {
        .desc = &fake.control.gpus[device],
        .device = &fake.devices[device],
        .grid = args,
    };
    (void)fake_count_use(name);
    if (strcmp(name, kernel_names[PEER]) != 0 || threads != REACH_PEER_THREADS ||
        blocks != cluster_sms * fake_clusters(device, cluster_sms))
        return fake_misuse(CU_ERROR_LAUNCH_FAILED, "%u blocks of %s in clusters of %u", blocks,
                           name, cluster_sms);
    return run_peer(&l, cluster_sms, args);
}

unsigned fake_clusters(int device, unsigned cluster_sms)
{
    const struct sim_desc *const d = &fake.control.gpus[device];
    uint32_t sms[REACH_MAX_SMS] = {0};
    unsigned clusters = 0;

    if (cluster_sms == 0 || cluster_sms > d->clusters.largest)
        return 0;
    for (uint32_t i = 0; i < d->sm_count; i++)
        sms[d->gpc_of_sm[i]]++;
    for (uint32_t g = 0; g < d->sm_count; g++)
        clusters += sms[g] / cluster_sms;
    return clusters;
}

cu_result fake_kernel_run(const char *name, int device, unsigned blocks, unsigned threads,
                          const void *args)
{
    struct launch l = {
        .desc = &fake.control.gpus[device],
        .device = &fake.devices[device],
        .grid = args,
    };
    bool census = strcmp(name, kernel_names[0]) == 0;
    int kernel = 0;
    while (strcmp(name, kernel_names[kernel]) != 0)
        kernel++;
    const bool cache = kernel == CACHE_KERNEL;
    const bool read = kernel >= FIRST_READ;
    const bool varies = kernel == READ_CONCURRENT || kernel == SHARED;
    uint64_t use = fake_count_use(name);
    if (kernel == PEER || (!varies && threads != (read ? REACH_READ_THREADS : WARP)))
        return fake_misuse(CU_ERROR_LAUNCH_FAILED, "%s with %u threads", name, threads);
    cu_result r = check_grid(&l, blocks, !census);
    if (r != CU_SUCCESS)
        return r;
    if (control_fault(&fake.control, FAULT_GIVE_UP, name, -1, use)) {
        *(uint32_t *)fake_host(l.grid->gave_up, sizeof(uint32_t)) = 1;
        return CU_SUCCESS;
    }
    l.device->timer_ns += LAUNCH_NS;
    if (census)
        return run_census(&l, args);
    if (kernel < FIRST_READ)
        return run_walk(&l, walks[kernel], args);
    if (cache)
        return run_cache(&l, args);
    if (kernel >= FIRST_SPREAD)
        return run_working_set_read(&l, name, args);
    if (kernel == SHARED)
        return run_shared(&l, threads, args);
    struct sim_access access = accesses[kernel - FIRST_READ];
    if (kernel == COPY_FAR && !is_output(&l, args))
        return illegal("output");
    if (kernel == READ_CONCURRENT) {
        const struct reach_read_args *const a = args;
        if (threads != a->warps * WARP)
            return fake_misuse(CU_ERROR_LAUNCH_FAILED, "%u threads, %u warps", threads, a->warps);
        access.in_flight = a->warps * a->in_flight;
    }
    return run_read(&l, access, args);
}
