/* kernel_name.c: see kernel_name.h. reach-profile is C, so it loads the C++ library at run time. */
#include "clients/profile/kernel_name.h"

#include "base/text.h"

#include <dlfcn.h>
#include <string.h>

typedef char *demangle_fn(const char *mangled, char *buffer, size_t *length, int *status);

static char *demangle(const char *mangled)
{
    static void *library;
    union {
        void *symbol;
        demangle_fn *call;
    } function = {0};
    int status = 0;

    if (strncmp(mangled, "_Z", 2) != 0)
        return NULL;
    if (!library)
        library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);
    if (library)
        function.symbol = dlsym(library, "__cxa_demangle");
    return function.symbol ? function.call(mangled, NULL, NULL, &status) : NULL;
}

/* Cuts the parameters and everything before the last name. Text in brackets is not examined. */
static void cut_name(char *name)
{
    size_t begin = 0;
    size_t end = 0;
    int depth = 0;

    for (size_t i = 0; name[i]; i++) {
        const char here = name[i];
        if (depth == 0 && here == '(' && strncmp(&name[i], "(anonymous", 10) != 0) {
            end = i;
            break;
        }
        depth += (here == '(' || here == '<' || here == '[' || here == '{') -
                 (here == ')' || here == '>' || here == ']' || here == '}');
        if (depth == 0 && (here == ' ' || (here == ':' && name[i + 1] == ':')))
            begin = i + (here == ' ' ? 1 : 2);
    }
    if (end <= begin)
        return;
    name[end] = '\0';
    memmove(name, name + begin, end - begin + 1);
}

char *kernel_name_format(const char *mangled)
{
    char *name = demangle(mangled);

    if (name)
        cut_name(name);
    else
        name = strdup(mangled);
    if (name)
        text_sanitize(name);
    return name;
}
