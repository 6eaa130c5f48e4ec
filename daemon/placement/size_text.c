/* size_text.c: a reach of 64 GiB less one entry of 32 MiB is 63.97 GiB. Rounded to one digit it
 * would read 64 GiB, and "64 GiB are more than 64 GiB" convinces nobody. */
#include "placement/size_text.h"

#include "base/units.h"

#include <stdio.h>
#include <string.h>

char *size_text(uint64_t bytes, char *out)
{
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    enum { UNITS = sizeof(names) / sizeof(*names), DIGITS = 2 };
    unsigned unit = 0;
    double value = (double)bytes;
    char *point;

    while (value >= 1024 && unit + 1 < UNITS) {
        value /= 1024;
        unit++;
    }
    snprintf(out, SIZE_TEXT_BYTES, "%.*f", DIGITS, value);
    point = strchr(out, '.');
    if (strcmp(point, ".00") == 0)
        *point = '\0';
    else if (point[DIGITS] == '0')
        point[DIGITS] = '\0';
    snprintf(out + strlen(out), SIZE_TEXT_BYTES - strlen(out), " %s", names[unit]);
    return out;
}

void size_text_pair(uint64_t a, uint64_t b, char *out_a, char *out_b)
{
    size_text(a, out_a);
    size_text(b, out_b);
    if (a == b || strcmp(out_a, out_b) != 0)
        return;
    snprintf(out_a, SIZE_TEXT_BYTES, "%llu bytes", (unsigned long long)a);
    snprintf(out_b, SIZE_TEXT_BYTES, "%llu bytes", (unsigned long long)b);
}
