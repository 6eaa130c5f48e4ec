/* fake_alloc.c: the driver calls that the allocators of libreach-cuda use: a stack of contexts,
 * events, copies within the device, and free memory without long runs. */
#include "tests/fakecuda/fake_driver.h"

#include "tests/fakecuda/fake_state.h"
#include "tests/fakecuda/fakecuda_script.h"

void fakecuda_limit_runs(uint64_t bytes)
{
    fake.longest_run = bytes;
}

/* ---- contexts ---- */

cu_result cuCtxPushCurrent_v2(cu_context context)
{
    cu_result r = fake_enter("cuCtxPushCurrent");
    if (r != CU_SUCCESS)
        return r;
    if (fake.push_count == FAKE_MAX_PUSHED)
        return fake_misuse(CU_ERROR_INVALID_VALUE, "contexts are pushed and never popped");
    const int before = fake.current;
    r = cuCtxSetCurrent(context);
    if (r == CU_SUCCESS)
        fake.pushed[fake.push_count++] = before;
    return r;
}

cu_result cuCtxPopCurrent_v2(cu_context *context)
{
    cu_result r = fake_enter("cuCtxPopCurrent");
    if (fake.push_count == 0)
        return fake_misuse(CU_ERROR_INVALID_CONTEXT, "a context is popped that was not pushed");
    *context = (cu_context)(void *)&fake.devices[fake.current];
    fake.current = fake.pushed[--fake.push_count];
    return r;
}

cu_result cuCtxSynchronize(void)
{
    FAKE_CALL("cuCtxSynchronize");
    fakecuda_drain();
    return fake_enter_context("cuCtxSynchronize");
}

cu_result cuStreamSynchronize(cu_stream stream)
{
    FAKE_CALL("cuStreamSynchronize");
    struct fake_stream *s = fake_stream_of(stream); /* the argument may be a context that the test
                                                     * made, or NULL */
    if (s)
        s->busy = false;
    fakecuda_drain();
    return fake_enter_context("cuStreamSynchronize");
}

/* ---- events ---- */

static struct fake_event *find_event(cu_event event)
{
    struct fake_event *events = fake.events.items;
    for (size_t i = 0; i < fake.events.count; i++) {
        if (events[i].id == (uint64_t)(uintptr_t)event)
            return &events[i];
    }
    (void)fake_misuse(CU_ERROR_INVALID_HANDLE, "an event that is not there");
    return NULL;
}

cu_result cuEventCreate(cu_event *event, unsigned flags)
{
    cu_result r = fake_enter_context("cuEventCreate");
    (void)flags;
    if (r != CU_SUCCESS)
        return r;
    struct fake_event *e = fake_list_add(&fake.events, sizeof *e, fake.events.count);
    e->id = ++fake.next_id;
    *event = (cu_event)(uintptr_t)e->id; /* a handle that is never dereferenced */
    return CU_SUCCESS;
}

cu_result cuEventRecord(cu_event event, cu_stream stream)
{
    cu_result r = fake_enter_context("cuEventRecord");
    struct fake_event *e = find_event(event);
    (void)stream;
    if (r != CU_SUCCESS || !e)
        return r != CU_SUCCESS ? r : CU_ERROR_INVALID_HANDLE;
    e->recorded = true;
    e->asked = false;
    return CU_SUCCESS;
}

/* A query reports an event as reached from the second one on, so that a caller that waits really
 * waits. */
cu_result cuEventQuery(cu_event event)
{
    cu_result r = fake_enter_context("cuEventQuery");
    struct fake_event *e = find_event(event);
    if (r != CU_SUCCESS || !e)
        return r != CU_SUCCESS ? r : CU_ERROR_INVALID_HANDLE;
    if (e->recorded && !e->asked) {
        e->asked = true;
        return CU_ERROR_NOT_READY;
    }
    return CU_SUCCESS;
}

cu_result cuEventSynchronize(cu_event event)
{
    cu_result r = fake_enter_context("cuEventSynchronize");
    return r != CU_SUCCESS || find_event(event) ? r : CU_ERROR_INVALID_HANDLE;
}

cu_result cuEventDestroy_v2(cu_event event)
{
    cu_result r = fake_enter("cuEventDestroy");
    struct fake_event *e = find_event(event);
    if (!e)
        return CU_ERROR_INVALID_HANDLE;
    fake_list_remove(&fake.events, sizeof *e, (size_t)(e - (struct fake_event *)fake.events.items));
    return r;
}

/* ---- memory ---- */

cu_result cuMemcpyDtoD_v2(cu_deviceptr to, cu_deviceptr from, size_t bytes)
{
    cu_result r = fake_enter_context("cuMemcpyDtoD");
    if (r != CU_SUCCESS)
        return r;
    if (!fake_copy(NULL, to, NULL, from, bytes))
        return fake_misuse(CU_ERROR_INVALID_VALUE, "a copy of memory that is not there");
    return CU_SUCCESS;
}
