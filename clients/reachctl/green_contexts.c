/* green_contexts.c: the answer of split as a recipe for green contexts of CUDA, one for each job.
 *
 * cuDevSmResourceSplit takes a number of SMs, which must be even, and selects the SMs itself. The
 * recipe has the parameters of that call, and the SMs that the job should get. A job reads %smid in
 * its context and compares both. A group whose SMs are in two contexts is shared: its jobs evict
 * each other's translations.
 */
#include "clients/reachctl/green_contexts.h"

#include "clients/reachctl/chip.h"
#include "base/format_size.h"
#include "planner/split.h"

#include <stdlib.h>
#include <string.h>

enum { COSCHEDULED_SMS = 2, SIDES = 2, LIST_BYTES = 4096 };

struct green_context {
    uint64_t bytes;
    uint32_t sm_count;     /* even */
    uint32_t left_out;     /* 1 if sms[sm_count] belongs to the job, but to no context */
    uint32_t group_count;  /* groups with SMs of the context */
    uint32_t shared_count; /* those of them with SMs of another context */
    uint32_t sms_of_side[SIDES];
    uint16_t sms[REACH_MAX_SMS];
    uint16_t groups[REACH_MAX_GROUPS];
    uint16_t shared[REACH_MAX_GROUPS];
};

struct recipe {
    const struct fingerprint *fp;
    uint32_t context_count;
    struct green_context contexts[SPLIT_MAX_JOBS];
};

/* ---- the contexts ---- */

static bool has_group(const struct recipe *r, const struct green_context *c, uint32_t group)
{
    for (uint32_t i = 0; i < c->sm_count; i++)
        if (r->fp->topology.partition.group_of_sm[c->sms[i]] == group)
            return true;
    return false;
}

static bool is_shared(const struct recipe *r, uint32_t context, uint32_t group)
{
    for (uint32_t other = 0; other < r->context_count; other++)
        if (other != context && has_group(r, &r->contexts[other], group))
            return true;
    return false;
}

static void find_groups(struct recipe *r, uint32_t context)
{
    struct green_context *const c = &r->contexts[context];

    for (uint16_t g = 0; g < r->fp->topology.partition.group_count; g++) {
        if (!has_group(r, c, g))
            continue;
        c->groups[c->group_count++] = g;
        if (is_shared(r, context, g))
            c->shared[c->shared_count++] = g;
    }
    for (uint32_t i = 0; i < c->sm_count; i++) {
        const uint16_t side = r->fp->l2.side_of_sm.group_of_sm[c->sms[i]];
        if (IS_KNOWN(r->fp->l2.sides) && side < SIDES)
            c->sms_of_side[side]++;
    }
}

/* Reads the jobs of the answer. Returns false if it is not an answer about this fingerprint. */
static bool read_jobs(const json_t *answer, struct recipe *r)
{
    const json_t *const jobs = json_object_get(answer, "jobs");
    size_t j, i;
    const json_t *job, *sm;

    if (json_array_size(jobs) == 0 || json_array_size(jobs) > SPLIT_MAX_JOBS)
        return false;
    json_array_foreach(jobs, j, job)
    {
        struct green_context *const c = &r->contexts[r->context_count++];
        const json_t *const sms = json_object_get(job, "sms");
        if (json_array_size(sms) > REACH_MAX_SMS)
            return false;
        c->bytes = (uint64_t)json_integer_value(json_object_get(job, "bytes"));
        json_array_foreach(sms, i, sm)
        {
            const json_int_t id = json_integer_value(sm);
            if (id < 0 || id >= REACH_MAX_SMS)
                return false;
            c->sms[c->sm_count++] = (uint16_t)id;
        }
        c->left_out = c->sm_count % COSCHEDULED_SMS;
        c->sm_count -= c->left_out;
    }
    return true;
}

/* Returns the side of the L2 that has all SMs of the context and is a locality domain, or SIDES. */
static uint32_t domain_side(const struct recipe *r, const struct green_context *c)
{
    uint32_t side = 0;

    if (r->fp->l2.sides_match_domains != FINDING_YES || !IS_KNOWN(r->fp->l2.sides))
        return SIDES;
    while (side < SIDES && c->sms_of_side[side] != c->sm_count)
        side++;
    return side;
}

/* Returns the flags of CU_DEV_SM_RESOURCE_GROUP_PARAMS in C. A domain has more SMs than the driver
 * counts for it if some are supplemental. */
static const char *domain_flags(const struct recipe *r, const struct green_context *c)
{
    const struct maybe_u32 sms = r->fp->l2.locality_domain_sms;

    return IS_KNOWN(sms) && c->sm_count > sms.v
               ? "CU_DEV_SM_RESOURCE_GROUP_LOCALITY_DOMAIN_ID | "
                 "CU_DEV_SM_RESOURCE_GROUP_LOCALITY_DOMAIN_SUPPLEMENTAL_SMS"
               : "CU_DEV_SM_RESOURCE_GROUP_LOCALITY_DOMAIN_ID";
}

/* ---- text ---- */

static void print_list(const char *title, const uint16_t *numbers, uint32_t count)
{
    char text[LIST_BYTES];

    if (count > 0)
        printf("  %-10s%s\n", title, chip_format_list(numbers, count, text, sizeof text));
}

static void print_context(const struct recipe *r, uint32_t context)
{
    const struct green_context *const c = &r->contexts[context];
    const uint32_t side = domain_side(r, c);
    char size[FORMAT_SIZE_BYTES];

    printf("context %u, for %s\n  params    {.smCount = %u, .coscheduledSmCount = %d", context,
           format_size(c->bytes, size), c->sm_count, COSCHEDULED_SMS);
    if (side < SIDES)
        printf(", .flags = %s", domain_flags(r, c));
    puts("}");
    print_list("SMs", c->sms, c->sm_count);
    print_list("left out", c->sms + c->sm_count, c->left_out);
    print_list("groups", c->groups, c->group_count);
    if (c->shared_count > 0)
        print_list("shared", c->shared, c->shared_count);
    else
        puts("  shared    no group with another context");
    if (side < SIDES)
        printf("  domain    .localityDomainId of side %u of the L2\n", side);
    else if (IS_KNOWN(r->fp->l2.sides))
        printf("  sides     %u and %u SMs\n", c->sms_of_side[0], c->sms_of_side[1]);
}

static void print_recipe(const struct recipe *r)
{
    for (uint32_t context = 0; context < r->context_count; context++)
        print_context(r, context);
    puts("The driver selects the SMs of a context. Read %smid in each context, and compare it with "
         "these lists.");
    if (r->fp->gpu.origin != ORIGIN_MEASURED)
        printf("origin      %s: not measured on this hardware\n", origin_name(r->fp->gpu.origin));
}

/* ---- JSON ---- */

static void write_context(struct json_writer *t, const struct recipe *r,
                          const struct green_context *c)
{
    const uint32_t side = domain_side(r, c);

    json_writer_open(t, NULL, '{');
    json_writer_u64(t, "bytes", c->bytes);
    json_writer_u64(t, "sm_count", c->sm_count);
    json_writer_u64(t, "coscheduled_sm_count", COSCHEDULED_SMS);
    chip_write_numbers(t, "sms", c->sms, c->sm_count);
    chip_write_numbers(t, "left_out", c->sms + c->sm_count, c->left_out);
    chip_write_numbers(t, "groups", c->groups, c->group_count);
    chip_write_numbers(t, "shared_groups", c->shared, c->shared_count);
    if (side < SIDES)
        json_writer_u64(t, "domain_side", side);
    else
        json_writer_null(t, "domain_side");
    json_writer_close(t, '}');
}

static enum exit_code print_json(const struct recipe *r, const char *id)
{
    struct json_writer t;

    json_writer_begin(&t, LIST_BYTES);
    t.indent = 1;
    json_writer_open(&t, NULL, '{');
    json_writer_text(&t, "fingerprint_id", id);
    json_writer_text(&t, "origin", origin_name(r->fp->gpu.origin));
    json_writer_open(&t, "contexts", '[');
    for (uint32_t context = 0; context < r->context_count; context++)
        write_context(&t, r, &r->contexts[context]);
    json_writer_close(&t, ']');
    json_writer_close(&t, '}');
    return client_print_json(&t);
}

/* ---- the command ---- */

static enum exit_code print_answer(struct client *client, const struct options *options,
                                   const char *path, struct recipe *r)
{
    struct fingerprint *fp = NULL;
    struct client_answer answer;
    char own_id[FINGERPRINT_ID_BYTES];
    enum exit_code exit_code = client_get(client, path, NULL, &answer);
    const char *id;

    if (exit_code != EXIT_DONE)
        return exit_code;
    id = json_string_value(json_object_get(answer.json, "fingerprint_id"));
    fp = client_load_fingerprint(client, options, "current", own_id, &exit_code);
    if (!fp)
        goto out;
    r->fp = fp;
    if (!id || strcmp(id, own_id) != 0 || !read_jobs(answer.json, r)) {
        fprintf(stderr, "reachctl: the split is not about the current fingerprint; try again\n");
        exit_code = EXIT_FAILED;
        goto out;
    }
    for (uint32_t context = 0; context < r->context_count; context++)
        find_groups(r, context);
    if (options->json)
        exit_code = print_json(r, id);
    else
        print_recipe(r);
out:
    client_answer_free(&answer);
    free(fp);
    return exit_code;
}

enum exit_code green_contexts_print(struct client *client, const struct options *options,
                                    const char *path)
{
    struct recipe *const r = calloc(1, sizeof *r); /* too large for a stack */
    const enum exit_code exit_code =
        r ? print_answer(client, options, path, r) : client_no_memory();

    free(r);
    return exit_code;
}
