/* metrics_page.c: families and samples in the text format. */
#include "api/encode/metrics.h"

#include "base/text.h"

enum { LABEL_BYTES = 512 };

void metrics_family(const struct metrics_page *p, const char *name, enum metrics_kind kind,
                    const char *help)
{
    const char *suffix = kind == METRICS_COUNTER && !p->is_open ? "_total" : "";

    fprintf(p->out, "# HELP %s%s %s\n# TYPE %s%s %s\n", name, suffix, help, name, suffix,
            kind == METRICS_COUNTER ? "counter" : "gauge");
}

void metrics_single(const struct metrics_page *p, const char *name, enum metrics_kind kind,
                    const char *help, double value)
{
    metrics_family(p, name, kind, help);
    fprintf(p->out, "%s%s %.17g\n", name, kind == METRICS_COUNTER ? "_total" : "", value);
}

/* A collector drops a whole page for one byte that is not UTF-8. */
void metrics_label(const struct metrics_page *p, const char *name, const char *value)
{
    char tidy[LABEL_BYTES];

    (void)snprintf(tidy, sizeof(tidy), "%s", value);
    text_sanitize(tidy);
    fprintf(p->out, "%s=\"", name);
    for (const char *at = tidy; *at; at++)
        fprintf(p->out, "%s%c", *at == '"' || *at == '\\' ? "\\" : "", *at);
    fputc('"', p->out);
}
