/* sample.c: see sample.h. The trace is read twice: for its blocks, and for the copy. */
#include "clients/lab/trace/sample.h"

#include "clients/lab/trace/number_set.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    RUNS = 64, /* least number of runs that are kept, if there are this many blocks */
    BLOCK_BITS = 44
};

/* The kernel and the block of a record. Kernels with the same block have keys far apart. */
static uint64_t key_of(const struct rlt_record *r)
{
    return (uint64_t)r->kernel << BLOCK_BITS | r->block;
}

static int compare_keys(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Reads the keys of all blocks, sorted. */
static enum status read_blocks(FILE *in, struct number_set *set, uint64_t *out_records,
                               struct err *err)
{
    struct rlt_reader *const r = rlt_reader_new(in, err);
    struct rlt_record record;

    *out_records = 0;
    if (!r)
        return err->status;
    while (rlt_read(r, &record, err)) {
        ++*out_records;
        if (record.block >> BLOCK_BITS != 0)
            (void)err_set(err, STATUS_NOT_APPLICABLE, "the trace has 2^%d blocks or more",
                          BLOCK_BITS);
        else if (number_set_add(set, key_of(&record)) != UINT32_MAX)
            continue;
        else
            (void)err_set(err, STATUS_NO_MEMORY, "cannot list the blocks: out of memory");
        break;
    }
    rlt_reader_free(r);
    if (err->status == STATUS_OK && set->keys)
        qsort(set->keys, set->count, sizeof(*set->keys), compare_keys);
    return err->status;
}

/* Returns whether a block is in the sample. */
static bool is_kept(const struct number_set *set, uint64_t key, uint64_t every)
{
    const uint64_t *const at =
        set->keys ? bsearch(&key, set->keys, set->count, sizeof(*set->keys), compare_keys) : NULL;
    const uint64_t run = set->count / every / RUNS + 1;

    return at && (uint64_t)(at - set->keys) / run % every == 0;
}

/* What was copied of the entries of a reader, which appear while its records are read. */
struct copied {
    uint32_t apps, allocations, kernels;
};

static void copy_entries(const struct rlt_reader *r, struct copied *done, struct rlt_writer *w)
{
    const struct rlt_tables *const t = rlt_tables(r);

    for (; done->apps < t->app_count; done->apps++)
        (void)rlt_write_app(w, t->apps[done->apps].name);
    for (; done->allocations < t->allocation_count; done->allocations++)
        rlt_write_allocation(w, &t->allocations[done->allocations]);
    for (; done->kernels < t->kernel_count; done->kernels++)
        (void)rlt_write_kernel(w, &t->kernels[done->kernels]);
}

static uint64_t scale(uint64_t n, double share)
{
    return (uint64_t)((double)n * share + 0.5);
}

static enum status copy_blocks(FILE *in, const struct number_set *set, uint64_t records,
                               uint64_t every, FILE *out, struct err *err)
{
    struct rlt_reader *const r = rlt_reader_new(in, err);
    struct rlt_writer *const w = r ? rlt_writer_new(out, rlt_tables(r)->granule_bytes) : NULL;
    struct copied done = {0};
    struct rlt_record record;
    enum status s;

    while (w && rlt_read(r, &record, err)) {
        copy_entries(r, &done, w);
        if (is_kept(set, key_of(&record), every))
            rlt_write_record(w, &record);
    }
    if (w && err->status == STATUS_OK) {
        const double share = records ? (double)rlt_writer_records(w) / (double)records : 1;
        const struct rlt_left_out all = rlt_tables(r)->left_out;
        copy_entries(r, &done, w);
        if (all.copies + all.textures + all.unknown + all.lost > 0)
            rlt_write_left_out(
                w, &(struct rlt_left_out){scale(all.copies, share), scale(all.textures, share),
                                          scale(all.unknown, share), scale(all.lost, share)});
        s = rlt_writer_end(w, err);
    } else {
        s = r && !w ? err_set(err, STATUS_NO_MEMORY, "cannot write the sample: out of memory")
                    : err->status;
        if (w)
            rlt_writer_abandon(w);
    }
    rlt_reader_free(r);
    return s;
}

enum status sample_blocks(FILE *in, uint64_t every, FILE *out, struct err *err)
{
    struct number_set set = {0};
    uint64_t records;
    enum status s;

    *err = (struct err){0};
    s = read_blocks(in, &set, &records, err);
    if (s == STATUS_OK && fseek(in, 0, SEEK_SET) != 0)
        s = err_set(err, STATUS_IO, "cannot read the trace again: %s", strerror(errno));
    if (s == STATUS_OK)
        s = copy_blocks(in, &set, records, every, out, err);
    number_set_free(&set);
    return s;
}
