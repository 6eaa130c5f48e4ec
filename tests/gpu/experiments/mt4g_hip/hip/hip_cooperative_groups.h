/* Replaces the header of HIP: see hip_runtime.h. */
#pragma once
#include <cooperative_groups.h>
