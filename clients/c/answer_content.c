/* answer_content.c: memory and references of the content of answers. */
#include "clients/c/answer_content.h"

#include <stdlib.h>

struct answer_block {
    struct answer_block *next;
    max_align_t data[];
};

void *answer_alloc(struct answer_content *content, size_t count, size_t size)
{
    struct answer_block *block = calloc(1, sizeof(*block) + count * size); /* both are bounded */

    if (!block) {
        content->no_memory = true;
        return NULL;
    }
    block->next = content->blocks;
    content->blocks = block;
    return block->data;
}

void answer_content_hold(struct answer_content *content)
{
    atomic_fetch_add_explicit(&content->refs, 1, memory_order_relaxed);
}

void answer_content_release(struct answer_content *take)
{
    if (!take || atomic_fetch_sub_explicit(&take->refs, 1, memory_order_acq_rel) > 1)
        return;
    while (take->blocks) {
        struct answer_block *block = take->blocks;
        take->blocks = block->next;
        free(block);
    }
    json_decref(take->json);
    free(take->call);
    free(take->body);
    free(take);
}
