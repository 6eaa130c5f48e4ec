#!/usr/bin/env python3
"""Tests the interface for monitoring and probes: both metric formats, readiness with its components, and the socket for
health probes."""
import re
import shutil
import subprocess

import common
from common import case, equal

daemon = common.measuring_daemon("--simulate", "k80", "--simulate", "h200")
SAMPLE = re.compile(r'([a-z_]+)(\{(?:[a-z_]+="(?:[^"\\]|\\.)*",?)*\})? (-?[0-9.e+-]+|NaN)$')
OPEN = "application/openmetrics-text; version=1.0.0"


def read(text, is_open):
    """Returns the samples of a page, whose form is checked line by line."""
    kinds, helped, samples, family = {}, set(), {}, None
    lines = text.splitlines()
    equal(text[-1], "\n")
    if is_open:
        equal(lines.pop(), "# EOF")
    for line in lines:
        word = line.split(" ", 3)
        if line.startswith("# HELP "):
            assert word[2] not in helped and word[3], line
            helped.add(word[2])
        elif line.startswith("# TYPE "):
            assert word[2] in helped and word[2] not in kinds, line
            family, kinds[word[2]] = word[2], word[3]
        else:
            found = SAMPLE.match(line)
            assert found, line
            name, labels = found.group(1), found.group(2) or ""
            counter = kinds[family] == "counter"
            equal(name, family + ("_total" if counter and is_open else ""), line)
            assert name.endswith("_total") == counter, line
            assert name + labels not in samples, "twice: " + line
            samples[name + labels] = float(found.group(3))
    return samples


def plain():
    answer = daemon.get("/metrics")
    equal((answer.status, answer.headers["Content-Type"]),
          (200, "text/plain; version=0.0.4; charset=utf-8"))
    return read(answer.body.decode(), False)


@case
def both_formats_are_well_formed():
    daemon.measured()
    answer = daemon.get("/metrics", Accept=OPEN)
    equal(answer.headers["Content-Type"],
          "application/openmetrics-text; version=1.0.0; charset=utf-8")
    is_open = read(answer.body.decode(), True)
    equal(sorted(is_open), sorted(plain()))
    for accept in ("*/*", "text/plain", "text/plain;q=0.9, application/openmetrics-text;q=0.1",
                   "application/json"):
        assert daemon.get("/metrics", Accept=accept).type == "text/plain", accept
    # The header that Prometheus 2 sends.
    equal(daemon.get("/metrics", Accept="application/openmetrics-text;version=1.0.0;q=0.5,"
                                        "text/plain;version=0.0.4;q=0.4,*/*;q=0.1").type,
          "application/openmetrics-text")


@case
def promtool_agrees():
    if not shutil.which("promtool"):
        raise common.Skip("promtool is not installed")
    done = subprocess.run(["promtool", "check", "metrics"], input=daemon.get("/metrics").body,
                          capture_output=True, check=False, timeout=common.PATIENCE_S)
    equal(done.returncode, 0, done.stdout + done.stderr)


@case
def numbers_follow_what_happens():
    before = plain()
    daemon.get("/v1/gpus/7")
    tag = daemon.get("/v1/gpus").headers["ETag"]
    daemon.get("/v1/gpus", If_None_Match=tag)
    equal(daemon.finished(daemon.submit(0, "quick"))["state"], "done")
    after = plain()

    def grew(name):
        return after[name] - before[name]
    equal(grew('reachd_http_answers_total{class="4xx"}'), 1)
    equal(grew("reachd_http_not_modified_total"), 1)
    equal(grew('reachd_http_answers_total{class="3xx"}'), 1)
    assert grew('reachd_http_answers_total{class="2xx"}') >= 3, after
    equal(grew('reachd_measurements_ended_total{state="done"}'), 1)
    assert grew("process_cpu_seconds_total") >= 0
    gpus = daemon.gpus()
    equal(after["reachd_gpus"], len(gpus))
    for gpu in gpus:
        label = f'gpu="{gpu["uuid"]}"'
        states = {n: v for n, v in after.items() if n.startswith("reachd_gpu_state{" + label)}
        equal([n for n, v in states.items() if v == 1],
              [f'reachd_gpu_state{{{label},state="{gpu["state"]}"}}'])
        fp = daemon.json(f"/v1/gpus/{gpu['uuid']}/fingerprint")
        equal(after[f"reachd_gpu_reach_bytes{{{label}}}"], fp["windows"]["reach_bytes"])


def map_name(groups):
    """Returns the name of a group map, computed independently of the daemon: FNV-1a over each SM and the lowest SM of
    its group."""
    first = {sm: min(group["sms"]) for group in groups for sm in group["sms"]}
    h = 0xcbf29ce484222325
    for sm in sorted(first):
        for byte in (sm & 255, sm >> 8, first[sm] & 255, first[sm] >> 8):
            h = (h ^ byte) * 0x100000001b3 % 2 ** 64
    return f"map{h:016x}"


@case
def a_gpu_is_one_info_series_and_gauges():
    page = plain()
    for gpu in daemon.gpus():
        fp = daemon.json(f"/v1/gpus/{gpu['uuid']}/fingerprint")
        topology, label = fp["topology"], f'gpu="{gpu["uuid"]}"'
        info = [n for n in page if n.startswith("reachd_gpu_fingerprint_info{" + label)]
        equal(info, [f'reachd_gpu_fingerprint_info{{{label},model="{gpu["name"]}",'
                     f'signature="{topology["disabled"]["signature"]}",map="{map_name(topology["groups"])}",'
                     f'origin="simulated",driver="{gpu["driver_version"]}",depth="{fp["depth"]}"}}'])
        wanted = {
            "sms": gpu["sm_count"], "memory_bytes": gpu["memory_bytes"],
            "reach_bytes": fp["windows"]["reach_bytes"],
            "recommended_window_bytes": fp["windows"]["recommended_bytes"],
            "full_sms": topology["full_sm_count"], "nominal_group_sms": topology["nominal_group_sms"],
            "disabled_sms": topology["disabled"]["sm_count"],
            "disabled_candidates": topology["disabled"]["candidate_count"],
            "lost_groups": topology["disabled"]["lost_groups"],
            "group_confidence_ratio": topology["confidence"], "groups": len(topology["groups"]),
            "tlb_levels": len(fp["tlb"]["levels"]),
            "fingerprint_duration_seconds": fp["duration_ms"] / 1000}
        for name, factor in (("plateau", 1e9), ("whole_memory", 1e9)):
            rate = fp["throughput"][name + "_gbps"]
            wanted[name + "_bytes_per_second"] = rate and rate * factor
        for name, value in wanted.items():
            equal(page.get(f"reachd_gpu_{name}{{{label}}}"), value, name)
        for level in fp["tlb"]["levels"]:
            for name in ("entries", "entry_bytes", "reach_bytes", "miss_penalty_cycles"):
                sample = f'reachd_gpu_tlb_{name}{{{label},level="{level["level"]}"}}'
                equal(page.get(sample), level[name], sample)
        for verdict in ("clean", "disturbed", "unusable"):
            equal(page[f'reachd_gpu_fingerprint_verdict{{{label},verdict="{verdict}"}}'],
                  verdict == fp["conditions"]["verdict"], verdict)
        series = [name for name in page if label in name]
        assert len(series) < 60 and not any("sm=" in name for name in series), series


@case
def readiness_tells_how_old_the_data_is():
    quiet = daemon.json("/readyz")
    assert "measurements" not in quiet and "fingerprint_age_seconds" not in quiet["gpus"][0], quiet
    full = daemon.json("/readyz?verbose")
    equal((full["status"], full["database_error"]), ("ready", None))
    equal(full["measurements"], {"queued": 0, "running": 0})
    for gpu in full["gpus"]:
        equal(gpu["state"], "ready")
        assert 0 <= gpu["fingerprint_age_seconds"] < 3600, gpu
    equal(daemon.json("/readyz?verbose=")["status"], "ready")
    equal(daemon.get("/readyz?verbose=1").status, 400)


@case
def readiness_of_what_is_not_ready_names_the_gpus():
    new = common.Daemon("--simulate", "k80", "--no-measure-on-start")
    short, full = new.get("/readyz"), new.get("/readyz?verbose")
    equal((short.status, full.status), (503, 503))
    assert "gpus" not in short.json() and short.headers["Retry-After"], short.body
    equal([(g["state"], g["fingerprint_age_seconds"]) for g in full.json()["gpus"]],
          [("unknown", None)])
    new.stop()


@case
def probes_have_a_port_of_their_own():
    for path, status in (("/healthz", 200), ("/readyz?verbose", 200), ("/metrics", 200), ("/", 200),
                         ("/v1/gpus", 404), ("/v1/gpus/0/fingerprint", 404)):
        equal(daemon.health(path).status, status, path)
    daemon.stop()


common.main()
