/* nvml.h: the reports of the management library libnvidia-ml.so.1, loaded at run time: driver
 * version, serial number, clocks, other processes. Each function may be missing; its answer is then
 * "not reported". The module only reads: clocks and modes are never changed. One thread uses it.
 *
 * A `struct nvml *` may be NULL everywhere; then nothing is reported. All functions but
 * nvml_identify and nvml_list are about the GPU that was identified last.
 */
#pragma once

#include "types/identity.h"
#include "gpu/probe.h"

struct nvml;

/* Returns NULL if the library is missing or cannot be initialized. */
struct nvml *nvml_open(void);
void nvml_close(struct nvml *take);

/* Finds the GPU by its UUID; fills in driver version, serial number ("" if not reported), MIG and
 * MLOPart. If NVML lists no such UUID but a GPU at the PCI address, the device is an MLOPart device
 * of that GPU. Later calls are then about that GPU. */
void nvml_identify(struct nvml *n, struct gpu_identity *io);
/* Lists the GPUs by PCI address, without the data that only CUDA reports. A GPU in MIG mode
 * (identity_is_divided) is followed by its instances, which have UUID ("MIG-..") and PCI address.
 * Returns their number, at most `max`. */
uint32_t nvml_list(struct nvml *n, struct gpu_identity *out, uint32_t max);
/* Returns N of the device file /dev/nvidiaN. */
struct maybe_u32 nvml_minor(const struct nvml *n);
struct maybe_u32 nvml_sm_clock_khz(const struct nvml *n);
/* Report the PCIe link that the GPU and its slot support, and the link in use. The generation in
 * use of an idle GPU is the first one, so read it after a kernel. */
struct maybe_u32 nvml_pcie_generation(const struct nvml *n);
struct maybe_u32 nvml_pcie_lanes_supported(const struct nvml *n);
struct maybe_u32 nvml_pcie_generation_used(const struct nvml *n);
struct maybe_u32 nvml_pcie_lanes(const struct nvml *n);
/* Returns the percentage of the last sample period in which any process had a kernel on the GPU. A
 * period is a sixth of a second to a second. Call it before the first kernel of this process. */
struct maybe_u32 nvml_busy_percent(const struct nvml *n);
/* Counts all compute processes. */
struct maybe_u32 nvml_processes(const struct nvml *n);
/* Counts compute processes besides this process, which must have a context. */
struct maybe_u32 nvml_other_processes(const struct nvml *n);
/* Counts the clients of MPS besides this process, which must be a client. */
struct maybe_u32 nvml_other_mps_clients(const struct nvml *n);
/* Reports the free device memory. It needs no context, which would take some memory itself. */
struct maybe_u64 nvml_free_bytes(const struct nvml *n);
/* Makes later calls of nvml_read_conditions count memory errors that ECC could not correct, and
 * report the driver's Xid events. */
void nvml_watch(struct nvml *n);
/* Reads clocks, temperature, throttling and errors in some tens of microseconds. Values that NVML
 * does not report are left unchanged. */
void nvml_read_conditions(struct nvml *n, struct probe_conditions *out);
