/* store_connect.h: connections to a state file: refused, migrated, ready. */
#ifndef REACH_STORE_STORE_CONNECT_H
#define REACH_STORE_STORE_CONNECT_H

#include "base/status.h"
#include "sqlite/sqlite_read.h"

#define STORE_MEMORY_PATH ":memory:"

/* One that may write, to a database of ours with the newest schema; a file that is empty or not
 * there becomes one. In memory: the only connection there is. The lock must be held. On failure
 * nothing that was in the file is lost. The caller owns `*out` (sqlite3_close). Errors as
 * store_open. */
enum status store_connect_writer(const char *path, sqlite3 **out, struct err *err);

/* The same beside other connections of this process to the file. It is not inspected: closing a
 * descriptor of it would release their POSIX locks, and another process would remove the log in
 * use.
 */
enum status store_connect_writer_again(const char *path, sqlite3 **out, struct err *err);

/* From now on the log goes into the file when the connection is closed. */
void store_connect_trust(sqlite3 *db);

/* One that reads beside the writer. */
enum status store_connect_reader(const char *path, sqlite3 **out, struct err *err);

/* One that reads a file which another process may be writing, or none can; it creates and changes
 * nothing, also beside the file. STATUS_NOT_SUPPORTED if its schema is not the newest. Errors as
 * sqlite_read_open. */
enum status store_connect_read_only(const char *path, struct sqlite_read *out, struct err *err);

#endif
