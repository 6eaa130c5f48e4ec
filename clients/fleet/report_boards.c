/* report_boards.c: which GPU sits where, against the survey before: swapped, moved, new, gone; and
 * UUIDs and serial numbers that stand for two.
 *
 * "Before" is the last survey that has GPUs of that host, or that has seen that GPU; a host that is
 * not reached says nothing about its GPUs, and none of them is called gone.
 */
#include "clients/fleet/report_private.h"

#include <string.h>

static const struct report_table boards_table = {
    .name = "boards",
    .part = "",
    .title = "Boards: what changed places",
    .columns = {"what", "uuid", "serial", "model", "origin", "host", "slot", "before"},
};

/* what, uuid, serial, model, origin, host, slot, before */
static enum status board_row(void *self, int columns, const char *const *values, struct err *err)
{
    struct report_rows *const rows = self;
    const struct cell cells[] = {cell_text(values[0]),
                                 cell_text(values[1]),
                                 values[2] && values[2][0] ? cell_text(values[2]) : cell_none,
                                 cell_text(values[3]),
                                 cell_text(report_origin(values[4])),
                                 cell_text(values[5]),
                                 cell_count_text(values[6]),
                                 cell_text(values[7])};

    (void)columns;
    (void)err;
    if (report_rows_next(rows))
        report_row(rows->r->to, cells);
    return STATUS_OK;
}

#define SAME_MODEL "AND (CAST($2 AS TEXT) = '' OR k.model = $2) "
/* The plus signs keep an index out that is the wrong one where few GPUs are asked for.
 *
 * UUIDs that have stood with more than one serial number. */
#define TWO_SERIALS "SELECT uuid FROM fleet_gpu GROUP BY uuid HAVING COUNT(*) > 1"
#define BY_PLACE    "ORDER BY h.name COLLATE \"C\", s.slot"

/* Another GPU than last time in this slot. Where it came from, if it was seen elsewhere. */
static const char swapped[] =
    "SELECT 'new GPU in an old slot', g.uuid, g.serial, k.model, k.origin, h.name, s.slot, "
    "'there was ' || og.uuid || CASE WHEN og.serial = '' THEN '' ELSE ', serial ' || og.serial END "
    "|| CASE WHEN wh.name IS NULL THEN '' ELSE '; this one was in slot ' || CAST(s.was_slot AS "
    "TEXT) "
    "|| ' of ' || wh.name END FROM fleet_sighting s "
    "JOIN fleet_outcome o ON o.survey = s.survey AND o.host = s.host "
    "JOIN fleet_sighting p ON p.survey = o.previous AND p.host = s.host AND p.slot = s.slot "
    "JOIN fleet_gpu g ON g.id = s.gpu JOIN fleet_gpu og ON og.id = p.gpu "
    "JOIN fleet_host h ON h.id = s.host LEFT JOIN fleet_host wh ON wh.id = s.was_host "
    "JOIN fleet_kind k ON k.id = s.kind "
    "WHERE s.survey = $1 AND s.counted = 1 AND p.gpu <> s.gpu " SAME_MODEL BY_PLACE;

static const char moved[] =
    "SELECT CASE WHEN s.was_host = s.host THEN 'moved to another slot' "
    "ELSE 'moved to another host' END, g.uuid, g.serial, k.model, k.origin, h.name, s.slot, "
    "'was in slot ' || CAST(s.was_slot AS TEXT) || ' of ' || wh.name || ' in survey ' || "
    "CAST(s.was_survey AS TEXT) FROM fleet_sighting s JOIN fleet_gpu g ON g.id = s.gpu "
    "JOIN fleet_host h ON h.id = s.host JOIN fleet_host wh ON wh.id = s.was_host "
    "JOIN fleet_kind k ON k.id = s.kind WHERE s.survey = $1 AND s.counted = 1 "
    "AND (s.was_host <> s.host OR s.was_slot <> s.slot) " SAME_MODEL BY_PLACE;

/* In a slot that was empty, of a host that has answered before. */
static const char added[] =
    "SELECT 'new GPU in an empty slot', g.uuid, g.serial, k.model, k.origin, h.name, s.slot, '' "
    "FROM fleet_sighting s JOIN fleet_outcome o ON o.survey = s.survey AND o.host = s.host "
    "LEFT JOIN fleet_sighting p ON p.survey = o.previous AND p.host = s.host AND p.slot = s.slot "
    "JOIN fleet_gpu g ON g.id = s.gpu JOIN fleet_host h ON h.id = s.host "
    "JOIN fleet_kind k ON k.id = s.kind WHERE s.survey = $1 AND s.counted = 1 "
    "AND s.was_survey IS NULL AND o.previous > 0 AND p.gpu IS NULL " SAME_MODEL BY_PLACE;

static const char gone[] =
    "SELECT 'gone', g.uuid, g.serial, k.model, k.origin, h.name, s.slot, 'was there in survey ' || "
    "CAST(s.survey AS TEXT) FROM fleet_outcome o "
    "JOIN fleet_sighting s ON s.survey = o.previous AND s.host = o.host AND +s.counted = 1 "
    "JOIN fleet_gpu g ON g.id = s.gpu JOIN fleet_host h ON h.id = s.host "
    "JOIN fleet_kind k ON k.id = s.kind "
    "WHERE o.survey = $1 AND o.outcome IN ('answered', 'unchanged') "
    "AND NOT EXISTS (SELECT 1 FROM fleet_sighting n WHERE n.gpu = s.gpu AND n.survey = "
    "$1) " SAME_MODEL BY_PLACE;

/* Every place of a UUID that was seen more than once. */
static const char duplicates[] =
    "SELECT 'UUID seen twice', g.uuid, g.serial, k.model, k.origin, h.name, s.slot, "
    "CASE WHEN s.counted = 1 THEN 'counted here' ELSE 'not counted' END "
    "FROM (SELECT q.uuid FROM (SELECT i.uuid FROM fleet_sighting t JOIN fleet_gpu i ON i.id = "
    "t.gpu "
    "WHERE t.survey = $1 AND t.counted = 0 UNION " TWO_SERIALS ") p JOIN fleet_gpu q "
    "ON q.uuid = p.uuid JOIN fleet_sighting u ON u.gpu = q.id AND +u.survey = CAST($1 AS INTEGER) "
    "GROUP BY q.uuid HAVING COUNT(*) > 1) d JOIN fleet_gpu g ON g.uuid = d.uuid "
    "JOIN fleet_sighting s ON s.gpu = g.id AND +s.survey = CAST($1 AS INTEGER) "
    "JOIN fleet_host h ON h.id = s.host JOIN fleet_kind k ON k.id = s.kind WHERE 1 = 1 " SAME_MODEL
    "ORDER BY g.uuid COLLATE \"C\", h.name COLLATE \"C\", s.slot";

/* A UUID that had another serial number in an earlier survey. */
static const char other_serial[] =
    "SELECT 'UUID with another serial', g.uuid, g.serial, k.model, k.origin, h.name, s.slot, "
    "'was ' || b.serial FROM (" TWO_SERIALS ") d JOIN fleet_gpu g ON g.uuid = d.uuid "
    "JOIN fleet_gpu b ON b.uuid = g.uuid AND b.id <> g.id AND b.first < g.first "
    "JOIN fleet_sighting s ON s.gpu = g.id AND +s.survey = CAST($1 AS INTEGER) AND g.first = "
    "s.survey "
    "JOIN fleet_host h ON h.id = s.host JOIN fleet_kind k ON k.id = s.kind WHERE 1 = 1 " SAME_MODEL
        BY_PLACE;

/* The GPUs of one board have one serial number, and one host. */
static const char split_boards[] =
    "SELECT 'serial in two hosts', g.uuid, g.serial, k.model, k.origin, h.name, s.slot, '' "
    "FROM (SELECT i.serial FROM (SELECT serial FROM fleet_gpu WHERE serial <> '' "
    "GROUP BY serial HAVING COUNT(*) > 1) c JOIN fleet_gpu i ON i.serial = c.serial "
    "JOIN fleet_sighting t ON t.gpu = i.id AND +t.survey = CAST($1 AS INTEGER) "
    "GROUP BY i.serial HAVING MIN(t.host) <> MAX(t.host)) d "
    "JOIN fleet_gpu g ON g.serial = d.serial "
    "JOIN fleet_sighting s ON s.gpu = g.id AND +s.survey = CAST($1 AS INTEGER) "
    "JOIN fleet_host h ON h.id = s.host JOIN fleet_kind k ON k.id = s.kind WHERE 1 = 1 " SAME_MODEL
    "ORDER BY g.serial COLLATE \"C\", h.name COLLATE \"C\", s.slot";

enum status report_boards(struct report *r, struct err *err)
{
    static const char *const queries[] = {swapped,    moved,        added,       gone,
                                          duplicates, other_serial, split_boards};
    struct report_rows rows = {.r = r};
    enum status s = STATUS_OK;

    report_table_begin(r->to, &boards_table);
    for (size_t i = 0; s == STATUS_OK && i < sizeof(queries) / sizeof(*queries); i++)
        s = fleet_run(r->db, queries[i], FLEET_VALUES(r->survey, r->model), board_row, &rows, err);
    report_note(r->to, "A GPU is its UUID and its serial number. A host that was not reached says "
                       "nothing: none of its GPUs is called gone.");
    report_rows_end(&rows, "boards");
    return s;
}
