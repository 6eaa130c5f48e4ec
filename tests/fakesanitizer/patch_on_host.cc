/* patch_on_host.cc: the patch of reach-profile (clients/profile/inject/patch.cu) on the CPU, for
 * fakesanitizer. PATCH is the name of the patch without its PTX. Blocks run one after another, each
 * thread of a block as a context of its own (tests/cuda_on_host). */
#include "tests/cuda_on_host/cuda_runtime.h"

#include "tests/fakecuda/fakecuda_script.h"

static unsigned long long timer_ns = 1; /* the timer of the GPU */

#include PATCH

typedef int access_fn(void *data, uint64_t pc, void *address, uint32_t bytes, uint32_t flags, const void *);

/* Flags of an access in the Sanitizer API, by enum fakecuda_access. */
static const uint32_t flags_of[] = {1, 2, 3};

static void run_thread(const fakecuda_launch *l, uint64_t block, access_fn *patch, uint64_t pc, void *data)
{
    const uint64_t threads = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2] * l->block[0];
    for (uint64_t s = 0; s < l->script->step_count; s++) {
        const fakecuda_step *const step = &l->script->steps[s];
        for (uint32_t repeat = 0; repeat < step->repeats; repeat++) {
            const uint64_t address = fakecuda_address(step, block * l->block[0] + threadIdx.x, threads, repeat);
            patch(data, pc + 16 * (s + 1), (void *)address, step->element_bytes, flags_of[step->access], nullptr);
        }
    }
}

extern "C" void fake_patch_run(const fakecuda_launch *l, const char *function, uint64_t pc, void *data)
{
    access_fn *const patch = strcmp(function, "reach_profile_access") == 0 ? reach_profile_access : nullptr;
    gridDim = dim3(l->grid[0]);
    gridDim.y = l->grid[1];
    gridDim.z = l->grid[2];
    blockDim = dim3(l->block[0]);
    for (uint64_t b = 0; patch && b < (uint64_t)gridDim.x * gridDim.y * gridDim.z; b++) {
        const std::function<void()> body = [&] { run_thread(l, b, patch, pc, data); };
        blockIdx.x = (unsigned)(b % gridDim.x);
        blockIdx.y = (unsigned)(b / gridDim.x % gridDim.y);
        blockIdx.z = (unsigned)(b / gridDim.x / gridDim.y);
        cuda_on_host::body = &body;
        cuda_on_host::run_block(blockDim.x);
    }
    cuda_on_host::body = nullptr;
}
