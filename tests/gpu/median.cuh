/* median.cuh: times a kernel by several launches. */
#pragma once

#include "tests/gpu/common.cuh"

#include <cuda_runtime.h>

#include <algorithm>

/* Calls launch(0) to warm up, then launch(1) to launch(RUNS), and returns the median time of the
 * kernels of such a call in ms. Ends the program after an error. */
template <int RUNS, class Launch> static float median_ms(Launch launch)
{
    cudaEvent_t before, after;
    float ms[RUNS + 1];

    CHECK(cudaEventCreate(&before));
    CHECK(cudaEventCreate(&after));
    for (uint32_t k = 0; k <= RUNS; k++) {
        CHECK(cudaEventRecord(before));
        launch(k);
        CHECK(cudaEventRecord(after));
        CHECK(cudaEventSynchronize(after));
        CHECK(cudaEventElapsedTime(&ms[k], before, after));
    }
    CHECK(cudaEventDestroy(before));
    CHECK(cudaEventDestroy(after));
    std::sort(ms + 1, ms + 1 + RUNS);
    return ms[1 + RUNS / 2];
}
