/* fake_control.c: parses the text that controls the stand-in driver. The syntax of the text is in
 * fakecuda.c. */
#include "tests/fakecuda/fake_control.h"

#include "base/hash.h"
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

static int add_board(const char *item, const char *text, int parent, struct control *c)
{
    struct err err = {.status = STATUS_OK};
    if (c->board_count == REACH_MAX_GPUS)
        return complain(item, "too many GPUs");
    struct board *b = &c->boards[c->board_count];
    *b = (struct board){.parent = parent,
                        .bus = parent < 0 ? (int)c->board_count + 1 : c->boards[parent].bus,
                        .minor = parent < 0 ? (int)c->board_count : c->boards[parent].minor};
    if (sim_profiles_parse(text, &b->desc, &err) != STATUS_OK)
        return complain(item, err.text);
    /* The driver hands out adjacent addresses, so the model needs room for all of them. */
    b->desc.range_bytes = b->desc.memory_bytes * FAKE_VIRTUAL_FACTOR;
    c->board_count++;
    return 0;
}

static int add_gpu(const char *item, const char *text, struct control *c)
{
    return add_board(item, text, -1, c);
}

/* Returns the last GPU that is no part of another, or complains about the item and returns -1. */
static int last_whole_board(const char *item, const struct control *c)
{
    int at = (int)c->board_count - 1;
    while (at >= 0 && c->boards[at].parent >= 0)
        at--;
    return at >= 0 ? at : complain(item, "a GPU belongs before it");
}

/* The item "mig=" puts the last GPU in MIG mode without an instance; "mig=<description>" adds an
 * instance.
 */
static int add_mig(const char *item, const char *text, struct control *c)
{
    const int at = last_whole_board(item, c);
    if (at < 0)
        return at;
    c->boards[at].has_mig = true;
    return text[0] ? add_board(item, text, at, c) : 0;
}

/* The item "mlopart=<description>" adds an MLOPart device of the last GPU. */
static int add_part(const char *item, const char *text, struct control *c)
{
    const int at = last_whole_board(item, c);
    if (at < 0)
        return at;
    c->boards[at].has_parts = true;
    if (add_board(item, text, at, c) != 0)
        return -1;
    c->boards[c->board_count - 1].is_part = true;
    return 0;
}

static void see(struct control *c, uint32_t board)
{
    if (c->gpu_count == REACH_MAX_GPUS)
        return;
    c->board_of[c->gpu_count] = (int)board;
    c->gpus[c->gpu_count++] = c->boards[board].desc;
}

/* Lists the whole GPUs, or their MLOPart devices, in the order in which CUDA numbers them. Returns
 * their number. */
static uint32_t in_order(const struct control *c, const char *order, uint32_t out[REACH_MAX_GPUS])
{
    const bool by_address = order && strcmp(order, "PCI_BUS_ID") == 0;
    uint32_t n = 0;

    for (uint32_t i = 0; i < c->board_count; i++) {
        uint32_t at = n;
        if (c->boards[i].has_parts || (c->boards[i].parent >= 0 && !c->boards[i].is_part))
            continue;
        for (; !by_address && at > 0 &&
               c->boards[out[at - 1]].desc.sm_count < c->boards[i].desc.sm_count;
             at--)
            out[at] = out[at - 1];
        out[at] = i;
        n++;
    }
    return n;
}

/* Returns the index of the board that has the name `name` (of `length` characters), or board_count
 * if there is none. */
static uint32_t named(const struct control *c, const char *order, const char *name, size_t length)
{
    uint32_t numbered[REACH_MAX_GPUS];
    const uint32_t count = in_order(c, order, numbered);
    unsigned char bytes[16];
    char uuid[64];
    char number[16];

    for (uint32_t i = 0; i < count; i++) {
        (void)snprintf(number, sizeof number, "%u", i);
        if (strlen(number) == length && strncmp(number, name, length) == 0)
            return numbered[i];
    }
    for (uint32_t i = 0; length >= 5 && i < c->board_count; i++) {
        control_uuid(c, i, bytes, uuid);
        if (strlen(uuid) >= length && strncmp(uuid, name, length) == 0)
            return i;
    }
    return c->board_count;
}

void control_see(struct control *c, const char *visible, const char *order)
{
    uint32_t numbered[REACH_MAX_GPUS];
    const uint32_t count = in_order(c, order, numbered);

    c->gpu_count = 0;
    for (uint32_t i = 0; !visible && i < count; i++) {
        if (!c->boards[numbered[i]].has_mig)
            see(c, numbered[i]);
    }
    for (uint32_t i = 0; !visible && c->gpu_count == 0 && i < c->board_count; i++) {
        if (c->boards[i].parent >= 0 && !c->boards[i].is_part)
            see(c, i);
    }
    for (const char *p = visible; p && *p;) {
        const size_t length = strcspn(p, ",");
        const uint32_t at = named(c, order, p, length);
        if (at == c->board_count || c->boards[at].has_mig || c->boards[at].has_parts)
            return; /* devices after an unknown name are not visible */
        see(c, at);
        if (c->boards[at].parent >= 0 && !c->boards[at].is_part)
            return; /* a process uses one instance at most */
        p += length + (p[length] == ',');
    }
}

void control_uuid(const struct control *c, uint32_t board, unsigned char out_bytes[16],
                  char out_text[64])
{
    const struct sim_desc *const d = &c->boards[board].desc;
    struct gpu_identity id;
    int n;

    /* A GPU that has a UUID of its own keeps the UUID in any place. */
    sim_gpu_identity(d, d->uuid[0] ? 0 : board, &id);
    const uint64_t a = hash_bytes(HASH_START, id.uuid, strlen(id.uuid));
    const uint64_t b = hash_bytes(a, id.uuid, strlen(id.uuid));
    memcpy(out_bytes, &a, sizeof a);
    memcpy(out_bytes + sizeof a, &b, sizeof b);
    n = snprintf(out_text, 64, "%s",
                 c->boards[board].parent < 0 || c->boards[board].is_part ? "GPU" : "MIG");
    for (int i = 0; i < 16; i++)
        n += snprintf(out_text + n, 64 - (size_t)n, "%s%02x",
                      i == 0 || i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", out_bytes[i]);
}

/* "<call>[/<gpu>][@<use>[+]][=<value>]" */
static int add_fault(const char *item, enum fault_kind kind, const char *text, struct control *c)
{
    if (c->fault_count == FAKE_MAX_FAULTS)
        return complain(item, "too many faults");
    struct fault f = {.kind = kind, .gpu = -1};
    size_t n = strcspn(text, "/@=");
    if (n == 0 || n >= sizeof f.call)
        return complain(item, "the name of a call belongs here");
    memcpy(f.call, text, n);
    const char *p = text + n;
    char *end = NULL;
    if (*p == '/') {
        f.gpu = (int)strtol(p + 1, &end, 10);
        if (end == p + 1)
            return complain(item, "/<number of the GPU>, from 0");
        p = end;
    }
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
    if ((v = after(item, "mps=")))
        return read_number(item, v, &c->mps_clients);
    if ((v = after(item, "processes=")))
        return read_number(item, v, &c->processes);
    if ((v = after(item, "busy=")))
        return read_number(item, v, &c->busy_percent);
    if ((v = after(item, "others=")))
        return units_parse_bytes(v, &c->others_bytes, &err) == STATUS_OK
                   ? 0
                   : complain(item, "a size belongs here");
    if ((v = after(item, "mig=")))
        return add_mig(item, v, c);
    if ((v = after(item, "minor=")))
        return c->board_count > 0 ? read_number(item, v, &c->boards[c->board_count - 1].minor)
                                  : complain(item, "a GPU belongs before it");
    if ((v = after(item, "mlopart=")))
        return add_part(item, v, c);
    if ((v = after(item, "bus=")))
        return c->board_count > 0 ? read_number(item, v, &c->boards[c->board_count - 1].bus)
                                  : complain(item, "a GPU belongs before it");
    if (strcmp(item, "novmm") == 0)
        c->no_vmm = true;
    else if (strcmp(item, "mute") == 0)
        c->mute = true;
    else if (strcmp(item, "nohints") == 0)
        c->no_hints = true;
    else if (strcmp(item, "ats") == 0)
        c->ats = true;
    else if (strcmp(item, "unified") == 0)
        c->unified = true;
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
    const int r = out->board_count > 0 ? 0 : add_gpu("gpu=h200", "h200", out);
    for (uint32_t i = 0; i < out->board_count; i++)
        see(out, i);
    return r;
}

const struct fault *control_fault(const struct control *c, enum fault_kind kind, const char *call,
                                  int gpu, uint64_t use)
{
    for (uint32_t i = 0; i < c->fault_count; i++) {
        const struct fault *f = &c->faults[i];
        if (f->kind == kind && f->gpu == gpu && strcmp(f->call, call) == 0 &&
            (f->use == 0 || f->use == use || (f->onwards && use > f->use)))
            return f;
    }
    return NULL;
}
