/* job_fields.c: what a job can say of itself besides its bytes and its kind of access, by name, and
 * whether its numbers are in range. */
#include "planner/strategy_cost.h"

#include <string.h>

#define FIELD(of, name, kind, member, most)                                                        \
    {                                                                                              \
        name, kind, offsetof(struct of, member), most                                              \
    }

const struct job_field job_fields[JOB_FIELD_COUNT] = {
    FIELD(job_request, "reserve", JOB_FIELD_BYTES, reserve_bytes, 0),
    FIELD(job_request, "accesses", JOB_FIELD_COUNTER, accesses, 0),
    FIELD(job_request, "launch_us", JOB_FIELD_REAL, launch_us, STRATEGY_MAX_RATE),
    FIELD(job_request, "no_sm_binding", JOB_FIELD_FLAG, no_sm_binding, 0),
    FIELD(job_request, "single_pass", JOB_FIELD_FLAG, single_pass, 0),
    FIELD(job_request, "input_bytes", JOB_FIELD_REAL, input_bytes, STRATEGY_MAX_INPUT_BYTES),
    FIELD(job_request, "input_gbps", JOB_FIELD_REAL, input_gbps, STRATEGY_MAX_RATE),
    FIELD(job_request, "scan_gps", JOB_FIELD_REAL, scan_gps, STRATEGY_MAX_RATE),
    FIELD(job_request, "in_reach_gbps", JOB_FIELD_REAL, in_reach_gbps, STRATEGY_MAX_RATE),
    FIELD(job_request, "output_bytes", JOB_FIELD_REAL, output_bytes, STRATEGY_MAX_INPUT_BYTES),
    FIELD(job_request, "written_bytes", JOB_FIELD_REAL, written_bytes, STRATEGY_MAX_INPUT_BYTES),
    FIELD(job_request, "partition_bytes", JOB_FIELD_REAL, partition_bytes,
          STRATEGY_MAX_INPUT_BYTES),
    FIELD(job_request, "contiguous", JOB_FIELD_COMPLEMENT, scattered, 1),
};

const struct job_field allocation_fields[ALLOCATION_FIELD_COUNT] = {
    FIELD(job_allocation, "touches", JOB_FIELD_TOUCHES, touches, STRATEGY_MAX_TOUCHES),
    FIELD(job_allocation, "element", JOB_FIELD_ACCESS_BYTES, element_bytes, 0),
    FIELD(job_allocation, "transaction", JOB_FIELD_ACCESS_BYTES, transaction_bytes, 0),
    FIELD(job_allocation, "granularity", JOB_FIELD_BYTES, granularity_bytes, 0),
};

/* Are the real numbers of one of the tables in range? */
static enum status check_fields(const struct job_field *fields, size_t count, const void *of,
                                struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        const struct job_field *f = &fields[i];
        double v;
        if (f->kind != JOB_FIELD_REAL && f->kind != JOB_FIELD_COMPLEMENT &&
            f->kind != JOB_FIELD_TOUCHES)
            continue;
        memcpy(&v, (const char *)of + f->offset, sizeof(v));
        if (!(v >= 0 && v <= f->most)) /* not a number is neither */
            return err_set_field(err, STATUS_INVALID_ARGUMENT, f->name,
                                 "%s must be a number from 0 to %.0f: check it", f->name, f->most);
    }
    return STATUS_OK;
}

enum status costing_check(const struct job_request *job, struct err *err)
{
    enum status s = check_fields(job_fields, JOB_FIELD_COUNT, job, err);

    for (uint32_t i = 0; s == STATUS_OK && i < job->allocation_count; i++)
        s = check_fields(allocation_fields, ALLOCATION_FIELD_COUNT, &job->allocations[i], err);
    if (s != STATUS_OK)
        return s;
    if (job->input_gbps > 0 && !(job->input_bytes > 0))
        return err_set_field(err, STATUS_INVALID_ARGUMENT, "input_gbps",
                             "input_gbps needs input_bytes: give the bytes of input per access");
    return STATUS_OK;
}
