"""What the recorded programs share: the device, sizes, and repeated launches. Without a GPU the sizes are tiny, so that
the programs can be tested with TRITON_INTERPRET=1. The first argument of a program is the size of its data in GiB."""
import sys

import torch

GPU = torch.cuda.is_available()
DEVICE = "cuda" if GPU else "cpu"
CASES = 1 << (22 if GPU else 8)  # lookups, rows or blocks of a launch


def items(item_bytes):
    """Returns the number of items in the size of the data, which is at most four fifths of the free memory."""
    room = torch.cuda.mem_get_info()[0] * 4 // 5 if GPU else 1 << 18
    return min(int(float(sys.argv[1]) * (1 << 30)), room) // item_bytes


def repeat(call, count=6):
    """Launches several times, so that launches are both recorded and timed."""
    for _ in range(count if GPU else 1):
        call()
        if GPU:
            torch.cuda.synchronize()
