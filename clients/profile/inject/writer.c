/* writer.c: decodes recorded launches, and writes traces and the recording. */
#include "clients/profile/inject/writer.h"

#include "base/clock.h"
#include "base/text.h"
#include "clients/lab/trace/rlt.h"
#include "clients/profile/inject/driver.h"
#include "clients/profile/inject/memory.h"
#include "clients/profile/inject/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { COMMAND_ROOM = 4096, MOST_QUEUED = 4 };
#define WRITE_PERIOD_NS  NSEC_PER_SEC
#define LONGEST_END_NS   (30 * NSEC_PER_SEC)
#define LONGEST_RESET_NS NSEC_PER_SEC

/* A recorded launch, ready for the JSON document. */
struct item {
    struct item *next;
    struct kernel *kernel;
    uint32_t shape;
    char *json; /* members of the launch, without its time */
};

static char folder[PATH_MAX];
static char final_path[2 * PATH_MAX], partial_path[2 * PATH_MAX]; /* of the recording */
static pthread_t thread;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct recorded *queue, **queue_end = &queue;
static uint32_t queue_count;
static struct item *items;
static bool ending;
static bool has_news = true; /* that kernels_changes does not count */
static atomic_uint resets;
static unsigned int written_resets; /* that the file has; under `lock` */
static char problem[400];
static uint64_t started_ns;

/* ---- decoding ---- */

struct place { /* a record with the key by which a trace is ordered */
    uint64_t block;
    uint32_t warp;
    uint32_t number; /* order of the records */
    uint64_t at;     /* first word */
};

static int compare_places(const void *x, const void *y)
{
    const struct place *const a = x, *const b = y;
    if (a->block != b->block)
        return a->block < b->block ? -1 : 1;
    if (a->warp != b->warp)
        return a->warp < b->warp ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

static uint64_t record_words(const struct profile_record *r)
{
    return PROFILE_HEAD_WORDS +
           (r->kind_bytes & PROFILE_LISTED ? 2u * (uint32_t)__builtin_popcount(r->mask) : 0);
}

static uint32_t log2_of(uint32_t bytes)
{
    return bytes > 1 ? 31 - (uint32_t)__builtin_clz(bytes) : 0;
}

static void write_record(struct rlt_writer *out, const uint32_t *words, uint32_t kernel)
{
    const struct profile_record *const r = (const void *)words;
    const uint64_t *const list = (const void *)(words + PROFILE_HEAD_WORDS);
    uint64_t addresses[RLT_LANES] = {0};
    uint32_t rank = 0;

    for (uint32_t lane = 0; lane < RLT_LANES; lane++) {
        if (r->mask >> lane & 1) {
            addresses[lane] = r->kind_bytes & PROFILE_LISTED
                                  ? list[rank]
                                  : r->base + (uint64_t)((int64_t)r->stride * rank);
            rank++;
        }
    }
    struct rlt_record record = {.block = r->block,
                                .kernel = kernel,
                                .warp = r->warp,
                                .mask = r->mask,
                                .kind = (enum rlt_kind)(r->kind_bytes >> 8 & 3),
                                .width_log2 = log2_of(r->kind_bytes & 0xff)};
    rlt_set_lines(out, addresses, &record);
    rlt_write_record(out, &record);
}

static bool write_records(struct rlt_writer *out, const struct recorded *r, uint32_t kernel)
{
    const uint64_t words = r->counts.used < r->counts.room ? r->counts.used : r->counts.room;
    size_t count = 0;
    struct place *const places = malloc((words / PROFILE_HEAD_WORDS + 1) * sizeof *places);
    if (!places)
        return false;
    for (uint64_t at = 0; at + PROFILE_HEAD_WORDS <= words;) {
        const struct profile_record *const head = (const void *)(r->words + at);
        const uint64_t length = record_words(head);
        if (head->mask == 0 || at + length > words)
            break; /* the last record had no room */
        places[count] = (struct place){head->block, head->warp, (uint32_t)count, at};
        count++;
        at += length;
    }
    qsort(places, count, sizeof *places, compare_places);
    for (size_t i = 0; i < count; i++)
        write_record(out, r->words + places[i].at, kernel);
    free(places);
    return true;
}

/* Writes the bytes of a file that is open, and closes it. A FILE is not used, because the child of
 * a fork would write its copy of the buffer again when it exits. */
static bool write_and_close(int file, const char *bytes, size_t count)
{
    size_t done = 0;
    while (done < count) {
        const ssize_t n = write(file, bytes + done, count - done);
        if (n == 0 || (n < 0 && errno != EINTR))
            break;
        done += n > 0 ? (size_t)n : 0;
    }
    return close(file) == 0 && done == count;
}

/* Creates the file of a trace. A program that calls execve(2) keeps its process ID, so there may
 * be traces of this process already. Writes its name and its path. Returns -1 after an error. */
static int create_trace(char name[64], char path[2 * PATH_MAX])
{
    static uint32_t number;
    int file;
    do {
        (void)snprintf(name, 64, "kernel-%d-%u.rlt", (int)getpid(), number++);
        (void)snprintf(path, 2 * PATH_MAX, "%s/%s", folder, name);
        file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    } while (file < 0 && errno == EEXIST);
    return file;
}

/* Returns the copies of the tensor memory accelerator in the sample, which have no records. In the
 * sample they are as frequent beside the accesses that have `records` as in the whole launch. */
static uint64_t count_copies(const struct recorded *r, uint64_t records)
{
    const struct profile_instruction *const others = r->counts.others[0];
    double copies = 0;
    double accesses = 0;
    for (size_t i = 0; i < PROFILE_COPIES * PROFILE_INSTRUCTIONS; i++)
        *(r->instructions[i].kind_bytes & 0xff ? &accesses : &copies) +=
            (double)r->instructions[i].warps;
    for (size_t i = 0; i < PROFILE_KINDS * PROFILE_WIDTHS; i++)
        *(i % PROFILE_WIDTHS ? &accesses : &copies) += (double)others[i].warps;
    return accesses > 0 ? (uint64_t)(copies / accesses * (double)records + 0.5) : 0;
}

/* Prints the trace. Returns false if out of memory. */
static bool print_trace(const struct recorded *r, FILE *memory)
{
    struct rlt_writer *const out = rlt_writer_new(memory, RLT_MIN_GRANULE);
    if (!out)
        return false;
    struct rlt_kernel kernel = {.app = rlt_write_app(out, "reach-profile")};
    memcpy(kernel.grid, r->grid, sizeof kernel.grid);
    memcpy(kernel.block, r->block, sizeof kernel.block);
    (void)snprintf(kernel.name, sizeof kernel.name, "%s", r->kernel->name);
    struct allocation a;
    for (uint32_t i = 0; memory_get(i, &a); i++) {
        struct rlt_allocation entry = {.app = kernel.app, .base = a.address, .bytes = a.bytes};
        (void)snprintf(entry.name, sizeof entry.name, "%s", a.kind);
        if (!a.freed)
            rlt_write_allocation(out, &entry);
    }
    const bool good = write_records(out, r, rlt_write_kernel(out, &kernel));
    const struct rlt_left_out left = {.copies = count_copies(r, rlt_writer_records(out)),
                                      .lost = r->counts.records_lost};
    rlt_write_left_out(out, &left);
    return rlt_writer_end(out, NULL) == STATUS_OK && good;
}

/* Writes the trace, and its name. Returns false, without a file, if the trace cannot be written. */
static bool write_trace(const struct recorded *r, char name[64])
{
    char path[2 * PATH_MAX];
    char *bytes = NULL;
    size_t count = 0;
    FILE *const memory = open_memstream(&bytes, &count);
    bool good = memory && print_trace(r, memory);
    good = memory && fclose(memory) == 0 && good;
    const int file = good ? create_trace(name, path) : -1;
    good = file >= 0 && write_and_close(file, bytes, count);
    if (file >= 0 && !good)
        (void)unlink(path);
    free(bytes);
    return good;
}

/* ---- the recorded launch as JSON ---- */

static int compare_numbers(const void *x, const void *y)
{
    const uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return a < b ? -1 : a > b;
}

static void print_pages(const struct recorded *r, FILE *out)
{
    uint64_t *const pages = r->pages;
    size_t count = 0;
    for (size_t i = 0; i < PROFILE_PAGES; i++) {
        if (pages[i])
            pages[count++] = pages[i] - 1;
    }
    qsort(pages, count, sizeof *pages, compare_numbers);
    (void)fprintf(out, ",\"pages\":[");
    for (size_t i = 0, length; i < count; i += length) {
        for (length = 1; i + length < count && pages[i + length] == pages[i] + length;)
            length++;
        (void)fprintf(out, "%s[%llu,%zu]", i ? "," : "", (unsigned long long)pages[i], length);
    }
    if (recorder_has_context(r->context))
        driver_locate(r->context, pages, count);
    (void)fprintf(out, "],\"pages_lost\":%llu", r->counts.pages_lost);
}

static int compare_instructions(const void *x, const void *y)
{
    const struct profile_instruction *const a = x, *const b = y;
    return (a->pc > b->pc) - (a->pc < b->pc);
}

/* Adds the counters of all sets. The sums are the first items of the list; returns their number. */
static size_t merge_instructions(struct profile_instruction *list)
{
    size_t count = 0;
    qsort(list, PROFILE_COPIES * PROFILE_INSTRUCTIONS, sizeof *list, compare_instructions);
    for (size_t i = 0; i < PROFILE_COPIES * PROFILE_INSTRUCTIONS; i++) {
        if (!list[i].pc)
            continue;
        if (count == 0 || list[count - 1].pc != list[i].pc) {
            list[count++] = list[i];
            continue;
        }
        list[count - 1].warps += list[i].warps;
        list[count - 1].lanes += list[i].lanes;
        list[count - 1].runs += list[i].runs;
    }
    return count;
}

/* Prints an instruction, and adds its counters to `sums`. */
static void print_instruction(const struct profile_instruction *n, uint64_t pc,
                              struct profile_instruction *sums, FILE *out)
{
    static const char *const kinds[] = {"load", "store", "atomic", "?"};

    (void)fprintf(out,
                  "%s{\"pc\":%llu,\"kind\":\"%s\",\"bytes\":%u,\"warps\":%llu,\"lanes\":%llu,"
                  "\"runs\":%llu}",
                  sums->pc ? "," : "", (unsigned long long)pc, kinds[n->kind_bytes >> 8 & 3],
                  n->kind_bytes & 0xff, (unsigned long long)n->warps, (unsigned long long)n->lanes,
                  (unsigned long long)n->runs);
    sums->pc = n->pc + 1; /* not 0: the next one needs a comma */
    sums->warps += n->warps;
    sums->lanes += n->lanes;
}

static void print_instructions(const struct recorded *r, FILE *out)
{
    const struct profile_instruction *const others = r->counts.others[0];
    const size_t count = merge_instructions(r->instructions);
    struct profile_instruction sums = {0};

    (void)fprintf(out, ",\"instructions\":[");
    for (size_t i = 0; i < count; i++)
        print_instruction(&r->instructions[i], r->instructions[i].pc - 1, &sums, out);
    for (size_t i = 0; i < PROFILE_KINDS * PROFILE_WIDTHS; i++) {
        if (others[i].warps)
            print_instruction(&others[i], 0, &sums, out);
    }
    (void)fprintf(out, "],\"warp_accesses\":%llu,\"lane_accesses\":%llu",
                  (unsigned long long)sums.warps, (unsigned long long)sums.lanes);
}

static void decode(struct recorded *r)
{
    struct item *const item = calloc(1, sizeof *item);
    size_t bytes;
    FILE *const out = item ? open_memstream(&item->json, &bytes) : NULL;
    char name[64];
    if (out) {
        const bool traced = write_trace(r, name);
        (void)fprintf(
            out, "\"grid\":[%u,%u,%u],\"block\":[%u,%u,%u],\"trace\":\"%s\",\"complete\":%s%s",
            r->grid[0], r->grid[1], r->grid[2], r->block[0], r->block[1], r->block[2],
            traced ? name : "",
            r->counts.every == 1 && r->counts.records_lost == 0 && !r->counts.is_late ? "true"
                                                                                      : "false",
            r->counts.is_late ? ",\"partial\":true" : "");
        print_instructions(r, out);
        print_pages(r, out);
        if (fclose(out) == 0) {
            item->kernel = r->kernel;
            pthread_mutex_lock(&lock);
            struct item **at =
                &items; /* a later recording of the same shape replaces an earlier one */
            while (*at && ((*at)->kernel != r->kernel || (*at)->shape != r->shape))
                at = &(*at)->next;
            item->shape = r->shape;
            if (*at) {
                item->next = (*at)->next;
                free((*at)->json);
                free(*at);
            }
            *at = item;
            pthread_mutex_unlock(&lock);
        }
    }
    recorded_free(r);
}

/* ---- the recording ---- */

/* Writes text in quotes. A byte that is not UTF-8 becomes a question mark. */
static void print_text(FILE *out, const char *text)
{
    (void)fputc('"', out);
    while (*text) {
        const size_t bytes = text_character_bytes(text);
        if (*text == '"' || *text == '\\')
            (void)fprintf(out, "\\%c", *text);
        else if (bytes == 1 && (*text < ' ' || *text == 127))
            (void)fprintf(out, "\\u%04x", *text);
        else if (bytes > 0)
            (void)fwrite(text, 1, bytes, out);
        else
            (void)fputc('?', out);
        text += bytes > 0 ? bytes : 1;
    }
    (void)fputc('"', out);
}

static void print_command(FILE *out)
{
    char text[COMMAND_ROOM] = "";
    FILE *const in = fopen("/proc/self/cmdline", "re");
    const size_t bytes = in ? fread(text, 1, sizeof text - 1, in) : 0;
    for (size_t i = 0; i + 1 < bytes; i++) {
        if (!text[i])
            text[i] = ' ';
    }
    if (in)
        (void)fclose(in);
    print_text(out, text);
}

/* Prints the GPUs into `out`; the driver is asked once. */
static void print_gpus(FILE *out)
{
    static char *text;
    if (!text)
        text = driver_describe_gpus();
    (void)fprintf(out, ",\"gpus\":%s", text ? text : "[]");
}

static void print_allocations(FILE *out)
{
    struct allocation a;
    (void)fprintf(out, ",\"allocations\":[");
    for (uint32_t i = 0; memory_get(i, &a); i++) {
        (void)fprintf(out, "%s\n {\"gpu\":%d,\"address\":%llu,\"bytes\":%llu,\"kind\":\"%s\"",
                      i ? "," : "", a.device, (unsigned long long)a.address,
                      (unsigned long long)a.bytes, a.kind);
        if (strcmp(a.kind, "managed") == 0)
            (void)fprintf(out, ",\"at\":\"%s\"", a.at);
        (void)fprintf(out, "}");
    }
    (void)fprintf(out, "]");
}

static void print_kernel(const struct kernel *k, FILE *out)
{
    const char *separator = "";
    bool is_recorded = false;

    (void)fprintf(out, "{\"gpu\":%d,\"name\":", k->device);
    print_text(out, k->name);
    (void)fprintf(out, ",\"launches\":%llu,\"time_ns\":%.0f,\"timed\":%llu,\"operator\":",
                  (unsigned long long)kernel_all_launches(k), kernel_all_ns(k),
                  (unsigned long long)k->timed);
    print_text(out, k->operator);
    (void)fprintf(out, ",\"recorded\":[");
    pthread_mutex_lock(&lock);
    for (const struct item *i = items; i; i = i->next) {
        if (i->kernel->name != k->name) /* each kernel has its own copy of its name */
            continue;
        (void)fprintf(out, "%s\n  {\"time_ns\":%llu,%s}", separator,
                      (unsigned long long)(i->shape < KERNEL_SHAPES ? k->shapes[i->shape].ns : 0),
                      i->json);
        separator = ",";
        is_recorded = true;
    }
    pthread_mutex_unlock(&lock);
    (void)fprintf(out, "],\"state\":\"%s\",\"why\":",
                  is_recorded  ? "recorded"
                  : k->refused ? "refused"
                               : "timed");
    print_text(out, k->refused && !is_recorded ? k->refused : "");
    (void)fprintf(out, "}");
}

static void print_problem(FILE *out)
{
    char text[sizeof problem];
    pthread_mutex_lock(&lock);
    memcpy(text, problem, sizeof text);
    pthread_mutex_unlock(&lock);
    print_text(out, text);
}

/* Chooses the paths of the recording, at the first call. The program that called execve(2) may have
 * left a recording of this process. */
static void choose_paths(void)
{
    for (unsigned n = 0; !final_path[0] || access(final_path, F_OK) == 0; n++) {
        char number[16] = "";
        if (n > 0)
            (void)snprintf(number, sizeof number, "-%u", n);
        (void)snprintf(final_path, sizeof final_path, "%s/recording-%d%s.json", folder,
                       (int)getpid(), number);
        (void)snprintf(partial_path, sizeof partial_path, "%s/.recording-%d%s", folder,
                       (int)getpid(), number);
    }
}

static void print_recording(bool ended, FILE *out)
{
    struct kernel k;
    (void)fprintf(out,
                  "{\"format\":\"reach-profile-recording\",\"version\":1,\"pid\":%d,\"command\":",
                  (int)getpid());
    print_command(out);
    (void)fprintf(
        out, ",\"ended\":%s,\"resets\":%u,\"seconds\":%.3f,\"problem\":", ended ? "true" : "false",
        atomic_load(&resets), 1e-9 * (double)(clock_monotonic() - started_ns));
    print_problem(out);
    print_gpus(out);
    print_allocations(out);
    (void)fprintf(out, ",\"kernels\":[");
    for (uint32_t i = 0; kernels_get(i, &k); i++) {
        (void)fprintf(out, "%s\n ", i ? "," : "");
        print_kernel(&k, out);
    }
    (void)fprintf(out, "]}\n");
}

static void write_recording(bool ended)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *const memory = open_memstream(&text, &bytes);
    bool good = memory != NULL;
    if (memory) {
        print_recording(ended, memory);
        good = ferror(memory) == 0;
        good = fclose(memory) == 0 && good;
    }
    const int file = good ? open(partial_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666) : -1;
    good = file >= 0 && write_and_close(file, text, bytes); /* the disk may be full */
    if (good)
        (void)rename(partial_path, final_path);
    else if (file >= 0)
        (void)unlink(partial_path);
    free(text);
}

/* Decodes the first recorded launch of the queue. The caller has the lock. */
static void decode_first(void)
{
    struct recorded *const r = queue;
    queue = r->next;
    if (!queue)
        queue_end = &queue;
    pthread_mutex_unlock(&lock);
    decode(r);
    pthread_mutex_lock(&lock);
    queue_count--;
    has_news = true;
    pthread_cond_broadcast(&changed);
}

static void *run(void *unused)
{
    uint64_t written = 0;
    (void)unused;
    choose_paths();
    pthread_mutex_lock(&lock);
    while (!ending || queue) {
        if (queue) {
            decode_first();
            continue;
        }
        const bool must_write = has_news || kernels_changes() != written;
        has_news = false;
        pthread_mutex_unlock(&lock);
        const unsigned int known_resets = atomic_load(&resets);
        if (must_write) {
            written = kernels_changes();
            write_recording(false);
        }
        pthread_mutex_lock(&lock);
        if (must_write && known_resets > written_resets) {
            written_resets = known_resets;
            pthread_cond_broadcast(&changed);
        }
        const struct timespec until = clock_timespec(clock_monotonic() + WRITE_PERIOD_NS);
        if (!ending && !queue && atomic_load(&resets) == written_resets)
            (void)pthread_cond_clockwait(&changed, &lock, CLOCK_MONOTONIC, &until);
    }
    pthread_mutex_unlock(&lock);
    write_recording(true);
    return NULL;
}

enum status writer_start(const char *use, struct err *err)
{
    if (snprintf(folder, sizeof folder, "%s", use) >= (int)sizeof folder)
        return err_set(err, STATUS_INVALID_ARGUMENT, "the path of the folder is too long");
    started_ns = clock_monotonic();
    return thread_start(run, "writer", &thread, err);
}

void writer_add(struct recorded *take)
{
    pthread_mutex_lock(&lock);
    while (queue_count >= MOST_QUEUED)
        (void)pthread_cond_wait(&changed, &lock);
    *queue_end = take;
    queue_end = &take->next;
    queue_count++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

void writer_problem(const char *why)
{
    pthread_mutex_lock(&lock);
    (void)snprintf(problem, sizeof problem, "%s", why);
    has_news = true;
    pthread_mutex_unlock(&lock);
}

void writer_count_reset(void)
{
    const unsigned int counted = atomic_fetch_add(&resets, 1) + 1;
    const struct timespec until = clock_timespec(clock_monotonic() + LONGEST_RESET_NS);
    int late = 0;

    pthread_mutex_lock(&lock);
    has_news = true;
    pthread_cond_broadcast(&changed);
    while (written_resets < counted && !ending && !late)
        late = pthread_cond_clockwait(&changed, &lock, CLOCK_MONOTONIC, &until);
    pthread_mutex_unlock(&lock);
}

void writer_end(void)
{
    if (!thread_lock_at_end(&lock))
        return;
    const bool first = !ending;
    ending = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    if (!first)
        return;
    /* A handler of a signal that calls exit may have stopped a thread that has another lock. */
    const struct timespec until = clock_timespec(clock_monotonic() + LONGEST_END_NS);
    (void)pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &until);
}
