/* report.c: a fingerprint as a short table for a person. An unknown number is printed with its
 * reason. */
#include "batch/export.h"

#include "base/clock.h"
#include "base/units.h"
#include "fingerprint/fingerprint_json.h"
#include "fingerprint/members.h"
#include "fingerprint/fingerprint_json.h"

enum { REPORT_CELL_BYTES = 40 };

/* One cell of a table. */
struct cell {
    char text[REPORT_CELL_BYTES];
};

static struct cell cell_reason(enum reason reason)
{
    struct cell c = {0};

    snprintf(c.text, sizeof c.text, "%s", reason_slug(reason));
    return c;
}

static struct cell cell_bytes(struct maybe_u64 m)
{
    struct cell c = {0};

    units_format_bytes(m.v, c.text, sizeof c.text);
    return IS_KNOWN(m) ? c : cell_reason(m.reason);
}

static struct cell cell_u32(struct maybe_u32 m)
{
    struct cell c;

    snprintf(c.text, sizeof c.text, "%u", m.v);
    return IS_KNOWN(m) ? c : cell_reason(m.reason);
}

static struct cell cell_f64(struct maybe_f64 m, int digits)
{
    struct cell c;

    snprintf(c.text, sizeof c.text, "%.*f", digits, m.v);
    return IS_KNOWN(m) ? c : cell_reason(m.reason);
}

/* "L2: 7 sets (1 of 17 ways, 6 of 8 ways), lru, an entry of 16 pages filled whole". */
static void report_group_reads(FILE *out, const struct fingerprint *fp)
{
    const struct topology *t = &fp->topology;
    const struct group_pairs *p = &t->pairs;

    for (uint32_t g = 0; g < t->partition.group_count; g++) {
        const struct sm_group *group = &t->groups[g];
        fprintf(out, "  group %u: %u SMs, alone %s GB/s, out of reach %s, all at work %s", g,
                group->sm_count, cell_f64(group->alone_gbps, 1).text,
                cell_f64(group->beyond_gbps, 1).text, cell_f64(group->random_read_gbps, 1).text);
        fprintf(out, ", a miss %s cycles, class %s, by speed %s\n",
                cell_f64(group->miss_penalty_cycles, 1).text, cell_u32(group->penalty_class).text,
                cell_u32(group->speed_class).text);
    }
    fprintf(out, "classes by a miss: %s, by speed: %s; speed follows the SMs: %s\n",
            cell_u32(t->penalty_classes).text, cell_u32(t->speed_classes).text,
            finding_name(t->speed_follows_sms));
    fprintf(out, "pairs of groups: %u, worst %s of alone (%u and %u), %u slow, share a TLB: %s\n",
            p->measured, cell_f64(p->worst_ratio, 3).text, p->worst[0], p->worst[1], p->slow_count,
            finding_name(p->share_tlb));
    for (uint32_t i = 0; i < p->listed; i++)
        fprintf(out, "  groups %u and %u: %.3f, by %s\n", p->slow[i].groups[0],
                p->slow[i].groups[1], p->slow[i].ratio, slow_cause_name(p->slow[i].cause));
}

static void report_sets(FILE *out, const struct fingerprint *fp)
{
    for (uint32_t i = 0; i < fp->level_count; i++) {
        const struct tlb_level *l = &fp->levels[i];

        fprintf(out, "L%u: sets %s", l->level, cell_u32(l->sets).text);
        for (uint32_t k = 0; k < l->run_count; k++)
            fprintf(out, "%s%u of %u ways", k == 0 ? " (" : ", ", l->runs[k].sets, l->runs[k].ways);
        fprintf(out, "%s, victim entries %s, replacement %s", l->run_count > 0 ? ")" : "",
                cell_u32(l->victim_entries).text, replacement_name(l->replacement));
        fprintf(out, "; pages of an entry %s, filled: %s", cell_u32(l->entry_pages).text,
                fill_name(l->fill));
        if (IS_KNOWN(l->tag_bytes))
            fprintf(out, " of %s", cell_bytes(l->tag_bytes).text);
        fputc('\n', out);
    }
    fprintf(out, "behind the last level: walked up to %s; one level more: %s\n",
            cell_bytes(KNOWN_U64(fp->beyond.probed_bytes)).text,
            cell_bytes(fp->beyond.reach_bytes).text);
}

static void report_levels(FILE *out, const struct fingerprint *fp)
{
    fprintf(out, "%-6s %-10s %-10s %-12s %-12s %-12s %-10s %-8s %s\n", "level", "entries", "entry",
            "reach", "onset", "saturation", "penalty", "shared", "confidence");
    for (uint32_t i = 0; i < fp->level_count; i++) {
        const struct tlb_level *l = &fp->levels[i];

        fprintf(out, "L%-5u %-10s %-10s %-12s %-12s %-12s %-10s %-8s %s\n", l->level,
                cell_u32(l->entries).text, cell_bytes(l->entry_bytes).text,
                cell_bytes(l->reach_bytes).text, cell_bytes(l->onset_bytes).text,
                cell_bytes(l->saturation_bytes).text, cell_f64(l->miss_penalty_cycles, 1).text,
                shared_by_name(l->shared_by), cell_f64(l->confidence, 2).text);
    }
}

/* "evidence L1: reach_bytes refine x15 0.90, ..": method, repeats and margin of what is known. */
static void report_evidence(FILE *out, const char *of, const struct object *o, const void *base)
{
    const char *comma = "";

    fprintf(out, "evidence %s:", of);
    for (const struct member *m = NULL; (m = object_next_evidence(o, m));) {
        const struct evidence *const e = member_evidence(m, base);

        if (e->method == EVIDENCE_NONE)
            continue;
        fprintf(out, "%s %s %s x%u %.2f", comma, m->of_evidence, evidence_method_name(e->method),
                e->repeats, e->margin);
        comma = ",";
    }
    fprintf(out, "%s\n", comma[0] ? "" : " none");
}

static void report_all_evidence(FILE *out, const struct fingerprint *fp)
{
    static const struct {
        const char *of, *member;
    } objects[] = {{"SM groups", "topology"},
                   {"throughput", "throughput"},
                   {"l2", "l2"},
                   {"contiguity", "contiguity"}};

    for (uint32_t i = 0; i < fp->level_count; i++) {
        char of[REPORT_CELL_BYTES];

        snprintf(of, sizeof of, "L%u", fp->levels[i].level);
        report_evidence(out, of, &level_object, &fp->levels[i]);
    }
    for (size_t i = 0; i < sizeof objects / sizeof objects[0]; i++) {
        const struct member *const m = object_member(&fingerprint_object, objects[i].member);

        report_evidence(out, objects[i].of, m->object, member_at(m, fp));
    }
}

/* "SM groups: 16 sharing L2, sizes 8 8 8 ..., nominal 9, confidence 1.00". */
static void report_groups(FILE *out, const struct fingerprint *fp)
{
    const struct topology *t = &fp->topology;

    fprintf(out, "SM groups: %u, sharing level %s, sizes", t->partition.group_count,
            cell_u32(t->level).text);
    for (uint32_t g = 0; g < t->partition.group_count; g++)
        fprintf(out, " %u", t->groups[g].sm_count);
    fprintf(out, "; nominal %s, full die %s SMs, confidence %s\n",
            cell_u32(t->nominal_group_sms).text, cell_u32(t->full_sm_count).text,
            cell_f64(t->confidence, 2).text);
    fprintf(out, "  disabled SMs: %s, pattern %s, candidates %s\n",
            cell_u32(t->disabled.sm_count).text,
            t->disabled.signature[0] ? t->disabled.signature : "not known",
            cell_u32(t->disabled.candidate_count).text);
    for (uint32_t g = 0; g < t->partition.group_count; g++) {
        fprintf(out, "  group %u: SMs", g);
        for (uint32_t sm = 0; sm < REACH_MAX_SMS; sm++) {
            if (t->partition.group_of_sm[sm] == g)
                fprintf(out, " %u", sm);
        }
        fprintf(out, "\n");
    }
}

static void report_throughput(FILE *out, const struct fingerprint *fp)
{
    const struct throughput *t = &fp->throughput;

    fprintf(out, "random 128-byte reads: plateau %s GB/s, whole memory %s GB/s\n",
            cell_f64(t->plateau_gbps, 1).text, cell_f64(t->whole_memory_gbps, 1).text);
    if (t->curve_count)
        fprintf(out, "%-12s %-8s %-18s %-18s %s\n", "region", "windows", "naive GB/s",
                "by group GB/s", "by SM GB/s (control)");
    for (uint32_t i = 0; i < t->curve_count; i++) {
        const struct curve_point *p = &t->curve[i];
        char region[REPORT_CELL_BYTES];

        fprintf(out, "%-12s %-8u %-18s %-18s %s\n",
                units_format_bytes(p->region_bytes, region, sizeof region), p->windows,
                cell_f64(p->naive_gbps, 1).text, cell_f64(p->by_group_gbps, 1).text,
                cell_f64(p->by_sm_gbps, 1).text);
    }
}

static void report_rates(FILE *out, const struct throughput *t)
{
    for (uint32_t i = 0; i < t->rate_count; i++) {
        const struct access_rate *r = &t->rates[i];

        fprintf(out, "random %s of %u bytes: plateau %s GB/s\n", access_name(r->access),
                r->transaction_bytes, cell_f64(r->plateau_gbps, 1).text);
        for (uint32_t k = 0; k < r->point_count; k++)
            fprintf(out, "  over %s: naive %s GB/s, by group %s\n",
                    cell_bytes(KNOWN_U64(r->points[k].region_bytes)).text,
                    cell_f64(r->points[k].naive_gbps, 1).text,
                    cell_f64(r->points[k].by_group_gbps, 1).text);
    }
}

static void report_contiguity(FILE *out, const struct fingerprint_contiguity *c)
{
    fprintf(out, "contiguity: frame %s; a miss, contiguous %s ns, scattered %s ns\n",
            cell_bytes(c->frame_bytes).text, cell_f64(c->contiguous_miss_ns, 3).text,
            cell_f64(c->scattered_miss_ns, 3).text);
}

static void report_l2(FILE *out, const struct fingerprint_l2 *l2)
{
    fprintf(out, "L2 cache: sides %s, granule %s; an atomic, near %s cycles, far %s\n",
            cell_u32(l2->sides).text, cell_bytes(l2->granule_bytes).text,
            cell_f64(l2->atomic_near_cycles, 1).text, cell_f64(l2->atomic_far_cycles, 1).text);
}

static void report_caches(FILE *out, const struct fingerprint *fp)
{
    static const char row[] = "%-10s %-16s %-16s %-14s %-14s %-14s %-14s %-14s %-8s %-14s %s\n";
    const struct fingerprint_latency *const l = &fp->latency;

    if (fp->cache_count == 0)
        return;
    fprintf(out, row, "cache", "size", "fits", "line", "sector", "fill", "sets", "ways", "policy",
            "hit cycles", "miss cycles");
    for (uint32_t i = 0; i < fp->cache_count; i++) {
        const struct cache_facts *const c = &fp->caches[i];
        fprintf(out, row, cache_kind_name(c->kind), cell_bytes(c->size_bytes).text,
                cell_bytes(c->fits_bytes).text, cell_bytes(c->line_bytes).text,
                cell_bytes(c->sector_bytes).text, cell_bytes(c->fill_bytes).text,
                cell_u32(c->sets).text, cell_u32(c->ways).text, replacement_name(c->replacement),
                cell_f64(c->latency_cycles, 0).text, cell_f64(c->miss_latency_cycles, 0).text);
        for (uint32_t k = 0; k < c->carveout_count; k++)
            fprintf(out, "  beside %s of shared memory: %s, fits %s\n",
                    cell_bytes(KNOWN_U64(c->carveouts[k].shared_bytes)).text,
                    cell_bytes(c->carveouts[k].size_bytes).text,
                    cell_bytes(c->carveouts[k].fits_bytes).text);
        if (c->trace[0])
            fprintf(out, "  one set, hits and misses: %s\n", c->trace);
    }
    fprintf(out,
            "latency in cycles: P1 %s, P2 %s, P3 %s, P4 %s, P5 %s, P6 %s; memory near %s, far %s, "
            "tail %s (share %s)\n",
            cell_f64(l->p1_cycles, 0).text, cell_f64(l->p2_cycles, 0).text,
            cell_f64(l->p3_cycles, 0).text, cell_f64(l->p4_cycles, 0).text,
            cell_f64(l->p5_cycles, 0).text, cell_f64(l->p6_cycles, 0).text,
            cell_f64(l->near_cycles, 0).text, cell_f64(l->far_cycles, 0).text,
            cell_f64(l->tail_cycles, 0).text, cell_f64(l->tail_share, 3).text);
}

static void report_onchip(FILE *out, const struct fingerprint *fp)
{
    const struct fingerprint_shared *const s = &fp->shared;
    const struct fingerprint_clusters *const c = &fp->clusters;
    const struct fingerprint_parallelism *const p = &fp->parallelism;

    fprintf(out, "shared memory: %s banks of %s bytes\n", cell_u32(s->banks).text,
            cell_u32(s->bank_bytes).text);
    for (uint32_t i = 0; i < s->width_count; i++) {
        const struct shared_width *const w = &s->widths[i];
        fprintf(out,
                "  %2u bytes a lane: %s cycles, %s more a pass, %s bytes a cycle from %s loads on",
                w->width_bytes, cell_f64(w->latency_cycles, 1).text,
                cell_f64(w->conflict_cycles, 2).text, cell_f64(w->bytes_per_cycle, 1).text,
                cell_u32(w->loads_enough).text);
        fprintf(out, ", all banks need %s\n", cell_u32(w->loads_needed).text);
    }
    fprintf(out, "clusters: up to %s SMs, GPCs %s\n", cell_u32(c->largest).text,
            cell_u32(c->gpcs).text);
    for (uint32_t i = 0; i < c->size_count; i++)
        fprintf(out, "  of %2u: %s SMs used, %s cycles, %s bytes a cycle\n", c->sizes[i].sms,
                cell_u32(c->sizes[i].usable_sms).text, cell_f64(c->sizes[i].latency_cycles, 0).text,
                cell_f64(c->sizes[i].bytes_per_cycle, 1).text);
    fprintf(out, "in flight: %s loads in an SM are enough for %s GB/s, %s are not; %s SMs are, %s",
            cell_u32(p->loads_enough).text, cell_f64(p->plateau_gbps, 0).text,
            cell_u32(p->loads_short).text, cell_u32(p->sms_enough).text,
            cell_u32(p->sms_short).text);
    fprintf(out, " are not\n");
}

/* "640 MiB", "at least 16 GiB", or why there is no number. */
static struct cell cell_reach(const struct memory_facts *m, struct maybe_u64 reach)
{
    struct cell c;
    char most[REPORT_CELL_BYTES / 2];

    if (!IS_KNOWN(m->probed_bytes) || reach.known != MAYBE_NOT_OBSERVABLE)
        return cell_bytes(reach);
    snprintf(c.text, sizeof c.text, "at least %s",
             units_format_bytes(m->probed_bytes.v, most, sizeof most));
    return c;
}

/* The columns of `reachctl show`; a kind that is not available has its reason. */
static void report_memory(FILE *out, const struct fingerprint *fp)
{
    static const char row[] = "%-20s %-14s %-16s %-16s %-14s %-14s %-14s %-12s %-12s %s\n";

    if (fp->memory_count)
        fprintf(out, row, "other memory", "plateau GB/s", "reach", "by group", "out of reach",
                "entry", "latency cyc.", "SMs", "writes GB/s", "atomics GB/s");
    for (uint32_t i = 0; i < fp->memory_count; i++) {
        const struct memory_facts *m = &fp->memory[i];

        if (!IS_KNOWN(m->probed_bytes))
            fprintf(out, "%-20s %s\n", memory_kind_name(m->kind), cell_bytes(m->probed_bytes).text);
        else
            fprintf(out, row, memory_kind_name(m->kind), cell_f64(m->plateau_gbps, 1).text,
                    cell_reach(m, m->reach_bytes).text, cell_reach(m, m->windows_reach_bytes).text,
                    cell_f64(m->beyond_gbps, 1).text, cell_bytes(m->entry_bytes).text,
                    cell_f64(m->latency_cycles, 0).text, cell_u32(m->sms_to_fill).text,
                    cell_f64(m->write_gbps, 1).text, cell_f64(m->atomic_gbps, 1).text);
    }
}

void report_print(FILE *out, const struct fingerprint *fp)
{
    const struct fingerprint_conditions *c = &fp->conditions;
    char id[FINGERPRINT_ID_BYTES], when[REPORT_CELL_BYTES], memory[REPORT_CELL_BYTES],
        held[REPORT_CELL_BYTES], range[REPORT_CELL_BYTES];

    (void)fingerprint_id(fp, id, NULL); /* "" without memory */
    fprintf(out, "%s %s (%s), %u SMs, %s, driver %s\n", fp->gpu.name, fp->gpu.uuid,
            origin_name(fp->gpu.origin), fp->gpu.sm_count,
            units_format_bytes(fp->gpu.memory_bytes, memory, sizeof memory),
            fp->gpu.driver_version);
    fprintf(out, "%s, depth %s, %s: %u ms in all, %u ms probing, %s of device memory held\n", id,
            depth_name(fp->depth), clock_rfc3339(fp->taken_at, when, sizeof when), fp->duration_ms,
            fp->probe_ms, units_format_bytes(fp->device_memory_bytes, held, sizeof held));
    fprintf(out, "conditions: %s, arena %s over %s, SM clock %s kHz, other processes %s\n",
            verdict_name(c->verdict), c->arena,
            units_format_bytes(c->range_bytes, range, sizeof range), cell_u32(c->sm_clock_khz).text,
            cell_u32(c->other_processes).text);
    for (uint32_t i = 0; i < c->note_count; i++)
        fprintf(out, "note: %s\n", c->notes[i]);
    report_levels(out, fp);
    if (fp->depth >= DEPTH_FULL)
        report_sets(out, fp);
    report_groups(out, fp);
    if (fp->depth >= DEPTH_FULL)
        report_group_reads(out, fp);
    fprintf(out, "windows: reach %s, entry %s, recommended %s\n",
            cell_bytes(fp->windows.reach_bytes).text, cell_bytes(fp->windows.entry_bytes).text,
            cell_bytes(fp->windows.recommended_bytes).text);
    report_throughput(out, fp);
    report_rates(out, &fp->throughput);
    report_memory(out, fp);
    if (fp->depth >= DEPTH_FULL)
        report_contiguity(out, &fp->contiguity);
    report_l2(out, &fp->l2);
    report_caches(out, fp);
    if (fp->depth >= DEPTH_FULL)
        report_onchip(out, fp);
    report_all_evidence(out, fp);
    fprintf(out, "structure %016llx\n", (unsigned long long)fingerprint_structure_hash(fp));
}
