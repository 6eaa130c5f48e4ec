#!/usr/bin/env python3
"""Tests that modules of one layer do not use each other in a circle. Prints TAP.

A module is a source and the header of the same name, or a header alone. It uses another module of its layer if it names
a function that the other module's source defines and a header declares. It also uses that module if it names an inline
function, struct, union, enum or typedef of the module's header. The types of a header without a source belong to the
whole layer. A second test plants circles in a scratch tree.

    daemon/store: store -> store_runs (store_end_interrupted_runs) -> store (store_write_begin)
"""
import os
import re
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOPS = ("daemon", "api", "clients")
SILENT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|^[ \t]*#.*?(?<!\\)$', re.S | re.M)
DECLARED = re.compile(r"^(?!static|typedef|return|[\s#}])[\w \*]*?\b(\w+)\((?!\*)", re.M)
DEFINED = re.compile(r"^(?!static|typedef|return|[\s#}])[\w \*]*?\b(\w+)\([^;{}]*\)\s*\{", re.M)
INLINE = re.compile(r"^static inline [\w \*]*?\b(\w+)\([^;{}]*\)\s*\{", re.M)
TYPE = re.compile(r"^(?:typedef )?((?:struct|union|enum) \w+)\s*\{", re.M)
TYPEDEF = re.compile(r"^typedef [^;{}]*?\(?\*?\b(\w+)\)?(?:\([^;]*\))?;", re.M)
PROTOTYPE = re.compile(r"^(?!static inline|typedef|struct \w+ \{|[\s#}])[\w \*]*?\b\w+\([^;{}]*\);", re.M)
NAME = re.compile(r"\b(?:struct|union|enum) \w+|\w+")


def layer_of(path):
    parts = path.split("/")
    return "/".join(parts[:2]) if parts[0] in ("daemon", "clients") and len(parts) > 2 else parts[0]


def read(root):
    """Returns {path without suffix: {".c" or ".h": text without comments and strings}}."""
    modules = {}
    for top in TOPS:
        for folder, folders, names in os.walk(os.path.join(root, top)):
            folders.sort()
            for name in sorted(names):
                if name.endswith((".c", ".h")):
                    with open(os.path.join(folder, name), encoding="utf-8") as file:
                        text = SILENT.sub(" ", file.read())
                    path, suffix = os.path.splitext(os.path.relpath(os.path.join(folder, name), root))
                    modules.setdefault(path, {})[suffix] = text
    return modules


def offers(modules):
    """Returns {(layer, name): module that defines the name for others}."""
    declared = {name for texts in modules.values() for name in DECLARED.findall(texts.get(".h", ""))}
    home = {}
    for path, texts in modules.items():
        names = [name for name in DEFINED.findall(texts.get(".c", "")) if name in declared]
        for kind in (INLINE, TYPE, TYPEDEF) if ".c" in texts else (INLINE,):
            names += kind.findall(texts.get(".h", ""))
        home.update({(layer_of(path), name): path for name in names})
    return home


def uses(modules):
    """Returns {module: {module of the same layer that it uses: one of the used names}}."""
    home = offers(modules)
    graph = {}
    for path, texts in modules.items():
        names = set()
        for text in (texts.get(".c", ""), PROTOTYPE.sub(" ", texts.get(".h", ""))):
            for name in NAME.findall(text):
                names.update((name, name.split()[-1]))
        for name in sorted(names):
            other = home.get((layer_of(path), name))
            if other and other != path:
                graph.setdefault(path, {}).setdefault(other, name)
    return graph


def circle_from(graph, start):
    """Returns the shortest path from `start` back to it, or None."""
    ways = [[start]]
    seen = set()
    for way in ways:
        for other in sorted(graph.get(way[-1], {})):
            if other == start:
                return way + [start]
            if other not in seen:
                seen.add(other)
                ways.append(way + [other])
    return None


def circles(root):
    modules = read(root)
    graph, found, listed = uses(modules), [], set()
    for path in sorted(graph):
        circle = circle_from(graph, path)
        if circle and not listed & set(circle):
            listed.update(circle)
            steps = [os.path.basename(circle[0])]
            steps += [f"{os.path.basename(b)} ({graph[a][b]})" for a, b in zip(circle, circle[1:])]
            found.append(f"{layer_of(path)}: {' -> '.join(steps)}")
    return found, len(modules)


PLANTED = {
    "daemon/a/one.h": "struct shared {\n    int x;\n};\nvoid one_do(void);\n",
    "daemon/a/two.h": "void two_do(struct shared *s);\n",
    "daemon/a/three.h": "void three_do(void);\n",
    "daemon/a/types.h": "struct common {\n    int x;\n};\n",
    "daemon/a/one.c": "void one_do(void)\n{\n    two_do(0);\n}\n",
    "daemon/a/two.c": "/* nothing here calls one_do() */\nvoid two_do(void *s)\n{\n    struct common c;\n}\n",
    "daemon/a/three.c": "static void one(void)\n{\n    struct common c;\n}\nvoid three_do(void)\n{\n    one_do();\n}\n",
}
# Planted code, and the cycle that it makes, or None if it makes no cycle.
CASES = [
    ({}, None),
    ({"daemon/a/two.c": "void two_do(void *s)\n{\n    three_do();\n}\n"},
     "one -> two (two_do) -> three (three_do) -> one (one_do)"),
    ({"daemon/a/one.h": "void one_do(void);\nstatic inline int one_half(int x)\n{\n    return x / 2;\n}\n",
      "daemon/a/two.c": "void two_do(void *s)\n{\n    one_half(2);\n}\n"},
     "one -> two (two_do) -> one (one_half)"),
    ({"daemon/a/two.h": "void two_do(void);\nstatic inline void two_twice(void)\n{\n    one_do();\n}\n"},
     "one -> two (two_do) -> one (one_do)"),
    ({"daemon/a/two.c": "void two_do(void *s)\n{\n    ((struct shared *)s)->x++;\n}\n"},
     "one -> two (two_do) -> one (struct shared)"),
    ({"daemon/a/one.h": "typedef void one_fn(void *self, int x);\nvoid one_do(void);\n",
      "daemon/a/two.c": "void two_do(void *s)\n{\n    one_fn *f = s;\n}\n"},
     "one -> two (two_do) -> one (one_fn)"),
    # A header without a source may use the types of all modules, and a prototype is not a call.
    ({"daemon/a/types.h": "struct common {\n    int x;\n};\nvoid one_do(void);\n"}, None),
]


def planted(change):
    with tempfile.TemporaryDirectory() as root:
        for path, text in {**PLANTED, **change}.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(text)
        return circles(root)[0]


def self_test():
    wrong = []
    for change, circle in CASES:
        found = planted(change)
        if found != ([f"daemon/a: {circle}"] if circle else []):
            wrong.append(f"{sorted(change)} gave {found}")
    return wrong


def report(number, name, problems):
    print(f"{'not ok' if problems else 'ok'} {number} - {name}")
    for problem in problems:
        print(f"# {problem}")
    return not problems


def main():
    found, count = circles(ROOT)
    print("1..2")
    good = report(1, f"no circle among {count} modules", found or ([] if count else ["found no sources"]))
    good = report(2, f"planted circles are found ({len(CASES)})", self_test()) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
