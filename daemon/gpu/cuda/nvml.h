/* nvml.h: what only the management library tells (driver version, serial, clocks, who else is on
 * the GPU), through libnvidia-ml.so.1 loaded at run time, where it is present. Everything here may
 * be missing; then the answer is "not reported". Reads only: clocks and modes are never changed.
 * One thread.
 */
#ifndef REACH_GPU_CUDA_NVML_H
#define REACH_GPU_CUDA_NVML_H

#include "base/identity.h"
#include "gpu/probe.h"

struct nvml;

/* NULL where the library is missing or refuses. */
struct nvml *nvml_open(void);
void nvml_close(struct nvml *take);

/* Driver version of the node; "" where not reported. `out` is always terminated. */
void nvml_driver_version(struct nvml *n, char *out, unsigned out_size);
/* Serial number and MIG mode of the GPU with this UUID; leaves what is not reported. */
void nvml_identify(struct nvml *n, struct gpu_identity *io);
/* Clocks, temperature, throttling: some tens of microseconds. `n` may be NULL. */
void nvml_read_clocks(struct nvml *n, const char *uuid, struct probe_conditions *out);
/* The SM clock alone. `n` may be NULL, here and below. */
struct maybe_u32 nvml_sm_clock_khz(struct nvml *n, const char *uuid);
/* Share of the last sample period (a sixth of a second to a second) with any kernel on the GPU. It
 * does not tell whose: ask before the first kernel of one's own. */
struct maybe_u32 nvml_busy_percent(struct nvml *n, const char *uuid);
/* From now on nvml_read_faults counts memory errors that ECC could not correct, and notes the
 * driver's Xid events. */
void nvml_watch(struct nvml *n, const char *uuid);
void nvml_read_faults(struct nvml *n, const char *uuid, struct probe_conditions *out);
/* Compute processes besides the caller's own one (which must hold a context by now). */
struct maybe_u32 nvml_other_processes(struct nvml *n, const char *uuid);
/* Device memory that nobody holds: known without a context, which needs some itself. */
struct maybe_u64 nvml_free_bytes(struct nvml *n, const char *uuid);

#endif
