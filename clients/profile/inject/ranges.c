/* ranges.c: see ranges.h. NVTX calls the functions below instead of its own. They take no locks,
 * because a child of a fork may call them too. */
#include "clients/profile/inject/ranges.h"

#include "base/text.h"
#include "clients/profile/inject/nvtx_api.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <wchar.h>

struct range {
    const void *domain; /* NULL is the default domain */
    char name[RANGES_NAME_BYTES];
};

static __thread struct {
    unsigned count;
    struct range ranges[RANGES_DEPTH]; /* the innermost range is the last */
} stack;

/* Handles of registered strings and of domains are addresses in this array. */
static struct string {
    atomic_bool is_set;
    char text[RANGES_NAME_BYTES];
} strings[RANGES_STRINGS];
static atomic_uint string_count;

/* ---- names ---- */

/* Copies a name up to its first comma. A character that does not fit is left out. */
static void copy_name(char *out, const char *text)
{
    size_t n = 0;

    while (text && text[n] != '\0' && text[n] != ',') {
        const size_t bytes = text_character_bytes(text + n);
        const size_t next = n + (bytes > 0 ? bytes : 1);
        if (next >= RANGES_NAME_BYTES)
            break;
        n = next;
    }
    if (n > 0)
        memcpy(out, text, n);
    out[n] = '\0';
}

/* Converts a character to UTF-8 and returns its bytes. */
static size_t encode(uint32_t c, char out[4])
{
    const size_t bytes = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char marks[] = {0, 0, 0xc0, 0xe0, 0xf0};

    for (size_t i = bytes - 1; i > 0; i--, c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)(marks[bytes] | c);
    return bytes;
}

static void copy_wide_name(char *out, const wchar_t *text)
{
    size_t n = 0;

    for (; text && *text != L'\0' && *text != L','; text++) {
        char character[4];
        const size_t bytes = encode((uint32_t)*text < 0x110000 ? (uint32_t)*text : '?', character);
        if (n + bytes >= RANGES_NAME_BYTES)
            break;
        memcpy(out + n, character, bytes);
        n += bytes;
    }
    out[n] = '\0';
}

/* ---- strings ---- */

/* Returns the string of a name, or NULL if there is no room. Strings are never freed. Threads that
 * keep the same name at the same time may get two strings. */
static struct string *keep(const char name[RANGES_NAME_BYTES])
{
    const unsigned count = atomic_load(&string_count);
    unsigned at = 0;

    while (at < count && at < RANGES_STRINGS &&
           !(atomic_load(&strings[at].is_set) && strcmp(strings[at].text, name) == 0))
        at++;
    if (at < count && at < RANGES_STRINGS)
        return &strings[at];
    if (count >= RANGES_STRINGS)
        return NULL;
    at = atomic_fetch_add(&string_count, 1);
    if (at >= RANGES_STRINGS)
        return NULL;
    memcpy(strings[at].text, name, RANGES_NAME_BYTES);
    atomic_store(&strings[at].is_set, true);
    return &strings[at];
}

static const struct string *keep_text(const char *text)
{
    char name[RANGES_NAME_BYTES] = "";
    copy_name(name, text);
    return keep(name);
}

static const struct string *keep_wide(const wchar_t *text)
{
    char name[RANGES_NAME_BYTES] = "";
    copy_wide_name(name, text);
    return keep(name);
}

/* Returns the text of a registered string, or NULL if the program passes something else. */
static const char *string_text(const void *handle)
{
    const uintptr_t offset = (uintptr_t)handle - (uintptr_t)strings;
    return offset < sizeof strings && offset % sizeof *strings == 0
               ? strings[offset / sizeof *strings].text
               : NULL;
}

/* ---- ranges ---- */

/* Begins a range and returns its name, which the caller sets. */
static char *push(const void *domain)
{
    if (stack.count == RANGES_DEPTH)
        memmove(stack.ranges, stack.ranges + 1, --stack.count * sizeof *stack.ranges);
    struct range *const range = &stack.ranges[stack.count++];
    range->domain = domain;
    return range->name;
}

/* Ends the innermost range of the domain. */
static int pop(const void *domain)
{
    unsigned after = stack.count;

    while (after > 0 && stack.ranges[after - 1].domain != domain)
        after--;
    if (after > 0) {
        memmove(&stack.ranges[after - 1], &stack.ranges[after],
                (stack.count - after) * sizeof *stack.ranges);
        stack.count--;
    }
    return NVTX_NO_DEPTH;
}

const char *ranges_innermost(void)
{
    for (unsigned i = stack.count; i > 0; i--) {
        if (stack.ranges[i - 1].name[0] != '\0')
            return stack.ranges[i - 1].name;
    }
    return "";
}

/* ---- functions of NVTX ---- */

static int push_event(const void *domain, const struct nvtx_event *event)
{
    const bool is_whole = event && event->bytes >= sizeof *event;
    const int type = is_whole ? event->message_type : 0;
    char *const name = push(domain);

    if (type == NVTX_MESSAGE_W)
        copy_wide_name(name, event->message);
    else
        copy_name(name, type == NVTX_MESSAGE_A        ? event->message
                        : type == NVTX_MESSAGE_STRING ? string_text(event->message)
                                                      : NULL);
    return NVTX_NO_DEPTH;
}

static int range_push_ex(const struct nvtx_event *event)
{
    return push_event(NULL, event);
}

static int range_push_a(const char *text)
{
    copy_name(push(NULL), text);
    return NVTX_NO_DEPTH;
}

static int range_push_w(const wchar_t *text)
{
    copy_wide_name(push(NULL), text);
    return NVTX_NO_DEPTH;
}

static int range_pop(void)
{
    return pop(NULL);
}

static const struct string *register_string_a(const void *domain, const char *text)
{
    (void)domain;
    return keep_text(text);
}

static const struct string *register_string_w(const void *domain, const wchar_t *text)
{
    (void)domain;
    return keep_wide(text);
}

/* ---- start ---- */

__attribute__((visibility("default"))) int InitializeInjectionNvtx2(nvtx_get_table *get_table)
{
    static const struct {
        int module;
        unsigned id;
        nvtx_function function;
    } functions[] = {
        {NVTX_MODULE_CORE, NVTX_RANGE_PUSH_EX, (nvtx_function)range_push_ex},
        {NVTX_MODULE_CORE, NVTX_RANGE_PUSH_A, (nvtx_function)range_push_a},
        {NVTX_MODULE_CORE, NVTX_RANGE_PUSH_W, (nvtx_function)range_push_w},
        {NVTX_MODULE_CORE, NVTX_RANGE_POP, (nvtx_function)range_pop},
        {NVTX_MODULE_CORE2, NVTX_DOMAIN_RANGE_PUSH_EX, (nvtx_function)push_event},
        {NVTX_MODULE_CORE2, NVTX_DOMAIN_RANGE_POP, (nvtx_function)pop},
        {NVTX_MODULE_CORE2, NVTX_DOMAIN_REGISTER_STRING_A, (nvtx_function)register_string_a},
        {NVTX_MODULE_CORE2, NVTX_DOMAIN_REGISTER_STRING_W, (nvtx_function)register_string_w},
        {NVTX_MODULE_CORE2, NVTX_DOMAIN_CREATE_A, (nvtx_function)keep_text},
        {NVTX_MODULE_CORE2, NVTX_DOMAIN_CREATE_W, (nvtx_function)keep_wide},
    };
    const struct nvtx_callbacks *const callbacks = get_table(NVTX_TABLE_CALLBACKS);
    const struct nvtx_version *const version = get_table(NVTX_TABLE_VERSION);

    if (!callbacks || callbacks->bytes < sizeof *callbacks)
        return 0;
    if (version && version->bytes >= sizeof *version)
        version->set_tool_version(NVTX_TOOL_VERSION);
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        nvtx_function **table = NULL;
        unsigned count = 0;
        if (callbacks->get_functions(functions[i].module, &table, &count) &&
            functions[i].id < count && table[functions[i].id])
            *table[functions[i].id] = functions[i].function;
    }
    return 1;
}
