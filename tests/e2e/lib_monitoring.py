"""lib_monitoring.py: reads the files for Prometheus and Grafana: rules, alerts, the dashboard and the metrics that
each of their expressions names."""
import json
import os
import re

import common

FOLDER = os.path.join(common.ROOT, "packaging", "prometheus")
# Values for the variables of the dashboard: all jobs that have GPUs, all models.
VARIABLES = {"$job": "reachd", "$model": ".+"}


def path(name):
    return os.path.join(FOLDER, name)


def load_yaml(name):
    import yaml  # pylint: disable=import-outside-toplevel  # Debian's python3 has it
    with open(path(name), encoding="utf-8") as text:
        return yaml.safe_load(text)


def rules(name):
    return [rule for group in load_yaml(name)["groups"] for rule in group["rules"]]


def dashboard():
    with open(path("grafana-reachd.json"), encoding="utf-8") as text:
        return json.load(text)


def panel_expressions():
    """Returns (title of the panel, its expression with the variables filled in) for each expression."""
    for panel in dashboard()["panels"]:
        for target in panel["targets"]:
            expression = target["expr"]
            for name, value in VARIABLES.items():
                expression = expression.replace(name, value)
            yield panel["title"], expression


def names_in(expression):
    """Returns the metrics that an expression names: the metrics of reachd, recorded ones (with a colon), and up."""
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', '""', expression)
    return {word for word in re.findall(r"[a-zA-Z_:][a-zA-Z0-9_:]*", bare)
            if word.startswith(("reachd_", "process_")) or ":" in word or word == "up"}


def families(page):
    """Returns the names of a page in Prometheus text."""
    return set(re.findall(r"^# TYPE (\S+)", page, re.M))
