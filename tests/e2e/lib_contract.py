"""lib_contract.py: checks answers against api/openapi.yaml.

    contract = Contract.load()        None if python3-yaml or python3-jsonschema is missing
    contract.check("GET", "/v1/gpus?x=1", answer)

A difference between an answer and the document is a fault in one of them: a status that is not listed, another
type, a body that does not fit its schema, a header that should be there.
"""
import hashlib
import importlib.util
import json
import os
import re
import warnings

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
METHODS = ("get", "post", "delete", "put", "patch")
PROBLEM = {"$ref": "#/components/schemas/Problem"}


class Broken(AssertionError):
    """Raised if an answer does not match the contract."""


class Operation:
    def __init__(self, method, path, item, operation, contract):
        self.method = method.upper()
        self.path = path
        self.responses = {status: contract.resolve(r)
                          for status, r in operation["responses"].items()}
        parameters = item.get("parameters", []) + (operation.get("parameters") or [])
        self.parameters = [contract.resolve(p) for p in parameters]
        self.changes = "security" in operation
        self.has_body = "requestBody" in operation
        self.pattern = re.compile(re.sub(r"\\\{[a-z]+\\\}", "([^/]+)", re.escape(path)) + ("$" if path.endswith("/") else "/?$"))


class Contract:
    def __init__(self, document):
        self.document = document
        self.operations = [Operation(method, path, item, item[method], self)
                           for path, item in document["paths"].items()
                           for method in METHODS if method in item]
        self.resolver = None
        self.valid = set()  # the schema and body of each checked answer, because a test that waits gets equal answers
        self.checked = 0

    @staticmethod
    def load():
        """Reads openapi.yaml. All scripts share a copy of the document in JSON, which is read in a fiftieth of the time."""
        if not all(importlib.util.find_spec(name) for name in ("jsonschema", "yaml")):
            return None
        with open(os.path.join(ROOT, "api", "openapi.yaml"), "rb") as file:
            text = file.read()
        copy = os.path.join(ROOT, "build", f"openapi-{hashlib.sha256(text).hexdigest()[:16]}.json")
        if not os.path.exists(copy):
            import yaml
            with open(f"{copy}.{os.getpid()}", "w", encoding="utf-8") as file:
                json.dump(yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)), file)
            os.replace(file.name, copy)  # two at once make the same
        with open(copy, encoding="utf-8") as file:
            return Contract(json.load(file))

    def resolve(self, node):
        while "$ref" in node:
            at = self.document
            for part in node["$ref"][2:].split("/"):
                at = at[part]
            node = at
        return node

    def validate(self, schema, value, what):
        import jsonschema  # half as long as the start of a script, and not all scripts send requests
        if not self.resolver:
            warnings.simplefilter("ignore", DeprecationWarning)  # Debian has the old resolver only
            self.resolver = jsonschema.RefResolver("", self.document)
        errors = jsonschema.Draft202012Validator(schema, resolver=self.resolver).iter_errors(value)
        for error in errors:
            where = "/".join(str(p) for p in error.absolute_path)
            raise Broken(f"{what}: /{where}: {error.message[:300]}")

    def find(self, method, path):
        """Returns the operation, and whether the path exists at all. Fixed names win over captures."""
        found = [o for o in self.operations if o.pattern.match(path)]
        found.sort(key=lambda o: (o.path.count("{"), o.path != path))
        method = "GET" if method == "HEAD" else method
        return next((o for o in found if o.method == method), None), found

    def check(self, method, target, answer):
        what = f"{method} {target[:200]}: {answer.status}"
        operation, of_path = self.find(method, target.partition("?")[0])
        self.checked += 1
        if method == "OPTIONS" and of_path:
            wanted = {o.method for o in of_path} | {"OPTIONS"}
            wanted |= {"HEAD"} if "GET" in wanted else set()
            if answer.status != 204 or set(answer.headers["Allow"].split(", ")) != wanted:
                raise Broken(f"{what}, Allow: {answer.headers['Allow']}")
        elif not operation:
            self.check_refusal(what, answer, (404, 400) if not of_path else (405, 400))
        else:
            self.check_answer(what, method, operation, answer)

    def check_refusal(self, what, answer, statuses):
        if answer.status not in statuses or (answer.status == 405) != ("Allow" in answer.headers):
            raise Broken(what)
        self.check_problem(what, answer)

    def check_problem(self, what, answer):
        if answer.type != "application/problem+json":
            raise Broken(f"{what}: {answer.type}")
        if not answer.body:
            return  # HEAD
        problem = answer.json()
        self.validate(PROBLEM, problem, what)
        if problem["status"] != answer.status or \
                problem["type"] != "urn:reachd:problem:" + problem["slug"] or \
                problem["request_id"] != answer.headers["X-Request-Id"]:
            raise Broken(f"{what}: {problem}")

    def check_answer(self, what, method, operation, answer):
        response = operation.responses.get(str(answer.status))
        if not response:
            raise Broken(f"{what}: not among {sorted(operation.responses)}: {answer.body[:300]!r}")
        for name, header in response.get("headers", {}).items():
            if name not in answer.headers:
                raise Broken(f"{what}: no {name}")
            self.validate(self.resolve(header).get("schema", {}), self.value_of(name, answer), what)
        types = response.get("content", {})
        if not types:
            if answer.body:
                raise Broken(f"{what}: has a body")
        elif answer.type not in types:
            raise Broken(f"{what}: is {answer.type}")
        elif answer.type == "application/problem+json":
            self.check_problem(what, answer)
        elif method != "HEAD" and answer.type == "application/json":
            schema = types[answer.type].get("schema", {})
            if (id(schema), answer.body) not in self.valid:
                self.validate(schema, json.loads(answer.body), what)
                self.valid.add((id(schema), answer.body))

    @staticmethod
    def value_of(name, answer):
        value = answer.headers[name]
        return int(value) if name == "Retry-After" else value
