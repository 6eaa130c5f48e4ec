#!/usr/bin/env python3
"""Tests the documentation of the Python package: each public name has an example, each example works, and the names and
their parameters match golden/python.api. After an intended change, REACH_API_WRITE=1 writes golden/python.api.
Before 1.0 any change is allowed; after 1.0 only additions are allowed. The version is equal in all places.

The sources are read, not imported, so this test needs no PyTorch. Examples run beside a fingerprint.json from an H200.
Examples that need a GPU have a skip directive, and their text mentions the GPU."""
import ast
import doctest
import glob
import importlib
import os
import re
import shutil
import sys

import common
from common import ROOT, Skip, case, equal

if os.path.basename(common.BUILD) != "release":
    print("the package is not compiled")
    sys.exit(77)
common.needs_own_processor("Python loads libreach of the build")

TREE = os.path.join(ROOT, "clients", "python")
GOLDEN = os.path.join(ROOT, "tests", "e2e", "golden", "python.api")
FINGERPRINT = os.path.join(ROOT, "docs", "measurements", "nvidia-h200-3232f831-2026-11-21", "fingerprint-full.json")
os.environ["REACH_LIBRARY"] = os.path.join(common.BUILD, "libreach.so.0")
os.environ["REACH_CUDA_LIBRARY"] = os.path.join(common.BUILD, "libreach-cuda.so.0")
NOT_CALLED = {"reach.Answer.__init__"}  # users get answers and make none
sys.path.insert(0, TREE)
sys.dont_write_bytecode = True


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


class Module:
    """Returns the definitions of a source file, and its imports from the other files."""

    def __init__(self, name):
        path = os.path.join(TREE, *name.split("."))
        path = path + ".py" if os.path.exists(path + ".py") else os.path.join(path, "__init__.py")
        self.name, self.defined, self.imported, self.public = name, {}, {}, None
        for node in ast.parse(read(path)).body:
            if isinstance(node, ast.ImportFrom):
                self.imported.update((alias.asname or alias.name, (node.module, alias.name)) for alias in node.names)
            elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                self.defined[node.name] = node
            elif isinstance(node, (ast.Assign, ast.AnnAssign)):
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    if isinstance(target, ast.Name):
                        self.defined[target.id] = node
                        if target.id == "__all__":
                            self.public = ast.literal_eval(node.value)


modules = {}


def module(name):
    if name not in modules:
        modules[name] = Module(name)
    return modules[name]


def every_module():
    for path in sorted(glob.glob(os.path.join(TREE, "reach", "**", "*.py"), recursive=True)):
        name = os.path.relpath(path, TREE)[:-len(".py")].replace(os.sep, ".")
        yield module(name[:-len(".__init__")] if name.endswith(".__init__") else name)


def public():
    """Returns (name in user code, its definition) of every module with an __all__, including names that other modules
    define for it."""
    for home in every_module():
        for name in home.public or ():
            there, inner = home, name
            while inner not in there.defined:
                source, inner = there.imported[inner]
                there = module(source)
            yield f"{home.name}.{name}", there.defined[inner]


def described():
    """Returns the result of public() without values, and with the public methods of the classes."""
    for name, node in public():
        if isinstance(node, ast.ClassDef):
            yield name, node, None
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef) and (not inner.name.startswith("_") or inner.name == "__init__"):
                    if f"{name}.{inner.name}" not in NOT_CALLED:
                        yield f"{name}.{inner.name}", inner, node
        elif isinstance(node, ast.FunctionDef):
            yield name, node, None


def is_error(node):
    """An error or a warning has a name and a meaning; ReachError has the example for all."""
    return isinstance(node, ast.ClassDef) and any(ast.unparse(base).endswith(("Error", "Warning"))
                                                  for base in node.bases)


def examples(node):
    return doctest.DocTestParser().get_examples(ast.get_docstring(node) or "")


@case
def each_public_name_has_an_example():
    found = [(name, node) for name, node, _ in described() if not name.endswith(".__init__") and not is_error(node)]
    assert len(found) > 20 and "reach.torch.MemPool" in dict(found), found
    equal([name for name, node in found if not examples(node)], [], "public names without an example")
    for name, node in found:
        skipped = [example for example in examples(node) if doctest.SKIP in example.options]
        assert not skipped or re.search(r"\bneeds? ", ast.get_docstring(node)), f"{name} does not say what it needs"
    equal([name for name, node, _ in described() if is_error(node) and not ast.get_docstring(node)], [])


@case
def every_module_with_public_names_is_typed_and_described():
    assert os.path.exists(os.path.join(TREE, "reach", "py.typed"))
    for name in (home.name for home in every_module() if home.public):
        path = os.path.join(TREE, *name.split("."))
        text = read(path + ".py" if os.path.exists(path + ".py") else os.path.join(path, "__init__.py"))
        assert ast.get_docstring(ast.parse(text)), name


def run_examples(name):
    here = os.getcwd()
    folder = os.path.join(common.folder, name)
    os.mkdir(folder)
    shutil.copy(FINGERPRINT, os.path.join(folder, "fingerprint.json"))
    os.chdir(folder)
    try:
        output = []
        runner = doctest.DocTestRunner(verbose=False)
        for test in doctest.DocTestFinder().find(importlib.import_module(name)):
            runner.run(test, out=output.append)
        equal(runner.failures, 0, "".join(output))
        return runner.tries
    finally:
        os.chdir(here)


@case
def the_examples_do_what_they_say():
    assert run_examples("reach") > 14
    assert run_examples("reach.document") > 8
    assert run_examples("reach.diagnose") > 0


@case
def the_examples_of_torch_do_what_they_say():
    try:
        importlib.import_module("reach.torch")
    except ImportError as why:
        assert len(str(why)) > 15 and "orch" in str(why), why
        raise Skip(f"reach.torch is not imported: {why}") from why
    for home in every_module():
        if home.name.startswith("reach.torch"):
            run_examples(home.name)


def signature(node, owner):
    """Returns the parameters of a definition with their types and defaults, or "value" if it is a value."""
    if isinstance(node, ast.ClassDef):
        return "class(%s)" % ", ".join(ast.unparse(base) for base in node.bases)
    kind = "".join(f"@{ast.unparse(decorator)} " for decorator in node.decorator_list) if owner else ""
    return f"{kind}({ast.unparse(node.args)}) -> {ast.unparse(node.returns) if node.returns else '?'}"


@case
def the_names_and_parameters_are_those_in_the_list():
    lines = [f"{name}: {signature(node, owner)}" for name, node, owner in described()]
    lines += [f"{name}: value" for name, node in public() if not isinstance(node, (ast.ClassDef, ast.FunctionDef))]
    lines.sort()
    if os.environ.get("REACH_API_WRITE"):
        with open(GOLDEN, "w", encoding="utf-8") as out:
            out.write("\n".join(lines) + "\n")
    equal(sorted(set(lines) ^ set(read(GOLDEN).splitlines())), [], "names that only one of the two has")


@case
def the_version_is_the_same_everywhere():
    version = re.search(r"^VERSION\s*:= (\d+\.\d+\.\d+)$", read("Makefile"), re.M).group(1)
    header = read("clients", "c", "reach.h")
    equal(".".join(re.search(rf"^#define REACH_VERSION_{part} (\d+)$", header, re.M).group(1)
                   for part in ("MAJOR", "MINOR", "PATCH")), version, "reach.h")
    equal(ast.literal_eval(module("reach").defined["__version__"].value), version, "reach.__version__")
    status, text, _ = common.run(common.REACHD, "--version")
    assert status == 0 and re.search(rf"\b{re.escape(version)}\b", text), text
    assert re.search(rf"^## \[(Unreleased|{re.escape(version)})\]", read("CHANGELOG.md"), re.M)
    # The wheel and the Debian packages take their version from these places.
    assert 'version = {attr = "reach.__version__"}' in read("clients", "python", "pyproject.toml")
    assert ".ci/deb $(OUT)/deb $(VERSION)" in read("mk", "install.mk")


common.main()
