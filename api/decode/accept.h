/* accept.h: which of several representations a client likes best (RFC 9110, section 12.5.1). */
#ifndef REACH_API_ACCEPT_H
#define REACH_API_ACCEPT_H

enum { ACCEPT_NOT = -1 };

/* How much `accept` (NULL: anything) likes `type`, such as "text/csv", in thousandths: the weight
 * of the most exact range that covers it. ACCEPT_NOT where none does. */
int accept_weight(const char *accept, const char *type);

#endif
