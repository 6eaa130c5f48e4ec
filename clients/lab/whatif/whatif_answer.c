/* whatif_answer.c: see whatif_answer.h. */
#include "clients/lab/whatif/whatif_answer.h"

const char *whatif_question_name(enum whatif_question q)
{
    static const char *const names[WHATIF_QUESTION_COUNT] = {
        "as-it-is", "contiguity", "entry", "order", "blocks", "scopes", "windows"};
    return names[q];
}
