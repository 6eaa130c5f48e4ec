/* fake_control.c: the text that steers the stand-in driver. Its syntax is in fakecuda.c. */
#include "tests/fakecuda/fake_control.h"

#include "base/units.h"
#include "gpu/sim/sim_profiles.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_DRIVER_VERSION = 13000, FAKE_VIRTUAL_FACTOR = 16, MAX_ITEM = 4096 };

static int complain(const char *item, const char *what)
{
    (void)fprintf(stderr, "fakecuda: \"%s\": %s\n", item, what);
    return -1;
}

static int add_gpu(const char *item, const char *text, struct control *c)
{
    struct err err = {.status = STATUS_OK};
    if (c->gpu_count == REACH_MAX_GPUS)
        return complain(item, "too many GPUs");
    struct sim_desc *d = &c->gpus[c->gpu_count];
    if (sim_profiles_parse(text, d, &err) != STATUS_OK)
        return complain(item, err.text);
    /* The driver hands out addresses side by side, so the model needs room for all of them. */
    d->range_bytes = d->memory_bytes * FAKE_VIRTUAL_FACTOR;
    c->gpu_count++;
    return 0;
}

/* "<call>[@<use>[+]][=<value>]" */
static int add_fault(const char *item, enum fault_kind kind, const char *text, struct control *c)
{
    if (c->fault_count == FAKE_MAX_FAULTS)
        return complain(item, "too many faults");
    struct fault f = {.kind = kind};
    size_t n = strcspn(text, "@=");
    if (n == 0 || n >= sizeof f.call)
        return complain(item, "the name of a call belongs here");
    memcpy(f.call, text, n);
    const char *p = text + n;
    char *end = NULL;
    if (*p == '@') {
        f.use = strtoull(p + 1, &end, 10);
        if (end == p + 1 || f.use == 0)
            return complain(item, "@<number of the use>, from 1");
        f.onwards = *end == '+';
        p = end + f.onwards;
    }
    if (*p == '=') {
        f.value = (int)strtol(p + 1, &end, 10);
        if (end == p + 1)
            return complain(item, "a number belongs behind =");
        p = end;
    }
    if (*p != '\0' || (kind == FAULT_FAIL && f.value == 0))
        return complain(item, "<call>@<use>=<result>");
    c->faults[c->fault_count++] = f;
    return 0;
}

static int read_number(const char *item, const char *text, int *out)
{
    char *end = NULL;
    long v = strtol(text, &end, 10);
    if (end == text || *end != '\0')
        return complain(item, "a number belongs here");
    *out = (int)v;
    return 0;
}

static const char *after(const char *item, const char *prefix)
{
    size_t n = strlen(prefix);
    return strncmp(item, prefix, n) == 0 ? item + n : NULL;
}

static int read_item(const char *item, struct control *c)
{
    const char *v = NULL;
    struct err err;
    if ((v = after(item, "gpu=")))
        return add_gpu(item, v, c);
    if ((v = after(item, "fail=")))
        return add_fault(item, FAULT_FAIL, v, c);
    if ((v = after(item, "hang=")))
        return add_fault(item, FAULT_HANG, v, c);
    if ((v = after(item, "crash=")))
        return add_fault(item, FAULT_CRASH, v, c);
    if ((v = after(item, "giveup=")))
        return add_fault(item, FAULT_GIVE_UP, v, c);
    if ((v = after(item, "driver=")))
        return read_number(item, v, &c->driver_version);
    if ((v = after(item, "mode=")))
        return read_number(item, v, &c->compute_mode);
    if ((v = after(item, "others=")))
        return units_parse_bytes(v, &c->others_bytes, &err) == STATUS_OK
                   ? 0
                   : complain(item, "a size belongs here");
    if (strcmp(item, "novmm") == 0)
        c->no_vmm = true;
    else if (strcmp(item, "mig") == 0)
        c->mig = true;
    else if (item[0] != '\0')
        return complain(item, "no such item");
    return 0;
}

int control_parse(const char *text, struct control *out)
{
    const char *separators = strchr(text, '|') ? "|\n" : ",\n";
    memset(out, 0, sizeof *out);
    out->driver_version = DEFAULT_DRIVER_VERSION;
    for (const char *p = text;;) {
        char item[MAX_ITEM];
        size_t n = strcspn(p, separators);
        if (n >= sizeof item)
            return complain("..", "an item is too long");
        memcpy(item, p, n);
        item[n] = '\0';
        if (read_item(item + strspn(item, " "), out) != 0)
            return -1;
        if (p[n] == '\0')
            break;
        p += n + 1;
    }
    return out->gpu_count > 0 ? 0 : add_gpu("gpu=h200", "h200", out);
}

const struct fault *control_fault(const struct control *c, enum fault_kind kind, const char *call,
                                  uint64_t use)
{
    for (uint32_t i = 0; i < c->fault_count; i++) {
        const struct fault *f = &c->faults[i];
        if (f->kind == kind && strcmp(f->call, call) == 0 &&
            (f->use == 0 || f->use == use || (f->onwards && use > f->use)))
            return f;
    }
    return NULL;
}
