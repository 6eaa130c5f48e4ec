#!/usr/bin/env python3
"""The binary interface of libreach: the functions it exports, the size of every public struct, where each
member lies, and the value of every enumerator, against the list in golden/libreach.abi. After a change
that is meant, REACH_ABI_WRITE=1 writes the list anew: before 1.0 any change may be, after it only
additions. Also that the library exports nothing else, and can end no process that it is linked into."""
import os
import re
import subprocess

import common
from common import case, equal

HEADER = os.path.join(common.ROOT, "clients", "c", "reach.h")
GOLDEN = os.path.join(common.ROOT, "tests", "e2e", "golden", "libreach.abi")
SHARED = os.path.join(common.ROOT, "build", "release", "libreach.so.0")
STATIC = os.path.join(common.ROOT, "build", "release", "libreach.a")
ENDS_A_PROCESS = {"abort", "__assert_fail", "exit", "_exit", "_Exit", "quick_exit", "raise", "kill"}

with open(HEADER, encoding="utf-8") as source:
    TEXT = re.sub(r"\s+", " ", re.sub(r"/\*.*?\*/|^\s*#.*?$", " ", source.read(), flags=re.S | re.M))


def structs():
    """(name, members) of each struct that the header defines."""
    for name, body in re.findall(r"struct (reach_\w+) \{ (.*?) \};", TEXT):
        yield name, [re.search(r"(\w+)(?:\[\w+\])?$", member.strip()).group(1)
                     for member in body.split(";") if member.strip()]


def enumerators():
    return [name for body in re.findall(r"enum (?:reach_\w+ )?\{(.*?)\}", TEXT)
            for name in re.findall(r"\b(REACH_\w+)\b(?= *(?:=|,|$|\}))", body)
            if not re.search(rf"[=<(-] *{name}\b", body)]


def functions():
    """Every declaration of a function, on one line."""
    found = [re.search(r"((?:const )?(?:enum |struct )?\w+ \**reach_\w+\(.*\))$", text.strip())
             for text in re.split(r"[;{}]", TEXT)]
    return sorted(match.group(1) for match in found if match)


def layout():
    """Sizes, places and values, as the compiler has them."""
    lines = []
    for name, members in structs():
        lines.append(f'P("struct {name}: %zu bytes", sizeof(struct {name}));')
        lines += [f'P("  {member}: %zu", offsetof(struct {name}, {member}));' for member in members]
    lines += [f'P("{name} = %d", (int){name});' for name in enumerators()]
    program = os.path.join(common.folder, "layout")
    with open(program + ".c", "w", encoding="utf-8") as out:
        out.write('#include "%s"\n#include <stdio.h>\n#define P(...) (printf(__VA_ARGS__), puts(""))\n'
                  "int main(void)\n{\n%s\nreturn 0;\n}\n" % (HEADER, "\n".join(lines)))
    subprocess.run([os.environ.get("CC", "gcc"), "-std=c11", "-o", program, program + ".c"], check=True)
    return subprocess.run([program], check=True, stdout=subprocess.PIPE, text=True).stdout


def symbols(library, *options):
    found = subprocess.run(["nm", *options, library], check=True, stdout=subprocess.PIPE, text=True).stdout
    return [line.split()[-2:] for line in found.splitlines() if len(line.split()) >= 2]


def exported():
    return sorted(name.split("@")[0] for kind, name in symbols(SHARED, "-D", "--defined-only") if kind == "T")


@case
def the_interface_is_the_one_in_the_list():
    now = "\n".join(functions()) + "\n" + layout()
    if os.environ.get("REACH_ABI_WRITE"):
        with open(GOLDEN, "w", encoding="utf-8") as out:
            out.write(now)
    with open(GOLDEN, encoding="utf-8") as known:
        equal(now.splitlines(), known.read().splitlines())


@case
def all_that_the_header_declares_is_exported_and_nothing_else():
    declared = sorted(re.search(r"(reach_\w+)\(", text).group(1) for text in functions())
    assert len(declared) > 30, declared
    equal(exported(), declared)
    equal(sorted(name for kind, name in symbols(STATIC) if kind in "TDBRVW"), declared)


@case
def the_library_cannot_end_a_process():
    for library, options in ((SHARED, ["-D"]), (STATIC, [])):
        needed = {name.split("@")[0] for kind, name in symbols(library, *options) if kind == "U"}
        assert "malloc" in needed, needed
        equal(needed & ENDS_A_PROCESS, set(), library)


@case
def every_request_struct_begins_with_its_size():
    found = {name: members for name, members in structs()}
    requests = re.findall(r"const struct (reach_\w+) \*(?:request|job)\b", TEXT)
    assert len(set(requests)) == 6, requests
    for name in requests:
        equal(found[name][0], "size", name)


common.main()
