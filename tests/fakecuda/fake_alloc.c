/* fake_alloc.c: what the allocators of libreach-cuda need of the stand-in driver: a stack of
 * contexts, events, copies within the device, host memory, and free memory without long runs. */
#include "tests/fakecuda/fake_driver.h"

#include "base/units.h"
#include "tests/fakecuda/fake_state.h"

#include <stdlib.h>
#include <string.h>

void fakecuda_limit_runs(uint64_t bytes)
{
    fake.longest_run = bytes;
}

/* First of every call that works in the current context. */
static cu_result enter_context(const char *call)
{
    cu_result r = fake_enter(call);
    if (r == CU_SUCCESS && fake.current < 0)
        r = fake_misuse(CU_ERROR_INVALID_CONTEXT, "%s without a context", call);
    return r;
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
    return enter_context("cuCtxSynchronize");
}

cu_result cuStreamSynchronize(cu_stream stream)
{
    (void)stream; /* of the test's own making; the default stream is NULL */
    return enter_context("cuStreamSynchronize");
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
    cu_result r = enter_context("cuEventCreate");
    (void)flags;
    if (r != CU_SUCCESS)
        return r;
    struct fake_event *e = fake_list_add(&fake.events, sizeof *e, fake.events.count);
    e->id = ++fake.next_id;
    *event = (cu_event)(uintptr_t)e->id; /* a name, never looked behind */
    return CU_SUCCESS;
}

cu_result cuEventRecord(cu_event event, cu_stream stream)
{
    cu_result r = enter_context("cuEventRecord");
    struct fake_event *e = find_event(event);
    (void)stream;
    if (r != CU_SUCCESS || !e)
        return r != CU_SUCCESS ? r : CU_ERROR_INVALID_HANDLE;
    e->recorded = true;
    e->asked = false;
    return CU_SUCCESS;
}

/* Not reached when first asked, so that a caller that waits really waits. */
cu_result cuEventQuery(cu_event event)
{
    cu_result r = enter_context("cuEventQuery");
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
    cu_result r = enter_context("cuEventSynchronize");
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
    cu_result r = enter_context("cuMemcpyDtoD");
    if (r != CU_SUCCESS)
        return r;
    if (!fake_copy(NULL, to, NULL, from, bytes))
        return fake_misuse(CU_ERROR_INVALID_VALUE, "a copy of memory that is not there");
    return CU_SUCCESS;
}

cu_result cuMemHostAlloc(void **memory, size_t bytes, unsigned flags)
{
    cu_result r = enter_context("cuMemHostAlloc");
    (void)flags;
    if (r != CU_SUCCESS)
        return r;
    void **slot = fake_list_add(&fake.host_memory, sizeof *slot, fake.host_memory.count);
    *slot = malloc(bytes);
    if (!*slot)
        abort();
    *memory = *slot;
    return CU_SUCCESS;
}

cu_result cuMemFreeHost(void *memory)
{
    cu_result r = fake_enter("cuMemFreeHost");
    void **slots = fake.host_memory.items;
    for (size_t i = 0; i < fake.host_memory.count; i++) {
        if (slots[i] != memory)
            continue;
        free(memory);
        fake_list_remove(&fake.host_memory, sizeof *slots, i);
        return r;
    }
    return fake_misuse(CU_ERROR_INVALID_VALUE, "host memory is freed that is not there");
}

/* Counted like device memory here. */
cu_result cuMemAllocManaged(cu_deviceptr *p, size_t bytes, unsigned flags)
{
    cu_result r = enter_context("cuMemAllocManaged");
    if (r != CU_SUCCESS)
        return r;
    if (bytes == 0 || flags != 1)
        return fake_misuse(CU_ERROR_INVALID_VALUE, "managed memory of %zu bytes", bytes);
    uint64_t va = fake_take_va(&fake.devices[fake.current], bytes, 2 * MIB);
    if (va == 0)
        return CU_ERROR_OUT_OF_MEMORY;
    struct fake_alloc *a = fake_list_add(&fake.allocs, sizeof *a, fake.allocs.count);
    *a = (struct fake_alloc){.va = va, .bytes = bytes, .device = fake.current};
    fake_hold(fake.current, (int64_t)bytes);
    *p = va;
    return CU_SUCCESS;
}

cu_result cuMemAdvise(cu_deviceptr p, size_t bytes, int advice, cu_device device)
{
    cu_result r = enter_context("cuMemAdvise");
    if (r != CU_SUCCESS)
        return r;
    if (!fake_is_mapped(p, bytes) || (advice != 3 && advice != 5) || device < -1)
        return fake_misuse(CU_ERROR_INVALID_VALUE, "advice %d for memory that is not there",
                           advice);
    return CU_SUCCESS;
}
