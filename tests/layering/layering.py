#!/usr/bin/env python3
"""Reads the include lines of the project and fails on every dependency that the layer table of
the design does not have. Prints TAP. Judges the includes of a file itself, not of its headers.

    daemon/analysis/levels/levels.c  #include "store/store.h"   ->  not ok: analysis may not include store

A layer is a directory; a file below it (daemon/gpu/cuda/x.c) belongs to it. A second test plants
bad includes in a scratch tree and checks that each is caught: a check that cannot fail proves
nothing.
"""

import os
import re
import sys
import tempfile

# The allowed includes. A layer may always include itself, and all but kernels may include base and types. An entry
# with a slash is one header and not the whole layer.
MAY_INCLUDE = {
    "base": [],
    # Plain values that every layer passes to others: a GPU's identity, kinds of memory and access, a verdict.
    "types": [],
    "gpu": ["kernels/abi.h"],
    "worker": ["gpu", "observe"],
    "observe": ["gpu/probe.h"],
    "fingerprint": [],
    "analysis": ["observe", "fingerprint"],
    "import": ["observe", "analysis", "fingerprint"],
    "campaign": ["observe", "analysis", "fingerprint"],
    "sqlite": [],
    "store": ["sqlite", "observe", "fingerprint"],
    "snapshot": ["fingerprint"],
    "compare": ["fingerprint"],
    "planner": ["fingerprint"],
    # Handlers, encode and decode turn a request into an answer. They do not use the HTTP transport, so that libreach
    # can link them.
    "api": ["snapshot", "planner", "fingerprint"],
    "server": ["api", "snapshot", "fingerprint"],
    "measure": ["worker", "observe", "fingerprint", "analysis", "campaign", "store", "snapshot"],
    "config": ["gpu", "fingerprint", "store/store_path.h"],
    # The parts of the serving process outside its layers, and the modes that do one thing and exit.
    "service": ["config", "measure", "store", "snapshot", "fingerprint", "planner", "worker",
                "observe", "compare", "api", "server"],
    "batch": ["config", "service/state_file.h", "gpu", "worker", "observe", "fingerprint", "analysis", "store", "snapshot",
              "measure"],
    "main": ["config", "service", "batch", "gpu", "worker", "observe", "fingerprint", "analysis", "campaign", "store", "snapshot",
             "planner", "api", "server", "measure", "import", "compare"],
    # reachctl import analyzes by itself, and writes the files that --export writes; reachctl backup
    # copies the state file.
    "clients": ["fleet", "fingerprint", "planner", "compare", "import", "batch/export.h", "batch/report.h",
                "store/store.h", "store/store_path.h"],
    # Surveys: their storage (in SQLite or PostgreSQL), their requests, their reports.
    "fleet": ["sqlite", "fingerprint", "compare", "planner", "build/gen/fleet_sql.h", "build/gen/fleet_page.h"],
    # The client library answers offline with the daemon's own handlers. It contains nothing else, so that a job that
    # links it gets no store, no server and no device.
    "libreach": ["api", "snapshot", "fingerprint", "planner/job_env.h", "planner/params.h"],
    # The lab compares the model with stored measurements: it opens no device and connects to no daemon.
    "lab": ["lab/trace", "lab/whatif", "lab/validate"],
    "lab/trace": ["clients/lab/exit_status.h", "clients/examples/element.h"],
    "lab/whatif": ["clients/lab/exit_status.h", "lab/trace", "gpu/probe.h", "gpu/sim/sim_desc.h", "gpu/sim/sim_mmu.h",
                   "gpu/sim/sim_profiles.h", "fingerprint", "planner"],
    "lab/validate": ["clients/lab/exit_status.h", "lab/trace", "lab/whatif", "gpu/sim/sim_desc.h", "gpu/sim/sim_mmu.h", "observe",
                     "fingerprint", "batch/export.h"],
    # The report of reach-profile counts misses on recorded traces with the lab's engine.
    "profile": ["lab/trace", "lab/whatif", "fingerprint", "planner"],
    # The library that reach-profile loads into programs.
    "profile/inject": ["lab/trace"],
    # Machines of published papers, in a program that is not installed. No other layer may include them.
    "lab/papers": ["clients/lab/exit_status.h", "lab/trace", "lab/whatif", "fingerprint", "lab/papers/engine"],
    "lab/papers/engine": ["lab/trace"],
    "kernels": [],
}

# The headers for jobs and the code that runs inside Slurm stand alone, and do not even include base.
ALONE = ("clients/c/reach.h", "clients/cuda/", "clients/slurm/")

# Headers from outside that belong to some layers only. The cuda source has its own mirror header, so the C build
# needs no CUDA header at all; programs for nvcc may use them.
OUTSIDE = {
    "microhttpd.h": ["server"],
    "sqlite3.h": ["sqlite", "store", "fleet"],
    "slurm/spank.h": ["clients"],
    "libpq-fe.h": ["fleet"],
    "curl/curl.h": ["clients", "fleet", "libreach"],
    "hwloc.h": [],
    "cuda.h": ["clients", "kernels"],
    "cuda_runtime.h": ["clients", "kernels"],
    "nvml.h": [],
}

ROOTS = ("daemon", "api", "clients", "kernels")
# The modules of the pages import each other and Debian's node-d3-* packages. No module comes from a server, and a
# page gets its data about a GPU only from the API.
IMPORT = re.compile(r'''^\s*(?:import|export\b.*\bfrom)\b[^"']*["']([^"']+)["']|\bimport\s*\(''')
IMPORTABLE = re.compile(r"\./[a-z_]+\.js$|d3-[a-z-]+$")
SUFFIXES = (".c", ".h", ".cu", ".cuh", ".js")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def layer_of(path):
    """Returns the layer of a path below the project root, or None."""
    parts = path.split("/")
    if path.startswith("clients/c/"):
        return "libreach"
    if path.startswith("clients/fleet/"):
        return parts[1]
    if path.startswith("clients/profile/"):
        return "/".join(parts[1:-1])
    if path.startswith("clients/lab/"):
        folders = [part for part in parts[1:-1] if part not in ("pichai", "mosaic", "programs")]
        layer = "/".join(folders)
        return layer if layer in MAY_INCLUDE else None
    if path.startswith("api/server/"):
        return "server"
    if parts[0] in ("api", "clients", "kernels"):
        return parts[0]
    if parts[0] != "daemon":
        return None
    # daemon/main.c and the files beside it put the layers together.
    layer = parts[1] if len(parts) > 2 else "main"
    return layer if layer in MAY_INCLUDE else None


def resolve(root, includer, text):
    """Returns the path below the root that an include line means, in the order of the compiler."""
    for folder in (os.path.dirname(includer), "", "daemon", "clients/c", "clients/cuda"):
        path = os.path.normpath(os.path.join(folder, text))
        if os.path.isfile(os.path.join(root, path)):
            return path
    return None


def classify(root, includer, mark, text):
    """Returns why this include line is wrong, or None."""
    layer = layer_of(includer)
    if layer is None:
        return "is in no layer of the table"
    if text in OUTSIDE:
        return None if layer in OUTSIDE[text] else f"{layer} may not include <{text}>"
    if mark == "<":
        return None
    target = resolve(root, includer, text)
    if target is None:
        return f'includes "{text}", which is nowhere'
    if includer.startswith("clients/cuda/diagnose/") and target == "kernels/abi.h":
        return None
    if includer.startswith(ALONE):
        return None if target.startswith(ALONE) else f"{includer} must stand alone"
    target_layer = layer_of(target)
    if target_layer == layer or (target_layer in ("base", "types") and layer not in ("base", "kernels")):
        return None
    # A layer that may include clients may include their public header.
    if target == "clients/c/reach.h" and layer in ("clients", "profile"):
        return None
    allowed = MAY_INCLUDE[layer]
    short = target[len("daemon/"):] if target.startswith("daemon/") else target
    if target_layer in allowed or short in allowed:
        return None
    return f"{layer} may not include {short}"


def source_files(root):
    for top in ROOTS:
        for folder, folders, names in os.walk(os.path.join(root, top)):
            folders.sort()
            for name in sorted(names):
                if name.endswith(SUFFIXES):
                    yield os.path.relpath(os.path.join(folder, name), root)


def check_file(root, path):
    """Returns all wrong dependencies of one file, as sentences."""
    problems = []
    with open(os.path.join(root, path), encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            found = IMPORT.search(line) if path.endswith(".js") else INCLUDE.match(line)
            if found and path.endswith(".js"):
                if not IMPORTABLE.match(found.group(1) or ""):
                    problems.append(f"{path}:{number}: imports {found.group(1)}")
            elif found:
                problem = classify(root, path, found.group(1), found.group(2))
                if problem:
                    problems.append(f"{path}:{number}: {problem}")
    return problems


# The cases of the self-test: the including file, the include line, and whether the include is allowed.
PLANTED = [
    ("daemon/analysis/a.c", '#include "store/store.h"', False),
    ("daemon/analysis/a.c", '#  include "gpu/gpu.h"', False),
    ("daemon/analysis/a.c", '#include "observe/observe.h"', True),
    ("daemon/observe/a.c", '#include "gpu/probe.h"', True),
    ("daemon/observe/a.c", '#include "gpu/gpu.h"', False),
    ("daemon/gpu/cuda/a.c", '#include "gpu/gpu.h"', True),
    ("daemon/gpu/cuda/a.c", '#include "../../store/store.h"', False),
    ("daemon/gpu/cuda/a.c", "#include <cuda.h>", False),
    ("daemon/base/a.c", '#include "fingerprint/fingerprint.h"', False),
    ("daemon/snapshot/a.c", '#include "store/store.h"', False),
    ("daemon/planner/a.c", '#include "base/status.h"', True),
    ("daemon/measure/a.c", '#include "gpu/gpu.h"', False),
    ("daemon/measure/a.c", '#include "daemon/store/store.h"', True),
    ("daemon/measure/a.c", "#include <sqlite3.h>", False),
    ("daemon/store/a.c", "#include <sqlite3.h>", True),
    ("daemon/store/a.c", '#include "store.h"', True),
    ("daemon/elsewhere/a.c", '#include "base/status.h"', False),
    ("daemon/a.c", '#include "api/server/server.h"', True),
    ("daemon/a.c", "#include <microhttpd.h>", False),
    ("daemon/gpu/a.c", '#include "nowhere.h"', False),
    ("api/a.c", '#include "store/store.h"', False),
    ("api/handlers/a.c", "#include <microhttpd.h>", False),
    ("api/handlers/a.c", '#include "api/server/server.h"', False),
    ("api/server/a.c", "#include <microhttpd.h>", True),
    ("api/server/a.c", '#include "api/handlers/routes.h"', True),
    ("clients/c/a.c", '#include "planner/placement.h"', False),
    ("clients/lab/a.c", '#include "clients/lab/trace/rlt.h"', True),
    ("clients/lab/a.c", '#include "clients/lab/papers/engine/engine.h"', False),
    ("clients/lab/trace/a.c", '#include "clients/lab/whatif/whatif.h"', False),
    ("clients/lab/trace/a.c", '#include "gpu/sim/sim_mmu.h"', False),
    ("clients/lab/whatif/a.c", '#include "gpu/sim/sim_mmu.h"', True),
    ("clients/lab/whatif/a.c", '#include "gpu/gpu.h"', False),
    ("clients/lab/whatif/a.c", '#include "clients/lab/papers/engine/engine.h"', False),
    ("clients/lab/validate/a.c", '#include "observe/observe.h"', True),
    ("clients/lab/papers/pichai/a.c", '#include "clients/lab/papers/engine/engine.h"', True),
    ("clients/lab/papers/pichai/a.c", '#include "clients/lab/validate/measured.h"', False),
    ("clients/lab/papers/engine/a.c", '#include "clients/lab/papers/pichai/pichai_machines.h"', False),
    ("clients/lab/elsewhere/a.c", '#include "base/status.h"', False),
    ("clients/c/a.c", '#include "snapshot/snapshot.h"', True),
    ("clients/c/a.c", '#include "api/handlers/routes.h"', True),
    ("clients/c/a.c", '#include "api/server/server.h"', False),
    ("clients/c/a.c", '#include "batch/export.h"', False),
    ("clients/c/a.c", "#include <curl/curl.h>", True),
    ("clients/c/a.c", "#include <sqlite3.h>", False),
    ("clients/c/a.c", "#include <hwloc.h>", False),
    ("clients/c/a.c", '#include "clients/c/wire.h"', True),
    ("clients/c/reach.h", '#include "base/status.h"', False),
    ("clients/c/reach.h", "#include <stdint.h>", True),
    ("clients/cuda/reach.cuh", '#include "base/status.h"', False),
    ("clients/cuda/reach.cuh", '#include "reach.h"', True),
    ("clients/examples/a.c", '#include "reach.h"', True),
    ("clients/examples/a.c", '#include "clients/c/wire.h"', False),
    ("clients/reachctl/a.c", '#include "batch/export.h"', True),
    ("clients/reachctl/a.c", '#include "clients/fleet/keep.h"', True),
    ("clients/reachctl/a.c", "#include <sqlite3.h>", False),
    ("clients/fleet/a.c", "#include <sqlite3.h>", True),
    ("clients/fleet/a.c", "#include <libpq-fe.h>", True),
    ("clients/fleet/a.c", '#include "fingerprint/fingerprint.h"', True),
    ("clients/fleet/a.c", '#include "store/store.h"', False),
    ("clients/c/a.c", '#include "clients/fleet/keep.h"', False),
    ("clients/profile/a.c", '#include "clients/lab/whatif/whatif.h"', True),
    ("clients/profile/a.c", '#include "clients/lab/papers/engine/engine.h"', False),
    ("clients/profile/a.c", '#include "gpu/gpu.h"', False),
    ("clients/profile/a.c", '#include "reach.h"', True),
    ("clients/lab/whatif/a.c", '#include "clients/profile/recording.h"', False),
    ("clients/reachctl/a.c", '#include "observe/observe.h"', False),
    ("daemon/import/a.c", '#include "observe/observe.h"', True),
    ("daemon/import/a.c", '#include "store/store.h"', False),
    ("daemon/analysis/a.c", '#include "import/import.h"', False),
    ("kernels/a.cu", '#include "base/status.h"', False),
    ("clients/ui/a.js", 'import { plain } from "./dom.js";', True),
    ("clients/ui/a.js", 'import { line } from "d3-shape";', True),
    ("clients/ui/a.js", 'import "https://example.org/d3.js";', False),
    ("clients/ui/a.js", 'export { x } from "../../build/x.js";', False),
    ("clients/ui/a.js", 'const d3 = await import("d3-shape");', False),
]
PLANTED_HEADERS = ["base/status.h", "store/store.h", "gpu/gpu.h", "gpu/probe.h", "observe/observe.h",
                   "fingerprint/fingerprint.h", "planner/placement.h", "snapshot/snapshot.h",
                   "import/import.h", "batch/export.h", "gpu/sim/sim_mmu.h"]


def write(root, path, text):
    full = os.path.join(root, path)
    os.makedirs(os.path.dirname(full), exist_ok=True)
    with open(full, "w", encoding="utf-8") as f:
        f.write(text)


def self_test():
    """Returns the errors of this check on the planted includes, as sentences."""
    problems = []
    with tempfile.TemporaryDirectory() as root:
        for header in PLANTED_HEADERS:
            write(root, "daemon/" + header, "\n")
        write(root, "api/server/server.h", "\n")
        write(root, "api/handlers/routes.h", "\n")
        write(root, "clients/c/wire.h", "\n")
        write(root, "clients/fleet/keep.h", "\n")
        write(root, "clients/profile/recording.h", "\n")
        for header in ("trace/rlt.h", "whatif/whatif.h", "papers/engine/engine.h", "papers/pichai/pichai_machines.h"):
            write(root, "clients/lab/" + header, "\n")
        for path, line, allowed in PLANTED:
            if "/c/reach.h" not in path:
                write(root, "clients/c/reach.h", "\n")
            write(root, path, "/* planted */\n" + line + "\n")
            found = path in list(source_files(root)) and not check_file(root, path)
            if found != allowed:
                problems.append(f"{path} with {line} was {'refused' if allowed else 'let through'}")
            os.remove(os.path.join(root, path))
    return problems


def report(number, name, problems):
    print(f"{'not ok' if problems else 'ok'} {number} - {name}")
    for problem in problems:
        print(f"# {problem}")
    return not problems


def main():
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    files = list(source_files(root))
    problems = [p for path in files for p in check_file(root, path)]
    if not files:
        problems = ["found no source files"]
    print("1..2")
    good = report(1, f"no include outside of the layer table ({len(files)} files)", problems)
    good = report(2, f"planted includes are classified correctly ({len(PLANTED)})", self_test()) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
