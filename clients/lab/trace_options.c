/* trace_options.c: the options of the commands about traces. */
#include "base/units.h"
#include "clients/lab/trace_commands.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void complain(struct option_list *l, const char *text)
{
    if (!l->failed)
        (void)fprintf(stderr, "reach-lab %s: %s\n", l->command, text);
    l->failed = true;
}

const char *option_value(struct option_list *l, const char *name)
{
    const char *value;
    if (l->failed || l->argc == 0 || strcmp(l->argv[0], name) != 0)
        return NULL;
    if (l->argc < 2) {
        (void)fprintf(stderr, "reach-lab %s: %s needs a value\n", l->command, name);
        l->failed = true;
        return NULL;
    }
    value = l->argv[1];
    l->argc -= 2;
    l->argv += 2;
    return value;
}

bool option_flag(struct option_list *l, const char *name)
{
    if (l->failed || l->argc == 0 || strcmp(l->argv[0], name) != 0)
        return false;
    l->argc--;
    l->argv++;
    return true;
}

bool option_bytes(struct option_list *l, const char *name, uint64_t *out)
{
    struct err err = {0};
    const char *value = option_value(l, name);
    if (value && units_parse_bytes(value, out, &err) != STATUS_OK)
        complain(l, err.text);
    return value && !l->failed;
}

bool option_count(struct option_list *l, const char *name, uint64_t *out)
{
    const char *value = option_value(l, name);
    char *end = NULL;
    if (!value)
        return false;
    errno = 0;
    *out = strtoull(value, &end, 10);
    if (errno != 0 || end == value || *end != '\0' || strchr(value, '-'))
        complain(l, "a number of an option is none");
    return !l->failed;
}

bool option_real(struct option_list *l, const char *name, double *out)
{
    const char *value = option_value(l, name);
    char *end = NULL;
    if (!value)
        return false;
    *out = strtod(value, &end);
    if (end == value || *end != '\0' || !(*out >= 0))
        complain(l, "a number of an option is none");
    return !l->failed;
}

bool option_end(struct option_list *l, int wanted)
{
    if (l->argc > 0 && l->argv[0][0] == '-' && l->argv[0][1] != '\0')
        complain(l, "there is no such option; reach-lab --help has a list");
    if (l->argc != wanted)
        complain(l, "there are too few words behind it, or too many; reach-lab --help has a list");
    return !l->failed;
}

FILE *trace_open(const char *path)
{
    FILE *in = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    if (!in)
        (void)fprintf(stderr, "reach-lab: cannot open %s: %s\n", path, strerror(errno));
    return in;
}
