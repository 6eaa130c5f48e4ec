"""common.py: shared parts of the tests of the Python packages: cases as TAP, random numbers with a printed seed,
libreach.

    @common.case
    def rows_are_the_same(): ...
    common.main()

REACH_TEST_BUILD is the folder with libreach.so.0 (default build/release). REACH_SEED repeats a random test, and
REACH_COUNT sets the number of its cases.
"""
import os
import random
import sys
import traceback

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PACKAGE = os.path.join(ROOT, "clients", "python")
SKIPPED = 77
SEED = int(os.environ.get("REACH_SEED") or random.SystemRandom().randrange(1 << 31))

os.environ["REACH_LIBRARY"] = os.path.join(ROOT, "build", "release", "libreach.so.0")
sys.path.insert(0, PACKAGE)
CASES = []


def case(function):
    CASES.append(function)
    return function


def count(usual):
    return int(os.environ.get("REACH_COUNT") or usual)


def skip_all(why):
    print("1..0 # SKIP " + why)
    print(why)
    sys.exit(SKIPPED)


def need_torch():
    """Ends the test as skipped if there is no PyTorch or no Triton."""
    try:
        import torch  # noqa: F401  pylint: disable=unused-import,import-outside-toplevel
        import triton  # noqa: F401  pylint: disable=unused-import,import-outside-toplevel
    except ImportError as why:
        skip_all(f"reach.torch is not tested here: {why} (make check does not install PyTorch, which is gigabytes)")


def need_interpreter():
    """Ends the test as skipped if there is no PyTorch, no Triton, or no NumPy with which Triton's interpreter works."""
    need_torch()
    import numpy  # pylint: disable=import-outside-toplevel
    try:
        int(numpy.ones(1))
    except TypeError:
        skip_all("Triton's interpreter makes numbers of arrays of one element, which NumPy 2.4 refuses: "
                 "pip install 'numpy<2.4'")


def raises(kind, function, *arguments, **parameters):
    """Returns the text of the exception that a call raises."""
    try:
        function(*arguments, **parameters)
    except kind as why:
        return str(why)
    raise AssertionError(f"{function} raised no {kind.__name__}")


def main():
    print(f"# REACH_SEED={SEED}")
    failed = 0
    for number, function in enumerate(CASES, 1):
        name = function.__name__.replace("_", " ")
        try:
            function()
            print(f"ok {number} - {name}")
        except Exception:  # pylint: disable=broad-except
            failed += 1
            print(f"not ok {number} - {name}")
            print("".join("# " + line + "\n" for line in traceback.format_exc().splitlines()), end="")
        sys.stdout.flush()
    print(f"1..{len(CASES)}")
    sys.exit(1 if failed else 0)
