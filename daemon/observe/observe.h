/* observe.h: an observation is the record of one probe: its specification, every raw number, and
 * its conditions. Observations are stored before they are analyzed, so every result can be derived
 * again on a machine without a GPU.
 *
 * There is one form for every purpose. The worker sends the JSON text of observation_write to the
 * daemon, the store contains it, the API serves it and tests/replay replays it. Its schema is
 * schema/json/observation.schema.json.
 */
#pragma once

#include "types/identity_json.h"
#include "base/json_writer.h"
#include "base/status.h"
#include "types/verdict.h"
#include "gpu/probe.h"

#include <jansson.h>

struct observation {
    struct probe_spec spec;
    struct probe_result result;   /* owned */
    struct assessment assessment; /* whether other work disturbed the observation */
};

/* A zeroed observation may be freed. */
void observation_free(struct observation *take);

/* Writes every field. */
void observation_write(struct json_writer *t, const char *name, const struct observation *o);
/* Returns the text of an observation, which the caller frees. Returns NULL if memory runs out. */
char *observation_to_text(const struct observation *o, size_t *out_bytes);
/* Reads an observation strictly. Returns STATUS_PROTOCOL, with the field's name, for unknown
 * fields, wrong types, out-of-range numbers and a value count that does not fit the spec. On
 * success the caller owns `*out`. */
enum status observation_from_json(const json_t *json, struct observation *out, struct err *err);

/* The numbers of the first list "values" in a line of JSON, taken out of it before it is parsed. */
struct observation_values {
    uint32_t *numbers; /* owned numbers; NULL if nothing was taken */
    size_t count;
};
/* Takes the numbers out of the line, which ends with a NUL: the line becomes shorter, and its list
 * empty. A line without such a list stays as it is. A list with blanks, or with anything but
 * integers from 0 to 2^32 - 1, also stays, and the parser reports the error. May return
 * STATUS_NO_MEMORY. */
enum status observation_take_values(char *line, size_t *io_length, struct observation_values *out,
                                    struct err *err);
/* Reads like observation_from_json, with the values of such a line. Takes the values in any
 * case. */
enum status observation_from_parts(const json_t *json, struct observation_values *take,
                                   struct observation *out, struct err *err);

/* Specs also travel alone, from the daemon to the worker. They are read equally strictly. */
void probe_spec_write(struct json_writer *t, const char *name, const struct probe_spec *spec);
enum status probe_spec_from_json(const json_t *json, struct probe_spec *out, struct err *err);
enum status gpu_identity_from_json(const json_t *json, struct gpu_identity *out, struct err *err);
void gpu_limits_write(struct json_writer *t, const char *name, const struct gpu_limits *limits);
enum status gpu_limits_from_json(const json_t *json, struct gpu_limits *out, struct err *err);

/* A list of observations in order. The caller zeroes it before the first use. */
struct observation_list {
    struct observation *items; /* owned */
    size_t count;
    size_t capacity;
};

/* All observations of one measurement so far, in order: the input of campaign and analysis.
 * Observations that are not clean are in `excluded`: kept as evidence, and not analyzed. */
struct observation_set {
    struct gpu_identity gpu;
    struct gpu_limits limits;
    struct observation *items; /* owned; only clean observations */
    size_t count;
    size_t capacity;
    struct observation_list excluded; /* disturbed and unusable observations */
    uint32_t others;                  /* largest number of other processes in an observation */
    size_t interrupted;               /* sum of probe_conditions.interruptions, in device memory */
    size_t disturbed; /* number of observations in device memory that are not clean */
};

/* Returns whether other processes had the GPU open, or worked on it according to the probes. */
bool observation_set_is_shared(const struct observation_set *set);

/* Appends to the clean or the excluded observations. Takes the observation also on failure
 * (STATUS_NO_MEMORY). */
enum status observation_set_add(struct observation_set *set, struct observation *take,
                                struct err *err);
void observation_set_free(struct observation_set *take);

/* Returns the first observation of this kind in the device's own memory after `o`, or of all if `o`
 * is NULL. Returns NULL if there is none. */
const struct observation *observation_next(const struct observation_set *set,
                                           const struct observation *o, enum probe_kind kind);

/* Returns the first observation after `o` that touches the same memory as `spec`. Returns NULL if
 * there is none. */
const struct observation *observation_next_same_memory(const struct observation_set *set,
                                                       const struct observation *o,
                                                       const struct probe_spec *spec);

/* CHASE: returns the row of point `p`, which has spec.samples values. */
const uint32_t *observation_chase(const struct observation *o, uint32_t p);
/* ROUND: returns half 0 (control) or 1 (after thrashing) of SM position `sm` in `repeat`, which has
 * spec.slice_pages values. */
const uint32_t *observation_round(const struct observation *o, uint32_t repeat, uint32_t half,
                                  uint32_t sm);
/* PAIRS: returns the values of such a half, by the pivot's place in the spec. */
const uint32_t *observation_pair(const struct observation *o, uint32_t pivot, uint32_t half,
                                 uint32_t sm);
/* SIDES: returns the spec.samples values of the SM at place `sm` of the spec in `repeat`. */
const uint32_t *observation_sides(const struct observation *o, uint32_t repeat, uint32_t sm);
/* SHARED: returns the spec.point_count values of the SM at place `sm` of the spec in `repeat`. */
const uint32_t *observation_shared(const struct observation *o, uint32_t repeat, uint32_t sm);
/* PEER: returns row 0, or the row of SM position `row` - 1, in `repeat`. A row has
 * probe_peer_columns values. */
const uint32_t *observation_peer(const struct observation *o, uint32_t repeat, uint32_t row);
/* READ, CONCURRENCY: return the GB/s of all SMs together in one repeat, and of one SM position. One
 * GB/s is 10^9 bytes per second; the bytes are the accesses times the length of an access. */
double observation_read_gbps(const struct observation *o, uint32_t p, uint32_t repeat);
/* Returns the nanoseconds from the start of the first SM to the end of the last one. */
uint32_t observation_read_ns(const struct observation *o, uint32_t p, uint32_t repeat);
double observation_read_sm_gbps(const struct observation *o, uint32_t p, uint32_t repeat,
                                uint32_t sm);
/* MEANS: returns the mean cycles of a load at point `p`. MEAN_PAIRS: returns the mean cycles of a
 * load of SM position `sm` after SM position `other` has walked. */
double observation_mean(const struct observation *o, uint32_t p);
double observation_mean_pair(const struct observation *o, uint32_t sm, uint32_t other);
