"""lib_promises.py: the interfaces that users rely on, as lines of text that must not disappear (docs/stability.md).

    GET /v1/gpus/{gpu}/scope ?bytes must be given
    GET /v1/gpus/{gpu}/scope 200 application/json: Scope
    Scope.scope_bytes: integer|null
    Scope.scope_bytes always
    Scope.access = "read"

golden/ has a list of these lines for each interface. A line that has disappeared, or a parameter that has become
mandatory, breaks a program; other new lines break none, and `make generated` adds them."""
import json
import os
import re

MUST = " must be given"


def _reference(schema):
    return schema["$ref"].rsplit("/", 1)[-1]


def of_schema(where, schema):
    """Returns the types, words and fields of a JSON schema; references are listed under their own name."""
    if not isinstance(schema, dict):
        return
    if "$ref" in schema:
        yield f"{where}: {_reference(schema)}"
    if "type" in schema:
        kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        yield f"{where}: {'|'.join(sorted(kinds))}"
    for word in schema.get("enum", []) + ([schema["const"]] if "const" in schema else []):
        yield f"{where} = {json.dumps(word)}"
    for name, inner in schema.get("properties", {}).items():
        yield f"{where}.{name}"
        yield from of_schema(f"{where}.{name}", inner)
    for name in schema.get("required", []):
        yield f"{where}.{name} always"
    for key, mark in (("items", "[]"), ("additionalProperties", ".*")):
        yield from of_schema(where + mark, schema.get(key))
    for key in ("allOf", "anyOf", "oneOf"):
        for inner in schema.get(key, []):
            yield from of_schema(where, inner)


def of_schemas(named):
    for name, schema in named.items():
        yield from of_schema(name, schema)


def _content(where, described):
    for kind, inner in described.get("content", {}).items():
        yield f"{where} {kind}"
        yield from of_schema(f"{where} {kind}", inner.get("schema"))


def of_operation(name, operation, parameters, resolve):
    yield name
    for parameter in map(resolve, parameters):
        where = f"{name} ?{parameter['name']}"
        yield f"{where} in {parameter['in']}"
        if parameter.get("required") and parameter["in"] != "path":
            yield where + MUST
        yield from of_schema(where, parameter.get("schema"))
    body = resolve(operation.get("requestBody", {}))
    if body.get("required"):
        yield f"{name} body" + MUST
    yield from _content(f"{name} body", body)
    for status, response in operation["responses"].items():
        response = resolve(response)
        yield f"{name} {status}"
        yield from _content(f"{name} {status}", response)
        for header in response.get("headers", {}):
            yield f"{name} {status} header {header}"


def of_openapi(document):
    def resolve(item):
        while "$ref" in item:
            target = document
            for part in item["$ref"].lstrip("#/").split("/"):
                target = target[part]
            item = target
        return item
    for path, item in document["paths"].items():
        for method in ("get", "post", "put", "patch", "delete"):
            if method in item:
                parameters = item.get("parameters", []) + item[method].get("parameters", [])
                yield from of_operation(f"{method.upper()} {path}", item[method], parameters, resolve)
    yield from of_schemas(document["components"]["schemas"])


def of_help(program, text):
    """Returns the options with the name of their value, and the subcommands."""
    options = set(re.findall(r"(?<![\w-])(--[a-z][a-z-]*)", text))
    for option in options:
        yield f"{program} {option}"
    for command in re.findall(rf"^  {program} ([a-z]+(?:-[a-z]+)*(?: report)?)", text, re.M):
        yield f"{program} {command}"


def of_getopt(program, source):
    """Returns the options of a program that calls getopt_long, from its source, because it is built only if nvcc is
    installed."""
    letters = re.search(r'getopt_long\(argc, argv, "([^"]*)"', source)
    for letter, value in re.findall(r"([a-zA-Z])(:?)", letters.group(1)):
        yield f"{program} -{letter}" + (" VALUE" if value else "")
    for name, value in re.findall(r'\{"([a-z-]+)", (no|required)_argument,', source):
        yield f"{program} --{name}" + (" VALUE" if value == "required" else "")


def of_manual(name, text):
    """Returns the environment variables and exit statuses of a manual page."""
    for variable in re.findall(r"^\.It Ev (\w+)", text, re.M):
        yield f"{name}: environment {variable}"
    section = re.search(r"^\.Sh EXIT STATUS\n(.*?)^\.Sh ", text, re.M | re.S)
    for status in re.findall(r"(?:^|[,;] )(\d{1,2}) (?!seconds)(?=[a-z])", section.group(1), re.M) if section else []:
        yield f"{name}: exit status {status}"


def of_metrics(text):
    for name, kind in re.findall(r"^# TYPE (\w+) (\w+)$", text, re.M):
        yield f"metric {name} {kind}"


def demanded(old, now):
    """Returns the lines of `now` that make something mandatory for an operation of `old`."""
    known = {line.split(" ?")[0].split(" body")[0] for line in old}
    return {line for line in set(now) - set(old) if line.endswith(MUST) and line.split(" ?")[0].split(" body")[0] in known}


def broken(old, now):
    """Returns the lines that a program that was written for `old` would miss."""
    return sorted([f"gone: {line}" for line in set(old) - set(now)] + [f"new: {line}" for line in demanded(old, now)])


def compare(path, now):
    """Compares with a list. REACH_API_WRITE=1 adds the missing lines to the list, but not those that break programs."""
    with open(path, encoding="utf-8") as file:
        old = file.read().splitlines()
    found = broken(old, now)
    missing = set(now) - set(old) - demanded(old, now)
    if os.environ.get("REACH_API_WRITE"):
        with open(path, "w", encoding="utf-8") as out:
            out.write("\n".join(sorted(set(old) | missing)) + "\n")
        return found
    return found + [f"not in {os.path.basename(path)}, `make generated` adds it: {line}" for line in sorted(missing)]
