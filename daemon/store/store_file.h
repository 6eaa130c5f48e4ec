/* store_file.h: the lock and the header of the state file. They are checked before SQLite opens the
 * file. Opening a database can already write to the file (a journal is rolled back, a log is
 * checkpointed). */
#pragma once

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/* The application id in the header of every database of reachd: "Rech". */
#define STORE_FILE_APPLICATION_ID ((uint32_t)0x52656368)
/* The version of the tables (schema/db/tables.sql), which is user_version in the header. */
enum { STORE_FILE_SCHEMA = 5 };

/* Takes the lock on path + "-lock" and never waits. `*out_made` is true if the lock file did not
 * exist before. Returns STATUS_CONFLICT if another process has the lock. */
enum status store_file_lock(const char *path, int *out_fd, bool *out_made, struct err *err);
/* Unlocks. If `remove_file` is true, also removes the lock file, which was made for an unused
 * file. */
void store_file_unlock(const char *path, int fd, bool remove_file);

/* Returns STATUS_OK if there is no file, an empty one, or a database of reachd that this release
 * can read. Changes nothing. This process must not have the file open, because closing the file
 * would release the POSIX locks of the process. Errors are the same as for store_open. */
enum status store_file_inspect(const char *path, struct err *err);
/* Returns STATUS_OK if there is no file, or one that may be written. */
enum status store_file_writable(const char *path, struct err *err);

/* Moves the file and SQLite's files beside it to names that end in ".corrupt-<time>". No existing
 * file is overwritten. `out_name` (may be NULL) gets the new name, truncated if it does not fit.
 * The lock must be held. */
enum status store_file_quarantine(const char *path, char *out_name, size_t out_size,
                                  struct err *err);
/* Renames a file durably. Returns STATUS_CONFLICT if `to` exists. */
enum status store_file_move(const char *from, const char *to, struct err *err);
/* Moves a log or journal that an interrupted move has left without its database. */
enum status store_file_quarantine_orphans(const char *path, struct err *err);

/* Returns the status of a failed system call with a message: "cannot WHAT PATH: ...". */
enum status store_file_fail(struct err *err, int error_number, const char *what, const char *path);
