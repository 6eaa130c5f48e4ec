"""lib_fleet.py: what the tests of tests/fleet start from: the helpers of tests/e2e, found from here.

    import lib_fleet
    common = lib_fleet.common

Each script prints TAP and runs alone on the machine, one after another, for up to 600 s. What a
script needs besides Debian's packages for `make check` stands in the list `fleet` of .ci/deps.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))

import common  # pylint: disable=wrong-import-position,unused-import
