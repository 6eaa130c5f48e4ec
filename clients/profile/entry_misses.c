/* entry_misses.c: see entry_misses.h. The entries are a list in the order of their last use. The
 * entry of a resident translation moves to the front, and the last one is replaced. */
#include "clients/profile/entry_misses.h"

#include "clients/lab/trace/number_set.h"

#include <stdlib.h>

struct link {
    uint32_t newer, older; /* neighbors in the list */
};

struct table {
    uint64_t room;
    uint64_t used;
    struct link *links; /* by number of the translation; the last element is the head of the list */
    uint32_t head;
};

static void remove_link(struct table *t, uint32_t i)
{
    t->links[t->links[i].newer].older = t->links[i].older;
    t->links[t->links[i].older].newer = t->links[i].newer;
    t->links[i].newer = t->links[i].older = i;
}

static void put_first(struct table *t, uint32_t i)
{
    t->links[i] = (struct link){t->head, t->links[t->head].older};
    t->links[t->links[i].older].newer = i;
    t->links[t->head].older = i;
}

/* Returns whether translation `i` is missing, and makes it the most recently used one. A missing
 * translation is linked to itself. */
static bool touch(struct table *t, uint32_t i)
{
    const bool missing = t->links[i].newer == i;

    if (missing && t->used == t->room)
        remove_link(t, t->links[t->head].newer);
    else if (missing)
        t->used++;
    else
        remove_link(t, i);
    put_first(t, i);
    return missing;
}

enum status entry_misses_count(const uint64_t *addresses, uint64_t count, uint64_t entry_bytes,
                               uint64_t entries, struct entry_misses *out, struct err *err)
{
    struct number_set set = {0};
    struct table t = {.room = entries};
    uint32_t *numbers = malloc((count + 1) * sizeof(*numbers));
    bool fits = numbers != NULL;

    *out = (struct entry_misses){0};
    for (uint64_t i = 0; fits && i < count; i++) {
        numbers[i] = number_set_add(&set, addresses[i] / entry_bytes);
        fits = numbers[i] != UINT32_MAX;
    }
    out->translations = t.head = set.count;
    t.links = fits ? calloc(set.count + (size_t)1, sizeof(*t.links)) : NULL;
    for (uint32_t i = 0; t.links && i <= set.count; i++)
        t.links[i] = (struct link){i, i};
    for (uint64_t i = 0; t.links && i < 2 * count; i++) {
        const bool missing = touch(&t, numbers[i % count]);
        out->misses += missing && i >= count;
    }
    fits = t.links != NULL;
    number_set_free(&set);
    free(numbers);
    free(t.links);
    return fits ? STATUS_OK : err_no_memory(err, "the entries");
}
