/* fake_control.h: the faults and settings of the stand-in driver. */
#pragma once

#include "types/identity.h"
#include "gpu/sim/sim_desc.h"

#include <stdbool.h>

enum { FAKE_MAX_FAULTS = 16, FAKE_MAX_CALLS = 96, FAKE_CALL_CHARS = 40 };

enum fault_kind { FAULT_FAIL = 0, FAULT_HANG, FAULT_CRASH, FAULT_GIVE_UP };

struct fault {
    enum fault_kind kind;
    char call[FAKE_CALL_CHARS]; /* name of an API call or a kernel; "*" means any call of the API */
    int gpu;      /* number of the GPU that the call is about, by PCI address; -1 means any */
    uint64_t use; /* 1 means the first use; 0 means each use */
    bool onwards; /* whether the fault also applies to all later uses */
    int value;    /* FAIL: the result of the call; HANG: the duration in milliseconds, 0 means
                     indefinitely */
};

/* A GPU of the node, or a MIG instance. */
struct board {
    struct sim_desc desc;
    int parent;     /* index of the board that the instance belongs to; -1 if the board is a GPU */
    bool has_mig;   /* whether MIG mode is on */
    bool has_parts; /* whether MPS divides the GPU into MLOPart devices */
    bool is_part;   /* whether this is an MLOPart device */
    int bus;        /* bus number of its PCI address */
    int minor;      /* number of its device file */
};

struct control {
    /* The GPUs of the node, which the stand-in for NVML reports. */
    uint32_t board_count;
    struct board boards[REACH_MAX_GPUS];
    /* The GPUs that CUDA_VISIBLE_DEVICES leaves, which the driver reports. */
    uint32_t gpu_count;
    struct sim_desc gpus[REACH_MAX_GPUS];
    int board_of[REACH_MAX_GPUS];
    uint32_t fault_count;
    struct fault faults[FAKE_MAX_FAULTS];
    int driver_version;
    int compute_mode;
    uint64_t others_bytes; /* device memory that other processes hold */
    int mps_clients;       /* clients of MPS, including this process; 0 means no MPS */
    int processes;         /* other processes that NVML reports */
    int busy_percent;      /* utilization that NVML reports */
    bool mute;             /* NVML reports nothing else about a GPU */
    bool no_vmm;
    bool no_hints;
    bool ats;
    bool unified;
    bool mig;
};

/* Returns 0, or -1 after printing a line to stderr. Every GPU is visible. */
int control_parse(const char *text, struct control *out);
/* Keeps only the GPUs that `visible` names (the value of CUDA_VISIBLE_DEVICES, or NULL if it is not
 * set). `visible` names one instance by UUID, or whole GPUs by UUID, the beginning of a UUID, or
 * number. The GPUs keep the order of these names. A named instance is visible. The first instance
 * is visible if the node has no whole GPU. `order` is the value of CUDA_DEVICE_ORDER: unless it is
 * PCI_BUS_ID, GPUs are numbered from the one with the most SMs. */
void control_see(struct control *c, const char *visible, const char *order);
/* Writes the UUID of a board as 16 bytes and as text: "GPU-" or "MIG-" and 36 characters. */
void control_uuid(const struct control *c, uint32_t board, unsigned char out_bytes[16],
                  char out_text[64]);

/* Returns the fault for use number `use` of `call` about GPU `gpu` (-1 means no GPU), or NULL. */
const struct fault *control_fault(const struct control *c, enum fault_kind kind, const char *call,
                                  int gpu, uint64_t use);
