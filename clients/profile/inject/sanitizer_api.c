/* sanitizer_api.c: loads the Sanitizer API. */
#include "clients/profile/inject/sanitizer_api.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

enum status sanitizer_api_load(const char *path, struct sanitizer_api *out, struct err *err)
{
    static const struct {
        const char *symbol;
        size_t offset;
    } functions[] = {
#define FUNCTION(symbol, member, arguments) {#symbol, offsetof(struct sanitizer_api, member)},
        SANITIZER_FUNCTIONS(FUNCTION)
#undef FUNCTION
    };
    void *const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return err_set(err, STATUS_NOT_FOUND, "cannot open the Sanitizer library: %s", dlerror());
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        void *const found = dlsym(library, functions[i].symbol);
        if (!found)
            return err_set(err, STATUS_NOT_SUPPORTED, "the Sanitizer library %s lacks %s", path,
                           functions[i].symbol);
        memcpy((char *)out + functions[i].offset, &found, sizeof found);
    }
    return STATUS_OK;
}
