/* exit_status.h: the exit statuses of reach-lab and reach-lab-papers. */
#pragma once

enum {
    LAB_OK = 0,      /* success; every checked target is reproduced */
    LAB_DIFFERS = 1, /* at least one target is not reproduced */
    LAB_ERROR = 2,
};
