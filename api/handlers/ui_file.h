/* ui_file.h: the files of the page at /ui/, as constants of the program. build/gen/ui_files.c
 * contains them, generated from clients/ui (mk/ui.mk). Only the daemon links them, not a program
 * that answers offline.
 */
#ifndef REACH_API_HANDLERS_UI_FILE_H
#define REACH_API_HANDLERS_UI_FILE_H

#include <stddef.h>

struct ui_file {
    const char *name; /* path below /ui/; "" is the page itself */
    const char *content_type;
    const unsigned char *text;
    size_t text_bytes;
    const unsigned char *gzip; /* compressed bytes of the file */
    size_t gzip_bytes;
};

/* Ends with a row whose name is NULL. */
extern const struct ui_file ui_files[];

#endif
