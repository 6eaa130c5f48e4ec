/* Replaces the header of HIP: see hip_runtime.h. */
#ifndef REACH_TEST_HIP_VERSION_H
#define REACH_TEST_HIP_VERSION_H
#define HIP_VERSION_MAJOR 0
#define HIP_VERSION_MINOR 0
#define HIP_VERSION_PATCH 0
#endif
