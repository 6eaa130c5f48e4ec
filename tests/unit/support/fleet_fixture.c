/* fleet_fixture.c: see fleet_fixture.h. */
#include "tests/unit/support/as_json.h"
#include "tests/unit/support/fleet_fixture.h"

#include "base/units.h"
#include "fingerprint/fingerprint_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[64];

static void must(enum status s, const struct err *err)
{
    if (s == STATUS_OK)
        return;
    fprintf(stderr, "fleet_fixture: %s\n", err->text);
    abort();
}

const char *fleet_fixture_where(void)
{
    const char *const given = getenv("REACH_FLEET_DB");

    if (given && given[0])
        return given;
    if (!path[0])
        (void)snprintf(path, sizeof(path), "/tmp/reach-fleet-%ld.db", (long)getpid());
    return path;
}

void fleet_fixture_remove(void)
{
    char beside[80];

    if (!path[0])
        return;
    (void)unlink(path);
    (void)snprintf(beside, sizeof(beside), "%s-wal", path);
    (void)unlink(beside);
    (void)snprintf(beside, sizeof(beside), "%s-shm", path);
    (void)unlink(beside);
}

struct fleet_db *fleet_fixture_again(void)
{
    struct fleet_db *db = NULL;
    struct err err = {0};

    must(fleet_open(fleet_fixture_where(), &db, &err), &err);
    return db;
}

struct fleet_db *fleet_fixture_fresh(void)
{
    struct fleet_db *db;
    struct err err = {0};

    (void)fleet_fixture_where();
    fleet_fixture_remove();
    if (path[0])
        return fleet_fixture_again();
    db = fleet_fixture_again();
    must(fleet_query(db, "DROP SCHEMA public CASCADE", 0, NULL, NULL, NULL, &err), &err);
    must(fleet_query(db, "CREATE SCHEMA public", 0, NULL, NULL, NULL, &err), &err);
    fleet_close(db);
    return fleet_fixture_again();
}

static enum status take(void *self, const char *const *values, struct err *err)
{
    int64_t *const out = self;

    (void)err;
    if (*out == -1 && values[0])
        *out = strtoll(values[0], NULL, 10);
    return STATUS_OK;
}

int64_t fleet_fixture_number(struct fleet_db *db, const char *sql)
{
    int64_t v = -1;
    struct err err = {0};

    must(fleet_query(db, sql, 0, NULL, take, &v, &err), &err);
    return v;
}

static void fixture_level(struct tlb_level *l, uint32_t level, uint32_t entries)
{
    l->level = level;
    l->entries = KNOWN_U32(entries);
    l->entry_bytes = KNOWN_U64(2 * MIB);
    l->page_bytes = KNOWN_U64(2 * MIB);
    l->reach_bytes = KNOWN_U64(entries * 2 * MIB);
    l->onset_bytes = KNOWN_U64((entries + 1) * 2 * MIB);
    l->saturation_bytes = KNOWN_U64((entries + 8) * 2 * MIB);
    l->miss_penalty_cycles = KNOWN_F64(100.0 * level);
    l->confidence = KNOWN_F64(1);
}

/* Makes five groups of three SMs: SM i of the die is in group i % 5. The remaining SMs get
 * consecutive ids. */
static void fixture_groups(struct topology *t, uint32_t lost_a, uint32_t lost_b)
{
    uint16_t number[5] = {FINGERPRINT_NO_GROUP, FINGERPRINT_NO_GROUP, FINGERPRINT_NO_GROUP,
                          FINGERPRINT_NO_GROUP, FINGERPRINT_NO_GROUP};
    uint32_t sm = 0;

    for (uint32_t i = 0; i < 15; i++) {
        if (i == lost_a || i == lost_b)
            continue;
        if (number[i % 5] == FINGERPRINT_NO_GROUP)
            number[i % 5] = (uint16_t)t->partition.group_count++;
        t->partition.group_of_sm[sm++] = number[i % 5];
        t->groups[number[i % 5]].sm_count++;
    }
    for (uint32_t g = 0; g < t->partition.group_count; g++)
        t->groups[g].random_read_gbps = KNOWN_F64(20.0 + g);
    t->disabled.sm_count = KNOWN_U32(2);
    t->disabled.unit_sms = KNOWN_U32(1);
    t->disabled.lost_groups = KNOWN_U32(0);
    t->disabled.candidate_count = KNOWN_U32(1);
    t->disabled.listed = 1;
    t->disabled.candidates[0][0] = (uint16_t)lost_a;
    t->disabled.candidates[0][1] = (uint16_t)lost_b;
    t->full_sm_count = KNOWN_U32(15);
    t->nominal_group_sms = KNOWN_U32(3);
    (void)snprintf(t->disabled.signature, sizeof(t->disabled.signature), "5x3/%u,%u", lost_a,
                   lost_b);
}

void fleet_fixture_chip(struct fingerprint *out, const char *uuid, const char *model,
                        enum origin origin, uint32_t lost_a, uint32_t lost_b, int64_t taken_at)
{
    fingerprint_init(out);
    (void)snprintf(out->gpu.uuid, sizeof(out->gpu.uuid), "%s", uuid);
    (void)snprintf(out->gpu.name, sizeof(out->gpu.name), "%s", model);
    (void)snprintf(out->gpu.driver_version, sizeof(out->gpu.driver_version), "580.1");
    out->gpu.compute_major = 3;
    out->gpu.compute_minor = 7;
    out->gpu.sm_count = 13;
    out->gpu.memory_bytes = 12 * GIB;
    out->gpu.origin = origin;
    out->taken_at = taken_at;
    out->level_count = 2;
    fixture_level(&out->levels[0], 1, 16);
    fixture_level(&out->levels[1], 2, 65);
    fixture_groups(&out->topology, lost_a, lost_b);
    out->windows.entry_bytes = KNOWN_U64(2 * MIB);
    out->windows.reach_bytes = KNOWN_U64(130 * MIB);
    out->windows.recommended_bytes = KNOWN_U64(128 * MIB);
    out->throughput.plateau_gbps = KNOWN_F64(100.5);
    out->throughput.whole_memory_gbps = KNOWN_F64(10.25);
}

char *fleet_fixture_json(const struct fingerprint *fp, char *out_id)
{
    json_t *const json = AS_JSON(fingerprint_write, fp, NULL);
    char *text;

    if (fingerprint_id(fp, out_id, NULL) != STATUS_OK)
        abort();
    text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    json_decref(json);
    if (!text)
        abort();
    return text;
}

json_t *fleet_fixture_gpu_without(uint32_t slot, const char *uuid, const char *serial,
                                  const char *model, const char *state)
{
    return json_pack("{s:i, s:s, s:s, s:s, s:s, s:n, s:n}", "index", (int)slot, "uuid", uuid,
                     "serial", serial, "name", model, "state", state, "fingerprint_id",
                     "fingerprint");
}

json_t *fleet_fixture_gpu(uint32_t slot, const struct fingerprint *fp)
{
    json_t *const gpu =
        fleet_fixture_gpu_without(slot, fp->gpu.uuid, fp->gpu.serial, fp->gpu.name, "ready");
    json_t *const fingerprint = AS_JSON(fingerprint_write, fp, NULL);

    if (!gpu || !fingerprint)
        abort();
    json_object_set(gpu, "fingerprint_id", json_object_get(fingerprint, "id"));
    json_object_set_new(gpu, "fingerprint", fingerprint);
    return gpu;
}

struct fleet_host fleet_fixture_host(const char *name, enum fleet_outcome outcome)
{
    return (struct fleet_host){.name = name,
                               .outcome = outcome,
                               .detail = "",
                               .etag = "",
                               .attempts = 1,
                               .received_bytes = 1000,
                               .elapsed_ms = 5};
}

enum status fleet_fixture_add(struct fleet_db *db, uint32_t place, const struct fleet_host *host,
                              json_t *take_gpus, struct err *err)
{
    json_t *const document = json_pack("{s:s, s:o}", "daemon_version", "0.1.0", "gpus", take_gpus);
    struct host_answer *const answer = calloc(1, sizeof(*answer));
    enum status s;

    if (!document || !answer)
        abort();
    s = host_answer_read(document, answer, err);
    if (s == STATUS_OK)
        s = fleet_survey_add(db, place, host, answer, err);
    host_answer_free(answer);
    free(answer);
    json_decref(document);
    return s;
}

struct fleet_survey fleet_fixture_end(struct fleet_db *db)
{
    struct fleet_survey survey;
    struct err err = {0};

    must(fleet_survey_end(db, "2026-11-21T00:00:00Z", clock_monotonic(), &survey, &err), &err);
    return survey;
}
