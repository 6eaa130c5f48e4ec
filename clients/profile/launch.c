/* launch.c: implements launch.h. */
#include "clients/profile/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Signals that ask a process to end or to save its state. */
static const int forwarded[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
enum { FORWARDED = sizeof(forwarded) / sizeof(*forwarded) };

static volatile sig_atomic_t child; /* process ID of the program */

/* A terminal sends its signals to the program too. */
static void forward_signal(int number, siginfo_t *info, void *context)
{
    const int saved = errno;

    (void)context;
    if (info->si_code != SI_KERNEL)
        (void)kill((pid_t)child, number);
    errno = saved;
}

/* Forwards the signals that this process does not ignore. */
static void start_forwarding(struct sigaction before[FORWARDED])
{
    struct sigaction action = {.sa_sigaction = forward_signal, .sa_flags = SA_SIGINFO | SA_RESTART};

    for (int i = 0; i < FORWARDED; i++) {
        (void)sigaction(forwarded[i], NULL, &before[i]);
        if (before[i].sa_handler != SIG_IGN)
            (void)sigaction(forwarded[i], &action, NULL);
    }
}

static void stop_forwarding(const struct sigaction before[FORWARDED])
{
    for (int i = 0; i < FORWARDED; i++)
        (void)sigaction(forwarded[i], &before[i], NULL);
}

static void set_variable(const char *name, const char *value)
{
    if (value)
        (void)setenv(name, value, 1);
}

static void set_environment(const struct launch *l)
{
    const char *const nvtx = getenv("NVTX_INJECTION64_PATH");

    if (!l->injected)
        return;
    set_variable("CUDA_INJECTION64_PATH", l->injected);
    if (!nvtx || !nvtx[0]) /* a tool of the user stays; operators then have no names */
        set_variable("NVTX_INJECTION64_PATH", l->injected);
    set_variable("REACH_PROFILE_SANITIZER", l->sanitizer);
    set_variable("REACH_PROFILE_FOLDER", l->folder);
    set_variable("REACH_PROFILE_SECONDS", l->seconds);
    set_variable("REACH_PROFILE_LAUNCHES", l->launches);
    set_variable("REACH_PROFILE_SKIP", l->skip);
}

static void __attribute__((noreturn))
become_program(char *const argv[], const struct launch *l, int error_pipe, const sigset_t *mask)
{
    int error;

    set_environment(l);
    (void)sigprocmask(SIG_SETMASK, mask, NULL);
    (void)execvp(argv[0], argv);
    error = errno;
    (void)!write(error_pipe, &error, sizeof(error));
    _exit(127);
}

/* Returns the errno of execvp(3), or 0 if the program was started. The pipe closes on success. */
static int read_error(int error_pipe)
{
    int error = 0;
    ssize_t n;

    do
        n = read(error_pipe, &error, sizeof(error));
    while (n < 0 && errno == EINTR);
    return n == sizeof(error) ? error : 0;
}

static int wait_for_end(pid_t pid)
{
    int status = 0;

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
}

enum status launch_run(char *const argv[], const struct launch *launch, int *out_status,
                       struct err *err)
{
    struct sigaction before[FORWARDED];
    sigset_t all, mask;
    int ends[2];
    int error = 0;
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC) != 0)
        return err_set(err, STATUS_IO, "cannot start %s: %s", argv[0], strerror(errno));
    /* A signal before the fork is forwarded after the fork, when the process ID is known. */
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, &mask);
    pid = fork();
    if (pid == 0)
        become_program(argv, launch, ends[1], &mask);
    error = errno;
    (void)close(ends[1]);
    if (pid > 0) {
        child = pid;
        start_forwarding(before);
    }
    (void)sigprocmask(SIG_SETMASK, &mask, NULL);
    if (pid > 0) {
        error = read_error(ends[0]);
        *out_status = wait_for_end(pid);
        stop_forwarding(before);
    }
    (void)close(ends[0]);
    if (error == 0)
        return STATUS_OK;
    return err_set(err,
                   error == ENOENT || error == ENOTDIR ? STATUS_NOT_FOUND
                   : error == EACCES || error == EPERM ? STATUS_NOT_PERMITTED
                                                       : STATUS_IO,
                   "cannot run %s: %s", argv[0], strerror(error));
}

int launch_exit_status(int wait_status)
{
    return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

const char *launch_other_tool(void)
{
    static const char *const preloaded[] = {"libTreeLauncher", "libInterceptorInjection",
                                            "libToolsInjection", "libToolsPreload"};
    const char *const injection = getenv("CUDA_INJECTION64_PATH");
    const char *const preload = getenv("LD_PRELOAD");

    if (injection && injection[0])
        return "CUDA_INJECTION64_PATH is set";
    for (size_t i = 0; preload && i < sizeof(preloaded) / sizeof(*preloaded); i++) {
        if (strstr(preload, preloaded[i]))
            return "LD_PRELOAD names a library of Nsight or compute-sanitizer";
    }
    return NULL;
}
