/* reap.c: waits for the end of a child process. See reap.h.
 *
 * A process that hangs in a driver call sleeps uninterruptibly. SIGKILL is then only recorded, and
 * a wait for the process would hang the daemon too. So such a child is abandoned and logged, and
 * reaped when it has ended. The wait polls waitpid every millisecond. It runs only while a worker
 * is being stopped, and unlike a pidfd it works on every kernel.
 */
#include "worker/reap.h"

#include "base/log.h"
#include "base/heartbeat.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

enum { REAP_MAX_LEFTOVERS = 64 };

static struct {
    pthread_mutex_t mutex;
    size_t count;
    pid_t pids[REAP_MAX_LEFTOVERS];
} leftovers = {.mutex = PTHREAD_MUTEX_INITIALIZER};

bool reap_wait(pid_t pid, nsec_t ns, int *out_status)
{
    const nsec_t until = clock_monotonic() + ns;
    const struct timespec step = {.tv_nsec = (long)NSEC_PER_MSEC};

    for (;;) {
        pid_t got = waitpid(pid, out_status, WNOHANG);

        heartbeat_beat();
        if (got == pid)
            return true;
        if (got < 0 && errno != EINTR) { /* the process was reaped elsewhere */
            *out_status = 0;
            return true;
        }
        if (clock_monotonic() >= until)
            return false;
        nanosleep(&step, NULL);
    }
}

bool reap_is_stuck(pid_t pid)
{
    char path[40], stat[512];

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    const bool any = file && fgets(stat, sizeof stat, file);

    if (file)
        fclose(file);
    /* "pid (name) S ...": the name may contain any character, so the state is after the last
     * parenthesis. */
    const char *state = any ? strrchr(stat, ')') : NULL;

    return state && state[1] == ' ' && state[2] == 'D';
}

void reap_abandon(pid_t pid)
{
    pthread_mutex_lock(&leftovers.mutex);
    bool kept = leftovers.count < REAP_MAX_LEFTOVERS;

    if (kept)
        leftovers.pids[leftovers.count++] = pid;
    pthread_mutex_unlock(&leftovers.mutex);
    log_error("worker %d hangs in the driver and is abandoned%s", (int)pid,
              kept ? "" : " and will not be reaped: there are too many of them");
}

bool reap_is_abandoned(pid_t pid)
{
    bool left = false;

    reap_leftovers();
    pthread_mutex_lock(&leftovers.mutex);
    for (size_t i = 0; i < leftovers.count; i++)
        left = left || leftovers.pids[i] == pid;
    pthread_mutex_unlock(&leftovers.mutex);
    return left;
}

void reap_leftovers(void)
{
    pthread_mutex_lock(&leftovers.mutex);
    for (size_t i = 0; i < leftovers.count;) {
        int status = 0;

        if (waitpid(leftovers.pids[i], &status, WNOHANG) == 0) {
            i++;
            continue;
        }
        log_info("abandoned worker %d has ended", (int)leftovers.pids[i]);
        leftovers.pids[i] = leftovers.pids[--leftovers.count];
    }
    pthread_mutex_unlock(&leftovers.mutex);
}

char *reap_describe(int status, char *out, size_t out_size)
{
    if (WIFSIGNALED(status)) {
        const char *name = sigabbrev_np(WTERMSIG(status));
        const char *text = sigdescr_np(WTERMSIG(status));

        snprintf(out, out_size, "was killed by SIG%s (%s)", name ? name : "?", text ? text : "?");
    } else {
        snprintf(out, out_size, "exited with code %d", WEXITSTATUS(status));
    }
    return out;
}
