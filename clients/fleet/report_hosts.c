/* report_hosts.c: how the hosts of a survey ended: counted by outcome, and by name where one did
 * not answer as it should. */
#include "clients/fleet/report_private.h"

static const struct report_table counts_table = {
    .name = "hosts",
    .part = "counts",
    .title = "Hosts by outcome",
    .columns = {"outcome", "hosts", "gpus", "received_bytes", "slowest_ms"},
};

static const struct report_table names_table = {
    .name = "hosts",
    .part = "names",
    .title = "Hosts that did not answer as they should",
    .columns = {"host", "outcome", "detail", "attempts", "elapsed_ms", "last_answered"},
};

static enum status count_row(void *self, int columns, const char *const *values, struct err *err)
{
    struct report_rows *const rows = self;
    const struct cell cells[] = {cell_text(values[0]), cell_count_text(values[1]),
                                 cell_count_text(values[2]), cell_count_text(values[3]),
                                 cell_count_text(values[4])};

    (void)columns;
    (void)err;
    report_row(rows->r->to, cells);
    return STATUS_OK;
}

static enum status name_row(void *self, int columns, const char *const *values, struct err *err)
{
    struct report_rows *const rows = self;
    const struct cell cells[] = {cell_text(values[0]),       cell_text(values[1]),
                                 cell_text(values[2]),       cell_count_text(values[3]),
                                 cell_count_text(values[4]), cell_count_text(values[5])};

    (void)columns;
    (void)err;
    if (report_rows_next(rows))
        report_row(rows->r->to, cells);
    return STATUS_OK;
}

enum status report_hosts(struct report *r, struct err *err)
{
    struct report_rows rows = {.r = r};
    enum status s;

    report_table_begin(r->to, &counts_table);
    s = fleet_run(r->db,
                  "SELECT o.outcome, COUNT(*), COALESCE(SUM(g.n), 0), SUM(o.received_bytes), "
                  "MAX(o.elapsed_ms) FROM fleet_outcome o LEFT JOIN (SELECT host, COUNT(*) AS n "
                  "FROM fleet_sighting WHERE survey = $1 GROUP BY host) g ON g.host = o.host "
                  "WHERE o.survey = $1 GROUP BY o.outcome ORDER BY 2 DESC, o.outcome COLLATE \"C\"",
                  FLEET_VALUES(r->survey), count_row, &rows, err);
    report_table_end(r->to);
    if (s != STATUS_OK)
        return s;
    report_table_begin(r->to, &names_table);
    s = fleet_run(r->db,
                  "SELECT h.name, o.outcome, o.detail, o.attempts, o.elapsed_ms, "
                  "CASE WHEN o.previous = 0 THEN NULL ELSE o.previous END FROM fleet_outcome o "
                  "JOIN fleet_host h ON h.id = o.host WHERE o.survey = $1 "
                  "AND o.outcome NOT IN ('answered', 'unchanged') "
                  "ORDER BY o.outcome COLLATE \"C\", h.name COLLATE \"C\"",
                  FLEET_VALUES(r->survey), name_row, &rows, err);
    report_note(r->to, "last_answered is the survey in which the host answered last.");
    report_rows_end(&rows, "hosts");
    return s;
}
