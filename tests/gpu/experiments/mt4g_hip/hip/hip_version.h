/* Replaces the header of HIP: see hip_runtime.h. */
#pragma once
#define HIP_VERSION_MAJOR 0
#define HIP_VERSION_MINOR 0
#define HIP_VERSION_PATCH 0
