/* store_connect.h: opens connections to a state file, which is refused or ready. */
#pragma once

#include "base/status.h"
#include "sqlite/sqlite_read.h"

#define STORE_MEMORY_PATH ":memory:"

/* Opens a connection that may write to a database of reachd with the schema of this release. An
 * empty or absent file becomes such a database. A database in memory has no other connection. The
 * lock must be held. On failure the content of the file stays intact. The caller owns `*out`
 * (sqlite3_close). Errors are the same as for store_open. */
enum status store_connect_writer(const char *path, sqlite3 **out, struct err *err);

/* Opens such a connection beside other connections of this process to the file. The file is not
 * inspected: closing a descriptor of the file would release the POSIX locks of those connections,
 * and another process would remove the log in use. */
enum status store_connect_writer_again(const char *path, sqlite3 **out, struct err *err);

/* From now on the log is written to the file when the connection is closed. */
void store_connect_trust(sqlite3 *db);

/* Opens a connection that reads beside the writer. */
enum status store_connect_reader(const char *path, sqlite3 **out, struct err *err);

/* Opens a connection for reading a file that another process may be writing. It creates and changes
 * no file, neither the database nor a file beside it. Returns STATUS_NOT_SUPPORTED if it has
 * another schema. Other errors are the same as for sqlite_read_open. */
enum status store_connect_read_only(const char *path, struct sqlite_read *out, struct err *err);
