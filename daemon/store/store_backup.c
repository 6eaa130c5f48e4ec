/* store_backup.c: copies the file while the daemon uses it.
 *
 *     read-only connection to the file  ->  VACUUM INTO a name of its own  ->  every row checked
 *         ->  fsync  ->  the requested name
 *
 * VACUUM INTO reads under one transaction, so the copy is one state of the database; a writer
 * continues beside it (WAL). It reads every row through SQL, so that a damaged page is found here
 * and not when the backup is needed.
 */
#include "store/store.h"

#include "store/store_connect.h"
#include "store/store_file.h"
#include "store/store_state.h"
#include "store/store_sql.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static enum status copy(const char *path, const char *part, struct err *err)
{
    struct sqlite_read r;
    enum status s = store_connect_read_only(path, &r, err);

    if (s == STATUS_OK) {
        s = store_sql_run(r.db, "VACUUM INTO ?", SQL_VALUES(SQL_TEXT(part)), NULL, err);
        if (s != STATUS_OK)
            err_prefix(err, "cannot write %.100s", part);
    }
    if (s == STATUS_OK)
        s = sqlite_read_check(&store_sqlite, &r, path, err);
    (void)sqlite3_close(r.db);
    return s;
}

static enum status check(const char *part, uint64_t *out_rows, struct err *err)
{
    struct sqlite_read r;
    uint64_t bad = 0;
    enum status s = store_connect_read_only(part, &r, err);

    if (s == STATUS_OK)
        s = store_scrub_count(r.db, out_rows, &bad, err);
    (void)sqlite3_close(r.db);
    if (s == STATUS_OK && bad > 0)
        return err_set(err, STATUS_CORRUPT, "%llu of %llu rows of the state file fail their check",
                       (unsigned long long)bad, (unsigned long long)*out_rows);
    return s;
}

static enum status make_durable(const char *part, struct err *err)
{
    const int fd = open(part, O_RDONLY | O_CLOEXEC);
    int error = 0;

    if (fd < 0 || fsync(fd) != 0)
        error = errno;
    if (fd >= 0)
        close(fd);
    return error == 0 ? STATUS_OK : store_file_fail(err, error, "write", part);
}

enum status store_backup(const char *path, const char *to, uint64_t *out_rows, struct err *err)
{
    uint64_t rows = 0;
    char *part = NULL;
    enum status s;

    if (access(to, F_OK) == 0)
        return err_set(err, STATUS_CONFLICT, "%s already exists", to);
    if (asprintf(&part, "%s.part-%ld", to, (long)getpid()) < 0)
        return err_no_memory(err, "a file name");
    (void)unlink(part);
    s = copy(path, part, err);
    if (s == STATUS_OK)
        s = check(part, &rows, err);
    if (s == STATUS_OK)
        s = make_durable(part, err);
    if (s == STATUS_OK)
        s = store_file_move(part, to, err);
    if (s != STATUS_OK)
        (void)unlink(part);
    if (s == STATUS_OK && out_rows)
        *out_rows = rows;
    free(part);
    return s;
}
