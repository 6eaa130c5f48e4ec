"""lib_dra.py: checks a ResourceSlice against the limits of resource.k8s.io/v1 that no schema has
(staging/src/k8s.io/api of Kubernetes 1.34, resource/v1/types.go and its validation)."""
import re

LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
DOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,31}")
QUANTITY = re.compile(r"[0-9]+")
PCI = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
TYPES = {"string": str, "int": int, "bool": bool, "version": str}


def is_domain(text, most=253):
    return len(text) <= most and DOMAIN.fullmatch(text)


def check_name(name):
    domain, slash, identifier = name.rpartition("/")
    assert IDENTIFIER.fullmatch(identifier), name
    assert not slash or is_domain(domain, 63), name


def check_attribute(name, attribute):
    check_name(name)
    (kind, value), = attribute.items()
    assert type(value) is TYPES[kind], (name, attribute)  # pylint: disable=unidiomatic-typecheck
    if kind == "int":
        assert -2**63 <= value < 2**63, (name, attribute)
    elif kind == "string":
        assert 0 < len(value) <= 64 and value.isprintable(), (name, attribute)
    if name == "resource.kubernetes.io/pciBusID":
        assert PCI.fullmatch(value["string"] if kind != "string" else value), (name, attribute)


def check(document):
    """Fails on a value that the API server would refuse; returns the devices by name."""
    assert (document["apiVersion"], document["kind"]) == ("resource.k8s.io/v1", "ResourceSlice"), document
    assert is_domain(document["metadata"]["name"]), document["metadata"]
    spec = document["spec"]
    assert set(spec) == {"driver", "nodeName", "pool", "devices"}, set(spec)
    assert is_domain(spec["driver"], 63) and is_domain(spec["nodeName"]), spec
    assert is_domain(spec["pool"]["name"]) and spec["pool"]["generation"] >= 0, spec["pool"]
    assert spec["pool"]["resourceSliceCount"] == 1 and len(spec["devices"]) <= 128, spec["pool"]
    for device in spec["devices"]:
        assert set(device) == {"name", "attributes", "capacity"}, device
        assert LABEL.fullmatch(device["name"]), device["name"]
        assert len(device["attributes"]) + len(device["capacity"]) <= 32, device
        for name, attribute in device["attributes"].items():
            check_attribute(name, attribute)
        for name, capacity in device["capacity"].items():
            check_name(name)
            assert set(capacity) == {"value"} and QUANTITY.fullmatch(capacity["value"]), capacity
    devices = {device["name"]: device for device in spec["devices"]}
    assert len(devices) == len(spec["devices"]), "a name is there twice"
    return devices


def values(device):
    """Returns the attributes of a device without their types."""
    return {name: value for name, attribute in device["attributes"].items() for value in attribute.values()}
