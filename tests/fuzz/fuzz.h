/* fuzz.h: the interface of every fuzz target: one function that takes any bytes and must return.
 *
 * A target is a file tests/fuzz/fuzz_NAME.c. The clang build links it with libFuzzer (`make fuzz`).
 * The other builds link it with replay.c, which runs the inputs under tests/fuzz/corpus/NAME in
 * `make check`. A target checks its demands with REACH_ASSERT (base/assert.h), which aborts.
 */
#pragma once

#include "base/assert.h"

#include <stddef.h>
#include <stdint.h>

/* Runs the target with these bytes. Returns 0, because libFuzzer reserves all other values. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
