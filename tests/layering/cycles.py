#!/usr/bin/env python3
"""Files of one layer do not call each other in a circle. Prints TAP.

A source uses another one of its layer where it names a function that the other one defines and that
a header declares. Types alone are no dependency: a header may hold the types that all files of a
layer share. A second test plants circles in a scratch tree.

    daemon/store: store.c -> store_runs.c (store_end_interrupted_runs) -> store.c (store_write_begin)
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


def layer_of(path):
    parts = path.split("/")
    return "/".join(parts[:2]) if parts[0] in ("daemon", "clients") and len(parts) > 2 else parts[0]


def read(root):
    """(text of each source, without comments and strings; names that headers declare)."""
    texts, declared = {}, set()
    for top in TOPS:
        for folder, folders, names in os.walk(os.path.join(root, top)):
            folders.sort()
            for name in sorted(names):
                if name.endswith((".c", ".h")):
                    with open(os.path.join(folder, name), encoding="utf-8") as file:
                        text = SILENT.sub(" ", file.read())
                    if name.endswith(".h"):
                        declared.update(DECLARED.findall(text))
                    else:
                        texts[os.path.relpath(os.path.join(folder, name), root)] = text
    return texts, declared


def uses(root):
    """{source: {source of the same layer that it uses: name of one function}}."""
    texts, declared = read(root)
    home = {(layer_of(path), name): path for path, text in texts.items()
            for name in DEFINED.findall(text) if name in declared}
    graph = {}
    for path, text in texts.items():
        for name in sorted(set(re.findall(r"\w+", text))):
            other = home.get((layer_of(path), name))
            if other and other != path:
                graph.setdefault(path, {}).setdefault(other, name)
    return graph


def circle_from(graph, start):
    """The shortest way from `start` back to it, or None."""
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
    graph, found, told = uses(root), [], set()
    for path in sorted(graph):
        circle = circle_from(graph, path)
        if circle and not told & set(circle):
            told.update(circle)
            steps = [os.path.basename(circle[0])]
            steps += [f"{os.path.basename(b)} ({graph[a][b]})" for a, b in zip(circle, circle[1:])]
            found.append(f"{layer_of(path)}: {' -> '.join(steps)}")
    return found, len(read(root)[0])


PLANTED = {
    "daemon/a/one.h": "struct shared { int x; };\nvoid one_do(void);\n",
    "daemon/a/two.h": "void two_do(struct shared *s);\n",
    "daemon/a/three.h": "void three_do(void);\n",
    "daemon/a/one.c": "void one_do(void)\n{\n    two_do(0);\n}\n",
    "daemon/a/two.c": "/* one_do() is called by nobody here */\nvoid two_do(struct shared *s)\n{\n}\n",
    "daemon/a/three.c": "static void one(void)\n{\n}\nvoid three_do(void)\n{\n    one_do();\n}\n",
}


def planted(change):
    with tempfile.TemporaryDirectory() as root:
        for path, text in {**PLANTED, **change}.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(text)
        return circles(root)[0]


def self_test():
    back = {"daemon/a/two.c": "void two_do(struct shared *s)\n{\n    three_do();\n}\n"}
    wrong = []
    if planted({}):
        wrong.append("a circle was found where there is none")
    if planted(back) != ["daemon/a: one.c -> two.c (two_do) -> three.c (three_do) -> one.c (one_do)"]:
        wrong.append(f"a planted circle gave {planted(back)}")
    return wrong


def report(number, name, problems):
    print(f"{'not ok' if problems else 'ok'} {number} - {name}")
    for problem in problems:
        print(f"# {problem}")
    return not problems


def main():
    found, count = circles(ROOT)
    print("1..2")
    good = report(1, f"no circle among {count} sources", found or ([] if count else ["found no sources"]))
    good = report(2, "a planted circle is found", self_test()) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
