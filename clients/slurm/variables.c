/* variables.c: implements variables.h. */
#include "clients/slurm/variables.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

static const char *const names[VARIABLES_KINDS] = {"REACH_JOB",      "REACH_FINGERPRINT_ID",
                                                   "REACH_GPU_UUID", "REACH_SCOPE_BYTES",
                                                   "REACH_WINDOWS",  "REACH_WINDOW_OF_SM"};

const char *variables_name(unsigned kind)
{
    return kind < VARIABLES_KINDS ? names[kind] : NULL;
}

/* Checks one line without its end. */
static bool check_line(const char *line, size_t bytes)
{
    static const char NAME[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    const size_t name = strspn(line, NAME);

    if (strncmp(line, "REACH_", 6) != 0 || name < 7 || name > VARIABLES_NAME_BYTES - 8 ||
        line[name] != '=')
        return false;
    for (size_t i = name; i < bytes; i++) {
        if (line[i] < ' ' || line[i] > '~')
            return false;
    }
    return true;
}

bool variables_check(const char *text)
{
    bool job = false;
    int lines = 0;

    for (const char *end; *text; text = end + 1) {
        end = strchr(text, '\n');
        if (!end || ++lines > VARIABLES_MAX_LINES || !check_line(text, (size_t)(end - text)))
            return false;
        job = job || (strncmp(text, "REACH_JOB=", 10) == 0 && text + 10 < end);
    }
    return job;
}

const char *variables_next(char **rest, unsigned gpu, char *name)
{
    char *line = *rest;
    char *end = strchr(line, '\n');
    char *equals = strchr(line, '=');

    if (!end || !equals)
        return NULL;
    *end = '\0';
    *equals = '\0';
    *rest = end + 1;
    snprintf(name, VARIABLES_NAME_BYTES, "%s_%u", line, gpu);
    return equals + 1;
}

bool variables_any(char *const *env)
{
    for (; env && *env; env++) {
        for (unsigned kind = 0; kind < VARIABLES_KINDS; kind++) {
            const size_t n = strlen(names[kind]);
            if (strncmp(*env, names[kind], n) == 0 && (*env)[n] == '_')
                return true;
        }
    }
    return false;
}

bool variables_fit(char *const *env, size_t more)
{
    /* The limit of execve(2): a quarter of the stack limit, at least 128 KiB and at most 6 MiB. */
    const size_t least = 128 << 10;
    const size_t most = 6 << 20;
    size_t room = most;
    struct rlimit stack;

    if (getrlimit(RLIMIT_STACK, &stack) == 0 && stack.rlim_cur / 4 < most)
        room = stack.rlim_cur / 4 > least ? (size_t)(stack.rlim_cur / 4) : least;
    for (; env && *env; env++)
        more += strlen(*env) + 1 + sizeof(*env);
    return more <= room / 2;
}
