"""lib_reach.py: runs libreach (by tests/e2e/reach_ask) and the Python package with the same requests. The test and all
programs that it starts run in a locale with a decimal comma, if localedef can make one (HAS_COMMA). libreach and
the programs write and read decimal points in every locale."""
import json
import locale
import os
import shutil
import subprocess
import sys

import common
from common import BUILD, ROOT

TOOL = os.path.join(BUILD, "tests", "e2e", "reach_ask")
LIBRARY = os.path.join(ROOT, "build", "release", "libreach.so.0")

os.environ["REACH_LIBRARY"] = LIBRARY
sys.path.insert(0, os.path.join(ROOT, "clients", "python"))
import reach  # noqa: E402  (its folder has to be named first)

for needed in (TOOL, LIBRARY):
    if not os.path.exists(needed):
        print(f"there is no {needed}; `make test TEST=tests/e2e/NAME` builds it and runs the script")
        sys.exit(77)


def set_comma():
    """Only the category of numbers, because a whole locale takes a second to make."""
    source = os.path.join(common.folder, "comma.txt")
    with open(source, "w", encoding="ascii") as out:
        out.write('LC_NUMERIC\ndecimal_point ","\nthousands_sep "."\ngrouping 3;3\nEND LC_NUMERIC\n')
    # The exit status of localedef is 1, because the other categories are missing.
    common.run("localedef", "-c", "-i", source, os.path.join(common.folder, "comma"))
    os.environ["LOCPATH"] = common.folder
    os.environ["LC_NUMERIC"] = "comma"
    os.environ.pop("LC_ALL", None)
    locale.setlocale(locale.LC_NUMERIC, "")
    common.equal(locale.localeconv()["decimal_point"], ",", "the locale of the test")


# p11-kit, which libcurl and libmicrohttpd use, makes a locale at start, and glibc then loses a copy of LOCPATH. That
# is a leak in the sanitized programs, and not their fault.
HAS_COMMA = shutil.which("localedef") is not None and not common.SANITIZED
if HAS_COMMA:
    set_comma()


class Refused(Exception):
    """An error of libreach."""
    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


class Tool:
    """One handle of libreach in its own process."""

    def __init__(self, where):
        self.process = subprocess.Popen([TOOL, where], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def ask(self, *words, **parameters):
        line = " ".join([str(w) for w in words] + [
            f"{k}={','.join(str(i) for i in v) if isinstance(v, (list, tuple)) else v}"
            for k, v in parameters.items()])
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # the handle did not open: it has said why
        answer = json.loads(self.process.stdout.readline())
        if "error" in answer:
            raise Refused(answer["error"], answer["text"])
        return answer

    def patient(self):
        """Opens a source with a longer timeout than in a job, because the machine may be slow."""
        self.ask("timeout", 1000 * common.PATIENCE_S)
        return self

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        common.equal(self.process.wait(common.PATIENCE_S), 0, "exit status of reach_ask")


def refusal(function, *arguments, **parameters):
    """Returns (status, sentence) of a call that must fail."""
    try:
        answer = function(*arguments, **parameters)
    except (Refused, reach.ReachError) as why:
        assert len(str(why)) > 15, why
        return why.status, str(why)
    raise AssertionError(f"no error but {str(answer)[:300]}")
