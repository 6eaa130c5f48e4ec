/* check_shared.c: see check_shared.h. */
#include "fingerprint/check_shared.h"

/* The first failure of the object at `where`. */
struct check {
    enum status status;
    const char *where;
    struct err *err;
};

static void require(struct check *c, bool holds, const char *field, const char *what)
{
    if (!holds && c->status == STATUS_OK)
        c->status = err_set(c->err, STATUS_CORRUPT, "fingerprint: %s.%s %s", c->where, field, what);
}

static void check_banks(struct check *c, const struct fingerprint_shared *s)
{
    const bool known = IS_KNOWN(s->banks);

    c->where = "shared";
    require(c, !known || s->banks.v > 0, "banks", "is 0");
    require(c, IS_KNOWN(s->bank_bytes) == known, "bank_bytes", "is known without banks");
    require(c, !known || s->bank_bytes.v > 0, "bank_bytes", "is 0");
    for (uint32_t i = 1; i < s->width_count; i++)
        require(c, s->widths[i].width_bytes > s->widths[i - 1].width_bytes, "widths",
                "do not ascend");
    for (uint32_t i = 0; i < s->stride_count; i++) {
        const struct shared_stride *const k = &s->strides[i];
        require(c,
                i == 0 || k->width_bytes > k[-1].width_bytes ||
                    (k->width_bytes == k[-1].width_bytes && k->stride_bytes > k[-1].stride_bytes),
                "strides", "are out of order or a duplicate");
        require(c, known || !IS_KNOWN(k->passes), "strides", "have passes without banks");
    }
}

static void check_clusters(struct check *c, const struct fingerprint_clusters *k, uint32_t sm_count)
{
    const bool known = IS_KNOWN(k->gpcs);

    c->where = "clusters";
    require(c, !IS_KNOWN(k->largest) || k->largest.v > 1, "largest", "is not a cluster");
    require(c, known == (k->gpc_of_sm.group_count > 0), "sms", "are not those of the GPCs");
    require(c, !known || k->gpcs.v == k->gpc_of_sm.group_count, "gpcs", "is not their number");
    for (uint32_t i = 0; i < k->size_count; i++) {
        const struct cluster_size *const s = &k->sizes[i];
        require(c, s->sms > 1 && (i == 0 || s->sms > s[-1].sms), "sizes", "do not ascend");
        require(c, IS_KNOWN(s->clusters) == IS_KNOWN(s->usable_sms), "sizes",
                "have usable_sms without clusters");
        require(c, s->usable_sms.v == (uint64_t)s->clusters.v * s->sms, "sizes",
                "have usable_sms that are not those of the clusters");
        require(c, sm_count == 0 || s->usable_sms.v <= sm_count, "sizes",
                "have more usable_sms than the GPU");
    }
}

/* The next fewer is below what is enough. */
static void check_enough(struct check *c, struct maybe_u32 enough, struct maybe_u32 fewer,
                         const char *field)
{
    require(c, !IS_KNOWN(enough) || enough.v > 0, field, "is 0");
    require(c, !IS_KNOWN(fewer) || (IS_KNOWN(enough) && fewer.v < enough.v), field,
            "is not above what is too few");
}

static void check_parallelism(struct check *c, const struct fingerprint_parallelism *p)
{
    c->where = "parallelism";
    check_enough(c, p->loads_enough, p->loads_short, "loads_enough");
    check_enough(c, p->sms_enough, p->sms_short, "sms_enough");
    for (uint32_t i = 0; i < p->surface_count; i++) {
        const struct concurrency_point *const s = &p->surface[i];
        require(c, s->warps > 0 && s->loads > 0, "surface", "has nothing in flight");
        require(c,
                i == 0 || s->warps > s[-1].warps ||
                    (s->warps == s[-1].warps && s->loads > s[-1].loads),
                "surface", "is out of order");
    }
    for (uint32_t i = 0; i < p->by_sms_count; i++)
        require(c, p->by_sms[i].sms > (i > 0 ? p->by_sms[i - 1].sms : 0), "by_sms",
                "do not ascend");
}

enum status check_shared(const struct fingerprint *fp, struct err *err)
{
    struct check c = {.status = STATUS_OK, .err = err};

    check_banks(&c, &fp->shared);
    check_clusters(&c, &fp->clusters, fp->gpu.sm_count);
    check_parallelism(&c, &fp->parallelism);
    return c.status;
}
