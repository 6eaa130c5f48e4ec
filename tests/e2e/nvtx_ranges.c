/* nvtx_ranges.c: launches kernels in NVTX ranges, on the stand-in driver.
 *
 *     nvtx_ranges COMMAND..
 *
 * Commands: push NAME, wide NAME, event DOMAIN NAME, string DOMAIN NAME, pop, leave DOMAIN, launch
 * KERNEL. The program loads the tool in NVTX_INJECTION64_PATH before it uses CUDA, as NVTX does. It
 * prints the path of the tool, or "none". */
#include "tests/fakecuda/fakecuda_script.h"
#include "tests/fakecuda/fakenvtx.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_ROOM = 4096 };

/* ---- the driver ---- */

static struct {
    int (*init)(unsigned);
    int (*retain)(void **, int);
    int (*set_current)(void *);
    int (*load_module)(void **, const void *);
    int (*get_function)(void **, void *, const char *);
    int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                  void *, void **, void **);
    int (*synchronize)(void);
} driver;
static void *module;

static void check(int result, const char *what)
{
    if (result) {
        fprintf(stderr, "nvtx_ranges: %s: %d\n", what, result);
        exit(1);
    }
}

static void start_driver(void)
{
    static const struct {
        const char *symbol;
        void *member;
    } functions[] = {
        {"cuInit", &driver.init},
        {"cuDevicePrimaryCtxRetain", &driver.retain},
        {"cuCtxSetCurrent", &driver.set_current},
        {"cuModuleLoadData", &driver.load_module},
        {"cuModuleGetFunction", &driver.get_function},
        {"cuLaunchKernel", &driver.launch},
        {"cuCtxSynchronize", &driver.synchronize},
    };
    void *const library = dlopen("libcuda.so.1", RTLD_NOW);
    void *context = NULL;

    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *const found = library ? dlsym(library, functions[i].symbol) : NULL;
        check(!found, functions[i].symbol);
        memcpy(functions[i].member, &found, sizeof found);
    }
    check(driver.init(0), "cuInit");
    check(driver.retain(&context, 0), "cuDevicePrimaryCtxRetain");
    check(driver.set_current(context), "cuCtxSetCurrent");
    check(driver.load_module(&module, FAKECUDA_SCRIPT_IMAGE), "cuModuleLoadData");
}

static void launch(const char *name)
{
    struct fakecuda_script script = {.ns = 1000};
    void *function = NULL, *parameters[] = {&script};

    if (!module)
        start_driver();
    check(driver.get_function(&function, module, name), "cuModuleGetFunction");
    check(driver.launch(function, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL), "cuLaunchKernel");
    check(driver.synchronize(), "cuCtxSynchronize");
}

/* ---- ranges ---- */

static void load_tool(void)
{
    const char *const path = getenv("NVTX_INJECTION64_PATH");
    void *const library = path ? dlopen(path, RTLD_LAZY) : NULL;
    int (*initialize)(nvtx_get_table *) = NULL;

    if (library)
        *(void **)&initialize = dlsym(library, "InitializeInjectionNvtx2");
    puts(initialize && fakenvtx_attach(initialize) ? path : "none");
}

static void push_wide(const char *name)
{
    wchar_t wide[NAME_ROOM];
    size_t n = 0;

    for (; name[n] && n + 1 < NAME_ROOM; n++)
        wide[n] = (unsigned char)name[n]; /* a byte is the number of its character in Latin-1 */
    wide[n] = L'\0';
    (void)fakenvtx_push_wide(wide);
}

/* Returns a domain. Each call gets the same handle for the same name. */
static const void *domain_of(const char *name)
{
    return name[0] ? fakenvtx_create_domain(name) : NULL;
}

/* Executes the first command and returns the arguments after it. */
static char **execute(char **arguments)
{
    const char *const command = *arguments++;

    if (strcmp(command, "pop") == 0) {
        (void)fakenvtx_pop(NULL);
        return arguments;
    }
    const char *const name = *arguments++;
    if (strcmp(command, "push") == 0)
        (void)fakenvtx_push(name);
    else if (strcmp(command, "wide") == 0)
        push_wide(name);
    else if (strcmp(command, "event") == 0)
        (void)fakenvtx_push_event(domain_of(name), FAKENVTX_ASCII, *arguments++);
    else if (strcmp(command, "string") == 0)
        (void)fakenvtx_push_event(domain_of(name), FAKENVTX_REGISTERED,
                                  fakenvtx_register(domain_of(name), *arguments++));
    else if (strcmp(command, "leave") == 0)
        (void)fakenvtx_pop(domain_of(name));
    else
        launch(name);
    return arguments;
}

int main(int argc, char **argv)
{
    char **arguments = argv + 1;

    (void)argc;
    load_tool();
    while (*arguments)
        arguments = execute(arguments);
    return 0;
}
