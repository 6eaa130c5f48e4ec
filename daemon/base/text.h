/* text.h: makes texts from outside printable. */
#ifndef REACH_BASE_TEXT_H
#define REACH_BASE_TEXT_H

/* Makes a terminated text one printable line of valid UTF-8, in place: control characters become
 * blanks, and bytes that are not UTF-8 question marks. */
void text_sanitize(char *text);

#endif
