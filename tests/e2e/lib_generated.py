"""What is generated from the tables of the C code, which tests/e2e/describe.c prints.

A generated part lies between two lines of a file, whatever stands in front of these words:

    Generated from TABLE by make generated: NAME.
    End of the generated part.

    for path, text in written(tables): ...      each file as it should be

A table has a module of its own with PARTS: {path of a file: {NAME: function of the table and of the lines that are there
now, which returns the lines}}, and FILES if whole files are generated from it: {path: function of the table}.
"""
import json
import os
import re
import subprocess

from common import BUILD, ROOT
import lib_generated_members
import lib_generated_params

TABLES = {"daemon/planner/params.c": ("params", lib_generated_params.PARTS),
          "daemon/fingerprint/members.c": ("fingerprint", lib_generated_members.PARTS)}
BEGIN = re.compile(r"^.*Generated from (\S+) by make generated: ([\w-]+)\.")
END = re.compile(r"^.*End of the generated part\.")


def tables():
    done = subprocess.run([os.path.join(BUILD, "tests", "e2e", "describe")], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def replaced(path, lines, described):
    """The lines of the file with each part as it should be."""
    out, inside, part = [], [], None
    for line in lines:
        begin = BEGIN.match(line)
        if part is None and begin:
            part = begin.groups()
            inside = []
            out.append(line)
        elif part is not None and END.match(line):
            key, parts = TABLES[part[0]]
            out += parts[path][part[1]](described[key], inside) + [line]
            part = None
        elif part is not None:
            inside.append(line)
        else:
            out.append(line)
    assert part is None, f"{path}: part {part} has no end"
    return out


def written(described):
    """(path, text as it is, text as it should be) of each file with generated parts."""
    for path in sorted({path for _, parts in TABLES.values() for path in parts}):
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            text = file.read()
        yield path, text, "\n".join(replaced(path, text.splitlines(), described)) + "\n"
    for path, lines in lib_generated_members.FILES.items():
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            yield path, file.read(), "\n".join(lines(described["fingerprint"])) + "\n"
