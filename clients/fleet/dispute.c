/* dispute.c: all claims in one list, sorted by UUID: whoever stands beside one with the same UUID
 * is in dispute with it. */
#include "clients/fleet/dispute.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { DETAIL_BYTES = 512, COLUMNS = 7 };

struct claimed {
    struct survey_gpu *gpu;
    struct survey_host *host;
};

enum status survey_set_detail(struct survey_host *h, const char *text, struct err *err)
{
    char *const copy = strdup(text);

    if (!copy)
        return err_set(err, STATUS_NO_MEMORY, "no memory for what became of a host");
    free(h->detail);
    h->detail = copy;
    return STATUS_OK;
}

/* ---- what unchanged hosts have ---- */

struct fetching {
    struct survey *survey;
    struct survey_host **by_name; /* the unchanged ones, sorted */
    size_t count;
};

static int by_host_name(const void *a, const void *b)
{
    return strcmp((*(struct survey_host *const *)a)->name, (*(struct survey_host *const *)b)->name);
}

static int is_host_name(const void *name, const void *host)
{
    return strcmp(name, (*(struct survey_host *const *)host)->name);
}

static void copy(char *out, size_t size, const char *text)
{
    snprintf(out, size, "%s", text ? text : "");
}

/* Columns: the host's name, then slot, uuid, serial, model, state, fingerprint id. */
static enum status on_row(void *self, int columns, const char *const *values, struct err *err)
{
    struct fetching *const f = self;
    struct survey_host **const found =
        columns == COLUMNS && values[0]
            ? bsearch(values[0], f->by_name, f->count, sizeof(struct survey_host *), is_host_name)
            : NULL;
    struct survey_host *const h = found ? *found : NULL;
    struct survey_gpu *gpu;

    if (!h || h->gpu_count == REACH_MAX_GPUS)
        return STATUS_OK; /* one that is not asked, or not heard, this time */
    /* Doubled whenever it is full, from one: most hosts have few. */
    if ((h->gpu_count & (h->gpu_count - 1)) == 0) {
        const size_t room = h->gpu_count ? 2 * (size_t)h->gpu_count : 1;
        struct survey_gpu *const grown = realloc(h->gpus, room * sizeof(*grown));
        if (!grown)
            return err_set(err, STATUS_NO_MEMORY, "no memory for what a host answered");
        h->gpus = grown;
    }
    gpu = &h->gpus[h->gpu_count++];
    *gpu = (struct survey_gpu){.disputed = false};
    gpu->slot = values[1] ? (uint32_t)strtoul(values[1], NULL, 10) : 0;
    copy(gpu->uuid, sizeof(gpu->uuid), values[2]);
    copy(gpu->serial, sizeof(gpu->serial), values[3]);
    copy(gpu->model, sizeof(gpu->model), values[4]);
    copy(gpu->state, sizeof(gpu->state), values[5]);
    copy(gpu->fingerprint_id, sizeof(gpu->fingerprint_id), values[6]);
    return STATUS_OK;
}

static enum status fetch_unchanged(struct fleet_db *db, struct survey *survey, struct err *err)
{
    static const char sql[] =
        "SELECT h.name, s.slot, g.uuid, g.serial, k.model, s.state, f.name "
        "FROM fleet_host h "
        "JOIN fleet_sighting s ON s.host = h.id AND s.survey = h.answered "
        "JOIN fleet_gpu g ON g.id = s.gpu JOIN fleet_kind k ON k.id = s.kind "
        "LEFT JOIN fleet_fingerprint f ON f.id = s.fingerprint ORDER BY h.id, s.slot";
    struct fetching f = {.survey = survey,
                         .by_name = calloc(survey->host_count + 1, sizeof(struct survey_host *))};
    enum status s = STATUS_OK;

    if (!f.by_name)
        return err_set(err, STATUS_NO_MEMORY, "no memory for a survey");
    for (uint32_t i = 0; i < survey->host_count; i++) {
        if (survey->hosts[i].outcome == FLEET_UNCHANGED)
            f.by_name[f.count++] = &survey->hosts[i];
    }
    qsort(f.by_name, f.count, sizeof(struct survey_host *), by_host_name);
    if (f.count > 0)
        s = fleet_query(db, sql, 0, NULL, on_row, &f, err);
    free(f.by_name);
    return s;
}

/* ---- who is in dispute ---- */

static int by_uuid(const void *a, const void *b)
{
    const struct claimed *const x = a;
    const struct claimed *const y = b;
    const int order = strcasecmp(x->gpu->uuid, y->gpu->uuid);

    return order ? order : x->host < y->host ? -1 : x->host > y->host;
}

/* Names the other; the first dispute of a host is the one it is told for. */
static enum status blame(struct claimed *c, const struct claimed *other, struct err *err)
{
    const bool one_answer =
        c->host->etag[0] && other->host->etag[0] && strcmp(c->host->etag, other->host->etag) == 0;
    char detail[DETAIL_BYTES];

    c->gpu->disputed = true;
    if (c->host->outcome == FLEET_LIED)
        return STATUS_OK;
    c->host->outcome = FLEET_LIED;
    snprintf(detail, sizeof(detail), "%s is claimed by %.200s too%s", c->gpu->uuid,
             other->host->name,
             one_answer ? ", in the very same answer: two names of one daemon?" : "");
    return survey_set_detail(c->host, detail, err);
}

static enum status mark(struct claimed *all, size_t count, struct survey *survey, struct err *err)
{
    enum status s = STATUS_OK;

    for (size_t from = 0, end; from < count && s == STATUS_OK; from = end) {
        for (end = from + 1; end < count; end++) {
            if (strcasecmp(all[from].gpu->uuid, all[end].gpu->uuid) != 0)
                break;
        }
        survey->disputed_count += end - from > 1;
        for (size_t i = from; end - from > 1 && i < end && s == STATUS_OK; i++)
            s = blame(&all[i], &all[i == from ? from + 1 : from], err);
    }
    for (uint32_t i = 0; i < survey->host_count; i++) {
        if (survey->hosts[i].outcome == FLEET_LIED)
            survey->hosts[i].etag[0] = '\0';
    }
    return s;
}

enum status dispute_settle(struct fleet_db *db, struct survey *survey, struct err *err)
{
    struct claimed *all;
    size_t count = 0;
    size_t n = 0;
    enum status s = fetch_unchanged(db, survey, err);

    if (s != STATUS_OK)
        return s;
    for (uint32_t i = 0; i < survey->host_count; i++)
        count += survey->hosts[i].gpu_count;
    all = calloc(count + 1, sizeof(*all));
    if (!all)
        return err_set(err, STATUS_NO_MEMORY, "no memory for a survey");
    for (uint32_t i = 0; i < survey->host_count; i++) {
        for (uint32_t g = 0; g < survey->hosts[i].gpu_count; g++)
            all[n++] = (struct claimed){&survey->hosts[i].gpus[g], &survey->hosts[i]};
    }
    qsort(all, n, sizeof(*all), by_uuid);
    s = mark(all, n, survey, err);
    free(all);
    return s;
}
