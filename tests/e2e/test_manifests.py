#!/usr/bin/env python3
"""Tests packaging/kubernetes and packaging/container without a cluster. The files are consistent, the daemon accepts
its configuration and reach-nfd its options, and no container has unneeded rights. tests/fleet/test_kubernetes.py checks
the files against the published schemas and runs their commands."""
import json
import os
import re
import sys

import common
from common import REACHD, ROOT, case, equal, run

import lib_scripts

try:
    import lib_manifest
    import yaml
except ImportError:
    print("python3-yaml is missing")
    sys.exit(77)

UID = 17322


def read(*parts):
    with open(os.path.join(ROOT, *parts), encoding="utf-8") as file:
        return file.read()


@case
def the_daemon_takes_its_configuration():
    text, options = lib_manifest.config()
    path = os.path.join(common.folder, "reachd.conf")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    here = ("--socket", os.path.join(common.folder, "reachd.sock"), "--state", ":memory:")  # not those of a node
    status, _, log = run(REACHD, "--check-config", *here, environment={"REACHD_CONFIG": path})
    equal(status, 0, log)
    with open(path, "a", encoding="utf-8") as file:
        file.write("sokcet = x\n")
    assert run(REACHD, "--check-config", *here, environment={"REACHD_CONFIG": path})[0] != 0
    equal(options["listen"], "none")


@case
def the_writer_of_labels_takes_its_options():
    command = lib_manifest.containers()["labels"]["command"]
    equal(command[0], os.path.basename(lib_scripts.NFD))
    arguments = [word for word in command[1:] if word not in ("--interval", "60")]
    assert len(arguments) + 2 == len(command) - 1, command
    status, _, log = run(lib_scripts.NFD, "--socket", "/nowhere/s", *arguments)
    equal(status, 3, log)  # nothing answers there, but the options are right
    equal(run(lib_scripts.NFD, "--socket", "/nowhere/s", *arguments, "--ttl", "0")[0], 2)


@case
def no_container_may_more_than_it_needs():
    spec = lib_manifest.pod()["spec"]
    for name in ("hostNetwork", "hostPID", "hostIPC", "serviceAccountName"):
        assert name not in spec, name
    equal(spec["automountServiceAccountToken"], False)
    for name, container in lib_manifest.containers().items():
        may = lib_manifest.security(container)
        prepares = name == "directories"
        equal(may["runAsUser"], 0 if prepares else UID, name)
        equal(may["runAsGroup"], 0 if prepares else UID, name)
        equal(may["runAsNonRoot"], not prepares, name)
        equal(may["allowPrivilegeEscalation"], False, name)
        equal(may["readOnlyRootFilesystem"], True, name)
        equal(may["capabilities"], {"drop": ["ALL"], **({"add": ["CHOWN"]} if prepares else {})}, name)
        equal(may["seccompProfile"], {"type": "RuntimeDefault"}, name)
        assert "privileged" not in may, name
        assert container["resources"]["requests"] and container["resources"]["limits"]["memory"], name
        assert "nvidia.com/gpu" not in str(container["resources"]), "it would take a GPU from the jobs"


def is_selected(node, terms):
    """Returns whether a node with these labels matches the terms of a node affinity, as the scheduler matches them."""
    return any(all((node.get(e["key"]) in e["values"]) == (e["operator"] == "In") for e in term["matchExpressions"])
               for term in terms)


@case
def the_pod_leaves_a_node_that_the_gpu_operator_pauses():
    affinity = lib_manifest.pod()["spec"]["affinity"]["nodeAffinity"]
    terms = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert {e["operator"] for term in terms for e in term["matchExpressions"]} <= {"In", "NotIn"}, terms
    operands = ("nvidia.com/gpu.deploy.client", "nvidia.com/gpu.deploy.device-plugin")
    for gpu in ("feature.node.kubernetes.io/pci-10de.present", "feature.node.kubernetes.io/pci-0302_10de.present",
                "nvidia.com/gpu.present"):
        node = {gpu: "true", "kubernetes.io/os": "linux"}
        assert is_selected(node, terms), "without the operator"
        assert is_selected({**node, **dict.fromkeys(operands, "true")}, terms)
        assert is_selected({**node, operands[1]: "false"}, terms), "the operator deploys no device plugin"
        for operand in operands:
            for why in ("driver-upgrade", "mig-change"):
                assert not is_selected({**node, **dict.fromkeys(operands, "true"), operand: "paused-for-" + why}, terms)
    assert not is_selected(dict.fromkeys(operands, "true"), terms), "no GPU"


@case
def the_memory_limit_lets_the_cliff_of_host_memory_be_seen():
    """Probes of host memory take a quarter of what the limit leaves. The driver takes less than 1 GiB of the limit."""
    source = read("daemon", "campaign", "memory_probes.c")
    range_mib = int(re.search(r"\[DEPTH_FULL\] = \{\d+, (\d+) \* MIB", source).group(1))
    share = int(re.search(r"HOST_SHARE = (\d+)", read("daemon", "gpu", "cuda", "host_memory.c")).group(1))
    limit = lib_manifest.containers()["reachd"]["resources"]["limits"]["memory"]
    assert (int(limit.removesuffix("Gi")) - 1) * 1024 // share >= range_mib, limit


@case
def volumes_and_mounts_belong_together():
    volumes = {v["name"] for v in lib_manifest.pod()["spec"]["volumes"]}
    used = set()
    mounts = {}
    for name, container in lib_manifest.containers().items():
        mounts[name] = {m["mountPath"]: m for m in container["volumeMounts"]}
        equal(len(mounts[name]), len(container["volumeMounts"]), name)
        used |= {m["name"] for m in container["volumeMounts"]}
    equal(used, volumes)
    _, options = lib_manifest.config()
    for option in ("socket", "state"):
        mount = mounts["reachd"][os.path.dirname(options[option])]
        assert not mount.get("readOnly"), option
        assert mount["mountPath"] in mounts["directories"], "no init container makes it the daemon's"
    equal(mounts["reachd"]["/etc/reachd"]["readOnly"], True)
    equal(list(lib_manifest.of_kind("ConfigMap")["data"]), ["reachd.conf"])
    command = lib_manifest.containers()["labels"]["command"]
    assert not mounts["labels"][command[command.index("--dir") + 1]].get("readOnly")
    assert options["socket"] == "/run/reachd/reachd.sock", "where clients look unless they are told"


@case
def probes_and_metrics_are_where_the_daemon_serves_them():
    _, options = lib_manifest.config()
    port = int(options["health"].rpartition(":")[2])
    daemon = lib_manifest.containers()["reachd"]
    equal([(p["name"], p["containerPort"]) for p in daemon["ports"]], [("health", port)])
    for probe, path in (("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")):
        equal(daemon[probe]["httpGet"], {"path": path, "port": "health"})
    template = lib_manifest.pod()
    notes = template["metadata"]["annotations"]
    equal((notes["prometheus.io/port"], notes["prometheus.io/path"]), (str(port), "/metrics"))
    monitor, = lib_manifest.load("podmonitor.yaml")
    equal(monitor["spec"]["podMetricsEndpoints"][0]["port"], "health")
    labels = template["metadata"]["labels"]
    for selector in (monitor["spec"]["selector"], lib_manifest.of_kind("DaemonSet")["spec"]["selector"]):
        assert selector["matchLabels"].items() <= labels.items(), selector


@case
def the_job_asks_for_labels_that_there_are():
    job, = lib_manifest.load("job.yaml")
    spec = job["spec"]["template"]["spec"]
    golden = read("tests", "e2e", "golden", "nfd-reachd.txt")
    known = set(re.findall(r"^(reachd\.internal/[a-z-]+)=", golden, re.M))
    assert set(spec["nodeSelector"]) <= known, known
    assert f"topology-class.{spec['nodeSelector']['reachd.internal/topology-class']}=" in golden
    equal(spec["securityContext"]["supplementalGroups"], [UID])
    equal([v["hostPath"]["path"] for v in spec["volumes"]], ["/run/reachd"])


@case
def image_and_manifest_agree():
    text = read("packaging", "container", "Containerfile")
    version = re.search(r"^VERSION +:= (\S+)$", read("Makefile"), re.M).group(1)
    for container in lib_manifest.containers().values():
        equal(container["image"], "reachd:" + version)
    assert f"-t reachd:{version} " in text
    assert f"--gid {UID} reachd" in text and f"--uid {UID} --gid {UID}" in text
    equal(re.findall(r"^USER (.*)$", text, re.M), [f"{UID}:{UID}"])
    equal(re.findall(r"^EXPOSE (.*)$", text, re.M), ["17323"])
    verbs = re.findall(r"^([A-Z]+) ", re.sub(r"\\\n", "", text), re.M)
    equal(verbs, ["FROM", "RUN", "COPY", "RUN", "ENV", "USER", "EXPOSE", "CMD"])


@case
def the_chart_agrees_with_the_image_and_its_values_are_used():
    """Tests the files of the chart. tests/fleet/test_helm.py renders the chart."""
    chart = os.path.join("packaging", "helm", "reachd")
    about = yaml.safe_load(read(chart, "Chart.yaml"))
    version = re.search(r"^VERSION +:= (\S+)$", read("Makefile"), re.M).group(1)
    equal((about["version"], about["appVersion"]), (version, version))
    text = read(chart, "values.yaml")
    values = yaml.safe_load(text)
    equal(values["userId"], UID)
    equal(values["config"], lib_manifest.config()[1])
    templates = "".join(read(chart, "templates", name) for name in os.listdir(os.path.join(ROOT, chart, "templates")))
    schema = json.loads(read(chart, "values.schema.json"))
    equal(set(schema["properties"]) - {"global"}, set(values))
    for name, value in values.items():
        assert f".Values.{name}" in templates, name
        inner = schema["properties"][name].get("properties", {}) if isinstance(value, dict) else {}
        for key in value if inner and name != "config" else ():
            assert key in inner and re.search(rf"\.Values\.{name}\.{key}|\$tcp\.{key}", templates), (name, key)
    # Each block of values begins with a comment that describes it.
    for block in re.split(r"\n\n", text.strip()):
        assert block.startswith("# ") or re.match(r"(resources|podLabels):", block), block
    used = set(re.findall(r"\.Values\.(\w+)", templates))
    equal(used - set(values), set(), "a template uses a value that there is not")


common.main()
