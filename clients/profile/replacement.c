/* replacement.c: see replacement.h. */
#include "clients/profile/replacement.h"

#include <string.h>

/* By a part of the name of the operator or, if it is unknown, of its kernel. */
static const struct {
    const char *operator, * symbol, *call;
} calls[] = {
    {"embedding_bag", "EmbeddingBag_updateOutput", "reach.torch.embedding_bag"},
    {"index_add", "indexFunc", "reach.torch.index_add_"},
    {"scatter_add", NULL, "reach.torch.scatter_add_"},
    {"index_select", "indexSelect", "reach.torch.index_select"},
    {"embedding", NULL, "reach.torch.embedding"},
};

const char *replacement_find(const struct recording_kernel *k)
{
    for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
        const char *const part = k->operator[0] ? calls[i].operator: calls[i].symbol;
        if (part && strstr(k->operator[0] ? k->operator: k->name, part))
            return calls[i].call;
    }
    return NULL;
}

bool replacement_is_whole(const struct recording_kernel *k)
{
    return replacement_find(k) && !strstr(k->operator[0] ? k->operator: k->name, "backward");
}
