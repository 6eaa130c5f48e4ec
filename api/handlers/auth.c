/* auth.c: compares the secret after "Bearer" in constant time. */
#include "api/handlers/auth.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

enum { LONGEST = 512 };

/* Always compares LONGEST bytes. A text with more bytes is equal to no other text. */
static bool is_same_secret(const char *a, const char *b)
{
    volatile unsigned char differs = 0;
    size_t at_a = 0;
    size_t at_b = 0;

    for (size_t i = 0; i < LONGEST; i++) {
        differs = (unsigned char)(differs | (a[at_a] ^ b[at_b]));
        at_a += a[at_a] != '\0';
        at_b += b[at_b] != '\0';
    }
    return differs == 0 && a[at_a] == '\0' && b[at_b] == '\0';
}

bool auth_is_allowed(const char *token, const char *authorization)
{
    static const char scheme[] = "Bearer";
    const char *given;

    if (!token || !*token)
        return true;
    if (!authorization || strncasecmp(authorization, scheme, sizeof(scheme) - 1) != 0)
        return false;
    given = authorization + sizeof(scheme) - 1;
    if (*given != ' ')
        return false;
    return is_same_secret(token, given + strspn(given, " "));
}
