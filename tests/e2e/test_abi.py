#!/usr/bin/env python3
"""Compares the binary interfaces of libreach and libreach-cuda with the list in golden/. The list has the exported
functions, the size of every public struct, the place of each member, and the value of every enumerator. After an
intended change, REACH_ABI_WRITE=1 writes the list. Before 1.0 any change is allowed, later only additions. A library
must also export no other name, and must not be able to end the process that it is linked into."""
import os
import re
import subprocess

import common
from common import case, equal

RELEASE = os.path.join(common.ROOT, "build", "release")
ENDS_A_PROCESS = {"abort", "__assert_fail", "exit", "_exit", "_Exit", "quick_exit", "raise", "kill"}


class Library:
    """A library with its name and its public headers."""

    def __init__(self, name, *headers):
        self.headers = [os.path.join(common.ROOT, "clients", *header) for header in headers]
        self.golden = os.path.join(common.ROOT, "tests", "e2e", "golden", name + ".abi")
        self.shared = os.path.join(RELEASE, name + ".so.0")
        self.static = os.path.join(RELEASE, name + ".a")
        text = ""
        for header in self.headers:
            with open(header, encoding="utf-8") as source:
                text += re.sub(r"/\*.*?\*/|^\s*#.*?$", " ", source.read(), flags=re.S | re.M)
        self.text = re.sub(r"\s+", " ", text)


LIBRARIES = [Library("libreach", ("c", "reach.h")),
             Library("libreach-cuda", ("cuda", "reach_alloc.h"), ("cuda", "reach_diagnose.h"))]


def structs(library):
    """Returns (name, members) of each struct that the header defines."""
    for name, body in re.findall(r"struct (reach_\w+) \{ (.*?) \};", library.text):
        yield name, [re.search(r"(\w+)(?:\[\w+\]|\)\(.*\))?$", member.strip()).group(1)
                     for member in body.split(";") if member.strip()]


def enumerators(library):
    return [name for body in re.findall(r"enum (?:reach_\w+ )?\{(.*?)\}", library.text)
            for name in re.findall(r"\b(REACH_\w+)\b(?= *(?:=|,|$|\}))", body)
            if not re.search(rf"[=<(-] *{name}\b", body)]


def functions(library):
    """Returns every declaration of a function, each on one line."""
    found = [re.search(r"((?:const )?(?:enum |struct )?\w+ \**reach_\w+\(.*\))$", text.strip())
             for text in re.split(r"[;{}]", library.text)]
    return sorted(match.group(1) for match in found if match)


def layout(library):
    """Returns the sizes, places and values that the compiler computes."""
    lines = []
    for name, members in structs(library):
        lines.append(f'P("struct {name}: %zu bytes", sizeof(struct {name}));')
        lines += [f'P("  {member}: %zu", offsetof(struct {name}, {member}));' for member in members]
    lines += [f'P("{name} = %d", (int){name});' for name in enumerators(library)]
    program = os.path.join(common.folder, "layout")
    with open(program + ".c", "w", encoding="utf-8") as out:
        out.write("".join('#include "%s"\n' % header for header in library.headers) +
                  '#include <stdio.h>\n#define P(...) (printf(__VA_ARGS__), puts(""))\n'
                  "int main(void)\n{\n%s\nreturn 0;\n}\n" % "\n".join(lines))
    subprocess.run([common.COMPILER, "-std=c11", "-o", program, program + ".c"], check=True)
    return subprocess.run([program], check=True, stdout=subprocess.PIPE, text=True).stdout


def symbols(file, *options):
    found = subprocess.run(["nm", *options, file], check=True, stdout=subprocess.PIPE, text=True).stdout
    return [line.split()[-2:] for line in found.splitlines() if len(line.split()) >= 2]


@case
def the_interfaces_are_those_in_the_lists():
    for library in LIBRARIES:
        now = "\n".join(functions(library)) + "\n" + layout(library)
        if os.environ.get("REACH_ABI_WRITE"):
            with open(library.golden, "w", encoding="utf-8") as out:
                out.write(now)
        with open(library.golden, encoding="utf-8") as known:
            equal(now.splitlines(), known.read().splitlines())


@case
def all_that_the_headers_declare_is_exported_and_nothing_else():
    for library, least in zip(LIBRARIES, (30, 13)):
        declared = sorted(re.search(r"(reach_\w+)\(", text).group(1) for text in functions(library))
        assert len(declared) > least, declared
        found = symbols(library.shared, "-D", "--defined-only")
        equal(sorted(name.split("@")[0] for kind, name in found if kind == "T"), declared)
        if os.path.exists(library.static):
            equal(sorted(name for kind, name in symbols(library.static) if kind in "TDBRVW"), declared)


@case
def no_library_can_end_a_process():
    for library in LIBRARIES:
        for file, options in ((library.shared, ["-D"]), (library.static, [])):
            if os.path.exists(file):
                needed = {name.split("@")[0] for kind, name in symbols(file, *options) if kind == "U"}
                assert "malloc" in needed, needed
                equal(needed & ENDS_A_PROCESS, set(), file)


@case
def every_request_struct_begins_with_its_size():
    found = {name: members for name, members in structs(LIBRARIES[0])}
    requests = re.findall(r"const struct (reach_\w+) \*(?:request|job)\b", LIBRARIES[0].text)
    assert len(set(requests)) == 6, requests
    for name in requests:
        equal(found[name][0], "size", name)


common.main()
