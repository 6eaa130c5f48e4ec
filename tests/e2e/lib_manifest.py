"""lib_manifest.py: the files under packaging/kubernetes, and the containers of the DaemonSet with their inherited
settings."""
import os

import yaml

from common import ROOT

FOLDER = os.path.join(ROOT, "packaging", "kubernetes")


def load(name):
    """Returns all documents of one file; a duplicate key is an error."""
    class Strict(yaml.SafeLoader):
        pass

    def mapping(loader, node):
        keys = [loader.construct_object(key, deep=True) for key, _ in node.value]
        assert len(keys) == len(set(keys)), f"{name}: a key is there twice: {keys}"
        return yaml.SafeLoader.construct_mapping(loader, node, deep=True)
    Strict.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, mapping)
    with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
        return list(yaml.load_all(file, Strict))


def files():
    return sorted(name for name in os.listdir(FOLDER) if name.endswith(".yaml"))


def of_kind(kind, name="reachd.yaml"):
    found, = [document for document in load(name) if document["kind"] == kind]
    return found


def pod():
    return of_kind("DaemonSet")["spec"]["template"]


def containers():
    """Returns {name: container}, the init containers first."""
    spec = pod()["spec"]
    return {c["name"]: c for c in spec["initContainers"] + spec["containers"]}


def security(container):
    """Returns the effective settings of a container: its own settings override the settings of the pod."""
    return {**pod()["spec"]["securityContext"], **container["securityContext"]}


def config():
    """Returns the daemon's configuration file, as text and as a dictionary."""
    text = of_kind("ConfigMap")["data"]["reachd.conf"]
    lines = [line.split("=", 1) for line in text.splitlines() if line.strip() and line[0] != "#"]
    return text, {name.strip(): value.strip() for name, value in lines}
