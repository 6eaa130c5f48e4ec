/* sanitizer_api.c: loads the Sanitizer API. */
#include "clients/profile/inject/sanitizer_api.h"

#include <dlfcn.h>
#include <string.h>

enum status sanitizer_api_load(const char *path, struct sanitizer_api *out, struct err *err)
{
    void *const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return err_set(err, STATUS_NOT_FOUND, "cannot open the Sanitizer library: %s", dlerror());
#define LOAD(symbol, member, arguments)                                                            \
    {                                                                                              \
        void *const found = dlsym(library, #symbol);                                               \
        if (!found)                                                                                \
            return err_set(err, STATUS_NOT_SUPPORTED, "the Sanitizer library %s lacks %s", path,   \
                           #symbol);                                                               \
        memcpy(&out->member, &found, sizeof found);                                                \
    }
    SANITIZER_FUNCTIONS(LOAD)
#undef LOAD
    return STATUS_OK;
}
