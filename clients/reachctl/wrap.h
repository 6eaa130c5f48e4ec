/* wrap.h: words on lines of 80 columns, for what may be short or very long. */
#ifndef REACHCTL_WRAP_H
#define REACHCTL_WRAP_H

#include <stdint.h>

enum { WRAP_COLUMNS = 80 };

struct wrap {
    int indent; /* of all lines but the first */
    int column; /* where the line ends by now */
};

/* Goes on behind a first line that has `column` characters already. */
struct wrap wrap_begin(int column, int indent);
/* A word after a blank, on the next line where it would not fit. */
void wrap_word(struct wrap *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The words of a sentence. */
void wrap_sentence(struct wrap *w, const char *text);
/* "0-3, 8, 10-11": numbers in rising order. */
void wrap_ranges(struct wrap *w, const uint16_t *numbers, uint32_t count);
/* Ends the line. */
void wrap_end(struct wrap *w);

#endif
