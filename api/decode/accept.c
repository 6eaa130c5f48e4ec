/* accept.c: finds the weight of a media type in an Accept field. */
#include "api/decode/decode.h"

#include <stdlib.h>
#include <string.h>

static int thousandths(double weight)
{
    return weight >= 1 ? 1000 : weight > 0 ? (int)(weight * 1000) : 0; /* a NaN counts as 0 */
}

/* Returns the weight after ";q=" in one element of Accept, in thousandths, limited to 0 .. 1000. */
static int weight_of(const char *element, size_t bytes)
{
    for (size_t i = 0; i + 2 < bytes; i++) {
        if ((element[i] == ';' || element[i] == ' ') &&
            (element[i + 1] == 'q' || element[i + 1] == 'Q') && element[i + 2] == '=')
            return thousandths(strtod(element + i + 3, NULL));
    }
    return 1000;
}

int accept_weight(const char *accept, const char *type)
{
    size_t major = strcspn(type, "/") + 1;
    int best_fit = 0;
    int weight = ACCEPT_NOT;

    for (const char *at = accept ? accept : "*/*"; *at;) {
        size_t bytes;
        size_t name;
        int fit = 0;
        at += strspn(at, " \t,");
        bytes = strcspn(at, ",");
        name = strcspn(at, ",; \t");
        if (name == strlen(type) && strncasecmp(at, type, name) == 0)
            fit = 3;
        else if (name == major + 1 && strncasecmp(at, type, major) == 0 && at[major] == '*')
            fit = 2;
        else if (name == 3 && strncmp(at, "*/*", 3) == 0)
            fit = 1;
        if (fit > best_fit) {
            best_fit = fit;
            weight = weight_of(at, bytes);
        }
        at += bytes;
    }
    return weight;
}
