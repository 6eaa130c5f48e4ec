/* params_help.c: the help text of the parameters, from their table. */
#include "clients/reachctl/params_help.h"

#include <stdio.h>
#include <string.h>

enum { HELP_INDENT = 24, HELP_COLUMNS = 96, HELP_TEXT_BYTES = 1536 };

/* Prints words from the column HELP_INDENT on. */
static void print_wrapped(const char *text)
{
    int column = HELP_INDENT;

    while (*text) {
        const int length = (int)strcspn(text, " ");
        if (column + 1 + length > HELP_COLUMNS)
            column = printf("\n%*s", HELP_INDENT, "") - 1;
        column += printf(" %.*s", length, text);
        text += length + (text[length] == ' ');
    }
    puts("");
}

const char *params_option_name(const struct param *p, char *out)
{
    size_t n = 0;

    for (; p->name[n] && n + 1 < OPTION_NAME_BYTES; n++)
        out[n] = (char)(p->name[n] == '_' ? '-' : p->name[n]);
    out[n] = '\0';
    return out;
}

/* Prints the meaning of a parameter and its commands; some commands have their own text. */
static void print_about(const struct param *p)
{
    char text[HELP_TEXT_BYTES];
    int n = snprintf(text, sizeof(text), "%s (", p->about);
    const char *before = "";

    for (enum planner_function f = PLANNER_SCOPE; f < PLANNER_COUNT; f++) {
        if (p->uses[f].form && !p->uses[f].about) {
            n += snprintf(text + n, sizeof(text) - (size_t)n, "%s%s", before,
                          planner_function_name(f));
            before = ", ";
        }
    }
    n += snprintf(text + n, sizeof(text) - (size_t)n, ")");
    for (enum planner_function f = PLANNER_SCOPE; f < PLANNER_COUNT; f++) {
        if (p->uses[f].form && p->uses[f].about)
            n += snprintf(text + n, sizeof(text) - (size_t)n, " %s: %s", planner_function_name(f),
                          p->uses[f].about);
    }
    print_wrapped(text);
}

void params_help_print(void)
{
    const struct param *p;
    char name[OPTION_NAME_BYTES];

    puts("Parameters, and the commands that take each:");
    for (uint32_t i = 1; (p = param_at(i)); i++) {
        const char *operand = p->operand ? p->operand : "";
        int used = printf("  --%s %s", params_option_name(p, name), p->word ? p->word(0) : operand);
        for (uint32_t k = 1; p->word && p->word(k); k++)
            used += printf("|%s", p->word(k));
        if (used > HELP_INDENT)
            used = printf("\n") - 1;
        printf("%*s", HELP_INDENT - used, "");
        print_about(p);
    }
    puts("");
}
