/* answer_parts.h: what the daemon's answers have in common. Part of answer. */
#ifndef REACH_CLIENT_ANSWER_PARTS_H
#define REACH_CLIENT_ANSWER_PARTS_H

#include "clients/c/answer.h"

#include "base/json_in.h"

void answer_read_basis(struct json_in *in, struct reach_basis *out);
void answer_read_number(struct json_in *in, const char *name, struct reach_number *out);
/* The fields of what an access costs: element_bytes .. inside_gbps. */
void answer_read_price(struct json_in *in, uint32_t *out_element, uint32_t *out_transaction,
                       char *out_basis, struct reach_number *out_inside);
/* The fields "windows" and "window_of_sm". What they say is not compared yet. */
void answer_read_windows(struct json_in *in, struct reach_windows *out);
/* The end of a document: REACH_PROTOCOL with the sentence in `err` where reading failed. */
enum reach_status answer_end(struct json_in *in, const struct err *err, struct reach_error *error);

#endif
