/* svg.h: writes plain SVG to standard output: no script, no style sheet, nothing from elsewhere.
 * Texts may come from a driver or a file: they are sanitized and escaped. Colors are those of Okabe
 * and Ito, which people who see colors differently can tell apart; no meaning is in a color alone.
 */
#ifndef REACHCTL_SVG_H
#define REACHCTL_SVG_H

#include <stddef.h>

enum { SVG_TEXT_BYTES = 512 };

#define SVG_INK   "#1a1f24"
#define SVG_QUIET "#59636e" /* 6 : 1 on white */
#define SVG_LINE  "#d0d7de"

/* "#0072b2" for 0, and so on; repeats after seven. Dark enough for lines on white. */
const char *svg_color(unsigned i);

/* The head: a white picture of `width` by `height` with a title and a description for readers that
 * do not show it. */
void svg_begin(double width, double height, const char *title, const char *description);
void svg_end(void);

/* `attributes` are written as they are. */
void svg_rect(double x, double y, double width, double height, double radius,
              const char *attributes);
void svg_line(double x1, double y1, double x2, double y2, const char *attributes);
/* A text; `attributes` likewise ("" for plain ink). */
void svg_text(double x, double y, double size, const char *attributes, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* A group with a title, shown when it is pointed at and read by readers. */
void svg_group(const char *format, ...) __attribute__((format(printf, 1, 2)));
void svg_group_end(void);
/* Any other element; no text from outside may be in it. */
void svg_raw(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
