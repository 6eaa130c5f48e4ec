/* store_file.h: the state file as a file: its lock and its header, which are checked before SQLite
 * touches it, because opening a database can already write to it (a journal is rolled back, a log
 * is checkpointed). */
#ifndef REACH_STORE_STORE_FILE_H
#define REACH_STORE_STORE_FILE_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/* In the header of every database of ours: "Rech". */
#define STORE_FILE_APPLICATION_ID ((uint32_t)0x52656368)

/* Takes path + "-lock"; never waits. `*out_made`: the lock file was not there before.
 * STATUS_CONFLICT: another process has it. */
enum status store_file_lock(const char *path, int *out_fd, bool *out_made, struct err *err);
/* Unlocks. `remove_file`: also removes a lock file that was made for a file that is not used. */
void store_file_unlock(const char *path, int fd, bool remove_file);

/* STATUS_OK: there is no file, an empty one, or a database of ours that this release can read.
 * Changes nothing. This process must not have the file open: closing it would release its POSIX
 * locks. Errors as store_open. */
enum status store_file_inspect(const char *path, uint32_t newest_schema, struct err *err);
/* STATUS_OK: there is no file, or one that may be written. */
enum status store_file_writable(const char *path, struct err *err);

/* Moves the file and what SQLite has put beside it to names that end in ".corrupt-<time>"; nothing
 * that exists is overwritten. `out_name` (may be NULL) gets the new name, cut off if it does not
 * fit. Needs the lock. */
enum status store_file_quarantine(const char *path, char *out_name, size_t out_size,
                                  struct err *err);
/* Renames, durably; STATUS_CONFLICT if `to` exists. */
enum status store_file_move(const char *from, const char *to, struct err *err);
/* A log or journal without its database, left by an interrupted move: moved as well. */
enum status store_file_quarantine_orphans(const char *path, struct err *err);

/* The status of a failed system call: no room, read-only, or I/O error. */
enum status store_file_status(int error_number);
/* The same with a message: "cannot WHAT PATH: ...". */
enum status store_file_fail(struct err *err, int error_number, const char *what, const char *path);

#endif
