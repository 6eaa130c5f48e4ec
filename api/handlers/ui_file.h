/* ui_file.h: the files of the page at /ui/, as constants of the program. The file
 * build/gen/ui_files.c contains these constants and is generated from clients/ui (mk/ui.mk). The
 * daemon links it; a program that answers offline does not.
 */
#pragma once

#include <stddef.h>

struct ui_file {
    const char *name; /* path below /ui/; "" is the page itself */
    const char *content_type;
    const unsigned char *text;
    size_t text_bytes;
    const unsigned char *gzip; /* compressed bytes of the file */
    size_t gzip_bytes;
};

/* The rows of the files. The last row has the name NULL. */
extern const struct ui_file ui_files[];
