/* Replaces the header of HIP: see hip_runtime.h. */
#ifndef REACH_TEST_HIP_COOPERATIVE_GROUPS_H
#define REACH_TEST_HIP_COOPERATIVE_GROUPS_H
#include <cooperative_groups.h>
#endif
