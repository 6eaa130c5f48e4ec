/* svg.c: see svg.h. */
#include "clients/reachctl/svg.h"

#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>

const char *svg_color(unsigned i)
{
    static const char *const colors[] = {"#0072b2", "#d55e00", "#009e73", "#a6548a",
                                         "#b87d00", "#3a8fc0", "#5b5b5b"};

    return colors[i % (sizeof(colors) / sizeof(*colors))];
}

static void put_escaped(const char *text)
{
    for (; *text; text++) {
        if (*text == '<')
            fputs("&lt;", stdout);
        else if (*text == '>')
            fputs("&gt;", stdout);
        else if (*text == '&')
            fputs("&amp;", stdout);
        else
            putchar(*text);
    }
}

static void put_text(const char *format, va_list arguments) __attribute__((format(printf, 1, 0)));
static void put_text(const char *format, va_list arguments)
{
    char text[SVG_TEXT_BYTES];

    (void)vsnprintf(text, sizeof(text), format, arguments);
    text_sanitize(text);
    put_escaped(text);
}

static void put(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void put(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    put_text(format, arguments);
    va_end(arguments);
}

void svg_begin(double width, double height, const char *title, const char *description)
{
    printf("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" "
           "height=\"%.0f\" role=\"img\" aria-labelledby=\"title desc\" font-family=\"system-ui, "
           "'DejaVu Sans', 'Helvetica Neue', Arial, sans-serif\">\n<title id=\"title\">",
           width, height, width, height);
    put("%s", title);
    fputs("</title>\n<desc id=\"desc\">", stdout);
    put("%s", description);
    fputs("</desc>\n", stdout);
    svg_rect(0, 0, width, height, 0, "fill=\"#fff\"");
}

void svg_end(void)
{
    puts("</svg>");
}

void svg_rect(double x, double y, double width, double height, double radius,
              const char *attributes)
{
    printf("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"%.1f\" %s/>\n", x, y,
           width, height, radius, attributes);
}

void svg_line(double x1, double y1, double x2, double y2, const char *attributes)
{
    printf("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" %s/>\n", x1, y1, x2, y2,
           attributes);
}

void svg_text(double x, double y, double size, const char *attributes, const char *format, ...)
{
    va_list arguments;

    printf("<text x=\"%.1f\" y=\"%.1f\" font-size=\"%.1f\" %s>", x, y, size,
           *attributes ? attributes : "fill=\"" SVG_INK "\"");
    va_start(arguments, format);
    put_text(format, arguments);
    va_end(arguments);
    puts("</text>");
}

void svg_group(const char *format, ...)
{
    va_list arguments;

    fputs("<g><title>", stdout);
    va_start(arguments, format);
    put_text(format, arguments);
    va_end(arguments);
    puts("</title>");
}

void svg_group_end(void)
{
    puts("</g>");
}

void svg_raw(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
}
