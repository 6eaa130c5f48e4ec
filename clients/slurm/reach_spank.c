/* reach_spank.c: the SPANK plugin. Before a task starts, the plugin gets the planner's data about
 * the GPUs of the task from reachd. It puts the data into the environment for libreach.
 *
 * No failure of reachd may fail a job. Every failure is one line of slurmd's debug log, the task
 * starts as without the plugin, and each hook returns 0. The only error is an invalid value of
 * --reach, which is reported before the job is submitted.
 *
 * Two hooks run per task, in the process that becomes the task. The first one connects with
 * privileges, because the socket can be closed to users. The second one sends the requests without
 * privileges. Both together take at most the deadline. */
#include "clients/slurm/devices.h"
#include "clients/slurm/fetch.h"
#include "clients/slurm/variables.h"

#include <slurm/spank.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

SPANK_PLUGIN(reach, 1);

enum {
    BODY_BYTES = (120 << 10) + 1, /* size of the variables of one GPU (job_env.h), terminated */
    VALUE_BYTES = 2048,
    PATH_BYTES = 108,
    MAX_DEADLINE_MS = 1000,
    MAX_KIB = 1024
};

/* Arguments in plugstack.conf, which --reach overrides. */
static struct {
    char socket[PATH_BYTES];
    uint32_t deadline_ms;
    uint32_t max_kib; /* limit for all variables of a task */
    bool on;
} settings = {"/run/reachd/reachd.sock", 200, 128, true};

static struct fetch connection = {.fd = -1};

/* ---- arguments and options ---- */

static bool read_switch(const char *word, bool *out)
{
    const bool is_auto = word && strcmp(word, "auto") == 0;

    if (!is_auto && (!word || strcmp(word, "off") != 0))
        return false;
    *out = is_auto;
    return true;
}

static bool read_number(const char *text, uint32_t most, uint32_t *out)
{
    const size_t digits = strspn(text, "0123456789");
    const unsigned long v = strtoul(text, NULL, 10);

    if (digits == 0 || digits > 7 || text[digits] != '\0' || v == 0 || v > most)
        return false;
    *out = (uint32_t)v;
    return true;
}

/* An invalid argument is reported and skipped, because it must not fail every job of the cluster.
 */
static void read_argument(const char *a)
{
    bool fine = false;

    if (strncmp(a, "default=", 8) == 0)
        fine = read_switch(a + 8, &settings.on);
    else if (strncmp(a, "deadline_ms=", 12) == 0)
        fine = read_number(a + 12, MAX_DEADLINE_MS, &settings.deadline_ms);
    else if (strncmp(a, "max_kib=", 8) == 0)
        fine = read_number(a + 8, MAX_KIB, &settings.max_kib);
    else if (strncmp(a, "socket=/", 8) == 0 && strlen(a + 7) < sizeof(settings.socket)) {
        strcpy(settings.socket, a + 7);
        fine = true;
    }
    if (!fine)
        slurm_debug("reach: plugstack.conf: invalid argument \"%.80s\" is ignored", a);
}

static int on_option(int val, const char *word, int remote)
{
    (void)val;
    if (read_switch(word, &settings.on))
        return 0;
    if (remote) /* the value was accepted at submission, so it is too late to reject it */
        return 0;
    slurm_error("--reach must be auto or off, not \"%.40s\"", word ? word : "");
    return -1;
}

int slurm_spank_init(spank_t spank, int ac, char *av[])
{
    static char name[] = "reach";
    static char values[] = "auto|off";
    static char usage[] = "data of reachd about the GPUs in the environment of the job";
    static struct spank_option option = {name, values, usage, 1, 0, on_option};

    for (int i = 0; i < ac; i++)
        read_argument(av[i]);
    (void)spank_option_register(spank, &option); /* slurmd itself has no options */
    return 0;
}

/* ---- a task ---- */

/* Reads a variable of the task; "" if it is not set or too long. */
static void get_variable(spank_t spank, const char *name, char *out)
{
    if (spank_getenv(spank, name, out, VALUE_BYTES) != ESPANK_SUCCESS)
        out[0] = '\0';
}

static char *const *get_environment(spank_t spank)
{
    char **env = NULL;

    return spank_get_item(spank, S_JOB_ENV, &env) == ESPANK_SUCCESS ? env : NULL;
}

/* Removes the variables of an enclosing step, because they can describe GPUs that this task does
 * not have. */
static void remove_variables(spank_t spank)
{
    char name[VARIABLES_NAME_BYTES];

    if (!variables_any(get_environment(spank)))
        return;
    for (unsigned kind = 0; kind < VARIABLES_KINDS; kind++) {
        for (unsigned gpu = 0; gpu < DEVICES_MAX; gpu++) {
            snprintf(name, sizeof(name), "%s_%u", variables_name(kind), gpu);
            (void)spank_unsetenv(spank, name);
        }
    }
}

static bool read_devices(spank_t spank, struct devices *out)
{
    char visible[VALUE_BYTES];
    char node[VALUE_BYTES];
    char order[VALUE_BYTES];
    char files[DEVICE_FILES_BYTES];

    devices_list_files(files);
    get_variable(spank, "CUDA_VISIBLE_DEVICES", visible);
    get_variable(spank, "SLURM_STEP_GPUS", node);
    if (!node[0])
        get_variable(spank, "SLURM_JOB_GPUS", node);
    get_variable(spank, "CUDA_DEVICE_ORDER", order);
    if (!visible[0] || devices_read(visible, node, order, files, out))
        return visible[0] != '\0';
    slurm_debug(
        "reach: CUDA_VISIBLE_DEVICES=%.200s with GPUs %.200s of the node is ambiguous; the task "
        "starts without its variables",
        visible, node);
    return false;
}

/* The lines of all GPUs in `text`, and the first line of each GPU. */
struct answers {
    char *text;
    size_t room;
    size_t bytes;
    const char *starts[DEVICES_MAX]; /* NULL if reachd has no data of this GPU */
    unsigned known;
};

/* Gets the lines of one GPU. Returns false if further requests are useless. A GPU that was not
 * measured or is unknown to reachd gets no lines. */
static bool fetch_lines(const char *gpu, unsigned number, struct answers *a)
{
    char target[DEVICE_NAME_BYTES + 32];
    char *body = a->text + a->bytes;
    int status = 0;

    snprintf(target, sizeof(target), "/v1/gpus/%s/environment", gpu);
    if (!fetch_get(&connection, target, body, BODY_BYTES, &status)) {
        slurm_debug("reach: %s; the job starts without its variables", connection.why);
        return false;
    }
    if (status != 200) {
        slurm_debug("reach: reachd has no data of GPU %s (HTTP %d); GET %s has the reason", gpu,
                    status, target);
        return status == 404 || status == 409;
    }
    if (!variables_check(body)) {
        slurm_debug(
            "reach: the response is not one of reachd; the job starts without its variables");
        return false;
    }
    if (a->bytes + strlen(body) + 1 > a->room) {
        slurm_debug("reach: no room for GPU %s and later ones (max_kib=%u)", gpu, settings.max_kib);
        return true;
    }
    a->starts[number] = body;
    a->bytes += strlen(body) + 1;
    a->known++;
    return true;
}

static void set_variables(spank_t spank, struct answers *a, unsigned count)
{
    char name[VARIABLES_NAME_BYTES];

    for (unsigned gpu = 0; gpu < count; gpu++) {
        char *rest = a->starts[gpu] ? a->text + (a->starts[gpu] - a->text) : NULL;
        const char *value;
        while (rest && (value = variables_next(&rest, gpu, name))) {
            if (spank_setenv(spank, name, value, 1) != ESPANK_SUCCESS)
                slurm_debug("reach: cannot set %s", name);
        }
    }
}

static void ask_all(spank_t spank, const struct devices *devices)
{
    struct answers a = {.room = settings.max_kib * (size_t)1024};
    bool fine = true;

    a.text = malloc(a.room + BODY_BYTES);
    if (!a.text) {
        slurm_debug("reach: cannot allocate the answers: out of memory; the job starts without "
                    "variables of reachd");
        return;
    }
    for (unsigned i = 0; i < devices->count && fine; i++)
        fine = fetch_lines(devices->names[i], i, &a);
    if (fine && a.known > 0 && !variables_fit(get_environment(spank), a.bytes))
        slurm_debug("reach: the environment is full; the job starts without its variables");
    else if (fine && a.known > 0)
        set_variables(spank, &a, devices->count);
    free(a.text);
}

int slurm_spank_task_init_privileged(spank_t spank, int ac, char *av[])
{
    (void)spank;
    (void)ac;
    (void)av;
    if (settings.on && !fetch_open(&connection, settings.socket, settings.deadline_ms))
        slurm_debug("reach: %s at %s; the job starts without its variables", connection.why,
                    settings.socket);
    return 0;
}

int slurm_spank_task_init(spank_t spank, int ac, char *av[])
{
    static struct devices devices; /* each process runs this hook once */

    (void)ac;
    (void)av;
    if (!settings.on)
        return 0;
    remove_variables(spank);
    if (connection.fd >= 0 && read_devices(spank, &devices))
        ask_all(spank, &devices);
    fetch_close(&connection);
    return 0;
}
