/* spank_cost.c: measures the time that the hooks of the SPANK plugin take for a task.
 *
 *   spank_cost PLUGIN.so SOCKET GPUS TASKS
 *
 * The program loads the plugin like slurmstepd and provides Slurm's functions of the interface. The
 * environment has some sixty variables. TASKS tasks with GPUS GPUs each go through both
 * hooks. It prints how many tasks got variables, and the median, the 99th percentile and the
 * longest time in microseconds. The exit status is 1 if a hook returned a value other than 0.
 */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if __has_include(<slurm/spank.h>)
#include <slurm/spank.h>

enum { OTHERS = 60, SLOTS = 400 };

static char *env[SLOTS + 1];
static int count;

static int find(const char *name)
{
    const size_t n = strlen(name);

    for (int i = 0; i < count; i++) {
        if (strncmp(env[i], name, n) == 0 && env[i][n] == '=')
            return i;
    }
    return -1;
}

spank_err_t spank_unsetenv(spank_t spank, const char *var)
{
    const int i = find(var);

    (void)spank;
    if (i < 0)
        return ESPANK_BAD_ARG;
    free(env[i]);
    env[i] = env[--count];
    env[count] = NULL;
    return ESPANK_SUCCESS;
}

spank_err_t spank_setenv(spank_t spank, const char *var, const char *val, int overwrite)
{
    (void)overwrite;
    (void)spank_unsetenv(spank, var);
    if (count == SLOTS || asprintf(&env[count], "%s=%s", var, val) < 0)
        abort();
    env[++count] = NULL;
    return ESPANK_SUCCESS;
}

spank_err_t spank_getenv(spank_t spank, const char *var, char *buf, int len)
{
    const int i = find(var);

    (void)spank;
    if (i < 0)
        return ESPANK_ENV_NOEXIST;
    return snprintf(buf, (size_t)len, "%s", env[i] + strlen(var) + 1) < len ? ESPANK_SUCCESS
                                                                            : ESPANK_NOSPACE;
}

spank_err_t spank_get_item(spank_t spank, spank_item_t item, ...)
{
    va_list args;

    (void)spank;
    va_start(args, item);
    *va_arg(args, char ***) = env;
    va_end(args);
    return ESPANK_SUCCESS;
}

spank_err_t spank_option_register(spank_t spank, struct spank_option *opt)
{
    (void)spank;
    (void)opt;
    return ESPANK_SUCCESS;
}

void slurm_debug(const char *format, ...)
{
    (void)format;
}

void slurm_error(const char *format, ...)
{
    (void)format;
}

/* ---- tasks ---- */

static double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;

    return (x > y) - (x < y);
}

static void new_task(int gpus)
{
    char list[256] = "";
    char name[32];

    while (count > 0)
        free(env[--count]);
    for (int i = 0; i < OTHERS; i++) {
        (void)snprintf(name, sizeof(name), "SLURM_SOMETHING_%d", i);
        (void)spank_setenv(NULL, name, "some value of a usual length", 1);
    }
    for (int i = 0; i < gpus; i++)
        (void)snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%d", i ? "," : "", i);
    (void)spank_setenv(NULL, "CUDA_VISIBLE_DEVICES", list, 1);
    (void)spank_setenv(NULL, "SLURM_STEP_GPUS", list, 1);
}

static spank_f *hook(void *plugin, const char *name)
{
    spank_f *found = NULL;
    void *symbol = dlsym(plugin, name);

    memcpy(&found, &symbol, sizeof(found));
    if (!found) {
        fprintf(stderr, "%s\n", dlerror());
        exit(2);
    }
    return found;
}

int main(int argc, char **argv)
{
    void *plugin = argc == 5 ? dlopen(argv[1], RTLD_NOW) : NULL;
    const int gpus = argc == 5 ? atoi(argv[3]) : 0;
    const int tasks = argc == 5 ? atoi(argv[4]) : 0;
    double *us = calloc((size_t)(tasks > 0 ? tasks : 1), sizeof(*us));
    char socket[160];
    char *arguments[] = {socket};
    int failed = 0;
    int equipped = 0;

    if (!plugin || !us || tasks <= 0) {
        fprintf(stderr, "usage: spank_cost PLUGIN.so SOCKET GPUS TASKS: %s\n",
                plugin ? "" : dlerror());
        return 2;
    }
    (void)snprintf(socket, sizeof(socket), "socket=%s", argv[2]);
    failed += hook(plugin, "slurm_spank_init")(NULL, 1, arguments) != 0;
    for (int i = 0; i < tasks; i++) {
        double start;
        new_task(gpus);
        start = now_us();
        failed += hook(plugin, "slurm_spank_task_init_privileged")(NULL, 0, NULL) != 0;
        failed += hook(plugin, "slurm_spank_task_init")(NULL, 0, NULL) != 0;
        us[i] = now_us() - start;
        equipped += find("REACH_JOB_0") >= 0;
    }
    qsort(us, (size_t)tasks, sizeof(*us), by_size);
    printf("tasks %d failed %d equipped %d median_us %.0f p99_us %.0f longest_us %.0f\n", tasks,
           failed, equipped, us[tasks / 2], us[(size_t)tasks * 99 / 100], us[tasks - 1]);
    free(us);
    return failed > 0;
}

#else
int main(void)
{
    puts("this build is without the plugin: no slurm/spank.h");
    return 77;
}
#endif
