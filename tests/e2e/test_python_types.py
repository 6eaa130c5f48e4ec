#!/usr/bin/env python3
"""Tests that the types of the Python package match api/openapi.yaml: the members of answers in
clients/python/reach/answers.py, and the parameters of requests. After a change of openapi.yaml, REACH_API_WRITE=1
writes answers.py anew. mypy must also find exactly the mistakes of lib_typed_mistakes.py."""
import ast
import keyword
import os
import re
import shutil
import subprocess
import sys

import common
import lib_generated
import lib_generated_params
from common import ROOT, Skip, case, equal

if os.path.basename(common.BUILD) != "release":
    print("the package is not compiled")
    sys.exit(77)

PACKAGE = os.path.join(ROOT, "clients", "python", "reach")
ANSWERS = os.path.join(PACKAGE, "answers.py")
MISTAKES = os.path.join(ROOT, "tests", "e2e", "lib_typed_mistakes.py")
# The methods of reach.Reach that take parameters.
PLANNER_QUESTIONS = lib_generated_params.functions(lib_generated.tables()["params"])
QUESTIONS = (*PLANNER_QUESTIONS, "fingerprint")
HEADER = '''"""The answers of reachd as type checkers see them. tests/e2e/test_python_types.py writes this file from api/openapi.yaml.

At run time an answer is an instance of its class, and nested objects are Documents. Members that an answer may lack are
not marked. Access to a missing member raises AttributeError, and get() of the dict returns None."""
from __future__ import annotations

from typing import Any, Dict, List, Optional

from reach.document import Answer, Document
'''


class Writer:
    """Returns classes from schemas, each once, in the order of their dependencies."""

    def __init__(self, api):
        self.schemas, self.classes, self.sources = api["components"]["schemas"], {}, {}

    def resolve(self, schema):
        """Returns a schema without references and allOf. A oneOf becomes the members of all its objects."""
        if "$ref" in schema:
            return self.resolve(self.schemas[schema["$ref"].rsplit("/", 1)[1]])
        parts = schema.get("allOf", []) + schema.get("oneOf", [])
        merged = {**schema, "properties": dict(schema.get("properties", {}))}
        for part in map(self.resolve, parts):
            merged["properties"] = {**part.get("properties", {}), **merged["properties"]}
        return merged

    def define(self, name, schema, base="Document", inherited=()):
        schema = self.resolve(schema)
        assert self.sources.setdefault(name, schema) == schema, f"two schemas are {name}"
        if name not in self.classes:
            self.classes[name] = None  # it is being written
            lines = [f"class {name}({base}):"]
            for member, inner in schema["properties"].items():
                if member in inherited:
                    continue
                assert not hasattr(dict, member) and not keyword.iskeyword(member), member
                lines.append(f"    {member}: {self.type_of(inner, name + camel(member))}")
            del self.classes[name]
            self.classes[name] = "\n".join(lines)
        return name

    def type_of(self, schema, name):
        if "$ref" in schema:
            target = schema["$ref"].rsplit("/", 1)[1]
            return self.type_of(self.schemas[target], target)
        if "oneOf" in schema:
            found = [one for one in schema["oneOf"] if one.get("type") != "null"]
            text = self.type_of(found[0], name) if len(found) == 1 else "Any"
            return optional(text) if len(found) < len(schema["oneOf"]) else text
        kinds = schema.get("type", "string" if "enum" in schema else "any")
        kinds = kinds if isinstance(kinds, list) else [kinds]
        rest = [kind for kind in kinds if kind != "null"]
        text = self.plain(rest[0], schema, name) if len(rest) == 1 else "Any"
        return optional(text) if len(rest) < len(kinds) else text

    def plain(self, kind, schema, name):
        if kind == "array":
            item = re.sub("s$", "", name)
            return f"List[{self.type_of(schema.get('items', {}), name + 'Item' if item in self.schemas else item)}]"
        if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
            return f"Dict[str, {self.type_of(schema['additionalProperties'], name)}]"
        members = schema.get("properties", {})
        if kind == "object" and members and members.keys() >= set(schema.get("required", ())):
            return self.define(name, schema)
        return {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}.get(kind, "Any")


def camel(name):
    return "".join(word.capitalize() for word in name.split("_"))


def optional(text):
    return text if text == "Any" else f"Optional[{text}]"


def operation(question):
    return common.contract.document["paths"]["/v1/gpus/{gpu}/" + question]["get"]


def written():
    writer = Writer(common.contract.document)
    writer.define("Identity", {"$ref": "#/components/schemas/Identity"})
    writer.define("Gpu", {"$ref": "#/components/schemas/Gpu"}, "Identity", writer.schemas["Identity"]["properties"])
    answers = {question: operation(question)["responses"]["200"]["content"]["application/json"]["schema"]
               for question in QUESTIONS}
    planned = [writer.resolve(answers[question])["properties"] for question in PLANNER_QUESTIONS]
    common_members = {member: schema for member, schema in planned[0].items()
                      if all(one.get(member) == schema for one in planned)}
    writer.define("PlannerAnswer", {"properties": common_members}, "Answer")
    for question, schema in answers.items():
        if question in PLANNER_QUESTIONS:
            writer.define(question.capitalize(), schema, "PlannerAnswer", common_members)
        else:
            writer.define(question.capitalize(), schema, "Answer")
    return HEADER + "".join(f"\n\n{text}\n" for text in writer.classes.values())


@case
def the_members_of_answers_are_those_of_the_api():
    if common.contract is None:
        raise Skip("there is no python3-yaml")
    text = written()
    if os.environ.get("REACH_API_WRITE"):
        with open(ANSWERS, "w", encoding="utf-8") as out:
            out.write(text)
    with open(ANSWERS, encoding="utf-8") as file:
        equal(file.read().splitlines(), text.splitlines(), "answers.py (REACH_API_WRITE=1 writes it anew)")


def parameters(question):
    """The annotations that fit a schema, by name."""
    kinds = {"Size": "Size", "Sizes": "Sizes"}
    plain = {"integer": "SupportsIndex", "number": "Number", "boolean": "bool", "string": "str"}
    # Lists as text, and a size that has no schema of its own.
    special = {"touches": "Numbers", "weight": "Numbers", "shared_bytes": "Size",
               ("split", "bytes"): "Union[str, Sequence[Size]]"}
    found = {}
    for one in operation(question).get("parameters", []):
        if "$ref" in one:
            one = common.contract.document["components"]["parameters"][one["$ref"].rsplit("/", 1)[1]]
        schema = one["schema"]
        name = one["name"]
        text = special.get((question, name)) or special.get(name)
        text = text or kinds.get(schema.get("$ref", "").rsplit("/", 1)[-1]) or plain[schema.get("type", "string")]
        found[name] = text if one.get("required") else f"Optional[{text}]"
    return found


@case
def the_parameters_of_questions_are_those_of_the_api():
    if common.contract is None:
        raise Skip("there is no python3-yaml")
    with open(os.path.join(PACKAGE, "__init__.py"), encoding="utf-8") as file:
        reach = next(node for node in ast.parse(file.read()).body
                     if isinstance(node, ast.ClassDef) and node.name == "Reach")
    methods = {node.name: node for node in reach.body if isinstance(node, ast.FunctionDef)}
    for question in PLANNER_QUESTIONS:
        arguments = methods[question].args
        assert arguments.kwarg is None and arguments.vararg is None, question
        equal({a.arg: ast.unparse(a.annotation) for a in arguments.args[2:] + arguments.kwonlyargs},
              parameters(question), question)
        # Every parameter is sent.
        sent = {k.arg: ast.unparse(k.value) for node in ast.walk(methods[question]) if isinstance(node, ast.Call)
                and ast.unparse(node.func) == "self._of_gpu" for k in node.keywords}
        equal(sent, {name: name for name in parameters(question)}, question)


@case
def mypy_finds_the_mistakes_and_no_others():
    mypy = os.environ.get("MYPY") or shutil.which("mypy")
    if not mypy:
        raise Skip("there is no mypy")
    found = subprocess.run([mypy, "--strict", "--config-file=", "--no-error-summary", "--cache-dir",
                            os.path.join(ROOT, "build", "lint", "mypy-mistakes"), MISTAKES], cwd=common.folder,
                           capture_output=True, text=True, check=False,
                           env={**os.environ, "MYPYPATH": os.path.join(ROOT, "clients", "python")})
    # Removes the proposals and expectations of mypy, which differ between its releases.
    said = [re.match(r".*lib_typed_mistakes\.py:(\d+): error: (.*?)(?:;.*)?(?:  (\[.*\]))$", line)
            for line in found.stdout.splitlines() if ": note: " not in line]
    assert all(said), found.stdout + found.stderr
    with open(MISTAKES, encoding="utf-8") as file:
        wanted = {number: line.split("# mypy: ", 1)[1] for number, line in enumerate(file.read().splitlines(), 1)
                  if "# mypy: " in line}
    assert len(wanted) > 5, wanted
    equal({int(match.group(1)): f"{match.group(2)} {match.group(3)}" for match in said}, wanted)


common.main()
