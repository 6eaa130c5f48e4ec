"""lib_schemas.py: the JSON schemas that Kubernetes publishes for each release, in the strict form that allows no
other field. They come from the PyPI package kubernetes-validate, which .ci/deps puts under build/fleet."""
import glob
import json
import os
import re

from common import ROOT, Skip
import jsonschema

SCHEMAS = os.path.join(ROOT, "build", "fleet", "kubernetes_validate", "kubernetes-json-schema")
OLDEST = (1, 25)  # pod-security labels and what else the manifest uses are settled from here on
BASE = "https://kubernetes.io/api/"  # how the schemas call their folder


class Release:
    """The strict schemas of one release of Kubernetes, which are read from one folder."""

    def __init__(self, folder):
        self.folder = folder
        with open(os.path.join(folder, "_definitions.json"), encoding="utf-8") as file:
            self.store = {BASE + "_definitions.json": json.load(file)}

    def path(self, document):
        version = re.sub(r"^([^./]*)(\.[^/]*)?/", r"\1-", document["apiVersion"])
        return os.path.join(self.folder, f"{document['kind'].lower()}-{version}.json")

    def has(self, document):
        return os.path.exists(self.path(document))

    def complaint(self, document):
        """Returns the error in a document, or None."""
        with open(self.path(document), encoding="utf-8") as file:
            schema = json.load(file)
        resolver = jsonschema.RefResolver(BASE, schema, store=self.store)
        errors = jsonschema.Draft7Validator(schema, resolver=resolver).iter_errors(document)
        return next((f"{list(e.absolute_path)}: {e.message[:200]}" for e in errors), None)


def releases():
    """Returns {(1, 25): Release, ..}; skips the case if there are no schemas."""
    found = {}
    for folder in glob.glob(os.path.join(SCHEMAS, "v*-local-strict")):
        number = tuple(int(n) for n in re.search(r"/v(\d+)\.(\d+)\.", folder).groups())
        if number >= OLDEST:
            found[number] = Release(folder)
    if not found:
        raise Skip("the schemas are missing: .ci/deps fleet gets them where it can")
    assert len(found) > 5, list(found)
    first, last = (".".join(map(str, edge(found))) for edge in (min, max))
    print(f"# schemas of Kubernetes {first} to {last}, {len(found)} releases")
    return found
