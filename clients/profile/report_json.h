/* report_json.h: a report as JSON. schema/json/profile.schema.json describes the document. */
#pragma once

#include "clients/profile/report.h"

/* Returns STATUS_IO if writing fails, and STATUS_NO_MEMORY if out of memory. */
enum status report_json_print(const struct report_source *source, const struct report *r, FILE *out,
                              struct err *err);
