/* report_text.c: see report_text.h. */
#include "clients/profile/report_text.h"

#include "base/text.h"
#include "base/units.h"
#include "clients/profile/replacement.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Places with a smaller share of the touched bytes are not in the text. */
static const double SHOWN_SHARE = 0.01;

enum { SHOWN_OPTIONS = 2 };

/* Appends to a cell, and cuts what does not fit. */
__attribute__((format(printf, 2, 3))) static void append(char *out, const char *format, ...)
{
    const size_t used = strlen(out);
    va_list args;

    va_start(args, format);
    (void)vsnprintf(out + used, REPORT_CELL_BYTES - used, format, args);
    va_end(args);
}

static void append_time(char *out, double ns)
{
    if (ns >= 1e9)
        append(out, "%.1f s", ns / 1e9);
    else if (ns >= 1e6)
        append(out, "%.1f ms", ns / 1e6);
    else
        append(out, "%.1f us", ns / 1e3);
}

/* ---- memory ---- */

char *report_text_touches(const struct report_row *row, char *out)
{
    double sum = 0;

    out[0] = '\0';
    for (uint32_t place = 0; place < PLACE_COUNT; place++)
        sum += (double)row->touched[place];
    for (uint32_t place = 0; place < PLACE_COUNT; place++) {
        if (row->touched[place] == 0 || (double)row->touched[place] < SHOWN_SHARE * sum)
            continue;
        append(out, "%s%.1f GiB %s%s",
               out[0]         ? " + "
               : row->partial ? "at least "
                              : "",
               (double)row->touched[place] / GIB, place_words((enum place)place),
               row->order[place] == ORDER_RANDOM       ? ", at random"
               : row->order[place] == ORDER_SEQUENTIAL ? ", in order"
                                                       : "");
    }
    return out;
}

/* ---- numbers ---- */

char *report_text_time(const struct report_row *row, char *out)
{
    out[0] = '\0';
    if (row->kernel->time_ns > 0)
        append(out, "%.0f %%", 100 * row->time_share);
    return out;
}

char *report_text_misses(const struct report_row *row, char *out)
{
    out[0] = '\0';
    if (row->has_times)
        append(out, "%.0f %%", 100 * row->misses);
    return out;
}

char *report_text_costs(const struct report_row *row, char *out)
{
    out[0] = '\0';
    if (row->has_times && row->verdict != REPORT_UNEXPLAINED && row->verdict != REPORT_UNKNOWN)
        append(out, "%.1fx",
               row->verdict == REPORT_LIMITED || row->verdict == REPORT_UNTIMED ? row->costs : 1);
    return out;
}

/* ---- advice ---- */

/* Kinds of memory, and the functions that allocate them and copy a table into them. A kind without
 * a function is not a kind of host memory. */
static const struct {
    const char *name, *call;
} kinds[MEMORY_KIND_COUNT] = {
    [MEMORY_DEVICE] = {"device", NULL},
    [MEMORY_MANAGED_DEVICE] = {"managed at the device", NULL},
    [MEMORY_HOST_PINNED] = {"pinned", "cudaHostAlloc"},
    [MEMORY_HOST_VIRTUAL] = {"virtual at the host", "cuMemCreate"},
    [MEMORY_MANAGED_HOST] = {"managed at the host", "reach.torch.host_from"},
    [MEMORY_HOST_REGISTERED] = {"registered", "reach.torch.host_from"},
    [MEMORY_HOST_REGISTERED_HUGE] = {"registered huge pages", "reach.torch.host_from"},
    [MEMORY_HOST_PAGEABLE] = {"pageable", "malloc"},
    [MEMORY_HOST_FILE] = {"mapped file", "mmap"},
    [MEMORY_HOST_GATHERED] = {"gathered by the CPU", "torch.index_select"},
    [MEMORY_PEER] = {"peer", NULL}};

const char *report_text_option(const struct report_option *option)
{
    return option->strategy == STRATEGY_NAIVE ? kinds[option->kind].name
                                              : strategy_name(option->strategy);
}

const char *report_text_call(const struct report_row *row, const struct report_option *option)
{
    if (option->strategy == STRATEGY_NAIVE)
        return kinds[option->kind].call ? kinds[option->kind].call : "";

    const char *const call = replacement_find(row->kernel);
    return call                    ? call
           : row->kind == RLT_LOAD ? "reach.torch.gather_rows"
                                   : "reach.torch.index_add_";
}

/* Appends the fastest options that one function follows. */
static void append_call(const struct report_row *row, const char *call, char *out)
{
    uint32_t shown = 0;

    for (uint32_t i = 0; i < row->option_count && shown < SHOWN_OPTIONS; i++) {
        if (strcmp(report_text_call(row, &row->options[i]), call) != 0)
            continue;
        append(out, "%s%s %.1fx",
               shown > 0 ? ", "
               : out[0]  ? "; "
                         : "",
               report_text_option(&row->options[i]), row->options[i].factor);
        shown++;
    }
    append(out, ": %s", call);
}

/* Appends the function of the fastest option, and the next function. */
static void append_options(const struct report_row *row, char *out)
{
    const char *const first = report_text_call(row, &row->options[0]);

    append_call(row, first, out);
    for (uint32_t i = 1; i < row->option_count; i++) {
        const char *const next = report_text_call(row, &row->options[i]);
        if (strcmp(next, first) != 0) {
            append_call(row, next, out);
            return;
        }
    }
}

static void append_times(const struct report_row *row, char *out)
{
    append(out, "predicted ");
    append_time(out, row->predicted_ns);
    append(out, ", measured ");
    append_time(out, row->measured_ns);
}

/* The prediction without a measurement that supports it. */
static void append_untimed(const struct report_row *row, char *out)
{
    append(out, "%s not timed: predicted %.1fx the time within the reach",
           row->partial                 ? "recorded for three seconds,"
           : row->kernel->launches == 1 ? "launched once,"
                                        : "recorded launches",
           row->costs);
    if (row->option_count > 0)
        append_options(row, out);
    else
        append(out, "; no strategy is faster");
}

char *report_text_instead(const struct report_row *row, char *out)
{
    out[0] = '\0';
    switch (row->verdict) {
    case REPORT_LIMITED:
        if (row->option_count > 0)
            append_options(row, out);
        else
            append(out, "nothing: no strategy is faster");
        break;
    case REPORT_UNTIMED:
        append_untimed(row, out);
        break;
    case REPORT_UNEXPLAINED:
        append_times(row, out);
        append(out, ": not explained");
        break;
    case REPORT_HIDDEN:
        append(out, "nothing: other work takes longer than translation");
        break;
    case REPORT_IN_REACH:
        append(out, "nothing: within the reach");
        break;
    case REPORT_IN_ORDER:
        append(out, "nothing: in order");
        break;
    case REPORT_IN_CACHE:
        append(out, "nothing: stays in the L2");
        break;
    case REPORT_NO_FINGERPRINT:
        break;
    case REPORT_NOT_RECORDED:
        append(out, "not recorded");
        break;
    case REPORT_REFUSED:
        append(out, "cannot be recorded: %s", row->note);
        break;
    default:
        append(out, "unknown: %s", row->note);
        break;
    }
    text_sanitize(out);
    return out;
}

/* ---- sentences ---- */

static void append_process(const struct recording *r, char *out)
{
    append(out, "%.200s (process %llu%s)", r->command, (unsigned long long)r->pid,
           r->ended ? "" : ", did not end");
}

char *report_text_title(const struct report_section *section, char *out)
{
    const struct recording *const r = section->recording;

    out[0] = '\0';
    append_process(r, out);
    append(out, " on %.80s: %u kernel%s, ", r->gpus[section->gpu].name, section->row_count,
           section->row_count == 1 ? "" : "s");
    append_time(out, section->time_ns);
    append(out, " of kernels in %.1f s", r->seconds);
    text_sanitize(out);
    return out;
}

char *report_text_advice(const struct report_section *section, char *out)
{
    out[0] = '\0';
    if (!section->fp)
        append(out, "There are only footprints, because %.300s.", section->why);
    if (section->recording->resets > 0)
        append(
            out,
            "%sThe process has reset a GPU, so kinds of memory of earlier launches may be wrong.",
            out[0] ? " " : "");
    text_sanitize(out);
    return out;
}

char *report_text_sum(const struct report *r, char *out)
{
    out[0] = '\0';
    append(out, "%u kernel%s limited by translation. The fastest options save ", r->limited_count,
           r->limited_count == 1 ? " is" : "s are");
    append_time(out, r->gain_ns);
    append(out, " of ");
    append_time(out, r->time_ns);
    append(out, " of kernels.");
    if (r->untimed_count > 0) {
        append(out, " %u kernel%s not timed, with a predicted gain of ", r->untimed_count,
               r->untimed_count == 1 ? " was" : "s were");
        append_time(out, r->untimed_gain_ns);
        append(out, ".");
    }
    return out;
}

char *report_text_problem(const struct recording *r, char *out)
{
    out[0] = '\0';
    if (r->pid > 0)
        append_process(r, out);
    append(out, "%s%.400s", out[0] ? ": " : "",
           r->problem[0] ? r->problem : "The process used CUDA and launched no kernel.");
    text_sanitize(out);
    return out;
}
