/* reach_scopes.cuh: work in scopes. An existing kernel gets one range test and is launched once per
 * scope; in each launch the SMs access no more memory than their TLBs reach. Scopes need no SM ids,
 * no persistent blocks and no queue, so they work under MPS, in graphs and with kernels of other
 * libraries. docs/moving-to-scopes.md has an example.
 *
 * The header needs only reach_ranges.h and reach.h. The scopes come from an answer of libreach
 * (reach_answer_scope, reach_answer_plan) or from a struct reach_scopes that you fill. They are
 * ranges of one allocation, or of several with matched parts.
 *
 * All functions launch on the caller's stream, allocate nothing, wait for nothing, and can be
 * captured in a graph. Scopes must run one after another, in the order of the stream: do not launch
 * them on several streams. The first error ends a loop and is returned. Without scopes the error is
 * cudaErrorInvalidValue. */
#ifndef REACH_SCOPES_CUH
#define REACH_SCOPES_CUH

#include "reach_ranges.h"

#include <cuda_runtime.h>

/* ---- predicates --------------------------------------------------------------------------------
 */

/* A predicate that is true for the items of one scope (reach_pass_items), for algorithms that take
 * a predicate. */
struct reach_in_scope {
    struct reach_items items;

    __host__ __device__ __forceinline__ bool operator()(uint64_t item) const
    {
        return reach_has_item(items, item);
    }
};

/* A predicate that is true for the keys whose item, item_of(key), is in one scope. item_of returns
 * the bucket, block or row that a key accesses first. An example is cuCollections' add_if(first,
 * last, first, predicate). */
template <class ItemOf> struct reach_key_in_scope {
    struct reach_items items;
    ItemOf item_of;

    template <class Key> __host__ __device__ __forceinline__ bool operator()(const Key &key) const
    {
        return reach_has_item(items, (uint64_t)item_of(key));
    }
};

/* Returns the predicate of keys whose items have `item_bytes` in allocation `i`. */
template <class ItemOf>
static inline reach_key_in_scope<ItemOf>
reach_scope_test_of(const reach_pass &pass, uint64_t item_bytes, ItemOf item_of, uint32_t i = 0)
{
    return {reach_pass_items(&pass, i, item_bytes), item_of};
}

/* ---- loops -------------------------------------------------------------------------------------
 */

/* Calls launch(pass) for each scope in turn. launch returns nothing and enqueues the work of this
 * scope on one stream: a kernel of your own, or a library call with a predicate. The loop reads
 * launch errors with cudaGetLastError. */
template <class Launch>
static inline cudaError_t reach_for_each_scope(const reach_scopes &scopes, Launch launch)
{
    cudaError_t result = scopes.scope_count ? cudaSuccess : cudaErrorInvalidValue;
    for (uint32_t s = 0; s < scopes.scope_count && result == cudaSuccess; s++) {
        launch(reach_scopes_pass(&scopes, s));
        result = cudaGetLastError();
    }
    return result;
}

#endif
