"""Synthetic files of the public cuda-gpu-tlb benchmark."""


def curve(entries, stride_kib):
    """Returns a curve in the format of the public TLB benchmark, with one level of `entries` entries whose miss costs
    60 cycles."""
    strides = [stride_kib // 2, stride_kib, stride_kib * 2]
    rows = ["#Made-up: cuda 9.1, reduction mode: avg", "#," + "".join(f"{s}," for s in strides)]
    for size in range(stride_kib * 4, entries * stride_kib * 5, strides[0]):
        cells = []
        for s in strides:
            pages = size // s
            touched = (size + stride_kib - 1) // stride_kib if s < stride_kib else pages
            share = min(1, s / stride_kib) if touched > entries else 0
            cells.append(str(int(300 + 60 * share)) if size % s == 0 else "")
        rows.append(f"{size / 1024:g}," + "".join(c + "," for c in cells))
    return "\n".join(rows) + "\n"
