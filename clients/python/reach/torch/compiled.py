"""Launches of compiled kernels.

For each launch Triton finds the compiled kernel by all arguments, and checks each address. This takes longer than a
small batch on the GPU. `start` therefore keeps the compiled kernel for each kind of arguments, and passes addresses as
numbers. The kind has all properties of an argument from which Triton compiles.
"""
from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

import torch

Kept = Dict[Tuple[Any, ...], Tuple[Any, Tuple[Any, ...]]]  # compiled kernels and their constants
WORD = 0x7FFFFFFF  # the largest number that Triton passes as 32 bits
ALIGNED = 15       # the bits of addresses and numbers from which Triton compiles


def start(kernel: Any, programs: int, kept: Kept, by_address: bool, arguments: Tuple[Any, ...], more: Tuple[Any, ...],
          words: Optional[torch.dtype], **constants: Any) -> None:
    """Launches a kernel on the current device with tensors and numbers: `arguments`, then `more`. `kept` belongs to the
    device, and to one value of `words` and of each constant. If `words` is given, the kernel takes the tensors in
    `arguments`, except the first, as flat tensors of this type. With `by_address` all tensors are in the memory of the
    GPU; Triton translates addresses of the host."""
    kind: Any = [kernel.__name__]
    values = []
    for given in (*arguments, *more):
        if type(given) is int:
            kind.append((given > WORD, given & ALIGNED == 0, given == 1))
            values.append(given)
        else:
            address = given.data_ptr()
            kind.append((given.dtype, address & ALIGNED == 0))
            values.append(address if by_address else given)
    kind = tuple(kind)
    found = kept.get(kind)
    if found is not None:
        try:
            found[0][(programs, 1, 1)](*values, *found[1])
            return
        except TypeError:  # another Triton: its launcher takes other arguments, and has launched nothing
            del kept[kind]
    tensors = [a.detach() if isinstance(a, torch.Tensor) else a for a in arguments]
    if words is not None:
        tensors[1:] = [a.view(-1).view(words) if isinstance(a, torch.Tensor) else a for a in tensors[1:]]
    made = kernel[(programs,)](*tensors, *more, **constants)
    last = tuple(constants[name] for name in kernel.arg_names[len(values):])
    taken = len(getattr(getattr(made, "src", None), "signature", ()))  # with constants since Triton 3.3
    if taken in (len(values), len(values) + len(last)):
        kept[kind] = made, last[:taken - len(values)]
