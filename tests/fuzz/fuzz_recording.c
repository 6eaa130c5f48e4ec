/* fuzz_recording.c: reads any bytes as a recording of reach-profile. An accepted recording has
 * valid indices and ranges, and a report without traces can be made from it. */
#include "fuzz.h"

#include "clients/profile/report.h"
#include "clients/profile/report_text.h"

#include <stdlib.h>
#include <string.h>

static const struct fingerprint *find_none(void *context, const struct recording_gpu *gpu,
                                           const char **out_why)
{
    (void)context;
    (void)gpu;
    *out_why = "there is none";
    return NULL;
}

static void check(const struct recording *r)
{
    for (uint32_t i = 0; i < r->allocation_count; i++) {
        REACH_ASSERT(r->allocations[i].gpu < r->gpu_count);
        REACH_ASSERT(r->allocations[i].address + r->allocations[i].bytes <= (uint64_t)1 << 63);
        REACH_ASSERT(i == 0 || r->allocations[i - 1].address <= r->allocations[i].address);
    }
    for (uint32_t k = 0; k < r->kernel_count; k++) {
        REACH_ASSERT(r->kernels[k].gpu < r->gpu_count);
        for (uint32_t l = 0; l < r->kernels[k].launch_count; l++)
            REACH_ASSERT(!strchr(r->kernels[k].recorded[l].trace, '/'));
    }
}

static void make_report(const struct recording *r)
{
    const struct report_source source = {
        .recordings = r, .count = 1, .folder = "/dev/null", .find = find_none};
    struct report report;
    char text[REPORT_CELL_BYTES];

    REACH_ASSERT(report_make(&source, &report, NULL) == STATUS_OK);
    for (uint32_t i = 0; i < report.section_count; i++) {
        (void)report_text_title(&report.sections[i], text);
        for (uint32_t k = 0; k < report.sections[i].row_count; k++) {
            (void)report_text_touches(&report.sections[i].rows[k], text);
            (void)report_text_instead(&report.sections[i].rows[k], text);
            REACH_ASSERT(strlen(text) < sizeof(text));
        }
    }
    report_free(&report);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct recording r;
    struct err err = {0};

    if (recording_parse((const char *)data, size, &r, &err) == STATUS_OK) {
        check(&r);
        make_report(&r);
    } else {
        REACH_ASSERT(err.text[0] != '\0');
    }
    recording_free(&r);
    return 0;
}
