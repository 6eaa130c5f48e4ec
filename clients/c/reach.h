/* reach.h: libreach, the C client of reachd. C11 and C++; needs no other header of the project.
 *
 * A job asks before it launches a kernel, and works as the answer says:
 *
 *     struct reach *reach;
 *     struct reach_answer *answer = NULL;
 *     struct reach_error why;
 *     const struct reach_placement_request request = {.size = sizeof(request), .bytes = bytes};
 *
 *     if (reach_open(NULL, &reach, &why) == REACH_OK &&
 *         reach_get_placement(reach, uuid_of_my_gpu, &request, &answer, &why) == REACH_OK &&
 *         reach_answer_check_gpu(answer, uuid_of_my_gpu, &why) == REACH_OK)
 *         launch(&reach_answer_placement(answer)->windows);
 *     else
 *         fprintf(stderr, "%s\n", why.text);
 *     reach_answer_free(answer);
 *     reach_close(reach);
 *
 * An answer is the JSON of the HTTP API, wherever it comes from: a daemon, an exported fingerprint
 * or the environment of a job. Off line the daemon's own code answers in this process. reach_get
 * returns the JSON; the typed functions return an opaque answer that has been decoded and checked.
 *
 * Units are part of every name: _bytes, _gbps (10^9 bytes per second), _ms. A size is 1 .. 2^50.
 *
 * Errors. Each call that can fail returns a status and takes, last, a struct reach_error that may
 * be NULL. Nothing is guessed: there is no answer for another GPU, from a fingerprint known to be
 * stale, or from before the daemon became unreachable, unless the caller allows it (reach_allow);
 * then the answer says so (struct reach_provenance).
 *
 * Ownership. The caller owns every answer (reach_answer_free) and every JSON text (reach_free). An
 * answer does not depend on its handle and does not change. What the accessors return belongs to
 * the answer.
 *
 * Threads. Several threads may use one handle, and read one answer, at the same time. reach_close
 * comes when no other call is in progress. No call takes longer than the timeout
 * (reach_set_timeout_ms), except to read a file from disk. While the daemon's driver has not yet
 * answered which GPUs there are, a request is repeated; at the timeout it fails with
 * REACH_UNAVAILABLE.
 *
 * Processes. After a fork, parent and child may go on with the same handle, and each closes its own
 * copy, also if other threads of the parent were in calls. The child opens its own connections and
 * leaves those of the parent alone. A process made without the handlers of pthread_atfork (vfork, a
 * raw clone) must not use a handle. Each request has an id (X-Request-Id), and a response with
 * another id is REACH_PROTOCOL. A response without one is accepted: older daemons send none. A
 * proxy must pass the id on in both directions (systemd/nginx-reachd.conf).
 *
 * Locale. Requests and answers are the same in every locale: a call uses the C locale in its own
 * thread and restores the caller's locale before it returns.
 *
 * Compatibility. The caller sets `size` of every request to its sizeof, so that a later release can
 * append fields; all other fields may be 0. Structs behind a const pointer are allocated by the
 * library: a later release appends fields, so do not copy or embed them. A value that an enum of
 * this header does not know is reported as 0, its _OTHER value; the JSON has the word.
 */
#ifndef REACH_H
#define REACH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define REACH_VERSION_MAJOR 0
#define REACH_VERSION_MINOR 1
#define REACH_VERSION_PATCH 0

/* ---- status --------------------------------------------------------------------------------- */

enum reach_status {
    REACH_OK = 0,
    REACH_INVALID_ARGUMENT = 1, /* error.field names the parameter, if one is to blame */
    REACH_NOT_FOUND = 2,        /* no such GPU, or no such file */
    REACH_NOT_MEASURED = 3,     /* no fingerprint, or one that lacks what this answer needs */
    REACH_STALE = 4,            /* the fingerprint no longer describes the GPU */
    REACH_WRONG_GPU = 5,        /* the answer is about another GPU */
    REACH_NO_SUCH_SM = 6,       /* the SM id is outside of the table */
    REACH_NO_WINDOW = 7,        /* this SM gets no work, or there are no windows */
    REACH_UNREACHABLE = 8,      /* no daemon answers, or the connection broke */
    REACH_TIMEOUT = 9,          /* no complete answer in time */
    REACH_PROTOCOL = 10,        /* the response is not one of reachd, or contradicts itself */
    REACH_CORRUPT = 11,         /* the file is not a fingerprint */
    REACH_NOT_SUPPORTED = 12,   /* this daemon, or this kind of source, cannot do it */
    REACH_NO_MEMORY = 13,
    REACH_UNAVAILABLE = 14, /* the daemon refuses for now; try again later */
    REACH_INTERNAL = 15,    /* a bug in reachd or libreach; please report it */
    REACH_UNAUTHORIZED = 16 /* the daemon requires a token for this request */
};

enum { REACH_ERROR_BYTES = 640, REACH_FIELD_BYTES = 32, REACH_UUID_BYTES = 64 };

struct reach_error {
    enum reach_status status;
    uint32_t http_status;          /* of the response; 0: there was none */
    char field[REACH_FIELD_BYTES]; /* the request parameter to blame; "": none */
    char text[REACH_ERROR_BYTES];  /* one or two sentences, no newline, always terminated */
};

/* "wrong-gpu"; "unknown" for any other value. Static. */
const char *reach_status_name(enum reach_status status);
/* The version of the library at run time: "0.1.0". Static. */
const char *reach_version(void);

/* ---- the handle ----------------------------------------------------------------------------- */

struct reach; /* one source of answers, connections to it, and the last answers from it */

/* The source:
 *   "unix:/run/reachd/reachd.sock"   a daemon on this Unix socket
 *   "http://127.0.0.1:17322"         a daemon at this URL (https:// too)
 *   "file:/path/fingerprint.json"    an exported fingerprint. Reads the file now.
 *   "env:"                           what a scheduler put into the environment of this job:
 *                                    REACH_JOB_0 and so on (docs/slurm.md)
 *   "daemon:"                        $REACHD_URL; the default socket below; the default URL
 *   NULL or ""                       the first of: $REACHD_URL, if it is "file:" or "env:"; the
 *                                    environment of the job, if it has a valid REACH_JOB_N;
 *                                    $REACHD_URL; the socket /run/reachd/reachd.sock, if it
 *                                    exists; http://127.0.0.1:17322
 * Does not connect to a daemon yet. The caller owns `*out` (reach_close).
 * Errors: REACH_INVALID_ARGUMENT, REACH_NO_MEMORY; for a file and for "env:" REACH_NOT_FOUND,
 * REACH_CORRUPT. */
enum reach_status reach_open(const char *uri, struct reach **out, struct reach_error *error);
/* NULL is fine. */
void reach_close(struct reach *take);

/* The most that one call may take; 1 .. 3600000, default 5000. Any thread, any time. */
enum reach_status reach_set_timeout_ms(struct reach *reach, uint32_t timeout_ms,
                                       struct reach_error *error);

/* What to return besides a current answer from a fingerprint that describes the GPU. */
enum reach_allow {
    REACH_ALLOW_NOTHING = 0,       /* the default */
    REACH_ALLOW_STALE = 1 << 0,    /* answers from a fingerprint known to be stale */
    REACH_ALLOW_CACHED = 1 << 1,   /* if no daemon answers: its last answer to the same request
                                     through this handle */
    REACH_ALLOW_DISCOVERY = 1 << 2 /* while the daemon's driver has not yet answered which GPUs
                                      there are: its answers of meanwhile, at once */
};
/* `allow`: values of enum reach_allow, or-ed. Any thread, any time. REACH_INVALID_ARGUMENT. */
enum reach_status reach_allow(struct reach *reach, uint32_t allow, struct reach_error *error);

/* ---- requests ------------------------------------------------------------------------------- */

/* GET: `target` is a path of the API with its query, "/v1/gpus/0/plan?bytes=137GiB" (GET / lists
 * them). `*out_json` is the body, terminated, for reach_free. If the request is refused it is the
 * problem document (RFC 9457), and if there is no response NULL. A stale answer that is not allowed
 * is REACH_STALE, with the body. Off line, requests that only a daemon can answer (history,
 * observations, metrics) are REACH_NOT_SUPPORTED. */
enum reach_status reach_get(struct reach *reach, const char *target, char **out_json,
                            struct reach_error *error);
/* Frees a text from reach_get. NULL is fine. */
void reach_free(void *take);

struct reach_answer;

struct reach_request {
    size_t size;
    const char *method; /* "GET", "POST", "DELETE"; NULL: "GET" */
    const char *target;
    const char *body;   /* JSON; NULL: none */
    const char *accept; /* media type; NULL: application/json */
    const char *token;  /* for POST and DELETE, if the daemon requires one; NULL: none */
};

/* Any request. `*out` is also set if the request is refused (the problem document) and for an
 * answer that is stale; it is NULL if there is no response. */
enum reach_status reach_send(struct reach *reach, const struct reach_request *request,
                             struct reach_answer **out, struct reach_error *error);

/* ---- answers -------------------------------------------------------------------------------- */

/* NULL is fine. */
void reach_answer_free(struct reach_answer *take);

/* The body, terminated; `bytes` may be NULL. JSON, unless the request asked for something else. */
const char *reach_answer_body(const struct reach_answer *answer, size_t *bytes);
/* 200 for an answer from a file, the environment or the cache. */
uint32_t reach_answer_http_status(const struct reach_answer *answer);

enum reach_source {
    REACH_FROM_DAEMON = 1, /* the daemon sent it, or confirmed it, during this call */
    REACH_FROM_CACHE = 2,  /* no daemon answered; this is its last answer (REACH_ALLOW_CACHED) */
    REACH_FROM_FILE = 3,   /* nothing confirms that the fingerprint still describes the GPU */
    REACH_FROM_ENVIRONMENT = 4
};
enum reach_source reach_answer_source(const struct reach_answer *answer);
/* Since the daemon sent or confirmed it, or the file or the environment was read. */
uint64_t reach_answer_age_ms(const struct reach_answer *answer);

enum reach_origin {
    REACH_ORIGIN_OTHER = 0,
    REACH_MEASURED = 1,
    REACH_SIMULATED = 2,
    REACH_IMPORTED = 3
};

/* "measured"; NULL for any other value. Static. */
const char *reach_origin_name(enum reach_origin origin);

/* What an answer rests on. */
struct reach_provenance {
    const char *gpu_uuid;
    const char *fingerprint_id;
    enum reach_origin origin;
    bool stale; /* the chip or its driver is known to have changed */
    const char
        *speeds_taken_at; /* RFC 3339: when the speeds that predictions rest on were measured;
                             "": not, or not said */
};
/* NULL for an answer that does not rest on one fingerprint (a list, a problem document). */
const struct reach_provenance *reach_answer_provenance(const struct reach_answer *answer);

/* Is the answer for the GPU with this UUID ("GPU-..", "MIG-..", "SIM-.."; case is ignored, and
 * "GPU-" and "MIG-" are the same, as in requests: CUDA gives the bytes alone)? REACH_WRONG_GPU
 * names both. REACH_INVALID_ARGUMENT for NULL. Sends nothing. */
enum reach_status reach_answer_check_gpu(const struct reach_answer *answer, const char *gpu_uuid,
                                         struct reach_error *error);

/* Does the answer still hold? Asks the daemon; reads the file again. REACH_STALE if the fingerprint
 * was replaced or became stale (whatever reach_allow says); REACH_NOT_FOUND, REACH_NOT_MEASURED,
 * REACH_UNREACHABLE, .. if that is not known; REACH_NOT_SUPPORTED for "env:". For jobs that run
 * for hours. */
enum reach_status reach_revalidate(struct reach *reach, const struct reach_answer *answer,
                                   struct reach_error *error);

/* The same two checks for a program that keeps only the UUID and the id of the fingerprint
 * (struct reach_provenance): in another process, or after the answer was freed. */
enum reach_status reach_check_gpu(const char *answered_uuid, const char *gpu_uuid,
                                  struct reach_error *error);
enum reach_status reach_check_fingerprint(struct reach *reach, const char *answered_uuid,
                                          const char *fingerprint_id, struct reach_error *error);

/* The text of a UUID as CUDA gives it (cudaDeviceProp.uuid, cuDeviceGetUuid_v2), 16 bytes. `mig`
 * may be false for an instance: libreach and the daemon find it by the rest. `out` needs
 * REACH_UUID_BYTES. Returns `out`. */
char *reach_uuid_text(const unsigned char *bytes, bool mig, char *out);

/* A number that may be absent. */
struct reach_number {
    bool known;
    double value;       /* 0 if it is not known */
    const char *reason; /* why not: "not-measured", "not-observable: beyond-memory"; "" if known */
};

/* In all that follows `gpu` is a UUID, the beginning of one, or an index as text ("0"): of the
 * daemon's list, by PCI address; 0 for a file; the N of REACH_JOB_N for "env:", which is the CUDA
 * ordinal within the job. */

/* ---- GPUs and fingerprints ------------------------------------------------------------------ */

enum reach_state {
    REACH_STATE_OTHER = 0,
    REACH_STATE_UNKNOWN = 1, /* found, never measured */
    REACH_STATE_QUEUED = 2,
    REACH_STATE_MEASURING = 3,
    REACH_STATE_READY = 4, /* of a file and of the environment, always */
    REACH_STATE_FAILED = 5,
    REACH_STATE_LOST = 6, /* the driver no longer lists it */
    REACH_STATE_CHECKING = 7,
    REACH_STATE_STALE = 8
};

struct reach_gpu {
    uint32_t index; /* only the UUID is stable */
    const char *uuid;
    const char *name;
    enum reach_origin origin;
    enum reach_state state;
    uint32_t sm_count;
    uint64_t memory_bytes;
    bool mig;
    const char *fingerprint_id; /* "": not measured yet */
    bool stale;                 /* that fingerprint is */
};

/* The GPUs of the node, in the daemon's order. There may be none. Never cached. */
enum reach_status reach_get_gpus(struct reach *reach, struct reach_answer **out,
                                 struct reach_error *error);
uint32_t reach_answer_gpu_count(const struct reach_answer *answer);
/* NULL after the last. */
const struct reach_gpu *reach_answer_gpu(const struct reach_answer *answer, uint32_t i);

/* The part of a fingerprint that jobs use. */
struct reach_fingerprint {
    const char *name; /* of the GPU */
    const char *driver_version;
    const char *depth;    /* the deepest of what it contains: "quick", "full", "memory", "matrix" */
    const char *taken_at; /* RFC 3339, UTC */
    uint32_t sm_count;
    uint64_t memory_bytes;
    struct reach_number reach_bytes;       /* of one group */
    struct reach_number entry_bytes;       /* alignment of windows */
    struct reach_number recommended_bytes; /* longest window at a base of any alignment */
    struct reach_number plateau_gbps;      /* random 128-byte reads within the reach */
    struct reach_number whole_memory_gbps; /* the same over the largest region probed */
    uint32_t group_count;                  /* 0: not known */
    uint32_t sm_slots;                     /* length of group_of_sm: highest SM id + 1 */
    const int16_t *group_of_sm;            /* REACH_IDLE: no such SM, or not certain */
    struct reach_number sides;             /* of the L2: 2, if it has them */
    struct reach_number
        side_granule_bytes;               /* of physical memory, aligned, on one side as a whole */
    struct reach_number side_near_cycles; /* of an atomic of one thread on its own side */
    struct reach_number side_far_cycles;  /* and on the other */
    uint32_t side_slots;                  /* length of side_of_sm; 0 if the sides are not known */
    const int16_t *side_of_sm;            /* 0 or 1; REACH_IDLE: no such SM */
};

enum reach_status reach_get_fingerprint(struct reach *reach, const char *gpu,
                                        struct reach_answer **out, struct reach_error *error);
const struct reach_fingerprint *reach_answer_fingerprint(const struct reach_answer *answer);

/* ---- scope and placement -------------------------------------------------------------------- */

enum reach_access { REACH_READ = 0, REACH_ATOMIC = 1, REACH_WRITE = 2 };
/* "read"; NULL for any other value. Static. */
const char *reach_access_name(enum reach_access access);

enum reach_advice {
    REACH_ADVICE_OTHER = 0,
    REACH_NOTHING_TO_DO = 1, /* everything is within the reach */
    REACH_USE_SCOPES = 2,
    REACH_USE_WINDOWS = 3,
    REACH_NO_LIMIT_SEEN = 4,
    REACH_NOT_ENOUGH_GROUPS = 5 /* then there are no windows */
};
/* "nothing-to-do"; NULL for any other value. Static. */
const char *reach_advice_name(enum reach_advice advice);

/* A part of an allocation. Final. */
struct reach_extent {
    uint64_t first_byte;
    uint64_t length_bytes;
};

enum { REACH_ALLOCATION_MAX = 16, REACH_SCOPE_MAX = 256 };

/* One of several allocations that a job touches together: the offsets and the edges of a graph, the
 * metadata and the values of a hash table, a set of embedding tables. */
struct reach_allocation {
    uint64_t bytes;
    uint64_t granularity_bytes; /* bounds of its parts are multiples: a row. 0: the element (in a
                                   plan), 128 (in a scope). Allocations with the same number of rows
                                   are cut at the same row */
    double touches;             /* plan: accesses of it per item; 0: none, it is only laid out with
                                   the others */
    uint32_t element_bytes;     /* plan: as in reach_job */
    uint32_t transaction_bytes; /* likewise */
};

struct reach_scope_request {
    size_t size;
    /* Generated from daemon/planner/params.c by make generated: scope. */
    /* Bytes that the job accesses at random; at most 1 PiB. */
    uint64_t bytes;
    /* The kind of the random accesses. Predictions are of reads alone; for atomics and writes
     * they are null. */
    enum reach_access access;
    /* Bounds of scopes are multiples of this size (a row). By default any byte, or with several
     * allocations 128. */
    uint64_t granularity_bytes;
    /* End of the generated part. */
    uint32_t allocation_count;                 /* 0: one, as above */
    const struct reach_allocation *allocation; /* REACH_ALLOCATION_MAX at most; then bytes and
                                                  granularity_bytes above do not count */
};

/* The ranges of passes, side by side, as equal as whole TLB entries allow. Pass k touches, of
 * allocation i, range[k * allocation_count + i] alone. */
struct reach_scopes {
    uint32_t scope_count;      /* 0: none, or more than REACH_SCOPE_MAX */
    uint32_t allocation_count; /* 1, unless the request has a list */
    const struct reach_extent *range;
};

/* How many bytes may one pass access at random before translation limits its speed? */
struct reach_scope {
    uint64_t bytes;
    enum reach_advice advice;
    uint64_t scope_bytes;               /* the most that one pass should access */
    uint64_t passes;                    /* bytes / scope_bytes, rounded up */
    struct reach_scopes scopes;         /* one of each pass */
    struct reach_number predicted_gbps; /* of useful lines */
    struct reach_number naive_gbps;
    const char *reason;
};

enum reach_status reach_get_scope(struct reach *reach, const char *gpu,
                                  const struct reach_scope_request *request,
                                  struct reach_answer **out, struct reach_error *error);
const struct reach_scope *reach_answer_scope(const struct reach_answer *answer);

enum {
    REACH_IDLE = -1,       /* in window_of_sm and group_of_sm: none */
    REACH_SM_MAX = 512,    /* sm_slots is at most this */
    REACH_WINDOW_MAX = 256 /* window_count likewise */
};

/* Final: an array of these goes to a device as it is. */
struct reach_window {
    uint64_t first_byte; /* within the allocation */
    uint64_t length_bytes;
    uint32_t sm_count; /* SMs that work there */
    uint32_t group_count;
};

/* Windows lie side by side and cover the allocation; the table says which SM works in which. If
 * there are several allocations, each window has a part of each (which may be empty if that one has
 * few rows), and first_byte and length_bytes of a window are the sums over its parts. Final. */
struct reach_windows {
    uint32_t window_count; /* 0: there are none */
    uint32_t sm_slots;     /* length of window_of_sm: highest SM id + 1 */
    const struct reach_window *window;
    const int16_t *window_of_sm;     /* by SM id (%smid); REACH_IDLE: gets no work */
    uint32_t allocation_count;       /* 1, unless the request has a list */
    const struct reach_extent *part; /* of allocation i in window w: w * allocation_count + i */
};

/* The window of one SM, always one of the table: REACH_NO_SUCH_SM for an id outside of it,
 * REACH_NO_WINDOW for an SM without work. `*out_window` is then unchanged. */
enum reach_status reach_window_of_sm(const struct reach_windows *windows, uint32_t sm,
                                     uint32_t *out_window, struct reach_error *error);

struct reach_placement_request {
    size_t size;
    /* Generated from daemon/planner/params.c by make generated: placement. */
    /* Bytes that the job accesses at random; at most 1 PiB. */
    uint64_t bytes;
    /* The number of windows. By default the fewest that the reach allows. */
    uint32_t windows;
    /* Window bounds are multiples of this size. They are also multiples of the TLB entry if a
     * common multiple is fine enough. By default the TLB entry. */
    uint64_t granularity_bytes;
    /* End of the generated part. */
};

/* Which SM should work in which window of memory? */
struct reach_placement {
    uint64_t bytes;
    enum reach_advice advice;
    struct reach_windows windows;
    struct reach_number headroom_bytes; /* the reach of a group less the longest window */
    struct reach_number predicted_gbps; /* with this placement */
    struct reach_number naive_gbps;
    const char *reason;
};

enum reach_status reach_get_placement(struct reach *reach, const char *gpu,
                                      const struct reach_placement_request *request,
                                      struct reach_answer **out, struct reach_error *error);
const struct reach_placement *reach_answer_placement(const struct reach_answer *answer);

/* ---- plan ----------------------------------------------------------------------------------- */

/* A job. An item is what it does again and again: one access, or those of `allocation`. All 0 but
 * for `size` and `bytes`: reads of 128 bytes at positions that it computes at no cost, any number
 * of times, by SMs that can be bound to windows. */
struct reach_job {
    size_t size;
    /* Generated from daemon/planner/params.c by make generated: plan. */
    /* Bytes that the job accesses at random; at most 1 PiB. */
    uint64_t bytes;
    /* The kind of the random accesses. */
    enum reach_access access;
    /* Size of one access; at most 1 MiB. By default 128 bytes. */
    uint32_t element_bytes;
    /* Bytes that memory moves for one access; at most 1 MiB. By default the element, rounded up
     * to 32 bytes. Throughputs count these bytes. */
    uint32_t transaction_bytes;
    /* Further memory that all SMs access at random. It is subtracted from every window and every
     * scope. */
    uint64_t reserve_bytes;
    /* The total number of items, which are accesses unless touches says otherwise. It counts one
     * batch if a job does several batches one after the other. With it extra bytes are also
     * given in total, and launches take their time. By default launches do not matter. */
    uint64_t accesses;
    /* Microseconds of one launch, of one reset of the queues of windows, and of the wait for the
     * slowest window. The default is an assumption. Counts only with accesses. 0: 10. */
    double launch_us;
    /* Work cannot be bound to SMs. */
    bool no_sm_binding;
    /* The input cannot be read again. */
    bool single_pass;
    /* Bytes of input per access. By default none; positions are computed, not read. */
    double input_bytes;
    /* GB/s at which the input arrives over a link, concurrently with the rest. Input that is
     * needed again is kept in GPU memory, chunk by chunk. By default the input is in GPU memory
     * as a whole. Needs input_bytes. */
    double input_gbps;
    /* Positions that all SMs together can scan and skip, in 10^9 per second. By default the scan
     * is assumed to cost nothing. */
    double scan_gps;
    /* GB/s that the job attains within the reach, including the scan and one reading of its
     * input. By default the number of the fingerprint for such accesses. */
    double in_reach_gbps;
    /* Bytes of output per access to which several passes or windows may add. Each but one reads
     * and writes them once more. By default none. */
    double output_bytes;
    /* Bytes of output per access that are written exactly once, such as the rows of a gather. By
     * default none. */
    double written_bytes;
    /* Bytes that a partition writes per access. By default input_bytes, or 8 if positions are
     * computed. */
    double partition_bytes;
    /* 1 less contiguous: the share of the memory that is physically contiguous. It counts frames
     * of contiguity.frame_bytes: a large allocation on an idle GPU is contiguous, memory mapped
     * from small handles is not. Out of the reach a miss costs more in other frames. */
    double scattered;
    /* The number of windows. By default the fewest that the reach allows. */
    uint32_t windows;
    /* Window bounds are multiples of this size, as in placement. With several allocations it is
     * the row of each, by default its element: allocations with the same number of rows are cut
     * at the same row. */
    uint64_t granularity_bytes;
    /* End of the generated part. */
    uint32_t allocation_count; /* 0: one, as above */
    const struct reach_allocation
        *allocation; /* REACH_ALLOCATION_MAX at most; then bytes, element_,
                        transaction_ and granularity_bytes do not count */
};

enum reach_strategy {
    REACH_NAIVE = 0,               /* one pass, any SM anywhere */
    REACH_SCOPES = 1,              /* one pass per scope */
    REACH_WINDOWS = 2,             /* groups in windows; each SM takes work of its own window */
    REACH_FILTERED_WINDOWS = 3,    /* the SMs of each window scan all input and keep their own */
    REACH_PARTITIONED_WINDOWS = 4, /* the input is partitioned by window first */
    REACH_SIDES = 5,               /* each SM reads what lives on its side of the L2 */
    REACH_STRATEGY_COUNT = 6
};
/* "filtered-windows"; NULL for any other value. Static. */
const char *reach_strategy_name(enum reach_strategy strategy);

/* The resource that is always busy. */
enum reach_bound {
    REACH_BOUND_OTHER = 0,
    REACH_BOUND_UNKNOWN = 1,
    REACH_BOUND_MEMORY = 2,
    REACH_BOUND_TRANSLATION = 3,
    REACH_BOUND_INPUT = 4,
    REACH_BOUND_SCAN = 5,
    REACH_BOUND_LAUNCH = 6 /* launches take longer than the work */
};

/* One strategy for the job. Numbers of an impossible one are 0 or unknown. */
struct reach_option {
    enum reach_strategy strategy;
    bool possible;            /* if not, `why` says why not */
    struct reach_number gbps; /* predicted: item_bytes of useful items, over all the time */
    struct reach_number times_naive;
    uint64_t passes;                 /* over all the input */
    uint32_t windows;                /* 0: none */
    uint64_t scope_bytes;            /* of each pass but perhaps the last; 0: none */
    double extra_bytes_per_access;   /* moved beyond what naive moves, per item */
    struct reach_number extra_bytes; /* in all, if `accesses` was given */
    enum reach_bound bound;
    const char *why;
};

/* What the cost of an access rests on. */
enum reach_price {
    REACH_PRICE_OTHER = 0,
    REACH_PRICE_NONE = 1,
    REACH_PRICE_MEASURED = 2,
    REACH_PRICE_BETWEEN = 3,  /* smaller and larger accesses were measured */
    REACH_PRICE_SCALED = 4,   /* from another size */
    REACH_PRICE_JOB = 5,      /* in_reach_gbps of the job */
    REACH_PRICE_SIMULATED = 6 /* of a simulated GPU */
};

struct reach_plan {
    uint64_t bytes;         /* of all allocations */
    uint32_t element_bytes; /* as assumed if the job left them out; 0: see `allocation` */
    uint32_t transaction_bytes;
    double item_bytes;                         /* transaction bytes of one item */
    uint32_t allocation_count;                 /* 0: one, of which an item touches one element */
    const struct reach_allocation *allocation; /* as assumed */
    enum reach_price price;
    struct reach_number in_reach_gbps; /* such accesses within the reach, with no other limit */
    enum reach_strategy recommended;   /* of option 0, which is always possible */
    const char *reason;
    struct reach_number contiguous;            /* the share of the memory that was assumed to be */
    struct reach_number naive_contiguous_gbps; /* naive, if all of the memory were */
    struct reach_number naive_scattered_gbps;  /* naive, if none of it were */
    uint32_t option_count;                     /* best first; impossible ones last */
    uint64_t scope_bytes;                      /* for passes over scopes; 0: not possible */
    uint64_t passes;                           /* likewise */
    struct reach_scopes scopes;                /* one of each pass; none: not possible */
    struct reach_windows windows; /* for the strategies with windows; none: not possible */
};

/* Every strategy for the job, best first, and what each needs. */
enum reach_status reach_get_plan(struct reach *reach, const char *gpu, const struct reach_job *job,
                                 struct reach_answer **out, struct reach_error *error);
const struct reach_plan *reach_answer_plan(const struct reach_answer *answer);
/* NULL after the last. */
const struct reach_option *reach_answer_option(const struct reach_answer *answer, uint32_t i);

/* ---- split ---------------------------------------------------------------------------------- */

enum { REACH_JOB_MAX = 16 };

struct reach_split_request {
    size_t size;
    uint32_t job_count;    /* 1 .. REACH_JOB_MAX */
    const uint64_t *bytes; /* of each: its own allocation, accessed at random */
    const double *weight;  /* of each: its share of the SMs; NULL: equal */
};

/* What one job gets: whole groups, and windows in its own allocation. */
struct reach_share {
    uint64_t bytes;
    double weight;
    bool fits; /* its windows are within the reach; if not, there is one window of all its bytes */
    uint32_t sm_count;
    uint32_t group_count;
    struct reach_windows windows;     /* REACH_IDLE: also an SM of another job */
    struct reach_number gbps;         /* predicted, 128-byte reads, with the others running */
    struct reach_number unsplit_gbps; /* the same with every SM anywhere, for all jobs */
    const char *why;
};

struct reach_split {
    uint32_t job_count; /* as in the request */
    const char *reason;
};

/* One GPU for several jobs, so that none evicts translations of another. */
enum reach_status reach_get_split(struct reach *reach, const char *gpu,
                                  const struct reach_split_request *request,
                                  struct reach_answer **out, struct reach_error *error);
const struct reach_split *reach_answer_split(const struct reach_answer *answer);
/* Of job i of the request. NULL after the last. */
const struct reach_share *reach_answer_share(const struct reach_answer *answer, uint32_t i);

/* ---- explain -------------------------------------------------------------------------------- */

struct reach_explain_request {
    size_t size;
    /* Generated from daemon/planner/params.c by make generated: explain. */
    /* Bytes that the job accesses at random; at most 1 PiB. */
    uint64_t bytes;
    /* The kind of the random accesses. */
    enum reach_access access;
    /* Size of one access; at most 1 MiB. By default 128 bytes. */
    uint32_t element_bytes;
    /* Bytes that memory moves for one access; at most 1 MiB. By default the element, rounded up
     * to 32 bytes. Throughputs count these bytes. */
    uint32_t transaction_bytes;
    /* 1 less contiguous: the share of the memory that is physically contiguous. It counts frames
     * of contiguity.frame_bytes: a large allocation on an idle GPU is contiguous, memory mapped
     * from small handles is not. Out of the reach a miss costs more in other frames. */
    double scattered;
    /* The throughput that the job observes, in 10^9 transaction bytes per second. */
    double observed_gbps;
    /* End of the generated part. */
};

enum reach_verdict {
    REACH_VERDICT_OTHER = 0,
    REACH_VERDICT_TRANSLATION = 1,
    REACH_VERDICT_PARTLY = 2,
    REACH_VERDICT_NOT_TRANSLATION = 3,
    REACH_VERDICT_CANNOT_SAY = 4
};

/* Is it the TLB? */
struct reach_explanation {
    uint64_t bytes;
    uint32_t element_bytes;
    uint32_t transaction_bytes;
    enum reach_price price;
    double observed_gbps;
    enum reach_verdict verdict;
    struct reach_number in_reach_gbps; /* expected of such accesses within the reach */
    struct reach_number expected_gbps; /* expected over these bytes, any SM anywhere */
    struct reach_number contiguous;    /* as in reach_plan, and the two that follow */
    struct reach_number naive_contiguous_gbps;
    struct reach_number naive_scattered_gbps;
    struct reach_number loss_gbps;         /* in reach less observed; 0 if the job is faster */
    struct reach_number translation_share; /* of the time that is lost, 0 .. 1 */
    const char *reason;
    uint32_t check_count;
    const char *const *checks; /* what would prove it, or what else to examine */
};

enum reach_status reach_get_explain(struct reach *reach, const char *gpu,
                                    const struct reach_explain_request *request,
                                    struct reach_answer **out, struct reach_error *error);
const struct reach_explanation *reach_answer_explanation(const struct reach_answer *answer);

#ifdef __cplusplus
}
#endif

#endif
