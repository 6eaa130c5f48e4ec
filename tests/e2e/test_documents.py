#!/usr/bin/env python3
"""Tests the command blocks of README.md and of the pages. Each block runs in a shell, against a demo daemon and with
the programs of an installation. The info string of its fence gives the kind of a block:

    ```sh                  runs, and every command in it succeeds
    ```sh slow             runs only if REACH_LONG is set (make check-long)
    ```sh needs-PROGRAM    runs if that program is installed
    ```sh needs-X          does not run; X is gpu, root, network, cluster, or minutes (of time)
    ```files               a recipe of CONTRIBUTING.md: a file of this repository in each line, and what to do in it
    ```text, ```c, ...     has no commands

A fence without an info string fails. The blocks of a page run in order in one folder, which has the files that the page
names. They are files of the repository, and job.c, *.csv and fingerprint.json. The port in the text stands for the port
of the daemon."""
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys

import common
import lib_tlb
from common import ROOT, case, equal, run

if os.path.basename(common.BUILD) != "release":
    print("documents do not depend on the build")
    sys.exit(77)
common.needs_own_processor("the commands of pages use an installation for this machine")

PAGES = [os.path.relpath(page, ROOT) for page in
         [os.path.join(ROOT, name) for name in ("README.md", "CONTRIBUTING.md", "systemd/README.md",
                                                "clients/python/README.md")] +
         sorted(glob.glob(os.path.join(ROOT, "docs", "*.md")) + glob.glob(os.path.join(ROOT, "docs", "papers", "*.md")))]
MOST_README_LINES = 150
NEVER = {"needs-gpu", "needs-root", "needs-network", "needs-cluster", "needs-minutes"}
FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.M | re.S)
LANGUAGES = {"text", "c", "cpp", "python", "json", "sql", "yaml", "diff", "promql", "js", "files"}
PREFIX = "/opt/reach"
JOB = """
#include <reach.h>

int main(void)
{
    return reach_strategy_name(REACH_NAIVE) == 0;
}
"""
stage = os.path.join(common.folder, "stage")
prefix = stage + PREFIX


def blocks(page):
    """Yields (info string, text) of each fence."""
    with open(os.path.join(ROOT, page), encoding="utf-8") as file:
        return FENCE.findall(file.read())


def runs(info):
    """Returns whether a block of this info string runs here."""
    language, *marks = info.split()
    programs = [mark[len("needs-"):] for mark in marks if mark.startswith("needs-") and mark not in NEVER]
    return (language == "sh" and not NEVER & set(marks) and all(shutil.which(program) for program in programs) and
            ("slow" not in marks or os.environ.get("REACH_LONG")))


def wrong_fences(page, found):
    """Returns the info strings that have none of the forms above."""
    for info, text in found:
        language, *marks = info.split() or [""]
        shell = language == "sh" and all(mark == "slow" or re.fullmatch(r"needs-[a-z-]+", mark) for mark in marks)
        if not shell and (language not in LANGUAGES or marks):
            yield f"{page}: ```{info}: {text.splitlines()[0]}"


@case
def every_block_says_what_it_is():
    equal([wrong for page in PAGES for wrong in wrong_fences(page, blocks(page))], [])
    for wrong in ("", "bash", "sh needs", "c slow"):
        equal(len(list(wrong_fences("page", [(wrong, "ls\n")]))), 1, wrong)
    assert sum(runs(info) for info, _ in blocks("README.md")) > 4, "blocks of the README that run"


def recipes(text):
    """Returns {title of the section: paths} of each list of files."""
    found = {}
    for section in re.split(r"^#+ ", text, flags=re.M):
        for info, block in FENCE.findall(section):
            if info == "files":
                found[section.splitlines()[0]] = [line.split()[0] for line in block.splitlines()]
    return found


def missing(paths):
    return [path for path in paths if not os.path.isfile(os.path.join(ROOT, path))]


@case
def recipes_name_files_that_exist():
    with open(os.path.join(ROOT, "CONTRIBUTING.md"), encoding="utf-8") as file:
        found = recipes(file.read())
    equal(list(found), ["Add a number to the fingerprint", "Add a parameter of a request", "Add a strategy",
                        "Add a route", "Add a client"])
    equal({title: missing(paths) for title, paths in found.items()}, {title: [] for title in found})
    assert all(len(paths) == len(set(paths)) >= 4 for paths in found.values()), found
    equal(recipes("## One\n```files\nMakefile  build\nnowhere.c  lost\n```\n"), {"One": ["Makefile", "nowhere.c"]})
    equal(missing(["Makefile", "nowhere.c"]), ["nowhere.c"])


LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.M)


def prose(text):
    """Returns a page without its fences and without code in lines."""
    return re.sub(r"`[^`\n]*`", "", FENCE.sub("", text))


def anchors(text):
    """Returns the anchors of the headings, by the rule of GitHub: lower case, hyphens for blanks, no other
    punctuation."""
    titles = HEADING.findall(FENCE.sub("", text))
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def dead_links(page, text):
    """Returns the links of a page to files that do not exist, and to headings that their page does not have."""
    for link in LINK.findall(prose(text)):
        target, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", link):
            continue
        path = os.path.join(ROOT, os.path.dirname(page), target) if target else os.path.join(ROOT, page)
        if not os.path.exists(path):
            yield f"{page}: {link}: no such file"
        elif anchor:
            with open(path, encoding="utf-8") as file:
                if anchor not in anchors(file.read()):
                    yield f"{page}: {link}: no such heading"


@case
def links_lead_to_files_and_headings():
    pages = [os.path.relpath(path, ROOT) for folder in ("", "docs", "systemd", "clients", "packaging", "reference", "tests")
             for path in glob.glob(os.path.join(ROOT, folder, "**" if folder else "", "*.md"), recursive=True)]
    dead = []
    for page in pages:
        with open(os.path.join(ROOT, page), encoding="utf-8") as file:
            dead += dead_links(page, file.read())
    equal(dead, [])
    text = "## A `b`: c_d\n[1](#a-b-c_d) [2](#a) [3](none.md) [4](http://x#y) `[5](none)`\n```text\n[6](none)\n```\n"
    equal(list(dead_links("README.md", text)), ["README.md: #a-b-c_d: no such heading", "README.md: #a: no such heading",
                                                "README.md: none.md: no such file"])
    equal(anchors(text), {"a-b-c_d"})


@case
def pictures_show_the_tables_of_their_page():
    drawn = os.path.join(common.folder, "pictures")
    os.mkdir(drawn)
    equal(run(os.path.join(ROOT, "tests", "bench", "draw_lab_programs.py"),
              os.path.join(ROOT, "docs", "lab-programs.md"), drawn)[0], 0)
    names = sorted(os.listdir(drawn))
    equal(names, ["lab-misses.svg", "lab-mosaic.svg", "lab-pichai.svg"])
    for name in names:
        with open(os.path.join(drawn, name), encoding="utf-8") as new, \
                open(os.path.join(ROOT, "docs", "pictures", name), encoding="utf-8") as stored:
            assert new.read() == stored.read(), f"{name}: run tests/bench/draw_lab_programs.py, and look at it"


@case
def every_page_is_in_the_index():
    folder = os.path.join(ROOT, "docs")
    pages = {os.path.relpath(path, folder) for path in glob.glob(os.path.join(folder, "**", "*.md"), recursive=True)}
    pages = {page for page in pages if not page.startswith("measurements" + os.sep)} - {"README.md"}
    assert len(pages) > 25, pages
    with open(os.path.join(folder, "README.md"), encoding="utf-8") as file:
        equal(sorted(pages - {link.partition("#")[0] for link in LINK.findall(file.read())}), [])


@case
def readme_is_short():
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
        lines = len(file.readlines())
    assert lines <= MOST_README_LINES, f"README.md has {lines} lines; {MOST_README_LINES} at most, the rest is for docs/"


def page_served(path):
    """Returns the page that the first line of an experiment names, or of a script the line after #!."""
    with open(path, encoding="utf-8") as file:
        lines = [line for line in file.read().split("\n", 2)[:2] if not line.startswith("#!")]
    found = re.fullmatch(r"(?:/\* |# )For (docs/[a-z-]+\.md)\.(?: \*/)?", lines[0])
    return found and found.group(1)


@case
def experiments_name_the_page_they_served():
    folder = os.path.join(ROOT, "tests", "gpu", "experiments")
    names = sorted(name for name in os.listdir(folder) if os.path.isfile(os.path.join(folder, name)))
    assert len(names) > 10, names
    pages = {name: page_served(os.path.join(folder, name)) for name in names}
    equal([name for name, page in pages.items() if not page or missing([page])], [])
    equal(page_served(os.path.join(ROOT, "tests", "gpu", "onchip.cu")), None)


MEASUREMENTS = os.path.join(ROOT, "docs", "measurements")
MOST_BYTES = 10 * 1000 * 1000
# A path under docs/measurements, or the name of one of its folders alone; a pattern ends with - or *.
CITED = re.compile(r"measurements/([A-Za-z0-9][\w./-]*\*?)|"
                   r"\b((?:busy|guest|nvidia|plain|survey|triton|visit)-[a-z0-9-]*-2026-\d\d-\d\d(?:/[\w.-]+)?)\b")


def cited(text):
    """Returns the names of docs/measurements in a text."""
    for path, folder in CITED.findall(text):
        name = (path or folder).rstrip("./")
        if name and not name.endswith(("-", "*")) and (folder or "." in name or "-2026-" in name):
            yield name


def citing_files():
    """Texts of this repository that may name a measurement; recorded files keep the names of their time."""
    names = common.run("git", "-C", ROOT, "ls-files")[1].splitlines()
    return [name for name in names if re.search(r"\.(md|py|sh|c|h|cu|cuh|mk)$|^\.ci/|^Makefile$|^docs/man/", name) and
            name != "CHANGELOG.md" and not name.startswith("tests/fuzz/corpus/")]


@case
def measurements_are_in_the_index_and_small():
    with open(os.path.join(MEASUREMENTS, "README.md"), encoding="utf-8") as file:
        index = file.read()
    entries = sorted(set(os.listdir(MEASUREMENTS)) - {"README.md"})
    assert len(entries) > 50, entries
    equal([name for name in entries if f"`{name}`" not in index], [])
    size = sum(os.path.getsize(os.path.join(at, name)) for at, _, names in os.walk(MEASUREMENTS) for name in names)
    assert size <= MOST_BYTES, f"docs/measurements has {size} bytes, more than {MOST_BYTES}"


@case
def every_measurement_that_a_text_names_exists():
    if not os.path.isdir(os.path.join(ROOT, ".git")):
        return  # a copy of the sources: the clone that it comes from was checked
    wrong = []
    for name in citing_files():
        with open(os.path.join(ROOT, name), encoding="utf-8") as file:
            wrong += [f"{name}: {path}" for path in cited(file.read())
                      if not os.path.exists(os.path.join(MEASUREMENTS, path))]
    equal(wrong, [])
    planted = '"docs/MS/nvidia-*/x", (MS/lost.txt), `visit-h200-1-DAY`'.replace("MS", "measurements").replace("DAY", "2026-11-22")
    equal(list(cited(planted)), ["lost.txt", "visit-h200-1-" + "2026-11-22"])


def environment(daemon):
    return {**os.environ, "PATH": f"{prefix}/bin:{os.environ['PATH']}",
            "REACHD_URL": f"http://127.0.0.1:{daemon.port}", "HOME": common.folder, "NODE_NAME": "node-1",
            "PKG_CONFIG_PATH": f"{prefix}/lib/pkgconfig", "PKG_CONFIG_SYSROOT_DIR": stage,
            "LD_LIBRARY_PATH": f"{prefix}/lib", "PYTHONPATH": f"{prefix}/share/reachd/python",
            "http_proxy": "http://127.0.0.1:1"}  # nothing answers there


def folder_of(page, daemon):
    """A folder with the files that the page names. README.md makes its fingerprint.json itself."""
    folder = os.path.join(common.folder, page.replace("/", "-"))
    os.mkdir(folder)
    for name in ("docs", "clients", "packaging", "reference"):
        os.symlink(os.path.join(ROOT, name), os.path.join(folder, name))
    files = {"job.c": JOB, "TLB-Test.csv": lib_tlb.curve(40, 1024)}
    if page != "README.md":
        files["fingerprint.json"] = daemon.get("/v1/gpus/0/fingerprint").body.decode()
    for name, text in files.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
    return folder


def failures(daemon, page, found, folder):
    """Returns one line for each block that fails: its page, its commands, its output."""
    for text in [text for info, text in found if runs(info)]:
        script = text.replace("127.0.0.1:17322", f"127.0.0.1:{daemon.port}")
        done = subprocess.run(["sh", "-e", "-c", script], cwd=folder, env=environment(daemon), capture_output=True,
                              stdin=subprocess.DEVNULL, text=True, timeout=common.PATIENCE_S, check=False)
        if done.returncode:
            yield f"{page}: exit status {done.returncode} of\n{text}{done.stdout[-2000:]}{done.stderr}"


@case
def every_block_runs_as_the_text_says():
    done = run("make", "-s", "-C", ROOT, "install-built", "DESTDIR=" + stage, "PREFIX=" + PREFIX,
               environment={name: "" for name in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")})
    equal(done[0], 0, done[2])
    daemon = common.measured_daemon("--simulate", "h200")
    wrong = [line for page in PAGES for line in failures(daemon, page, blocks(page), folder_of(page, daemon))]
    broken = failures(daemon, "page", [("sh", "true\nreachctl plan\ntrue\n")], common.folder)
    equal(len(list(broken)), 1, "a command in the middle that fails")
    daemon.stop()
    assert not wrong, "\n".join(wrong)


@case
def make_run_serves_and_says_where_reachctl_is():
    log = os.path.join(common.folder, "run.log")
    with open(log, "wb") as sink:
        process = subprocess.Popen(["make", "-s", "-C", ROOT, "run-built", "RUN_ARGS=--state :memory: "
                                    "--listen 127.0.0.1:0 --socket none --simulate k80"], stdout=sink, stderr=sink,
                                   env={**os.environ, "MAKEFLAGS": ""}, start_new_session=True)
    try:
        def command():
            assert process.poll() is None, open(log, encoding="utf-8").read()
            return re.search(r"^  (build/release/reachctl .*)$", open(log, encoding="utf-8").read(), re.M)
        line = common.until("it says what to try", command).group(1)
        code, text, why = run("sh", "-c", line + " --json", cwd=ROOT)
        equal(code, 0, why)
        assert json.loads(text)["recommended"], text
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(common.PATIENCE_S)


common.main()
