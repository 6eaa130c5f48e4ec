/* whatif_rows.c: see whatif_rows.h. */
#include "clients/lab/whatif/whatif_rows.h"

#include <math.h>
#include <stdio.h>

enum { SOFTNESS = 6 };

double whatif_time_ns(const struct whatif_context *c, double memory_ns, double walks,
                      double scattered)
{
    const double factor = 1 + scattered * (c->out->scattered_factor - 1);
    const double translation = walks * c->out->miss_ns * (scattered > 0 ? factor : 1);
    const double most = fmax(memory_ns, translation);
    const double ratio = most > 0 ? fmin(memory_ns, translation) / most : 0;
    return c->atomic_bound ? most * pow(1 + pow(ratio, SOFTNESS), 1.0 / SOFTNESS) : most;
}

double whatif_scattered_share(const struct whatif_context *c)
{
    return c->options->contiguous >= 0 ? 1 - c->options->contiguous : 0;
}

double whatif_worst_scattered_share(const struct whatif_context *c)
{
    return c->options->contiguous < 0 && c->out->scattered_factor > 0 ? 1
                                                                      : whatif_scattered_share(c);
}

double whatif_memory_ns(const struct whatif_context *c)
{
    return c->all_memory_ns + c->read_ns;
}

static struct whatif_row *new_row(struct whatif_context *c, enum whatif_question question)
{
    /* If the table is full, a new row overwrites the last one. */
    const uint32_t at =
        c->out->row_count < WHATIF_MAX_ROWS ? c->out->row_count++ : WHATIF_MAX_ROWS - 1;
    c->out->rows[at] = (struct whatif_row){.question = question};
    return &c->out->rows[at];
}

void whatif_set_times(const struct whatif_context *c, struct whatif_row *r, double ns,
                      double ns_at_worst)
{
    r->known = true;
    r->ns = ns / (double)c->out->accesses;
    r->ns_at_worst = ns_at_worst / (double)c->out->accesses;
    r->gbps = (double)c->trace->moved_bytes / ns;
}

struct whatif_row *whatif_add_row(struct whatif_context *c, enum whatif_question question,
                                  double value, double memory_ns, double walks)
{
    struct whatif_row *r = new_row(c, question);
    r->value = value;
    r->walk_share = walks / (double)c->out->accesses;
    r->bound = whatif_time_ns(c, 0, walks, whatif_scattered_share(c)) > memory_ns
                   ? BOUND_TRANSLATION
                   : BOUND_MEMORY;
    whatif_set_times(c, r, whatif_time_ns(c, memory_ns, walks, whatif_scattered_share(c)),
                     whatif_time_ns(c, memory_ns, walks, whatif_worst_scattered_share(c)));
    return r;
}

struct whatif_row *whatif_add_unknown_row(struct whatif_context *c, enum whatif_question question,
                                          const char *why)
{
    struct whatif_row *r = new_row(c, question);
    (void)snprintf(r->note, sizeof r->note, "%s", why);
    return r;
}

const char *whatif_question_name(enum whatif_question q)
{
    static const char *const names[WHATIF_QUESTION_COUNT] = {
        "as-it-is", "contiguity", "entry", "order", "blocks", "scopes", "windows"};
    return names[q];
}
