/* folder.h: the folder into which the processes of a program write their recordings. */
#pragma once

#include "base/status.h"

#include <limits.h>

/* Makes the folder and writes its absolute path to `out`. `keep` names it; NULL means a temporary
 * folder under TMPDIR. A named folder may exist, but must have no recordings, so that the report
 * covers one run (STATUS_CONFLICT). Returns STATUS_IO if the folder cannot be made or written. */
enum status folder_make(const char *keep, char out[PATH_MAX], struct err *err);

/* Returns the number of recordings in the folder. */
unsigned folder_count_recordings(const char *folder);

/* Removes the folder and its files. Folders inside it are kept. */
void folder_remove(const char *folder);
