#!/usr/bin/env python3
"""Tests the page of `reachctl survey report --format html` in a real browser, opened as a file. It has 2000 simulated
GPUs, drawn from the table of the page. Names that contain markup are shown as text. No message is written to the
console, and no request is sent.

    REACH_SCREENSHOTS=docs/ui tests/browser/test_fleet_page.py      makes the pictures of docs/fleet.md
"""
import base64
import json
import os
import re
import shutil
import sqlite3
import subprocess

from lib_browser import NARROW, SCREENSHOTS, WIDE, Browser
import common
from common import BUILD, REACHCTL, case, equal, run
from selenium.webdriver.support.ui import Select

GPUS, FEW_GPUS, MOST_BYTES = 2000, 200, 1_000_000
HOSTILE = "<img src=x onerror=alert(1)></script><script>alert(2)</script>&amp;\x1b[31m\u202e" + "long" * 1000
DB = os.path.join(common.folder, "fleet.db")
PAGE = os.path.join(common.folder, "fleet.html")
FEW_PAGE = os.path.join(common.folder, "few.html")

# Statements that change the database into a fleet with errors.
TROUBLE = (
    "UPDATE fleet_sighting SET state = 'stale' WHERE survey = 2 AND slot = 3 AND host % 7 = 0",
    "UPDATE fleet_sighting SET fingerprint = NULL, map = NULL WHERE survey = 2 AND slot = 5 AND host % 9 = 0",
    "UPDATE fleet_kind SET origin = 'measured' WHERE model = 'Synthetic model 1'",
    "UPDATE fleet_fingerprint SET verdict = 'disturbed' WHERE id % 211 = 0",
    "UPDATE fleet_fingerprint SET whole_memory_gbps = whole_memory_gbps * 0.93 WHERE id % 97 = 0",
    "UPDATE fleet_fingerprint SET whole_memory_gbps = whole_memory_gbps * 1.06 WHERE id % 89 = 0",
    "UPDATE fleet_outcome SET outcome = 'refused', detail = 'connection refused' WHERE survey = 2 AND host = 7",
)


def make(path, gpus, html):
    """Makes a database of this many GPUs, and the page of its report."""
    subprocess.run([os.path.join(BUILD, "tests", "bench", "fleet_fill"), path, "fill", str(gpus), "2"], check=True,
                   stderr=subprocess.DEVNULL)
    with sqlite3.connect(path) as db:
        for statement in TROUBLE:
            db.execute(statement)
        db.execute("UPDATE fleet_host SET name = ? WHERE id = 2", (HOSTILE,))
        db.execute("UPDATE fleet_kind SET model = ? WHERE model = 'Synthetic model 1'", ("Synthetic <b>model</b> 1",))
    status, page, log = run(REACHCTL, "survey", "report", "--db", path, "--format", "html")
    equal((status, log), (0, ""))
    with open(html, "w", encoding="utf-8") as file:
        file.write(page)
    return page


def rows():
    status, out, err = run(REACHCTL, "survey", "report", "gpus", "--db", DB, "--format", "json")
    equal((status, err), (0, ""))
    return json.loads(out)["gpus"]["rows"]


page = make(DB, GPUS, PAGE)
browser = Browser()


def cells():
    return browser.run("return [...document.querySelectorAll('.heat .cell')].map((c) => "
                       "[c.title, c.className, c.style.backgroundColor, c.textContent])")


@case
def it_is_small_and_quick():
    size = len(page.encode())
    assert size < MOST_BYTES, size
    browser.open("file://" + PAGE)
    drawn = int(browser.until("it is drawn", "return document.documentElement.dataset.drawnMs"))
    print(f"# {GPUS} GPUs: {size} bytes, drawn in {drawn} ms")
    browser.check_quiet()


@case
def hosts_that_failed_come_first_on_every_screen():
    with sqlite3.connect(DB) as db:
        (name,), = db.execute("SELECT name FROM fleet_host WHERE id = 7")
    for width in (400, 800, 1400):
        browser.size((width, 900))
        equal(browser.run("return [...document.querySelectorAll('section')].slice(0, 3).map((s) => s.id)"),
              ["hosts-names", "changes", "heat"])
        cells_of_row = browser.run("return [...document.querySelectorAll('#hosts-names tbody td')].map((c) => c.textContent.trim())")
        equal(cells_of_row[:4], [name, "refused", "connection refused", "1"])
        seen = browser.run("""const r = document.querySelector('#hosts-names tbody tr').getBoundingClientRect();
            return r.top >= 0 && r.bottom <= innerHeight;""")
        assert seen, f"{width} px: the host that failed is not on the first screen"
        browser.check_sizes(f"fleet, {width} px")
    browser.size(WIDE)


@case
def every_gpu_is_a_cell_that_says_what_it_shows():
    wanted, shown = rows(), cells()
    equal(len(shown), GPUS)
    for row, (title, classes, color, letter) in zip(wanted, shown):
        assert f" slot {row['slot']}: {row['model']}" in title, (row, title)
        known = row["whole_memory_gbps"]
        equal(color != "", known is not None, title)
        assert (f", {known:.6g} (" in title.replace(": ", ", ", 1) or f"{known:.6g} (" in title) if known is not None \
            else "not known" in title, (row, title)
        equal("stale" in classes.split(), row["state"] == "stale" or row["verdict"] == "disturbed", title)
        equal("simulated" in classes.split(), row["origin"] == "simulated", title)
        equal("odd" in classes.split(), bool(row["odd_in"]), title)
        equal(letter == "\u00b7", row["map"] is None, title)
    assert any("stale" in classes for _, classes, _, _ in shown)
    assert any("disturbed" in title for title, _, _, _ in shown)
    assert any(row["whole_memory_gbps"] is None for row in wanted)


@case
def farther_is_darker_and_each_side_has_its_color():
    shown = [(float(re.search(r"([+\u2212])(\d+\.\d) %", title).group(2)) *
              (-1 if "\u2212" in title else 1), tuple(map(int, re.findall(r"\d+", color))))
             for title, _, color, _ in cells() if color]
    low, high, middle = min(shown), max(shown), min(shown, key=lambda s: abs(s[0]))
    assert low[0] < -3 and high[0] > 3, (low, high)
    assert low[1][0] > low[1][2] and high[1][2] > high[1][1], (low, high)  # orange, purple
    assert sum(middle[1]) > sum(low[1]) and sum(middle[1]) > sum(high[1]), (low, middle, high)


@case
def another_number_and_order_redraw_it():
    number, order = (Select(s) for s in browser.all("#heat select"))
    before = cells()
    number.select_by_value("plateau_gbps")
    assert cells() != before
    equal(len(cells()), GPUS)
    number.select_by_value("whole_memory_gbps")
    equal(cells(), before)
    order.select_by_value("the farthest from the median")
    away = [float(m.group(1)) for m in (re.search(r"[+\u2212](\d+\.\d) %", c[0]) for c in cells()) if m]
    assert max(away[:8]) == max(away), (away[:8], max(away))
    order.select_by_value("the survey")
    equal(cells(), before)
    browser.run("document.querySelector('.heat .cell').click()")
    equal(browser.text(".told"), before[0][0])
    equal(browser.run("return document.querySelector('tr.chosen').rowIndex"), 1)


@case
def the_tables_have_it_all_as_text():
    read = browser.run("return [...document.querySelectorAll('#gpus tbody tr')].map((r) => "
                       "[...r.cells].map((c) => c.textContent.trim()))")
    wanted = rows()
    equal(len(read), len(wanted))
    for cells_of_row, row in zip(read, wanted):
        equal((cells_of_row[1], cells_of_row[-1]), (str(row["slot"]), row["uuid"]))
    for section in ("signatures", "maps", "outliers", "drift", "hosts-counts", "inventory", "costs"):
        assert browser.all(f"#{section} h2"), section
    assert "and 50 more" not in browser.text("#gpus")


@case
def percentages_are_bars_too():
    drawn = browser.run("return [...document.querySelectorAll('#signatures td.share')].map((c) => [c.textContent.trim(), "
                        "getComputedStyle(c).getPropertyValue('--share'), getComputedStyle(c).backgroundImage])")
    equal(len(drawn), browser.run("return document.querySelectorAll('#signatures tbody tr').length"))
    assert len(drawn) > 2, drawn
    for text, share, image in drawn:
        equal(share, text)
        assert text.endswith("%") and image.startswith("linear-gradient") and text.removesuffix(".0%") in image, image


@case
def hostile_names_are_text():
    equal(browser.all("img"), [])
    equal(len(browser.all("script")), 1)
    equal(browser.all("b b, td b"), [])
    assert any("<img src=x" in c[0] for c in cells())
    assert "<b>model</b>" in browser.text("#gpus")
    assert "\x1b" not in page and "\u202e" not in page
    equal(browser.messages(), [])


@case
def it_asks_nobody_and_runs_nothing_else():
    """Tests the policy of the page: a script and a style that come in later have no effect."""
    browser.run("""const s = document.createElement("script"); s.textContent = "document.title = 'ran'"; document.body.append(s);
        const i = document.createElement("img"); i.src = "http://127.0.0.1:1/x.png"; document.body.append(i);""")
    assert browser.run("return document.title") != "ran"
    refused = browser.messages()
    assert refused and all("Content Security Policy" in m for m in refused), refused
    browser.requests()
    browser.open("file://" + PAGE)
    browser.check_quiet()


@case
def it_can_be_read_by_all():
    browser.check_accessible("fleet", axe=False)
    make(os.path.join(common.folder, "few.db"), FEW_GPUS, FEW_PAGE)  # the same kinds of elements, of which axe-core judges each
    browser.open("file://" + FEW_PAGE)
    browser.check_accessible("fleet of few GPUs")
    browser.open("file://" + PAGE)


@case
def pictures_are_taken():
    for name, scheme, size in (("fleet-light", "light", WIDE), ("fleet-dark", "dark", WIDE), ("fleet-narrow", "light", NARROW)):
        browser.scheme(scheme)
        browser.size(size)
        equal(browser.run("return document.documentElement.scrollWidth <= document.documentElement.clientWidth"), True, name)
        if SCREENSHOTS:  # what is seen first; all of it is long
            image = browser.cdp("Page.captureScreenshot", format="png")["data"]
            path = os.path.join(SCREENSHOTS, name + ".png")
            with open(path, "wb") as out:
                out.write(base64.b64decode(image))
            if shutil.which("pngquant"):
                subprocess.run(["pngquant", "--force", "--strip", "--output", path, "64", path], check=True)


common.main()
