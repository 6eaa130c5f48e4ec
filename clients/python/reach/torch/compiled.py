"""Launches of compiled kernels.

For each launch Triton finds the compiled kernel by all arguments, and checks each address. This takes longer than a
small batch on the GPU. `start` therefore keeps the compiled kernel for each kind of arguments, and passes addresses as
numbers. The kind has all properties of an argument from which Triton compiles.

`again` repeats a launch whose kind the caller has checked itself. It calls Triton's launcher of the compiled kernel,
without the Python code around it. If a tool has set hooks of launches, Triton's own code makes the launch.
"""
from __future__ import annotations

import os
from typing import Any, Dict, Optional, Tuple

import torch

try:
    from triton import knobs  # since Triton 3.4
except ImportError:
    knobs = None

Kept = Dict[Any, Tuple[Any, ...]]  # compiled kernels and their constants
WORD = 0x7FFFFFFF  # the largest number that Triton passes as 32 bits
ALIGNED = 15       # the bits of addresses and numbers from which Triton compiles
AGAIN = "again"    # the key of what `again` launches
LIMITS_REGISTERS = torch.version.hip is None and os.environ.get("TRITON_INTERPRET") != "1"  # whether Triton has `maxnreg`
_current_device = getattr(torch._C, "_cuda_getDevice", None)             # pylint: disable=protected-access
_current_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)   # pylint: disable=protected-access
_guards = getattr(getattr(torch._C, "_dynamo", None), "guards", None)    # pylint: disable=protected-access
_empty = getattr(_guards, "_empty_strided_cuda", None)                   # on the current device


def again(kept: Kept, table: torch.Tensor, programs: int, before: Tuple[int, ...], out: Optional[torch.Tensor],
          after: Tuple[int, ...], sizes: Tuple[int, ...], strides: Tuple[int, ...]) -> Optional[torch.Tensor]:
    """Repeats a launch that was made by `start` with `repeats`, and returns its result. The arguments that may differ are
    addresses in `before`, the result, and numbers in `after`. The caller knows that their kind is the same. If `out` is
    None, the result is a new tensor of these `sizes` and `strides`, with the dtype of the table. It is allocated without
    PyTorch's dispatcher, like in code that torch.compile generates. Returns None, and launches nothing, if there was no
    such launch, if the device of the table is not the current one, if hooks are set, or if Triton's launcher takes other
    arguments."""
    found = kept.get(AGAIN)
    device = table.get_device()
    if found is None or device != _current_device():  # type: ignore[misc]
        return None
    hooks = knobs.runtime
    enter, leave = hooks.launch_enter_hook, hooks.launch_exit_hook
    if (enter is not None and getattr(enter, "calls", True)) or (leave is not None and getattr(leave, "calls", True)):
        return None  # a hook is not an empty chain
    run, function, packed, same = found
    if out is None:
        out = table.new_empty(sizes) if _empty is None else _empty(sizes, strides, table.dtype)
    try:
        run(programs, 1, 1, _current_stream(device), function, packed, None, None, None,  # type: ignore[misc]
            *before, out.data_ptr(), *after, *same)
    except TypeError:  # another Triton: its launcher takes other arguments, and has launched nothing
        kept.pop(AGAIN, None)
        return None
    return out


def _keep_again(kept: Kept, made: Any, same: Tuple[Any, ...]) -> None:
    """Keeps what `again` launches, if this Triton has it. `same` has the last arguments, which do not differ."""
    parts = tuple(getattr(made, name, None) for name in ("run", "function", "packed_metadata"))
    if None not in (knobs, _current_device, _current_stream, *parts):
        kept[AGAIN] = *parts, same


def start(kernel: Any, programs: int, kept: Kept, by_address: bool, arguments: Tuple[Any, ...], more: Tuple[Any, ...],
          words: Optional[torch.dtype], repeats: int = 0, **constants: Any) -> None:
    """Launches a kernel on the current device with tensors and numbers: `arguments`, then `more`. `kept` belongs to the
    device, and to one value of `words` and of each constant. If `words` is given, the kernel takes the tensors in
    `arguments`, except the first, as flat tensors of this type. With `by_address` all tensors are in the memory of the
    GPU; Triton translates addresses of the host. If `repeats` is not 0, the caller uses `again` for arguments of this
    kind, of which the first `repeats` may differ."""
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
            if repeats:
                _keep_again(kept, found[0], (*values[repeats:], *found[1]))
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
