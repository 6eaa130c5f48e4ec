/* find.c: implements find.h. A root is a folder that has the layout of a toolkit, or the prefix of
 * a Python environment. Patterns under each root name the places of the library. */
#include "clients/profile/find.h"

#include <errno.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SITE_PACKAGES "/lib{,64}/python3*/{site,dist}-packages"
#define WHEEL         "/nvidia/{cu[0-9]*,cuda_sanitizer_api}/{lib,compute-sanitizer}/"

/* Patterns of glob(3), relative to a root. */
static const char *const toolkit_patterns[] = {"/compute-sanitizer/" FIND_SANITIZER_NAME, NULL};
static const char *const python_patterns[] = {SITE_PACKAGES WHEEL FIND_SANITIZER_NAME,
                                              "/compute-sanitizer/" FIND_SANITIZER_NAME, NULL};

/* Folders of the injected library, relative to the folder of this program. */
static const char *const injected_folders[] = {"", "/lib", "/../lib/reachd", "/../lib"};
#define INJECTED_NAME "libreach-profile.so"

static bool is_library(const char *path)
{
    return access(path, R_OK) == 0;
}

/* Writes `root` to `out` so that glob(3) does not interpret its characters. */
static bool escape_root(const char *root, char out[PATH_MAX])
{
    size_t n = 0;

    for (; *root && n + 2 < PATH_MAX; root++) {
        if (strchr("\\*?[]{},~", *root))
            out[n++] = '\\';
        out[n++] = *root;
    }
    out[n] = '\0';
    return *root == '\0' && n > 0;
}

/* Takes the match whose name sorts last, because names contain versions. */
static bool search_pattern(const char *pattern, char out[PATH_MAX])
{
    glob_t found = {0};
    bool done = false;

    if (glob(pattern, GLOB_BRACE, NULL, &found) == 0) {
        size_t last = 0;
        for (size_t i = 1; i < found.gl_pathc; i++) {
            if (strverscmp(found.gl_pathv[i], found.gl_pathv[last]) > 0)
                last = i;
        }
        done = is_library(found.gl_pathv[last]) && realpath(found.gl_pathv[last], out);
    }
    globfree(&found);
    return done;
}

static bool search_root(const char *root, const char *const *patterns, char out[PATH_MAX])
{
    char escaped[PATH_MAX];
    char pattern[PATH_MAX + 160];

    if (!root || !escape_root(root, escaped))
        return false;
    for (; *patterns; patterns++) {
        (void)snprintf(pattern, sizeof(pattern), "%s%s", escaped, *patterns);
        if (search_pattern(pattern, out))
            return true;
    }
    return false;
}

/* Removes the last `levels` components of a path. */
static bool cut_path(char *path, int levels)
{
    while (levels-- > 0) {
        char *const slash = strrchr(path, '/');
        if (!slash)
            return false;
        *slash = '\0';
    }
    return true;
}

enum status find_program(const char *program, char out[PATH_MAX], struct err *err)
{
    const char *path = getenv("PATH");
    bool denied = false;

    if (strchr(program, '/')) {
        (void)snprintf(out, PATH_MAX, "%s", program);
        return access(out, X_OK) == 0
                   ? STATUS_OK
                   : err_set(err, STATUS_NOT_FOUND, "cannot run %s: %s", program, strerror(errno));
    }
    for (path = path ? path : "/usr/local/bin:/usr/bin:/bin"; *path && program[0];) {
        const size_t n = strcspn(path, ":");
        const int length =
            snprintf(out, PATH_MAX, "%.*s/%s", n > 0 ? (int)n : 1, n > 0 ? path : ".", program);
        if (length < PATH_MAX && access(out, X_OK) == 0)
            return STATUS_OK;
        denied |= errno == EACCES;
        path += n + (path[n] == ':');
    }
    return err_set(err, STATUS_NOT_FOUND, "cannot run %s: %s", program,
                   denied ? "it is not executable" : "it is in no folder of PATH");
}

/* Searches the folders that contain the folder `bin` of a program, `levels` above the program. The
 * links of a path are followed if `resolve` is set. */
static bool search_beside(const char *program, bool resolve, const char *const *patterns,
                          char out[PATH_MAX])
{
    char path[PATH_MAX];
    char root[PATH_MAX];

    if (find_program(program, path, NULL) != STATUS_OK)
        return false;
    if (!resolve)
        (void)snprintf(root, sizeof(root), "%s", path);
    else if (!realpath(path, root))
        return false;
    return cut_path(root, 2) && search_root(root, patterns, out);
}

static bool search_toolkits(char out[PATH_MAX])
{
    return search_root(getenv("CUDA_HOME"), toolkit_patterns, out) ||
           search_root(getenv("CUDA_PATH"), toolkit_patterns, out) ||
           search_beside("nvcc", true, toolkit_patterns, out) ||
           search_root("/usr/local/cuda", toolkit_patterns, out) ||
           search_pattern("/usr/local/cuda-*/compute-sanitizer/" FIND_SANITIZER_NAME, out);
}

static bool search_python(const char *program, char out[PATH_MAX])
{
    const char *const home = getenv("HOME");
    char user[PATH_MAX];

    (void)snprintf(user, sizeof(user), "%s/.local", home ? home : "");
    return search_root(getenv("VIRTUAL_ENV"), python_patterns, out) ||
           search_root(getenv("CONDA_PREFIX"), python_patterns, out) ||
           search_beside(program, false, python_patterns, out) ||
           search_beside("python3", false, python_patterns, out) ||
           (home && search_root(user, python_patterns, out)) ||
           search_root("/usr/local", python_patterns, out) ||
           search_root("/usr", python_patterns, out);
}

static enum status take_named(const char *named, const char *source, char out[PATH_MAX],
                              struct err *err)
{
    struct stat info;
    const bool folder = stat(named, &info) == 0 && S_ISDIR(info.st_mode);
    char path[PATH_MAX + sizeof(FIND_SANITIZER_NAME) + 1];

    (void)snprintf(path, sizeof(path), "%s%s", named, folder ? "/" FIND_SANITIZER_NAME : "");
    if (is_library(path) && realpath(path, out))
        return STATUS_OK;
    return err_set_hint(err, STATUS_NOT_FOUND, "name " FIND_SANITIZER_NAME " or its folder",
                        "cannot open %s of %s: %s", path, source, strerror(errno));
}

enum status find_sanitizer(const char *named, const char *program, char out[PATH_MAX],
                           struct err *err)
{
    const char *const variable = getenv("REACH_SANITIZER");

    if (named)
        return take_named(named, "--sanitizer", out, err);
    if (variable && variable[0])
        return take_named(variable, "REACH_SANITIZER", out, err);
    if (search_toolkits(out) || search_python(program, out))
        return STATUS_OK;
    return err_set_hint(err, STATUS_NOT_FOUND,
                        "install the CUDA Toolkit or run: pip install nvidia-cuda-sanitizer-api; "
                        "or name the library with --sanitizer PATH",
                        "there is no " FIND_SANITIZER_NAME
                        " in a CUDA toolkit or a Python environment");
}

enum status find_injected(char out[PATH_MAX], struct err *err)
{
    const char *const variable = getenv("REACH_PROFILE_LIBRARY");
    char folder[PATH_MAX] = "";
    char path[PATH_MAX + 64];

    if (variable && variable[0])
        return realpath(variable, out) && is_library(out)
                   ? STATUS_OK
                   : err_set(err, STATUS_NOT_FOUND, "cannot open %s of REACH_PROFILE_LIBRARY: %s",
                             variable, strerror(errno));
    if (readlink("/proc/self/exe", folder, sizeof(folder) - 1) < 0 || !cut_path(folder, 1))
        folder[0] = '\0';
    for (size_t i = 0; i < sizeof(injected_folders) / sizeof(*injected_folders); i++) {
        (void)snprintf(path, sizeof(path), "%s%s/%s", folder, injected_folders[i], INJECTED_NAME);
        if (is_library(path) && realpath(path, out))
            return STATUS_OK;
    }
    return err_set_hint(err, STATUS_NOT_FOUND,
                        "install reachd again, or name the library with REACH_PROFILE_LIBRARY",
                        "there is no " INJECTED_NAME " beside %s/reach-profile", folder);
}
