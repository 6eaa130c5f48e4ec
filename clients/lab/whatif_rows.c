/* whatif_rows.c: from the walks of a way to do the job to its row: the time of the busier of memory
 * and translation, in contiguous memory and at worst.
 */
#include "clients/lab/whatif_parts.h"

#include <math.h>
#include <stdio.h>

enum { SOFTNESS = 6 };

const char *whatif_question_name(enum whatif_question q)
{
    static const char *const names[WHATIF_QUESTION_COUNT] = {
        "as-it-is", "contiguity", "entry", "order", "blocks", "scopes", "windows"};
    return names[q];
}

double whatif_time(const struct asking *a, double memory_ns, double walks, double scattered)
{
    const double factor = 1 + scattered * (a->out->scattered_factor - 1);
    const double translation = walks * a->out->miss_ns * (scattered > 0 ? factor : 1);
    const double most = fmax(memory_ns, translation);
    const double ratio = most > 0 ? fmin(memory_ns, translation) / most : 0;
    return a->waits ? most * pow(1 + pow(ratio, SOFTNESS), 1.0 / SOFTNESS) : most;
}

double whatif_told(const struct asking *a)
{
    return a->options->contiguous >= 0 ? 1 - a->options->contiguous : 0;
}

double whatif_worst(const struct asking *a)
{
    return a->options->contiguous < 0 && a->out->scattered_factor > 0 ? 1 : whatif_told(a);
}

static struct whatif_row *new_row(struct asking *a, enum whatif_question question)
{
    /* The last row is written again rather than one behind it. */
    const uint32_t at =
        a->out->row_count < WHATIF_MAX_ROWS ? a->out->row_count++ : WHATIF_MAX_ROWS - 1;
    a->out->rows[at] = (struct whatif_row){.question = question};
    return &a->out->rows[at];
}

void whatif_set_times(const struct asking *a, struct whatif_row *r, double ns, double ns_at_worst)
{
    r->known = true;
    r->ns = ns / (double)a->out->accesses;
    r->ns_at_worst = ns_at_worst / (double)a->out->accesses;
    r->gbps = (double)a->trace->moved_bytes / ns;
}

struct whatif_row *whatif_add(struct asking *a, enum whatif_question question, double value,
                              double memory_ns, double walks)
{
    struct whatif_row *r = new_row(a, question);
    r->value = value;
    r->walk_share = walks / (double)a->out->accesses;
    r->bound =
        whatif_time(a, 0, walks, whatif_told(a)) > memory_ns ? BOUND_TRANSLATION : BOUND_MEMORY;
    whatif_set_times(a, r, whatif_time(a, memory_ns, walks, whatif_told(a)),
                     whatif_time(a, memory_ns, walks, whatif_worst(a)));
    return r;
}

struct whatif_row *whatif_add_unknown(struct asking *a, enum whatif_question question,
                                      const char *why)
{
    struct whatif_row *r = new_row(a, question);
    (void)snprintf(r->note, sizeof r->note, "%s", why);
    return r;
}
