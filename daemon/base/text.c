/* text.c: see text.h. */
#include "base/text.h"

size_t text_character_bytes(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
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

/* The text may contain parts of a request or of a driver's message, and may have been cut within a
 * character. Makes the text one printable line of valid UTF-8, so that it can be put into JSON
 * unchanged. */
void text_sanitize(char *text)
{
    for (size_t i = 0; text[i] != '\0';) {
        const unsigned char c = (unsigned char)text[i];
        const size_t n = text_character_bytes(text + i);
        if (n == 0)
            text[i] = '?';
        else if (c < ' ' || c == 0x7f)
            text[i] = ' ';
        i += n ? n : 1;
    }
}

void text_put_xml(FILE *out, const char *text)
{
    for (; *text; text++)
        *text == '<'   ? fputs("&lt;", out)
        : *text == '>' ? fputs("&gt;", out)
        : *text == '&' ? fputs("&amp;", out)
        : *text == '"' ? fputs("&quot;", out)
                       : fputc(*text, out);
}
