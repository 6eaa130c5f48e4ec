/* resolve.c: finds the GPU of a name, or the reason why there is none. */
#include "snapshot/snapshot.h"

#include <stdlib.h>
#include <string.h>

#define LIST_HINT "List the GPUs: GET /v1/gpus, or reachctl gpus."

/* A number, and the GPUs that it counts. */
struct counting {
    const char *text;  /* "1@2,5" in a name */
    bool valid;        /* whether the text has this form */
    uint32_t number;   /* 1 */
    const char *files; /* "2,5": the numbers of device files; "" means all GPUs */
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static struct counting read_counting(const char *text)
{
    const size_t n = strspn(text, "0123456789");
    struct counting c = {.text = text, .files = ""};

    c.valid = n > 0 && n <= 4 && (text[n] == '\0' || text[n] == '@');
    c.number = c.valid ? (uint32_t)strtoul(text, NULL, 10) : 0;
    if (c.valid && text[n] == '@') {
        c.files = text + n + 1;
        c.valid = is_digit(*c.files);
    }
    for (const char *p = c.files; c.valid && *p; p++)
        c.valid = is_digit(*p) || (*p == ',' && is_digit(p[1]));
    return c;
}

/* Returns whether the list names the file of the GPU; the list "" names every file. */
static bool has_file(const char *files, const struct snapshot_gpu *gpu)
{
    bool found = *files == '\0';

    for (const char *p = files; *p && !found && gpu->minor.known == MAYBE_KNOWN;) {
        char *end = NULL;
        found = strtoul(p, &end, 10) == gpu->minor.v;
        p = end + (*end == ',');
    }
    return found;
}

/* Returns whether a number counts the GPU. The driver shows the GPU as a whole, so that nvidia-smi
 * and Slurm count it. */
static bool is_counted(const struct snapshot_gpu *gpu, const struct counting *c)
{
    return gpu->state != GPU_STATE_LOST && !identity_is_instance(&gpu->identity) &&
           has_file(c->files, gpu);
}

/* Returns whether each file of the list belongs to a GPU that is counted. */
static bool are_files_known(const struct snapshot *s, const struct counting *c)
{
    uint32_t files = *c->files != '\0';
    uint32_t gpus = 0;

    for (const char *p = c->files; *p; p++)
        files += *p == ',';
    for (uint32_t i = 0; files > 0 && i < s->gpu_count; i++)
        gpus += is_counted(&s->gpus[i], c);
    return gpus == files;
}

/* Finds a GPU by the number that nvidia-smi and Slurm use, which count only GPUs that the driver
 * shows. */
static const struct snapshot_gpu *find_counted(const struct snapshot *s, const struct counting *c,
                                               struct err *err)
{
    uint32_t count = 0;

    if (c->valid && !are_files_known(s, c)) {
        err_set_hint(err, STATUS_NOT_FOUND, "Name GPUs by their UUIDs.",
                     "the driver does not report the GPUs of all device files /dev/nvidia{%.100s}",
                     c->files);
        return NULL;
    }
    for (uint32_t i = 0; c->valid && i < s->gpu_count; i++) {
        if (is_counted(&s->gpus[i], c) && count++ == c->number)
            return &s->gpus[i];
    }
    err_set_hint(err, STATUS_NOT_FOUND, LIST_HINT,
                 "there is no GPU number \"%.100s\": the driver shows %u", c->text, count);
    return NULL;
}

/* Finds a GPU by the number that CUDA uses if CUDA_DEVICE_ORDER is not set. CUDA counts from the
 * fastest GPU, so the number is certain only if all are alike. */
static const struct snapshot_gpu *find_by_speed(const struct snapshot *s, const struct counting *c,
                                                struct err *err)
{
    const struct snapshot_gpu *first = NULL;

    for (uint32_t i = 0; i < s->gpu_count; i++) {
        const struct snapshot_gpu *const gpu = &s->gpus[i];
        if (!is_counted(gpu, c))
            continue;
        if (first && strcmp(first->identity.name, gpu->identity.name) != 0) {
            err_set_hint(
                err, STATUS_NOT_FOUND,
                "Set CUDA_DEVICE_ORDER=PCI_BUS_ID in the job, or name GPUs by their UUIDs.",
                "number %.100s does not name one GPU: this node has %.60s and %.60s, which "
                "CUDA numbers by speed unless CUDA_DEVICE_ORDER is PCI_BUS_ID",
                c->text, first->identity.name, gpu->identity.name);
            return NULL;
        }
        first = first ? first : gpu;
    }
    return find_counted(s, c, err);
}

/* Finds a GPU by the beginning of its UUID, as CUDA_VISIBLE_DEVICES allows. Returns NULL without an
 * error if no UUID begins with the text. */
static const struct snapshot_gpu *find_prefix(const struct snapshot *s, const char *name,
                                              struct err *err)
{
    const struct snapshot_gpu *found = NULL;

    for (uint32_t i = 0; i < s->gpu_count; i++) {
        const struct snapshot_gpu *const gpu = &s->gpus[i];
        if (!identity_is_prefix(name, gpu->identity.uuid))
            continue;
        if (found) {
            err_set_hint(err, STATUS_NOT_FOUND, "Write more of the UUID.",
                         "\"%.63s\" is the beginning of several UUIDs: %s and %s", name,
                         found->identity.uuid, gpu->identity.uuid);
            return NULL;
        }
        found = gpu;
    }
    return found;
}

const struct snapshot_gpu *snapshot_resolve(const struct snapshot *s, const char *name,
                                            struct err *err)
{
    const struct snapshot_gpu *gpu = snapshot_find(s, name);

    err->status = STATUS_OK;
    if (gpu || s->gpu_count == 0)
        return gpu;
    if (strncmp(name, "pci:", 4) == 0 || strncmp(name, "cuda:", 5) == 0) {
        const struct counting c = read_counting(strchr(name, ':') + 1);
        return *name == 'p' ? find_counted(s, &c, err) : find_by_speed(s, &c, err);
    }
    gpu = find_prefix(s, name, err);
    if (!gpu && err->status == STATUS_OK)
        err_set_hint(
            err, STATUS_NOT_FOUND, LIST_HINT,
            "there is no GPU \"%.80s\": name one by its UUID, or by its index from 0 to %u", name,
            s->gpu_count - 1);
    return gpu;
}
