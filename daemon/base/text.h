/* text.h: makes texts from outside printable. */
#pragma once

#include <stddef.h>
#include <stdio.h>

/* Returns the number of bytes of the UTF-8 character at the start of a terminated text. Returns 0
 * if it is not valid (RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF). */
size_t text_character_bytes(const char *text);

/* Makes a terminated text one printable line of valid UTF-8, in place: control characters become
 * blanks, and bytes that are not UTF-8 become question marks. */
void text_sanitize(char *text);

/* Writes a text of XML or HTML, or the value of an attribute, with entities for < > & and ". */
void text_put_xml(FILE *out, const char *text);
