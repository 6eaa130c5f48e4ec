#!/usr/bin/env python3
"""Tests the chart packaging/helm, rendered by render_chart.go with the libraries of Helm (Go's text/template, sprig,
YAML by way of JSON). With its defaults it equals packaging/kubernetes/reachd.yaml. With any values it matches the
schemas that Kubernetes publishes, and no container has more rights. Helm itself is not run, because it is in no
registry that the tests use."""
import copy
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))

import common  # noqa: E402  (its folder has to be named first)
from common import REACHD, ROOT, Skip, case, equal, run  # noqa: E402
import jsonschema  # noqa: E402
import lib_manifest  # noqa: E402
import lib_schemas  # noqa: E402
import yaml  # noqa: E402

CHART = os.path.join(ROOT, "packaging", "helm", "reachd")
GO_LIBRARIES = "/usr/share/gocode"
program = os.path.join(common.folder, "render_chart")


def read(*parts):
    with open(os.path.join(CHART, *parts), encoding="utf-8") as file:
        return file.read()


def merged(values, more):
    """Merges values like Helm: maps by key, null removes, everything else replaces."""
    out = copy.deepcopy(values)
    for name, value in more.items():
        if value is None:
            out.pop(name, None)
        elif isinstance(value, dict) and isinstance(out.get(name), dict):
            out[name] = merged(out[name], value)
        else:
            out[name] = value
    return out


def values_of(**more):
    return merged(yaml.safe_load(read("values.yaml")), more)


def build():
    if os.path.exists(program):
        return
    if not os.path.isdir(GO_LIBRARIES + "/src/github.com/Masterminds/sprig"):
        raise Skip("Go and its sprig are missing: .ci/deps fleet")
    done = subprocess.run(["go", "build", "-o", program, os.path.join(ROOT, "tests", "fleet", "render_chart.go")],
                          env={**os.environ, "GO111MODULE": "off", "GOPATH": GO_LIBRARIES, "GOFLAGS": "",
                               "GOCACHE": os.path.join(common.folder, "gocache")}, capture_output=True, text=True, check=False)
    equal(done.returncode, 0, done.stderr)


def render(release="reachd", namespace="reachd", code=0, **more):
    """Returns {kind: document}, and the text of NOTES.txt under "notes"; returns the error message if `code` is not
    0."""
    build()
    done = subprocess.run([program, CHART, release, namespace], input=yaml.safe_dump(values_of(**more)), text=True,
                          capture_output=True, check=False)
    equal(done.returncode, code, done.stderr)
    if code:
        return done.stderr
    texts = json.loads(done.stdout)
    found = {"notes": texts.pop("NOTES.txt")}
    for text in texts.values():
        for document in yaml.safe_load_all(text):
            if document:
                assert document["kind"] not in found, text
                found[document["kind"]] = document
    return found


# Typical values of an administrator.
SETS = {
    "defaults": {},
    "without labels": {"labels": {"enabled": False}},
    "other labels": {"labels": {"namespace": "gpu.example.com", "intervalSeconds": 300}},
    "surveys": {"tcp": {"enabled": True, "tokenSecret": "reachd-token", "port": 27322}},
    "operator": {"prometheus": {"annotations": False, "podMonitor": {"enabled": True}}},
    "large numbers": {"userId": 1000000000, "terminationGracePeriodSeconds": 2000000,
                      "config": {"host-memory-limit": 68719476736}},
    "a registry": {"image": {"repository": "registry.example/a/reachd", "tag": "v1", "pullPolicy": "Always"},
                   "imagePullSecrets": [{"name": "mine"}]},
    "pods": {"podLabels": {"team": "a"}, "podAnnotations": {"x/y": "true"}, "nodeSelector": {"gpu": "yes"},
             "priorityClassName": "system-node-critical", "runtimeClassName": "", "affinity": None, "tolerations": [],
             "updateStrategy": {"type": "OnDelete", "rollingUpdate": None}},
    "paths": {"hostPaths": {"run": "/srv/run", "state": "/srv/state", "features": "/srv/nfd"}},
}


def options_of(document):
    lines = [line.split(" = ", 1) for line in document["data"]["reachd.conf"].splitlines() if line]
    assert len(lines) == len({name for name, _ in lines}), lines
    return dict(lines)


@case
def with_its_defaults_it_is_the_manifest():
    found = render()
    equal(set(found), {"notes", "ConfigMap", "DaemonSet"})
    equal(options_of(found["ConfigMap"]), lib_manifest.config()[1])
    chart, manifest = found["DaemonSet"], lib_manifest.of_kind("DaemonSet")
    assert re.fullmatch("[0-9a-f]{64}", chart["spec"]["template"]["metadata"]["annotations"].pop("checksum/config"))
    equal(chart["spec"], manifest["spec"])
    for kind in ("ConfigMap", "DaemonSet"):
        ours = lib_manifest.of_kind(kind)["metadata"]
        equal({name: found[kind]["metadata"][name] for name in ("name", "namespace")},
              {name: ours[name] for name in ("name", "namespace")})
        assert ours.get("labels", {}).items() <= found[kind]["metadata"]["labels"].items()


@case
def the_published_schemas_allow_it():
    releases = lib_schemas.releases()
    for name, values in SETS.items():
        for kind, document in render(release="gpu", namespace="tools", **values).items():
            if kind in ("notes", "PodMonitor"):  # text; a type of an operator
                continue
            equal((document["metadata"]["name"], document["metadata"]["namespace"]), ("gpu", "tools"), name)
            for number, release in releases.items():
                equal(release.complaint(document), None, (name, kind, number))
    planted = render()["DaemonSet"]
    planted["spec"]["template"]["spec"]["hostPid"] = True
    assert all(release.complaint(planted) for release in releases.values())


@case
def no_container_may_more_than_it_needs():
    for name, values in SETS.items():
        pod = render(**values)["DaemonSet"]["spec"]["template"]["spec"]
        user = values_of(**values)["userId"]
        for no in ("hostNetwork", "hostPID", "hostIPC", "serviceAccountName"):
            assert no not in pod, (name, no)
        equal((pod["automountServiceAccountToken"], pod["securityContext"]["runAsUser"]), (False, user), name)
        for container in pod["initContainers"] + pod["containers"]:
            may = {**pod["securityContext"], **container["securityContext"]}
            prepares = container["name"] == "directories"
            equal((may["runAsUser"], may["runAsNonRoot"]), (0, False) if prepares else (user, True), name)
            equal((may["allowPrivilegeEscalation"], may["readOnlyRootFilesystem"], "privileged" in may),
                  (False, True, False), name)
            equal(may["capabilities"], {"drop": ["ALL"], **({"add": ["CHOWN"]} if prepares else {})}, name)
            assert container["resources"]["limits"]["memory"] and "nvidia.com/gpu" not in str(container), name


@case
def volumes_and_mounts_belong_together():
    for name, values in SETS.items():
        pod = render(**values)["DaemonSet"]["spec"]["template"]["spec"]
        volumes = {volume["name"] for volume in pod["volumes"]}
        used = {mount["name"] for container in pod["initContainers"] + pod["containers"]
                for mount in container["volumeMounts"]}
        equal(used, volumes, name)
        equal("features" in volumes, values_of(**values)["labels"]["enabled"], name)


@case
def values_arrive_where_they_belong():
    pod = render(**SETS["surveys"])["DaemonSet"]["spec"]["template"]["spec"]
    options = options_of(render(**SETS["surveys"])["ConfigMap"])
    equal((options["listen"], options["token-file"]), (":27322", "/etc/reachd-token/token"))
    token, = [volume["secret"] for volume in pod["volumes"] if volume["name"] == "token"]
    equal(token, {"secretName": "reachd-token", "defaultMode": 0o440})
    equal(pod["securityContext"]["fsGroup"], 17322)
    assert "tokenSecret" in render(code=1, tcp={"enabled": True})
    assert "config.health" in render(code=1, config={"health": None})
    large = render(**SETS["large numbers"])
    equal(options_of(large["ConfigMap"])["host-memory-limit"], "68719476736")
    assert "chown 1000000000:1000000000 /run/reachd" in str(large["DaemonSet"]), large
    assert "1000000000" in large["notes"]
    pod = render(**SETS["pods"])["DaemonSet"]["spec"]["template"]["spec"]
    assert not {"affinity", "runtimeClassName", "tolerations"} & set(pod), pod
    # Another configuration gives another pod.
    sums = {render(**SETS[name])["DaemonSet"]["spec"]["template"]["metadata"]["annotations"]["checksum/config"]
            for name in ("defaults", "surveys", "large numbers")}
    equal(len(sums), 3)
    selectors = {json.dumps(render(release=release)["DaemonSet"]["spec"]["selector"]) for release in ("reachd", "a", "b")}
    equal(len(selectors), 3, "two releases would take each other's pods")


@case
def the_daemon_takes_the_configuration():
    for name in ("defaults", "other labels", "large numbers", "paths"):
        path = os.path.join(common.folder, "reachd.conf")
        with open(path, "w", encoding="utf-8") as file:
            file.write(render(**SETS[name])["ConfigMap"]["data"]["reachd.conf"])
        status, _, log = run(REACHD, "--check-config", "--socket", os.path.join(common.folder, "reachd.sock"),
                             "--state", ":memory:", environment={"REACHD_CONFIG": path})
        equal(status, 0, (name, log))


@case
def helm_would_refuse_wrong_values():
    schema = json.loads(read("values.schema.json"))
    jsonschema.Draft7Validator.check_schema(schema)
    check = jsonschema.Draft7Validator(schema)
    for name, values in SETS.items():
        equal([e.message for e in check.iter_errors(values_of(**values))], [], name)
    for wrong in ({"imagee": {}}, {"image": {"repository": ""}}, {"image": {"pullPolicy": "Sometimes"}}, {"userId": 0},
                  {"userId": "17322"}, {"tcp": {"enabled": True}}, {"tcp": {"port": 70000}}, {"labels": {"namespace": "A b"}},
                  {"labels": {"enabled": "no"}}, {"hostPaths": {"run": "run"}}, {"config": {"health": "none"}},
                  {"config": {"a b": "c"}}, {"config": {"token-file": "/x"}}, {"config": {"log-format": "a\nlisten = x"}},
                  {"resources": {"daemon": {"limits": {"nvidia.com/gpu": 1}}}}, {"nodeSelector": {"a": True}},
                  {"prometheus": {"podMonitor": {"interval": "often"}}}, {"config": {"socket": "/tmp/s"}}):
        assert list(check.iter_errors(values_of(**wrong))), wrong


common.main()
