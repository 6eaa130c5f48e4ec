/* wrap.c: words on lines of 80 columns. A word that is longer than a line gets one to itself. */
#include "clients/reachctl/wrap.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { WORD_BYTES = 600 };

struct wrap wrap_begin(int column, int indent)
{
    return (struct wrap){.indent = indent, .column = column};
}

void wrap_word(struct wrap *w, const char *format, ...)
{
    char word[WORD_BYTES];
    va_list arguments;
    int length;

    va_start(arguments, format);
    vsnprintf(word, sizeof(word), format, arguments);
    va_end(arguments);
    length = (int)strlen(word);
    if (w->column > w->indent && w->column + 1 + length > WRAP_COLUMNS) {
        printf("\n%*s", w->indent, "");
        w->column = w->indent;
    } else if (w->column > w->indent) {
        putchar(' ');
        w->column++;
    }
    fputs(word, stdout);
    w->column += length;
}

void wrap_sentence(struct wrap *w, const char *text)
{
    while (*text) {
        const int length = (int)strcspn(text, " ");
        if (length > 0)
            wrap_word(w, "%.*s", length, text);
        text += length + (text[length] == ' ');
    }
}

void wrap_ranges(struct wrap *w, const uint16_t *numbers, uint32_t count)
{
    for (uint32_t i = 0; i < count;) {
        const uint32_t first = i;
        const char *comma;
        while (i + 1 < count && numbers[i + 1] == numbers[i] + 1)
            i++;
        comma = i + 1 < count ? "," : "";
        if (i == first)
            wrap_word(w, "%u%s", numbers[first], comma);
        else
            wrap_word(w, "%u-%u%s", numbers[first], numbers[i], comma);
        i++;
    }
}

void wrap_end(struct wrap *w)
{
    putchar('\n');
    w->column = 0;
}
