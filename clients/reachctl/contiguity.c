/* contiguity.c: reachctl contiguity reports how scattered the free memory of a GPU is now.
 *
 * The driver does not report contiguity, and a count of handles does not show it. If the driver
 * finds no contiguous run, it scatters a handle without an error. So libreach-cuda allocates the
 * free memory in this process and reads it at random. The costs of a miss in the fingerprint
 * convert the time into the share of contiguous frames. The library is loaded when the command
 * runs, because reachctl itself has no device code. */
#include "clients/reachctl/client.h"

#include "clients/cuda/reach_diagnose.h"
#include "base/format_size.h"
#include "planner/next_step.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };

typedef enum reach_alloc_status diagnose_free_fn(enum reach_free_way way,
                                                 const struct reach_diagnose_options *options,
                                                 struct reach_diagnosis *out,
                                                 struct reach_alloc_error *error);

static const char *const way_names[] = {
    [REACH_FREE_PLAIN] = "plain", [REACH_FREE_FRAMES] = "frames"};
enum { WAYS = sizeof(way_names) / sizeof(*way_names) };

/* Loads the library that REACH_CUDA_LIBRARY names, or else the one beside this program, the
 * installed one, or the one that the loader finds. Returns NULL, with a message, if there is none.
 * The library stays loaded. */
static diagnose_free_fn *load_library(void)
{
    static const char name[] = "libreach-cuda.so.0";
    const char *const given = getenv("REACH_CUDA_LIBRARY");
    char path[PATH_BYTES] = "";
    const ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 64);
    char *const end = length > 0 ? strrchr(path, '/') : NULL;
    void *library = given ? dlopen(given, RTLD_NOW | RTLD_LOCAL) : NULL;
    diagnose_free_fn *function = NULL;
    void *symbol = NULL;

    for (int i = 0; i < 2 && !given && !library && end; i++) {
        snprintf(end, 64, "%s/%s", i == 0 ? "" : "/../lib", name);
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    if (!given && !library)
        library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library)
        symbol = dlsym(library, "reach_diagnose_free");
    if (symbol)
        memcpy(&function, &symbol, sizeof(function));
    else
        fprintf(stderr,
                "reachctl: cannot load %s: %s\n  next step: install libreach-cuda, or set "
                "REACH_CUDA_LIBRARY to its path\n",
                given ? given : name, dlerror());
    return function;
}

/* Returns false if the fingerprint lacks a number; the message names the measurement that
 * determines it. */
static bool read_numbers(const struct fingerprint *fp, struct reach_diagnose_options *out)
{
    const struct fingerprint_contiguity *const c = &fp->contiguity;

    const struct maybe_f64 factor = contiguity_factor(c);

    if (!IS_KNOWN(fp->windows.reach_bytes) || !IS_KNOWN(c->frame_bytes) || !IS_KNOWN(factor)) {
        fprintf(stderr,
                "reachctl: the fingerprint lacks the reach, the frame or the costs of a miss, "
                "which turn a time into a share\n  next step: %s\n",
                next_step_full(fp, IS_KNOWN(factor) ? REASON_TOO_LITTLE_DATA : factor.reason));
        return false;
    }
    *out = (struct reach_diagnose_options){
        .size = sizeof(*out),
        .frame_bytes = c->frame_bytes.v,
        .miss_ns = {.contiguous = c->contiguous_miss_ns.v, .scattered = c->scattered_miss_ns.v}};
    out->reach_bytes[REACH_MEMORY_DEVICE] = fp->windows.reach_bytes.v;
    return true;
}

static void print_way(enum reach_free_way way, const struct reach_diagnosis *found)
{
    char taken[FORMAT_SIZE_BYTES];

    printf("%-7s %s taken, ", way_names[way], format_size(found->bytes, taken));
    if (found->read_gbps.known)
        printf("read at %.0f GB/s, ", found->read_gbps.value);
    if (found->contiguous.known)
        printf("%.0f %% of the frames contiguous (+- %.0f)\n", 100 * found->contiguous.value,
               100 * found->contiguous.error);
    else
        printf("contiguity not observable: %s\n", found->contiguous.reason);
}

static void write_finding(struct json_writer *t, const char *name, struct reach_finding f)
{
    if (f.known)
        json_writer_real(t, name, f.value);
    else
        json_writer_null(t, name);
}

static void write_way(struct json_writer *t, const char *name, const struct reach_diagnosis *found)
{
    json_writer_open(t, NULL, '{');
    json_writer_text(t, "way", name);
    json_writer_u64(t, "bytes", found->bytes);
    write_finding(t, "read_gbps", found->read_gbps);
    write_finding(t, "contiguous", found->contiguous);
    json_writer_real(t, "contiguous_error", found->contiguous.error);
    json_writer_text(t, "contiguous_reason", found->contiguous.reason);
    json_writer_u64(t, "duration_ms", found->ns / 1000000);
    json_writer_text(t, "text", found->text);
    json_writer_close(t, '}');
}

static enum exit_code print_json(const struct fingerprint *fp,
                                 const struct reach_diagnose_options *numbers,
                                 const struct reach_diagnosis *found)
{
    struct json_writer t;

    json_writer_begin(&t, 0);
    t.indent = 2;
    json_writer_open(&t, NULL, '{');
    json_writer_text(&t, "gpu", fp->gpu.uuid);
    json_writer_text(&t, "origin", origin_name(fp->gpu.origin));
    json_writer_u64(&t, "free_bytes", found[0].free_bytes);
    json_writer_u64(&t, "frame_bytes", numbers->frame_bytes);
    json_writer_u64(&t, "reach_bytes", numbers->reach_bytes[REACH_MEMORY_DEVICE]);
    json_writer_open(&t, "ways", '[');
    for (int i = 0; i < WAYS; i++)
        write_way(&t, way_names[i], &found[i]);
    json_writer_close(&t, ']');
    json_writer_close(&t, '}');
    return client_print_json(&t);
}

static enum exit_code print_all(const struct fingerprint *fp, const struct options *options,
                                const struct reach_diagnose_options *numbers,
                                const struct reach_diagnosis *found)
{
    char free_text[FORMAT_SIZE_BYTES];
    char frame[FORMAT_SIZE_BYTES];
    char reach[FORMAT_SIZE_BYTES];

    if (options->json)
        return print_json(fp, numbers, found);
    printf("%s %s: %s free, reach %s, frames of %s%s\n", fp->gpu.name, fp->gpu.uuid,
           format_size(found[0].free_bytes, free_text),
           format_size(numbers->reach_bytes[REACH_MEMORY_DEVICE], reach),
           format_size(numbers->frame_bytes, frame),
           fp->gpu.origin == ORIGIN_MEASURED ? "" : " (fingerprint not measured on this hardware)");
    for (int i = 0; i < WAYS; i++)
        print_way((enum reach_free_way)i, &found[i]);
    return EXIT_DONE;
}

enum exit_code command_contiguity(struct client *client, const struct options *options)
{
    struct reach_diagnosis found[WAYS] = {{.size = 0}};
    struct reach_diagnose_options numbers;
    struct reach_alloc_error error = {.text = ""};
    diagnose_free_fn *diagnose_free;
    enum exit_code exit_code;
    struct fingerprint *fp = client_load_fingerprint(client, options, "current", NULL, &exit_code);

    if (!fp)
        return exit_code;
    exit_code = EXIT_FAILED;
    diagnose_free = read_numbers(fp, &numbers) ? load_library() : NULL;
    /* The GPU of the fingerprint is then ordinal 0. */
    if (!diagnose_free || setenv("CUDA_VISIBLE_DEVICES", fp->gpu.uuid, 1) != 0)
        goto out;
    for (int i = 0; i < WAYS; i++) {
        found[i].size = sizeof(found[i]);
        if (diagnose_free((enum reach_free_way)i, &numbers, &found[i], &error) != REACH_ALLOC_OK) {
            fprintf(stderr, "reachctl: %s\n", error.text);
            goto out;
        }
    }
    exit_code = print_all(fp, options, &numbers, found);
out:
    free(fp);
    return exit_code;
}
