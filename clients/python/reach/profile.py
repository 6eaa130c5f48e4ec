"""Runs reach-profile, which reports what address translation costs each kernel of a CUDA program:

    python -m reach.profile [OPTION].. -- PROGRAM [ARGUMENT]..

The options are those of the command reach-profile; --help lists them."""
from __future__ import annotations

import os
import sys

from . import _libraries


def main() -> None:
    """Replaces this process by reach-profile."""
    program = _libraries.program("reach-profile")
    if program is None:
        sys.exit("reach.profile: there is no reach-profile in this package, beside it or in PATH; install the wheel or "
                 "the Debian package of reachd")
    os.execv(program, [program] + sys.argv[1:])


if __name__ == "__main__":
    main()
