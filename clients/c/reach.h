/* reach.h: libreach, the C client of reachd. C11 and C++; needs no other header of the project.
 *
 * A job asks before it launches a kernel, and works as the answer says:
 *
 *     struct reach *reach;
 *     struct reach_placement *p = NULL;
 *     struct reach_error why;
 *     const struct reach_placement_request ask = {.bytes = bytes};
 *
 *     if (reach_open(NULL, &reach, &why) == REACH_OK &&
 *         reach_ask_placement(reach, uuid_of_my_gpu, &ask, &p, &why) == REACH_OK &&
 *         reach_basis_check(&p->basis, uuid_of_my_gpu, &why) == REACH_OK)
 *         launch(p->windows.window, p->windows.window_count, p->windows.window_of_sm);
 *     else
 *         fprintf(stderr, "%s\n", why.text);
 *     reach_free(p);
 *     reach_close(reach);
 *
 * Units are part of every name: _bytes, _gbps (10^9 bytes a second), _ms. A size is 1 .. 2^50.
 *
 * Errors. Each call that can fail returns a status and takes, last, a struct reach_error that may
 * be NULL; on failure it has one sentence for a person. Then `*out` is NULL. Nothing is guessed:
 * there is no answer for another GPU, from a fingerprint known to be stale, or from before the
 * daemon went away, unless the caller said that it takes one (reach_accept), and then the answer
 * says so itself (struct reach_basis). What the daemon said when the job began, and a scheduler put
 * into its environment, is an answer where the caller names nobody (reach_open); it says so too.
 *
 * Ownership. The caller owns every answer and frees it with reach_free. An answer has no pointers
 * into the handle: it outlives it, may be copied by assignment, and does not change.
 *
 * Threads. A handle may be used by many threads at once; each call then has a connection of its
 * own. reach_close comes when no other call is under way. After a fork the child opens its own.
 * No call waits longer than the deadline (reach_set_deadline_ms), but a file is read from disk. A
 * daemon whose driver has not yet answered which GPUs there are is asked again until then; after
 * that the call fails with REACH_UNAVAILABLE.
 */
#ifndef REACH_H
#define REACH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- status --------------------------------------------------------------------------------- */

enum reach_status {
    REACH_OK = 0,
    REACH_INVALID_ARGUMENT = 1, /* asked for something that has no meaning */
    REACH_NOT_FOUND = 2,        /* no such GPU, or no such file */
    REACH_NOT_MEASURED = 3,     /* no fingerprint, or one that knows too little for this question */
    REACH_STALE = 4,            /* the fingerprint is not, or no more, what describes the GPU */
    REACH_WRONG_GPU = 5,        /* the answer is about another GPU */
    REACH_NO_SUCH_SM = 6,       /* the SM id lies outside of the table */
    REACH_NO_WINDOW = 7,        /* this SM is to get no work, or there are no windows at all */
    REACH_UNREACHABLE = 8,      /* no daemon answers, or it went away */
    REACH_DEADLINE = 9,         /* it did not answer in time */
    REACH_PROTOCOL = 10,        /* what answers is not reachd, or contradicts itself */
    REACH_CORRUPT = 11,         /* the file is no fingerprint */
    REACH_NOT_SUPPORTED = 12,   /* this daemon, or this kind of handle, cannot do it */
    REACH_NO_MEMORY = 13,
    REACH_UNAVAILABLE = 14 /* the daemon refuses for now; ask again later */
};

enum { REACH_ERROR_BYTES = 640 };

struct reach_error {
    enum reach_status status;
    char text[REACH_ERROR_BYTES]; /* one sentence or two, no newline, always terminated */
};

/* "wrong-gpu"; "unknown" for a value that is none. Static. */
const char *reach_status_name(enum reach_status status);
/* "0.1.0" of the library that runs. Static. */
const char *reach_version(void);

/* ---- the handle ----------------------------------------------------------------------------- */

struct reach; /* whom to ask, connections to it, and the answers it gave last */

/* Whom to ask:
 *   "unix:/run/reachd/reachd.sock"   a daemon on this Unix socket
 *   "http://127.0.0.1:17322"         a daemon at this URL (https:// too)
 *   "file:/path/fingerprint.json"    nobody: plans in-process from an exported fingerprint, with
 *                                    the very code of the daemon. Reads the file now.
 *   "env:"                           nobody: plans likewise from what a scheduler put into this
 *                                    job's environment, REACH_JOB_0 and so on (docs/slurm.md)
 *   NULL or ""                       about GPUs that the job's environment speaks of (by UUID), as
 *                                    "env:"; about others $REACHD_URL (any of the forms above; a
 *                                    file is asked about all), else the socket
 *                                    /run/reachd/reachd.sock where there is one, else
 *                                    http://127.0.0.1:17322
 * Does not yet talk to a daemon. The caller owns `*out` (reach_close).
 * Errors: REACH_INVALID_ARGUMENT, REACH_NO_MEMORY; of a file and of "env:" REACH_NOT_FOUND,
 * REACH_CORRUPT. With NULL a variable that is not what reachd wrote is passed over. */
enum reach_status reach_open(const char *where, struct reach **out, struct reach_error *error);
/* NULL is fine. */
void reach_close(struct reach *take);

/* How long a call may take, all in all; 1 .. 3600000, 5000 unless set. Any thread, any time. */
enum reach_status reach_set_deadline_ms(struct reach *reach, uint32_t deadline_ms,
                                        struct reach_error *error);

/* What the caller takes besides an answer that the daemon gives now, from a true fingerprint. */
enum reach_accept {
    REACH_ACCEPT_NOTHING = 0,    /* the default */
    REACH_ACCEPT_STALE = 1 << 0, /* from a fingerprint known to be stale; basis.stale says so */
    REACH_ACCEPT_KEPT = 1 << 1   /* where no daemon answers: what it said to the same question
                                    before, through this handle; basis.kept says so, and
                                    reach_age_ms how old it is */
};
/* `accept`: any of enum reach_accept, or-ed. Any thread, any time. REACH_INVALID_ARGUMENT. */
enum reach_status reach_accept(struct reach *reach, uint32_t accept, struct reach_error *error);

/* Frees any answer. NULL is fine. */
void reach_free(void *answer);

/* ---- what every answer rests on ------------------------------------------------------------- */

enum {
    REACH_UUID_BYTES = 64,
    REACH_WORD_BYTES = 32,
    REACH_NAME_BYTES = 96,
    REACH_REASON_BYTES = 512,
    REACH_GPU_SLOTS = 32,     /* GPUs of one node */
    REACH_SM_SLOTS = 512,     /* bound on %smid */
    REACH_GROUP_SLOTS = 256,  /* SM groups of one GPU */
    REACH_WINDOW_SLOTS = 256, /* windows of one placement */
    REACH_IDLE = -1           /* in window_of_sm and group_of_sm: none */
};

/* A number that may be absent. `value` is 0 and means nothing where it is not known. */
struct reach_number {
    bool known;
    double value;
    char reason[48]; /* why not: "not-measured", "not-observable: beyond-memory"; "" if known */
};

struct reach_basis {
    char gpu_uuid[REACH_UUID_BYTES];
    char fingerprint_id[REACH_WORD_BYTES];
    char origin[REACH_WORD_BYTES]; /* "measured", "simulated" or "imported" */
    bool stale;   /* the daemon found that the chip, or its driver, is not what was measured */
    bool kept;    /* no daemon answered just now: this is what it said before */
    bool offline; /* from a file, or from the job's environment: nobody was asked just now whether
                     it still describes the GPU */
    uint64_t confirmed_ms; /* CLOCK_MONOTONIC when the daemon last gave, or confirmed, the answer;
                              when the file or the environment was read */
};

/* Milliseconds since the daemon last gave or confirmed this answer (or since the file or the
 * environment was read). */
uint64_t reach_age_ms(const struct reach_basis *basis);

/* Is this an answer for the GPU with this UUID ("GPU-..", "MIG-..", "SIM-.."; case does not
 * matter)? REACH_WRONG_GPU names both. REACH_INVALID_ARGUMENT for NULL. Asks nobody. */
enum reach_status reach_basis_check(const struct reach_basis *basis, const char *gpu_uuid,
                                    struct reach_error *error);

/* Does the answer still hold? Asks the daemon (a file is read again): REACH_OK; REACH_STALE where
 * the fingerprint was replaced by another one, or found to be stale (whatever reach_accept says);
 * REACH_NOT_FOUND, REACH_NOT_MEASURED, REACH_UNREACHABLE, ... where that cannot be said;
 * REACH_NOT_SUPPORTED of "env:". For jobs that run for hours. */
enum reach_status reach_confirm(struct reach *reach, const struct reach_basis *basis,
                                struct reach_error *error);

/* The text of a UUID as CUDA gives it (cudaDeviceProp.uuid, cuDeviceGetUuid_v2), 16 bytes. `out`
 * needs REACH_UUID_BYTES. Returns `out`. */
char *reach_uuid_text(const unsigned char *bytes, bool mig, char *out);

/* ---- GPUs and fingerprints ------------------------------------------------------------------ */

struct reach_gpu {
    uint32_t index; /* of the daemon's list; only the UUID is stable */
    char uuid[REACH_UUID_BYTES];
    char name[REACH_NAME_BYTES];
    char origin[REACH_WORD_BYTES];
    char state[REACH_WORD_BYTES]; /* "ready", "measuring", "stale", "lost", ..; "offline" */
    uint32_t sm_count;
    uint64_t memory_bytes;
    bool mig;
    char fingerprint_id[REACH_WORD_BYTES]; /* "": not measured yet */
    bool stale;                            /* that fingerprint is */
};

struct reach_gpus {
    uint32_t count;
    struct reach_gpu gpu[REACH_GPU_SLOTS];
};

/* The GPUs of the node, in the daemon's order; none is an answer too. Never a kept one. */
enum reach_status reach_ask_gpus(struct reach *reach, struct reach_gpus **out,
                                 struct reach_error *error);

/* In all that follows `gpu` is a UUID, or an index of the daemon as text ("0"). A file has one GPU:
 * index 0, or its UUID; another UUID is REACH_WRONG_GPU. With "env:" an index is the number behind
 * REACH_JOB_, which is that of CUDA inside the job. */

/* The part of a fingerprint that jobs use. */
struct reach_fingerprint {
    struct reach_basis basis;
    char name[REACH_NAME_BYTES]; /* of the GPU */
    char driver_version[REACH_WORD_BYTES];
    char depth[REACH_WORD_BYTES];    /* "quick", "full", "matrix" */
    char taken_at[REACH_WORD_BYTES]; /* RFC 3339, UTC */
    uint32_t sm_count;
    uint64_t memory_bytes;
    struct reach_number reach_bytes;       /* of one group */
    struct reach_number entry_bytes;       /* alignment of windows */
    struct reach_number recommended_bytes; /* longest window for a base of any alignment */
    struct reach_number plateau_gbps;      /* random 128-byte reads inside the reach */
    struct reach_number whole_memory_gbps; /* the same over the largest region probed */
    uint32_t group_count;                  /* 0: not known */
    uint32_t sm_slots;                     /* length of group_of_sm: highest SM id + 1 */
    int16_t group_of_sm[REACH_SM_SLOTS];   /* REACH_IDLE: no such SM, or not sure */
};

enum reach_status reach_ask_fingerprint(struct reach *reach, const char *gpu,
                                        struct reach_fingerprint **out, struct reach_error *error);

/* ---- scope and placement -------------------------------------------------------------------- */

enum reach_access { REACH_READ = 0, REACH_ATOMIC = 1, REACH_WRITE = 2 };
/* "read"; NULL for a value that is none. Static. */
const char *reach_access_name(enum reach_access access);

struct reach_scope_request {
    uint64_t bytes; /* touched at random */
    enum reach_access access;
};

/* How many bytes may one pass touch at random before translation sets the speed? */
struct reach_scope {
    struct reach_basis basis;
    uint64_t bytes;
    char advice[REACH_WORD_BYTES]; /* "nothing-to-do", "scopes", "no-limit-seen" */
    uint64_t scope_bytes;          /* the most that one pass should touch */
    uint64_t passes;               /* bytes / scope_bytes, rounded up */
    struct reach_number with_gbps; /* predicted for useful lines */
    struct reach_number without_gbps;
    char reason[REACH_REASON_BYTES];
};

enum reach_status reach_ask_scope(struct reach *reach, const char *gpu,
                                  const struct reach_scope_request *request,
                                  struct reach_scope **out, struct reach_error *error);

struct reach_window {
    uint64_t first_byte; /* within the allocation */
    uint64_t length_bytes;
    uint32_t sm_count; /* SMs that work there */
    uint32_t group_count;
};

/* Windows lie side by side and cover the allocation; the table says which SM works in which. */
struct reach_windows {
    uint32_t window_count; /* 0: there are none */
    struct reach_window window[REACH_WINDOW_SLOTS];
    uint32_t sm_slots;                    /* length of window_of_sm: highest SM id + 1 */
    int16_t window_of_sm[REACH_SM_SLOTS]; /* by SM id (%smid); REACH_IDLE: gets no work */
};

/* The window of one SM. Never a window that is not in the table: REACH_NO_SUCH_SM for an id outside
 * of it, REACH_NO_WINDOW for an SM without work. `*out_window` is then untouched. */
enum reach_status reach_window_of_sm(const struct reach_windows *windows, uint32_t sm,
                                     uint32_t *out_window, struct reach_error *error);

struct reach_placement_request {
    uint64_t bytes;             /* length of the allocation */
    uint32_t windows;           /* 0: as few as the reach allows */
    uint64_t granularity_bytes; /* borders are multiples of this; 0: of the TLB entry */
};

/* Which SM should work in which window of memory? */
struct reach_placement {
    struct reach_basis basis;
    uint64_t bytes;
    char advice[REACH_WORD_BYTES]; /* "nothing-to-do", "windows", "no-limit-seen",
                                      "not-enough-groups" (then there are no windows) */
    struct reach_windows windows;
    struct reach_number margin_bytes; /* the reach of a group less the longest window */
    struct reach_number with_gbps;    /* predicted with this placement */
    struct reach_number without_gbps;
    char reason[REACH_REASON_BYTES];
};

enum reach_status reach_ask_placement(struct reach *reach, const char *gpu,
                                      const struct reach_placement_request *request,
                                      struct reach_placement **out, struct reach_error *error);

/* ---- plan ----------------------------------------------------------------------------------- */

/* What a job says of itself. All 0 but for `bytes`: reads of 128 bytes at positions that it
 * computes, at no cost, any number of times, by SMs that can be told where to work. */
struct reach_job {
    uint64_t bytes; /* touched at random */
    enum reach_access access;
    uint32_t element_bytes;     /* of one access, at most 1 MiB; 0: 128 */
    uint32_t transaction_bytes; /* what memory moves for it; 0: the element, rounded up to 32 */
    uint64_t reserve_bytes;     /* touched at random besides, by all SMs */
    uint64_t accesses;          /* in all; 0: not said */
    bool fixed;                 /* work cannot be bound to SMs */
    bool once;                  /* the input cannot be read again */
    double input_bytes;         /* of input for one access; 0: positions are computed, not read */
    double input_gbps;          /* of one reading of the input over a link, beside all else; what is
                                   needed again is kept in the memory of this GPU, chunk by chunk.
                                   0: it lies there as a whole */
    double output_bytes;        /* of output for one access that several may add to: each pass or
                                   window but one reads and writes it once more; 0: none */
    double deal_bytes;          /* that a partition writes for one access; 0: input_bytes, or 8
                                   where positions are computed */
    double look_gps;            /* 10^9 positions a second that all SMs together can look at and
                                   skip; 0: not said, taken as free */
    double inside_gbps;         /* what this very job reaches inside the reach, looking and one
                                   reading of its input included; 0: as the daemon measured */
    uint64_t granularity_bytes; /* as in reach_placement_request */
    uint32_t windows;           /* likewise */
};

enum reach_strategy {
    REACH_NAIVE = 0,               /* one pass, any SM anywhere */
    REACH_SCOPES = 1,              /* one pass for each scope */
    REACH_WINDOWS = 2,             /* groups in windows; each SM draws work of its own window */
    REACH_FILTERED_WINDOWS = 3,    /* the SMs of each window look at all input, keep their own */
    REACH_PARTITIONED_WINDOWS = 4, /* the input is dealt to the windows first */
    REACH_STRATEGY_COUNT = 5
};
/* "filtered-windows"; NULL for a value that is none. Static. */
const char *reach_strategy_name(enum reach_strategy strategy);

/* One way to do the job. Numbers of what is not possible are 0 or unknown. */
struct reach_option {
    enum reach_strategy strategy;
    bool possible; /* if not, `why` says why not */
    struct reach_number
        gbps; /* predicted: transaction bytes of useful accesses, over all the time */
    struct reach_number times_naive;
    uint64_t passes;                 /* over all the input */
    uint32_t windows;                /* 0: none */
    uint64_t scope_bytes;            /* of each pass but perhaps the last; 0: none */
    double extra_bytes_per_access;   /* moved beyond what naive moves */
    struct reach_number extra_bytes; /* in all, where `accesses` was said */
    char bound[REACH_WORD_BYTES];    /* what is busy all the time while the others wait: "memory",
                                        "translation", "input", "looking", "unknown" */
    char why[REACH_REASON_BYTES];
};

struct reach_plan {
    struct reach_basis basis;
    uint64_t bytes;
    uint32_t element_bytes; /* as taken where the job left them out */
    uint32_t transaction_bytes;
    char price_basis[REACH_WORD_BYTES]; /* what the price of an access rests on: "measured",
                                           "between" (smaller and larger ones were), "scaled" (from
                                           another size), "job" (inside_gbps of the job), "none" */
    struct reach_number inside_gbps;    /* such accesses inside the reach, nothing in the way */
    enum reach_strategy recommended;    /* of options[0], which is always possible */
    char reason[REACH_REASON_BYTES];
    uint32_t option_count; /* best first; what is not possible last */
    struct reach_option options[REACH_STRATEGY_COUNT];
    uint64_t scope_bytes;         /* for passes over scopes; 0: they are not possible */
    uint64_t passes;              /* likewise */
    struct reach_windows windows; /* for the strategies with windows; none: they are not possible */
};

/* Every way to do the job, best first, and what each needs. Errors besides the general ones:
 * REACH_INVALID_ARGUMENT names the number that makes no sense. */
enum reach_status reach_ask_plan(struct reach *reach, const char *gpu, const struct reach_job *job,
                                 struct reach_plan **out, struct reach_error *error);

/* reach_basis_check of the plan. */
enum reach_status reach_plan_check(const struct reach_plan *plan, const char *gpu_uuid,
                                   struct reach_error *error);

/* ---- split ---------------------------------------------------------------------------------- */

enum { REACH_JOB_SLOTS = 16 };

struct reach_split_request {
    uint32_t job_count; /* 1 .. REACH_JOB_SLOTS */
    struct {
        uint64_t bytes; /* its own allocation, touched at random */
        double weight;  /* its part of the SMs; 0: 1 */
    } jobs[REACH_JOB_SLOTS];
};

/* What one job gets: whole groups, and windows in its own allocation. */
struct reach_part {
    uint64_t bytes;
    double weight;
    bool fits; /* its windows are inside the reach; if not, there is one window of all its bytes */
    uint32_t sm_count;
    uint32_t group_count;
    struct reach_windows windows;     /* REACH_IDLE: an SM of another job, too */
    struct reach_number gbps;         /* predicted, 128-byte reads, the others at work too */
    struct reach_number unsplit_gbps; /* the same with every SM anywhere, for all jobs */
    char why[REACH_REASON_BYTES];
};

struct reach_split {
    struct reach_basis basis;
    char reason[REACH_REASON_BYTES];
    uint32_t job_count;
    struct reach_part parts[REACH_JOB_SLOTS]; /* in the order of the request */
};

/* One GPU for several jobs, so that none evicts another's translations. Some 120 KB. */
enum reach_status reach_ask_split(struct reach *reach, const char *gpu,
                                  const struct reach_split_request *request,
                                  struct reach_split **out, struct reach_error *error);

/* ---- explain -------------------------------------------------------------------------------- */

struct reach_explain_request {
    uint64_t bytes; /* touched at random */
    enum reach_access access;
    uint32_t element_bytes;     /* as in reach_job */
    uint32_t transaction_bytes; /* likewise */
    double seen_gbps;           /* transaction bytes a second that the job sees, 10^9; above 0 */
};

enum { REACH_CHECK_SLOTS = 4 };

/* Is it the TLB? */
struct reach_explanation {
    struct reach_basis basis;
    uint64_t bytes;
    uint32_t element_bytes;
    uint32_t transaction_bytes;
    char price_basis[REACH_WORD_BYTES]; /* as in reach_plan */
    double seen_gbps;
    char verdict[REACH_WORD_BYTES];  /* "translation", "partly", "not-translation", "cannot-say" */
    struct reach_number inside_gbps; /* expected of such accesses inside the reach */
    struct reach_number here_gbps;   /* expected over these bytes, any SM anywhere */
    struct reach_number loss_gbps;   /* inside less seen; 0 where the job sees more */
    struct reach_number translation_share; /* of the time that is lost, 0 .. 1 */
    char reason[REACH_REASON_BYTES];
    uint32_t check_count; /* what would prove it, or what else to look at */
    char checks[REACH_CHECK_SLOTS][REACH_REASON_BYTES];
};

enum reach_status reach_ask_explain(struct reach *reach, const char *gpu,
                                    const struct reach_explain_request *request,
                                    struct reach_explanation **out, struct reach_error *error);

#ifdef __cplusplus
}
#endif

#endif
