/* reach.h: libreach, the C client of reachd. The header works in C11 and C++ and needs no other
 * header of the project.
 *
 * A job sends a request before it launches a kernel, and follows the answer:
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
 * An answer is the JSON of the HTTP API. It comes from a daemon, an exported fingerprint or the
 * environment of a job. Without a daemon, the daemon's own code answers in this process. reach_get
 * returns the JSON; the typed functions return an opaque answer that has been decoded and checked.
 *
 * Units are part of every name: _bytes, _gbps (10^9 bytes per second), _ms. A size is 1 .. 2^50.
 *
 * Each call that can fail returns a status. Its last argument is a struct reach_error, which may be
 * NULL. The library never returns an answer for another GPU. It returns an answer from a stale
 * fingerprint, or from before the daemon became unreachable, only if the caller allows it
 * (reach_allow). Such an answer is marked (struct reach_provenance, reach_answer_source).
 *
 * The caller owns every answer (reach_answer_free) and every JSON text (reach_free). An answer does
 * not depend on its handle and does not change. The answer owns all results of the accessors.
 *
 * Several threads may use one handle, and read one answer, at the same time. Call reach_close only
 * when no other call is in progress. No call takes longer than the timeout (reach_set_timeout_ms),
 * except to read a file from disk. While GPU discovery of the daemon runs, a request is repeated.
 * At the timeout it fails with REACH_UNAVAILABLE.
 *
 * After a fork, parent and child may both use the handle, and each closes its own copy. This holds
 * even if other threads of the parent were in calls. The child opens its own connections and does
 * not use the connections of the parent. A process made without the handlers of pthread_atfork
 * (vfork, a raw clone) must not use a handle. Each request has an id (X-Request-Id), and a response
 * with another id is REACH_PROTOCOL. A response without an id is accepted, because older daemons
 * send none. A proxy must pass the id on in both directions (systemd/nginx-reachd.conf).
 *
 * Requests and answers are the same in every locale. A call uses the C locale in its own thread and
 * restores the caller's locale before it returns.
 *
 * The caller sets `size` of every request to its sizeof, so that a later release can append fields;
 * all other fields may be 0. Structs behind a const pointer are allocated by the library. A later
 * release appends fields, so do not copy or embed them. A value without a constant in its enum is
 * reported as 0, the _OTHER value; the JSON contains the word. */
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
    REACH_PROTOCOL = 10,        /* the response is not from reachd, or contradicts itself */
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
    uint32_t http_status;          /* status of the response; 0 if there was none */
    char field[REACH_FIELD_BYTES]; /* request parameter to blame; "" if there is none */
    char text[REACH_ERROR_BYTES];  /* one or two sentences, no newline, always terminated */
};

/* Returns a static name such as "wrong-gpu", or "unknown" for any other value. */
const char *reach_status_name(enum reach_status status);
/* Returns the version of the library at run time, a static text such as "0.1.0". */
const char *reach_version(void);

/* ---- the handle ----------------------------------------------------------------------------- */

struct reach; /* one source of answers, connections to it, and the last answers from it */

/* The source:
 *   "unix:/run/reachd/reachd.sock"   a daemon on this Unix socket
 *   "http://127.0.0.1:17322"         a daemon at this URL (https:// too)
 *   "file:/path/fingerprint.json"    an exported fingerprint. Reads the file now.
 *   "env:"                           the variables that a scheduler set for this job:
 *                                    REACH_JOB_0 and so on (docs/slurm.md)
 *   "daemon:"                        $REACHD_URL; the default socket below; the default URL
 *   NULL or ""                       the first of: $REACHD_URL, if it is "file:" or "env:"; the
 *                                    environment of the job, if it has a valid REACH_JOB_N;
 *                                    $REACHD_URL; the socket /run/reachd/reachd.sock, if it
 *                                    exists; http://127.0.0.1:17322
 * Does not connect to a daemon yet. The caller owns `*out` (reach_close). Returns
 * REACH_INVALID_ARGUMENT or REACH_NO_MEMORY on failure; for a file and "env:" also REACH_NOT_FOUND
 * or REACH_CORRUPT. */
enum reach_status reach_open(const char *uri, struct reach **out, struct reach_error *error);
/* NULL is allowed. */
void reach_close(struct reach *take);

/* Sets the time limit of one call, from 1 to 3600000 ms; the default is 5000. Any thread may call
 * the function at any time. */
enum reach_status reach_set_timeout_ms(struct reach *reach, uint32_t timeout_ms,
                                       struct reach_error *error);

/* Kinds of answers that may be returned besides current answers from a valid fingerprint. */
enum reach_allow {
    REACH_ALLOW_NOTHING = 0,       /* the default */
    REACH_ALLOW_STALE = 1 << 0,    /* answers from a fingerprint known to be stale */
    REACH_ALLOW_CACHED = 1 << 1,   /* last answer of an unreachable daemon to this request */
    REACH_ALLOW_DISCOVERY = 1 << 2 /* answers while GPU discovery runs */
};
/* `allow` is the bitwise OR of values of enum reach_allow. Any thread may call the function at any
 * time. Returns REACH_INVALID_ARGUMENT for other bits. */
enum reach_status reach_allow(struct reach *reach, uint32_t allow, struct reach_error *error);

/* ---- requests ------------------------------------------------------------------------------- */

/* Sends a GET. `target` is a path of the API with its query, such as "/v1/gpus/0/plan?bytes=137GiB"
 * (GET / lists the paths). `*out_json` is the terminated body, freed with reach_free. If the
 * request is refused, it is the problem document (RFC 9457); it is NULL if there is no response.
 * For a stale answer that is not allowed, the function returns REACH_STALE and the body. Without a
 * daemon, requests that only a daemon can answer (history, observations, metrics) return
 * REACH_NOT_SUPPORTED. */
enum reach_status reach_get(struct reach *reach, const char *target, char **out_json,
                            struct reach_error *error);
/* Frees a text from reach_get. NULL is allowed. */
void reach_free(void *take);

struct reach_answer;

struct reach_request {
    size_t size;
    const char *method; /* "GET", "POST", "DELETE"; NULL means "GET" */
    const char *target;
    const char *body;   /* JSON; NULL if there is none */
    const char *accept; /* media type; NULL means application/json */
    const char *token;  /* token for POST and DELETE if the daemon requires one; may be NULL */
};

/* Sends any request. `*out` is also set if the request is refused (the problem document) and for a
 * stale answer. It is NULL if there is no response. */
enum reach_status reach_send(struct reach *reach, const struct reach_request *request,
                             struct reach_answer **out, struct reach_error *error);

/* ---- answers -------------------------------------------------------------------------------- */

/* NULL is allowed. */
void reach_answer_free(struct reach_answer *take);

/* Returns the terminated body; `bytes` may be NULL. The body is JSON unless the request accepts
 * another type. */
const char *reach_answer_body(const struct reach_answer *answer, size_t *bytes);
/* Returns the HTTP status, which is 200 for an answer from a file, the environment or the cache. */
uint32_t reach_answer_http_status(const struct reach_answer *answer);

enum reach_source {
    REACH_FROM_DAEMON = 1, /* the daemon sent it, or confirmed it, during this call */
    REACH_FROM_CACHE = 2,  /* no daemon answered; this is its last answer (REACH_ALLOW_CACHED) */
    REACH_FROM_FILE = 3,   /* nothing confirms that the fingerprint still describes the GPU */
    REACH_FROM_ENVIRONMENT = 4
};
enum reach_source reach_answer_source(const struct reach_answer *answer);
/* Returns the time since the daemon sent or confirmed the answer, or since the file or the
 * environment was read. */
uint64_t reach_answer_age_ms(const struct reach_answer *answer);

enum reach_origin {
    REACH_ORIGIN_OTHER = 0,
    REACH_MEASURED = 1,
    REACH_SIMULATED = 2,
    REACH_IMPORTED = 3
};

/* Returns a static name such as "measured", or NULL for any other value. */
const char *reach_origin_name(enum reach_origin origin);

/* The fingerprint that an answer rests on. */
struct reach_provenance {
    const char *gpu_uuid;
    const char *fingerprint_id;
    enum reach_origin origin;
    bool stale;                  /* the chip or its driver is known to have changed */
    const char *speeds_taken_at; /* RFC 3339: time of the speed measurement; "" if unknown */
};
/* Returns NULL for an answer that does not rest on one fingerprint (a list, a problem document). */
const struct reach_provenance *reach_answer_provenance(const struct reach_answer *answer);

/* Checks that the answer is for the GPU with this UUID ("GPU-..", "MIG-..", "SIM-.."). Case is
 * ignored. "GPU-" and "MIG-" are equal, like in requests, because CUDA returns only the bytes.
 * Returns REACH_WRONG_GPU with both names, or REACH_INVALID_ARGUMENT for NULL. Sends nothing. */
enum reach_status reach_answer_check_gpu(const struct reach_answer *answer, const char *gpu_uuid,
                                         struct reach_error *error);

/* Checks that the answer is still valid: queries the daemon, or reads the file again. Use it in
 * jobs that run for hours. Returns REACH_STALE if the fingerprint was replaced or became stale,
 * independent of reach_allow. Returns another error (REACH_NOT_FOUND, REACH_NOT_MEASURED,
 * REACH_UNREACHABLE, ..) if the check is impossible, and REACH_NOT_SUPPORTED for "env:". */
enum reach_status reach_revalidate(struct reach *reach, const struct reach_answer *answer,
                                   struct reach_error *error);

/* These functions make the same two checks for a program that keeps only the UUID and the id of the
 * fingerprint (struct reach_provenance). The checks work in another process, or after the answer
 * was freed. */
enum reach_status reach_check_gpu(const char *answered_uuid, const char *gpu_uuid,
                                  struct reach_error *error);
enum reach_status reach_check_fingerprint(struct reach *reach, const char *answered_uuid,
                                          const char *fingerprint_id, struct reach_error *error);

/* Writes the text of a UUID of CUDA (cudaDeviceProp.uuid, cuDeviceGetUuid_v2), 16 bytes. `mig` may
 * be false for an instance, because libreach and the daemon find the instance without the prefix.
 * `out` needs REACH_UUID_BYTES. Returns `out`. */
char *reach_uuid_text(const unsigned char *bytes, bool mig, char *out);

/* A number that may be absent. */
struct reach_number {
    bool known;
    double value;       /* 0 if it is not known */
    const char *reason; /* if unknown: "not-measured", "not-observable: beyond-memory" */
};

/* In all functions below, `gpu` is a UUID, the beginning of one, or an index as text ("0"). The
 * index is the place in the daemon's list, by PCI address. It is 0 for a file. For "env:" it is the
 * N of REACH_JOB_N, the CUDA ordinal within the job. */

/* ---- GPUs and fingerprints ------------------------------------------------------------------ */

enum reach_state {
    REACH_STATE_OTHER = 0,
    REACH_STATE_UNKNOWN = 1, /* the GPU was found and never measured */
    REACH_STATE_QUEUED = 2,
    REACH_STATE_MEASURING = 3,
    REACH_STATE_READY = 4, /* the state of every GPU of a file or of the environment */
    REACH_STATE_FAILED = 5,
    REACH_STATE_LOST = 6, /* the driver no longer lists it */
    REACH_STATE_CHECKING = 7,
    REACH_STATE_STALE = 8
};

struct reach_gpu {
    uint32_t index; /* can change; only the UUID is stable */
    const char *uuid;
    const char *name;
    enum reach_origin origin;
    enum reach_state state;
    uint32_t sm_count;
    uint64_t memory_bytes;
    bool mig;
    const char *fingerprint_id; /* "" if the GPU has not been measured */
    bool stale;                 /* whether that fingerprint is stale */
};

/* Returns the GPUs of the node, in the daemon's order. The list may be empty and is never
 * cached. */
enum reach_status reach_get_gpus(struct reach *reach, struct reach_answer **out,
                                 struct reach_error *error);
uint32_t reach_answer_gpu_count(const struct reach_answer *answer);
/* Returns NULL if `i` is not less than the length of the list. */
const struct reach_gpu *reach_answer_gpu(const struct reach_answer *answer, uint32_t i);

/* The part of a fingerprint that jobs use. */
struct reach_fingerprint {
    const char *name; /* name of the GPU */
    const char *driver_version;
    const char *depth;    /* deepest measurement in it: "quick", "full", "memory", "matrix" */
    const char *taken_at; /* RFC 3339, UTC */
    uint32_t sm_count;
    uint64_t memory_bytes;
    struct reach_number reach_bytes;       /* reach of one group */
    struct reach_number entry_bytes;       /* length of a TLB entry, to which windows are aligned */
    struct reach_number recommended_bytes; /* longest window at a base of any alignment */
    struct reach_number plateau_gbps;      /* random 128-byte reads within the reach */
    struct reach_number whole_memory_gbps; /* the same reads over the largest region probed */
    uint32_t group_count;                  /* 0 if it is not known */
    uint32_t sm_slots;                     /* length of group_of_sm: highest SM id + 1 */
    const int16_t *group_of_sm;            /* REACH_IDLE if the SM does not exist or is uncertain */
    struct reach_number sides;             /* number of sides of the L2; 2 if the chip has sides */
    struct reach_number
        side_granule_bytes; /* aligned unit of physical memory, entirely on one side */
    struct reach_number side_near_cycles; /* latency of an atomic of one thread on its own side */
    struct reach_number side_far_cycles;  /* latency of an atomic of one thread on the other side */
    uint32_t side_slots;                  /* length of side_of_sm; 0 if the sides are not known */
    const int16_t *side_of_sm;            /* 0 or 1; REACH_IDLE if the SM does not exist */
};

enum reach_status reach_get_fingerprint(struct reach *reach, const char *gpu,
                                        struct reach_answer **out, struct reach_error *error);
const struct reach_fingerprint *reach_answer_fingerprint(const struct reach_answer *answer);

/* ---- scope and placement -------------------------------------------------------------------- */

enum reach_access { REACH_READ = 0, REACH_ATOMIC = 1, REACH_WRITE = 2 };
/* Returns a static name such as "read", or NULL for any other value. */
const char *reach_access_name(enum reach_access access);

enum reach_advice {
    REACH_ADVICE_OTHER = 0,
    REACH_NOTHING_TO_DO = 1, /* everything is within the reach */
    REACH_USE_SCOPES = 2,
    REACH_USE_WINDOWS = 3,
    REACH_NO_LIMIT_SEEN = 4,
    REACH_NOT_ENOUGH_GROUPS = 5 /* there are no windows */
};
/* Returns a static name such as "nothing-to-do", or NULL for any other value. */
const char *reach_advice_name(enum reach_advice advice);

/* A part of an allocation. No release appends fields. */
struct reach_extent {
    uint64_t first_byte;
    uint64_t length_bytes;
};

enum { REACH_ALLOCATION_MAX = 16, REACH_SCOPE_MAX = 256 };

/* One of several allocations that a job touches together. Examples are the offsets and edges of a
 * graph, the metadata and values of a hash table, and sets of embedding tables. */
struct reach_allocation {
    uint64_t bytes;
    uint64_t granularity_bytes; /* size of a row; parts begin and end at multiples of it. 0 means
                                   the element (in a plan) or 128 (in a scope). Allocations with
                                   equal numbers of rows are cut at the same row */
    double touches; /* in a plan: accesses to this allocation per item; 0 if it is only laid out
                       with the others */
    uint32_t element_bytes;     /* in a plan: the same as in struct reach_job */
    uint32_t transaction_bytes; /* in a plan: the same as in struct reach_job */
};

struct reach_scope_request {
    size_t size;
    /* Generated from daemon/planner/params.c by make generated: scope. */
    /* The number of bytes that the job accesses at random, at most 1 PiB. */
    uint64_t bytes;
    /* The kind of the random accesses. Predictions exist only for reads; the predictions for
     * atomics and writes are null. */
    enum reach_access access;
    /* Bounds of scopes are multiples of this size (a row). The default is 1 byte, or 128 bytes
     * with several allocations. */
    uint64_t granularity_bytes;
    /* End of the generated part. */
    uint32_t allocation_count; /* at most REACH_ALLOCATION_MAX; 0 means the one described above */
    const struct reach_allocation *allocation; /* replaces bytes and granularity_bytes above */
};

/* The ranges of passes. They are contiguous, and as equal as whole TLB entries allow. In allocation
 * i, pass k touches only range[k * allocation_count + i]. */
struct reach_scopes {
    uint32_t scope_count;      /* 0 if there are none, or more than REACH_SCOPE_MAX */
    uint32_t allocation_count; /* 1, unless the request has a list */
    const struct reach_extent *range;
};

/* The number of bytes that one pass may access at random before translation limits its speed. */
struct reach_scope {
    uint64_t bytes;
    enum reach_advice advice;
    uint64_t scope_bytes;               /* largest number of bytes for one pass */
    uint64_t passes;                    /* bytes / scope_bytes, rounded up */
    struct reach_scopes scopes;         /* one scope for each pass */
    struct reach_number predicted_gbps; /* throughput of useful lines */
    struct reach_number naive_gbps;
    const char *reason;
};

enum reach_status reach_get_scope(struct reach *reach, const char *gpu,
                                  const struct reach_scope_request *request,
                                  struct reach_answer **out, struct reach_error *error);
const struct reach_scope *reach_answer_scope(const struct reach_answer *answer);

enum {
    REACH_IDLE = -1,       /* no window in window_of_sm, no group in group_of_sm */
    REACH_SM_MAX = 512,    /* largest sm_slots */
    REACH_WINDOW_MAX = 256 /* largest window_count */
};

/* No release appends fields, so an array of this struct can be copied to a device. */
struct reach_window {
    uint64_t first_byte; /* offset within the allocation */
    uint64_t length_bytes;
    uint32_t sm_count; /* number of SMs that work in the window */
    uint32_t group_count;
};

/* Windows are contiguous and cover the allocation; the table maps SMs to windows. If there are
 * several allocations, each window has a part of each. A part may be empty if the allocation has
 * few rows. first_byte and length_bytes of a window are the sums over its parts. No release appends
 * fields. */
struct reach_windows {
    uint32_t window_count; /* 0 if there are none */
    uint32_t sm_slots;     /* length of window_of_sm: highest SM id + 1 */
    const struct reach_window *window;
    const int16_t *window_of_sm;     /* by SM id (%smid); REACH_IDLE if the SM gets no work */
    uint32_t allocation_count;       /* 1, unless the request has a list */
    const struct reach_extent *part; /* part i of window w: index w * allocation_count + i */
};

/* Looks up the window of one SM in the table. Returns REACH_NO_SUCH_SM for an id outside of the
 * table, and REACH_NO_WINDOW for an SM without work. In both cases `*out_window` is unchanged. */
enum reach_status reach_window_of_sm(const struct reach_windows *windows, uint32_t sm,
                                     uint32_t *out_window, struct reach_error *error);

struct reach_placement_request {
    size_t size;
    /* Generated from daemon/planner/params.c by make generated: placement. */
    /* The number of bytes that the job accesses at random, at most 1 PiB. */
    uint64_t bytes;
    /* The number of windows. The default is the smallest number that the reach allows. */
    uint32_t windows;
    /* Window bounds are multiples of this size. Window bounds are also multiples of the TLB
     * entry if a common multiple is fine enough. The default is the TLB entry. */
    uint64_t granularity_bytes;
    /* End of the generated part. */
};

/* The assignment of SMs to windows of memory. */
struct reach_placement {
    uint64_t bytes;
    enum reach_advice advice;
    struct reach_windows windows;
    struct reach_number headroom_bytes; /* reach of a group minus the longest window */
    struct reach_number predicted_gbps; /* throughput with this placement */
    struct reach_number naive_gbps;
    const char *reason;
};

enum reach_status reach_get_placement(struct reach *reach, const char *gpu,
                                      const struct reach_placement_request *request,
                                      struct reach_answer **out, struct reach_error *error);
const struct reach_placement *reach_answer_placement(const struct reach_answer *answer);

/* ---- plan ----------------------------------------------------------------------------------- */

/* A job. An item is its unit of work: one access, or the accesses of `allocation`. If all fields
 * except `size` and `bytes` are 0, the job reads 128 bytes per item at positions that it computes
 * at no cost. It does so any number of times, on SMs that can be bound to windows. */
struct reach_job {
    size_t size;
    /* Generated from daemon/planner/params.c by make generated: plan. */
    /* The number of bytes that the job accesses at random, at most 1 PiB. */
    uint64_t bytes;
    /* The kind of the random accesses. */
    enum reach_access access;
    /* The size of one access, at most 1 MiB. The default is 128 bytes. */
    uint32_t element_bytes;
    /* The number of bytes that memory moves for one access, at most 1 MiB. The default is the
     * mean size of the sectors of 32 bytes that an element touches if elements follow one
     * another: 32 for 8 bytes, 72 for 44 bytes. Throughputs count these bytes. */
    uint32_t transaction_bytes;
    /* The size of further memory that all SMs access at random. The size is subtracted from
     * every window and every scope. */
    uint64_t reserve_bytes;
    /* The total number of items of one batch. An item is one access by default; touches changes
     * this. With accesses, the answer has extra bytes in total, and predictions include the time
     * of launches. Without accesses, predictions do not include launches. */
    uint64_t accesses;
    /* The time in microseconds of one launch, of one reset of the queues of windows, and of the
     * wait for the slowest window. The default is an assumption. The parameter has an effect
     * only with accesses. 0 means 10. */
    double launch_us;
    /* The time in microseconds of a batch of few accesses, from launch to launch. It replaces
     * launch_us for the first launch of a batch, and includes the latency of memory. The default
     * is launch_us. The parameter has an effect only with accesses. */
    double first_launch_us;
    /* The number of reads in the longest chain of a launch, in which each read waits for the
     * previous one. first_launch_us includes the time of 2 such reads, a position and the access
     * at this position. Each further read adds one latency to each pass. The default is 2. The
     * parameter has an effect only with accesses. */
    uint32_t dependent_reads;
    /* The time in nanoseconds by which the busiest bank of memory ends later than the mean bank,
     * after one random read. After n reads it is sqrt(n) times this time. A job measures it with
     * two launches that are so long that banks limit them, and differ in length. By default all
     * banks end at once. The parameter has an effect only with accesses, for reads. */
    double busiest_bank_ns;
    /* True if work cannot be bound to SMs. */
    bool no_sm_binding;
    /* True if the input cannot be read again. */
    bool single_pass;
    /* The number of bytes of input per access. By default the job has no input: positions are
     * computed, not read. */
    double input_bytes;
    /* The GB/s at which the input arrives over a link, concurrently with the work. Input that is
     * needed again is kept in GPU memory, chunk by chunk. By default the whole input is in GPU
     * memory. The parameter requires input_bytes. */
    double input_gbps;
    /* The number of positions that all SMs together can scan and skip, in 10^9 per second. By
     * default the scan has no cost. */
    double scan_gps;
    /* The GB/s that the job attains within the reach, including the scan and one reading of its
     * input. The default is the throughput that the fingerprint has for the same kind of access. */
    double in_reach_gbps;
    /* The number of bytes of output per access to which several passes or windows may add. Each
     * pass or window after the first reads and writes these bytes once more. By default the job
     * has no such output. */
    double output_bytes;
    /* The number of bytes of output per access that are written exactly once, such as the rows
     * of a gather. By default the job has no such output. */
    double written_bytes;
    /* The number of bytes that a partition writes per access. The default is input_bytes, or 8
     * if positions are computed. */
    double partition_bytes;
    /* 1 minus the share of the memory in physically contiguous frames of contiguity.frame_bytes.
     * A large allocation on an idle GPU is contiguous, and memory mapped from small handles is
     * not. A miss costs more in a frame that is not contiguous. */
    double scattered;
    /* How unequally often the pages of the memory are accessed. The most accessed share x of the
     * pages receives the share x^(1 - c) of the accesses. If a share a of the accesses falls on
     * a share p of the pages, c is 1 - ln(a) / ln(p): 0.86 for 80 % of the accesses on 20 % of
     * the pages. TLBs keep these pages, so a pass over all memory misses less often. By default
     * all pages are accessed equally often. */
    double concentration;
    /* How unequally the accesses fall on the windows, if the most accessed pages are adjacent.
     * The busiest window, which has a share x of the memory, receives the share x^(1 - c) of the
     * accesses, and the other windows wait for it. Pages in such windows are accessed unequally
     * too, so the larger of this number and concentration counts for the pages. By default each
     * window receives accesses in proportion to its size. */
    double window_concentration;
    /* The mean number of different lines of 128 bytes per access, among accesses that are near
     * in time. It is small if accesses fall on adjacent or equal elements: 1 / 16 for elements
     * of 8 bytes in order. The parameter counts for reads of one allocation. The default follows
     * from the element: elements are apart from one another. */
    double lines;
    /* How unequally often lines of 128 bytes are read, like concentration for pages. The L2
     * keeps lines that are read often. The parameter counts for reads of one allocation. By
     * default every read comes from memory. */
    double line_concentration;
    /* The number of windows. The default is the smallest number that the reach allows. */
    uint32_t windows;
    /* Window bounds are multiples of this size, as in placement. With several allocations the
     * size is the row of each allocation, and the default is the element. Allocations with the
     * same number of rows are cut at the same row. */
    uint64_t granularity_bytes;
    /* End of the generated part. */
    uint32_t allocation_count; /* at most REACH_ALLOCATION_MAX; 0 means the one described above */
    const struct reach_allocation
        *allocation; /* replaces bytes, element_, transaction_ and granularity_bytes */
};

enum reach_strategy {
    REACH_NAIVE = 0,               /* one pass, in which any SM accesses any memory */
    REACH_SCOPES = 1,              /* one pass per scope */
    REACH_WINDOWS = 2,             /* groups in windows; each SM takes work of its own window */
    REACH_FILTERED_WINDOWS = 3,    /* the SMs of each window scan all input and keep their own */
    REACH_PARTITIONED_WINDOWS = 4, /* the input is partitioned by window first */
    REACH_SIDES = 5,               /* each SM reads the memory on its side of the L2 */
    REACH_STRATEGY_COUNT = 6
};
/* Returns a static name such as "filtered-windows", or NULL for any other value. */
const char *reach_strategy_name(enum reach_strategy strategy);

/* The resource that limits the throughput of a strategy, because it is always busy. */
enum reach_bound {
    REACH_BOUND_OTHER = 0,
    REACH_BOUND_UNKNOWN = 1,
    REACH_BOUND_MEMORY = 2,
    REACH_BOUND_TRANSLATION = 3,
    REACH_BOUND_INPUT = 4,
    REACH_BOUND_SCAN = 5,
    REACH_BOUND_LAUNCH = 6 /* launches take longer than the work */
};

/* One strategy for the job. If it is impossible, its numbers are 0 or unknown. */
struct reach_option {
    enum reach_strategy strategy;
    bool possible;            /* if false, `why` contains the reason */
    struct reach_number gbps; /* predicted throughput, in item_bytes of useful items */
    struct reach_number times_naive;
    uint64_t passes;      /* number of passes over the whole input */
    uint32_t windows;     /* 0 if there are none */
    uint64_t scope_bytes; /* length of each pass except possibly the last; 0 if there are none */
    double extra_bytes_per_access;   /* additional traffic compared with naive, per item */
    struct reach_number extra_bytes; /* total of the additional traffic, if `accesses` was given */
    enum reach_bound bound;
    const char *why;
};

/* The source of the cost of an access. */
enum reach_price {
    REACH_PRICE_OTHER = 0,
    REACH_PRICE_NONE = 1,
    REACH_PRICE_MEASURED = 2,
    REACH_PRICE_BETWEEN = 3,  /* smaller and larger sizes were measured */
    REACH_PRICE_SCALED = 4,   /* the cost is scaled from another size */
    REACH_PRICE_JOB = 5,      /* the job gave in_reach_gbps */
    REACH_PRICE_SIMULATED = 6 /* the GPU is simulated, and the size was measured */
};

struct reach_plan {
    uint64_t bytes;         /* bytes of all allocations together */
    uint32_t element_bytes; /* from the job, or assumed if the job left it out; 0 if `allocation` is
                               used */
    uint32_t transaction_bytes;
    double item_bytes;                         /* transaction bytes of one item */
    uint32_t allocation_count;                 /* 0 means one, and an item touches one element */
    const struct reach_allocation *allocation; /* allocations with assumed values filled in */
    enum reach_price price;
    struct reach_number in_reach_gbps; /* throughput within the reach, with no other limit */
    enum reach_strategy recommended;   /* strategy of option 0, which is always possible */
    const char *reason;
    struct reach_number contiguous; /* share of the memory that was assumed to be contiguous */
    struct reach_number naive_contiguous_gbps; /* throughput of naive on contiguous memory */
    struct reach_number naive_scattered_gbps;  /* throughput of naive on scattered memory */
    uint32_t option_count;        /* number of options: best first, impossible ones last */
    uint64_t scope_bytes;         /* length of a scope; 0 if scopes are not possible */
    uint64_t passes;              /* likewise */
    struct reach_scopes scopes;   /* one scope for each pass; empty if not possible */
    struct reach_windows windows; /* for the strategies with windows; empty if not possible */
};

/* Returns all strategies for the job, best first, with their scopes and windows. */
enum reach_status reach_get_plan(struct reach *reach, const char *gpu, const struct reach_job *job,
                                 struct reach_answer **out, struct reach_error *error);
const struct reach_plan *reach_answer_plan(const struct reach_answer *answer);
/* Returns NULL if `i` is not less than the length of the list. */
const struct reach_option *reach_answer_option(const struct reach_answer *answer, uint32_t i);

/* ---- split ---------------------------------------------------------------------------------- */

enum { REACH_JOB_MAX = 16 };

struct reach_split_request {
    size_t size;
    uint32_t job_count;    /* 1 .. REACH_JOB_MAX */
    const uint64_t *bytes; /* bytes that each job accesses at random */
    const double *weight;  /* share of the SMs of each job; NULL means equal shares */
};

/* The share of one job: whole groups, and windows in its own allocation. */
struct reach_share {
    uint64_t bytes;
    double weight;
    bool fits; /* whether the windows are within the reach; if not, one window has all bytes of the
                  job */
    uint32_t sm_count;
    uint32_t group_count;
    struct reach_windows windows; /* REACH_IDLE also for an SM of another job */
    struct reach_number gbps; /* predicted throughput of 128-byte reads while the other jobs run */
    struct reach_number unsplit_gbps; /* throughput of these SMs without a split */
    const char *why;
};

struct reach_split {
    uint32_t job_count; /* same as in the request */
    const char *reason;
};

/* Splits one GPU among several jobs, so that no job evicts translations of another. */
enum reach_status reach_get_split(struct reach *reach, const char *gpu,
                                  const struct reach_split_request *request,
                                  struct reach_answer **out, struct reach_error *error);
const struct reach_split *reach_answer_split(const struct reach_answer *answer);
/* Returns the share of job i of the request, or NULL after the last job. */
const struct reach_share *reach_answer_share(const struct reach_answer *answer, uint32_t i);

/* ---- explain -------------------------------------------------------------------------------- */

struct reach_explain_request {
    size_t size;
    /* Generated from daemon/planner/params.c by make generated: explain. */
    /* The number of bytes that the job accesses at random, at most 1 PiB. */
    uint64_t bytes;
    /* The kind of the random accesses. */
    enum reach_access access;
    /* The size of one access, at most 1 MiB. The default is 128 bytes. */
    uint32_t element_bytes;
    /* The number of bytes that memory moves for one access, at most 1 MiB. The default is the
     * mean size of the sectors of 32 bytes that an element touches if elements follow one
     * another: 32 for 8 bytes, 72 for 44 bytes. Throughputs count these bytes. */
    uint32_t transaction_bytes;
    /* 1 minus the share of the memory in physically contiguous frames of contiguity.frame_bytes.
     * A large allocation on an idle GPU is contiguous, and memory mapped from small handles is
     * not. A miss costs more in a frame that is not contiguous. */
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

/* The verdict on whether translation limits a job. */
struct reach_explanation {
    uint64_t bytes;
    uint32_t element_bytes;
    uint32_t transaction_bytes;
    enum reach_price price;
    double observed_gbps;
    enum reach_verdict verdict;
    struct reach_number in_reach_gbps; /* expected throughput of such accesses within the reach */
    struct reach_number expected_gbps; /* expected throughput if any SM reads anywhere */
    struct reach_number contiguous;    /* see struct reach_plan, also for the next two */
    struct reach_number naive_contiguous_gbps;
    struct reach_number naive_scattered_gbps;
    struct reach_number loss_gbps; /* in_reach_gbps minus observed_gbps; 0 if the job is faster */
    struct reach_number translation_share; /* share of the lost time due to translation, 0 .. 1 */
    const char *reason;
    uint32_t check_count;
    const char *const *checks; /* checks that would prove the verdict, or other causes to examine */
};

enum reach_status reach_get_explain(struct reach *reach, const char *gpu,
                                    const struct reach_explain_request *request,
                                    struct reach_answer **out, struct reach_error *error);
const struct reach_explanation *reach_answer_explanation(const struct reach_answer *answer);

#ifdef __cplusplus
}
#endif

#endif
