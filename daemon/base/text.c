/* text.c: see text.h. */
#include "base/text.h"

#include <stddef.h>

/* Bytes of the UTF-8 character at `s`, a terminated string; 0 if it is invalid (RFC 3629: no
 * overlong forms, no surrogates, nothing above U+10FFFF). */
static size_t character_bytes(const unsigned char *s)
{
    const size_t n = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;

    if (n < 2)
        return n;
    if (s[0] > 0xf4 || (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
        (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    }
    return n;
}

/* The text may hold parts of a request or of a driver's message, and may have been cut within a
 * character. Makes it one printable line of valid UTF-8, so that it can go into JSON as it is. */
void text_sanitize(char *text)
{
    for (size_t i = 0; text[i] != '\0';) {
        const unsigned char c = (unsigned char)text[i];
        const size_t n = character_bytes((const unsigned char *)text + i);
        if (n == 0)
            text[i] = '?';
        else if (c < ' ' || c == 0x7f)
            text[i] = ' ';
        i += n ? n : 1;
    }
}
