#!/usr/bin/env python3
"""Tests the page at /ui/ in a real browser: each view on simulated chips and on a real chip, in light, dark and narrow
windows. The page is used by mouse, and by keyboard alone. No message is written to the console, and no request goes to
another host.

    REACH_SCREENSHOTS=docs/ui tests/browser/test_ui.py      makes the pictures of docs/ui.md
"""
import lzma
import json
import os
import subprocess

from lib_browser import NARROW, WIDE, Browser
import common
from common import BUILD, REACHD, ROOT, Daemon, case, equal
from lib_proxy import HOSTILE, hostile_server
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

MEASUREMENTS = os.path.join(ROOT, "docs", "measurements")
# A real chip with all kinds of memory, and one with the matrix of all pairs of SMs.
H200 = os.path.join(MEASUREMENTS, "nvidia-h200-89d5a7b7-2026-11-22", "fingerprint-memory.json")
H100 = os.path.join(MEASUREMENTS, "nvidia-h100-80gb-hbm3-dcda818d-2026-11-21", "observations-matrix.jsonl.xz")
VIEWS = ("chip", "curves", "job", "history")
LIBRARY = os.path.join(ROOT, "build", "release", "libreach.so.0")
TOKEN = "a-token-of-sixteen-letters-or-more"
GIB = 1 << 30


def matrix():
    """Writes the observations of the H100 to a file, and the fingerprint that follows from them to another file."""
    lines, document = (os.path.join(common.folder, name) for name in ("matrix.jsonl", "matrix.json"))
    with lzma.open(H100) as packed, open(lines, "wb") as plain:
        plain.write(packed.read())
    with open(document, "wb") as out:
        subprocess.run([REACHD, "--analyze", lines, "--depth", "matrix"], stdout=out, check=True)
    return document, lines


def stored(*files):
    """A daemon that serves real chips from a database."""
    state = os.path.join(common.folder, "real.db")
    for arguments in files:
        subprocess.run([os.path.join(BUILD, "tests", "browser", "fill_state"), state, *arguments], check=True)
    return Daemon("--no-gpus", "--reference", os.path.join(common.ROOT, "reference"), state=state)


simulated = common.measured_daemon("--simulate", "h200", "--simulate", "k80")
real = stored((H200,), matrix())
browser = Browser()
CHIPS = {"h200-simulated": (simulated, 0), "k80-simulated": (simulated, 1),
         **{"h200" if "H200" in g["name"] else "h100": (real, g["index"]) for g in real.gpus()}}


def origin(daemon):
    return f"http://127.0.0.1:{daemon.port}"


def show(daemon, view, gpu=0, **state):
    query = "&".join(f"{k}={v}" for k, v in {"gpu": gpu, **state}.items())
    browser.open(f"{origin(daemon)}/ui/#{view}?{query}")
    settle(view)


def settle(view):
    """Waits until the view has all its answers."""
    browser.until(view + " is shown", "return document.querySelector('main').dataset.view === arguments[0]", view)
    ready = {"chip": "return document.getElementById('boxes')?.dataset.bytes",
             "job": "return document.getElementById('job-verdict')?.dataset.bytes",
             "history": "return document.getElementById('history')?.dataset.count",
             "curves": "return document.querySelectorAll('.card').length >= 2"}
    browser.until(view + " has its answers", ready[view])


def windows_shown():
    """Returns, for each group box, its SM ids and the window that it names, or None."""
    return browser.run("""
        return [...document.querySelectorAll('.group')].map((g) => [
            [...g.querySelectorAll('.sm:not(.lost)')].map((s) => Number(s.textContent)),
            g.querySelector('.place')?.textContent.match(/\\d+/)?.[0] ?? null]);""")


def check_windows(daemon, gpu):
    """Checks that the boxes match the answer of the daemon for the shown size."""
    size = browser.run("return document.getElementById('boxes').dataset.bytes")
    placement = daemon.json(f"/v1/gpus/{gpu}/placement?bytes={size}")
    groups = daemon.json(f"/v1/gpus/{gpu}/fingerprint")["topology"]["groups"]
    wanted = [[g["sms"], str(placement["window_of_sm"][g["sms"][0]]) if placement["windows"] else None] for g in groups]
    equal(windows_shown(), wanted, f"windows of {size} bytes")
    return placement


@case
def each_view_of_each_chip_is_shown_quietly_and_accessibly():
    for name, (daemon, gpu) in CHIPS.items():
        identity = daemon.json(f"/v1/gpus/{gpu}")
        for view in VIEWS:
            show(daemon, view, gpu)
            equal(browser.text("h1"), identity["name"])
            equal("Simulated" in browser.text(".about"), identity["origin"] == "simulated", name)
            if view == "chip":
                check_windows(daemon, gpu)
            browser.check_accessible(f"{name}, {view}")
            browser.check_quiet()


@case
def the_chips_of_its_kind_lie_behind_the_curve():
    daemon, gpu = CHIPS["h200"]
    show(daemon, "curves", gpu)
    browser.until("the comparison is there", "return document.getElementById('reference')?.textContent")
    equal(browser.text("#reference"), daemon.json(f"/v1/gpus/{gpu}/compare")["sentence"])
    equal(len(browser.all(".band.kin")), 1)
    daemon, gpu = CHIPS["h200-simulated"]
    show(daemon, "curves", gpu)
    equal(browser.all(".band.kin"), [], "a simulated chip is of no kind that was measured")
    browser.check_quiet()


@case
def pictures_are_also_text():
    daemon, gpu = CHIPS["h200"]
    fingerprint = daemon.json(f"/v1/gpus/{gpu}/fingerprint")
    show(daemon, "curves", gpu)
    rows = browser.run("return [...document.querySelectorAll('table')].map((t) => [t.caption.textContent, t.tBodies[0].rows.length])")
    assert rows[0][0].startswith("Device memory"), rows
    equal(rows[0][1], len(fingerprint["throughput"]["curve"]))
    equal(dict(map(tuple, rows))["Kinds of memory"], len(fingerprint["memory"]))
    lines = browser.run("return [...document.querySelectorAll('.curve')].map((c) => c.querySelectorAll('.line').length)")
    equal(lines, [4, len(fingerprint["memory"])])
    show(daemon, "chip", gpu)
    levels = browser.run("return [...document.querySelectorAll('.level h3')].map((h) => h.firstChild.textContent)")
    equal(levels, ["Out of reach"] + [f"TLB level {x['level']}" for x in reversed(fingerprint["tlb"]["levels"])])
    inner = browser.run("return document.querySelectorAll('.level .level .level').length")
    equal(inner, 1, "the level of an SM is within the level of a group")
    lost = fingerprint["topology"]["disabled"]
    equal(len(browser.all(".sm.lost")), sum(g["sms"] for g in lost["by_group"]))
    assert lost["signature"] in browser.text("main"), browser.text("main")
    first = browser.one(".level details")
    equal(first.get_attribute("open"), None, "evidence is shown when asked for")
    first.find_element("css selector", "summary").click()
    assert "entry-search" in first.text, first.text


@case
def dragging_the_size_changes_windows_and_verdict():
    for name in ("h200-simulated", "h200"):
        daemon, gpu = CHIPS[name]
        show(daemon, "chip", gpu)
        most = check_windows(daemon, gpu)
        assert most["window_count"] >= 2 and "as fast" in browser.text("#chip-verdict"), browser.text("#chip-verdict")
        slider = browser.one("#size")
        to_left = browser.actions().move_to_element_with_offset(slider, slider.size["width"] // 2 - 6, 0).click_and_hold()
        for _ in range(8):
            to_left = to_left.move_by_offset(-slider.size["width"] // 10, 0)
        to_left.release().perform()
        browser.until("little fits", "return document.querySelector('[data-verdict]')?.dataset.verdict === 'none'")
        equal(check_windows(daemon, gpu)["window_count"], 1)
        assert "Nothing to gain" in browser.text("#chip-verdict"), browser.text("#chip-verdict")
        assert "bytes=" in browser.driver.current_url, browser.driver.current_url
        browser.check_quiet()


@case
def the_keyboard_alone_reaches_everything():
    daemon, gpu = CHIPS["h200-simulated"]
    show(daemon, "chip", gpu)

    def press(*keys):
        browser.actions().send_keys(*keys).perform()

    def tab_to(what):
        for _ in range(200):
            press(Keys.TAB)
            element = browser.focused()
            assert browser.run("return getComputedStyle(arguments[0]).outlineStyle !== 'none' || arguments[0] === document.body", element), \
                element.get_attribute("outerHTML")[:200]
            if what(element):
                return element
        raise AssertionError("TAB does not reach it")

    press(Keys.TAB)
    equal(browser.focused().text, "Skip to the content")
    tab_to(lambda e: e.get_attribute("id") == "size")
    before = browser.text("#chip-verdict")
    press(Keys.HOME)
    browser.until("the verdict is another", "return !arguments[0].includes(document.getElementById('chip-verdict').innerText)", before)
    browser.until("the boxes are another", "return document.querySelector('[data-verdict]').dataset.verdict === 'none'")
    press(Keys.ARROW_RIGHT)
    browser.until("one step on", "return document.getElementById('size').value === '1'")
    for view in VIEWS[1:]:
        browser.run("document.activeElement.blur()")
        show_link = tab_to(lambda e, v=view: (e.get_attribute("href") or "").partition("#")[2].startswith(v))
        equal(show_link.get_attribute("aria-current"), None)
        press(Keys.ENTER)
        settle(view)
        equal(browser.focused().get_attribute("aria-current"), "page", "the focus stays on the link")
    browser.check_quiet()


@case
def a_job_gets_its_verdict_and_texts_to_copy():
    daemon, gpu = CHIPS["h200"]
    show(daemon, "job", gpu)

    def ask(**fields):
        for name, value in fields.items():
            element = browser.one(f"[name={name}]")
            if element.tag_name == "select":
                Select(element).select_by_value(str(value))
            else:
                element.clear()
                element.send_keys(value)

    def answered(wanted):
        browser.until("that is answered", "return document.getElementById('job-verdict').dataset.bytes === arguments[0]", str(wanted))

    ask(element=64, bytes="120GiB")
    answered(120 * GIB)
    plan = daemon.json(f"/v1/gpus/{gpu}/plan?bytes=120GiB&element=64&access=read")
    best = plan["options"][0]
    browser.until("its gain is said", "return document.querySelector('#job-verdict .sentence').innerText.includes(arguments[0])",
                  f"{best['times_naive']:.1f}×")
    equal(len(browser.all("#ranked tbody tr")), len(plan["options"]))
    texts = browser.run("return [...document.querySelectorAll('.copyable pre')].map((p) => p.textContent)")
    asked = texts[0].split("'")[1]
    assert asked.startswith(origin(daemon) + "/v1/gpus/"), texts[0]
    equal(daemon.json(asked[len(origin(daemon)):]), plan, "what curl has to request")
    assert str(120 * GIB) in texts[1] and "reach_get_plan" in texts[1], texts[1]
    assert f"bytes={120 * GIB}" in texts[2] and "element=64" in texts[2], texts[2]
    compile(texts[2], "copied", "exec")
    ask(bytes="100GB")
    answered(100 * 10 ** 9)
    equal(browser.text("#bytes-read"), "100000000000 bytes, 93.13 GiB")
    ask(bytes="40GiB")
    answered(40 * GIB)
    equal(browser.run("return document.querySelector('[data-verdict]').dataset.verdict"), "none")
    assert "Nothing to gain" in browser.text("#job-verdict"), browser.text("#job-verdict")
    sizes = browser.run("return [...document.querySelectorAll('.sentence')].map((s) => getComputedStyle(s).fontSize)")
    assert set(sizes) == {"21px"}, sizes  # as loud as a gain
    ask(bytes="16GiB", location="host")
    browser.until("host memory is ranked", "return document.getElementById('ranked').innerText.includes('host')")
    browser.check_quiet()


@case
def what_cannot_be_is_refused_in_words():
    daemon, gpu = CHIPS["k80-simulated"]
    show(daemon, "job", gpu)
    browser.check_quiet()
    box = browser.one("[name=bytes]")
    box.clear()
    box.send_keys("much")
    browser.until("it is marked", "return document.querySelector('[name=bytes]').getAttribute('aria-invalid') === 'true'")
    box.clear()
    box.send_keys("2TiB")
    browser.until("the daemon's words are shown", "return document.querySelector('[role=alert]')?.innerText.includes('12 GiB')")
    # The browser itself reports each answer of 4xx.
    browser.check_quiet(but=("422", "400"))


@case
def an_address_is_answered_as_it_is_or_refused():
    daemon, gpu = CHIPS["h200"]
    there = daemon.json(f"/v1/gpus/{gpu}")["memory_bytes"]
    for view in ("job", "chip"):
        show(daemon, view, gpu, bytes=200000000000)  # more than there is
        browser.until("it is refused", "return document.querySelector('[role=alert]')?.innerText.includes('139')")
        equal(browser.all("#ranked tr, #windows tr"), [], view)
    show(daemon, "job", gpu, bytes=200000000000)
    equal(browser.one("[name=bytes]").get_attribute("value"), "200000000000")
    # The value is neither on a step of the slider nor on a quarter of a unit.
    for text, size in (("100000000001", 100000000001), ("96GiB", 96 * GIB), (str(there), there)):
        show(daemon, "chip", gpu, bytes=text)
        equal(browser.run("return document.getElementById('boxes').dataset.bytes"), str(size))
        equal(browser.run("return document.querySelector('output').textContent.slice(0, 2)"), str(size / GIB)[:2])
        show(daemon, "job", gpu, bytes=text)
        equal(browser.run("return document.getElementById('job-verdict').dataset.bytes"), str(size))
        assert f"bytes={size}" in browser.driver.current_url, browser.driver.current_url
    show(daemon, "job", gpu, element=48, bytes="80GiB")
    equal(Select(browser.one("[name=element]")).first_selected_option.get_attribute("value"), "48")
    browser.open(f"{origin(daemon)}/ui/#job?gpu=GPU-unknown")
    browser.until("the GPU is refused", "return document.querySelector('[role=alert]')?.innerText.includes('no GPU \"GPU-unknown\"')")
    browser.check_quiet(but=("422",))
    Select(browser.one("#picker select")).select_by_index(1)
    settle("job")


def compile_and_run(text):
    """Returns the output of a C program that is copied from the page."""
    source, program = (os.path.join(common.folder, name) for name in ("job.c", "job"))
    with open(source, "w", encoding="utf-8") as file:
        file.write(text)
    subprocess.run(["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-I", os.path.join(ROOT, "clients", "c"), "-o", program, source,
                    LIBRARY, "-Wl,-rpath," + os.path.dirname(LIBRARY)], check=True)
    return subprocess.run([program], check=True, stdout=subprocess.PIPE, text=True).stdout


@case
def what_is_copied_runs_and_asks_this_daemon():
    daemon, gpu = CHIPS["h200"]
    # No other daemon is involved: the copied text has the address of the page.
    environment = {**{k: v for k, v in os.environ.items() if not k.startswith("REACH")}, "REACH_LIBRARY": LIBRARY,
                   "PYTHONPATH": os.path.join(ROOT, "clients", "python")}
    for location, what, access, element in (("device", "plan", "atomic", 64), ("host", "memory", "read", 128), ("any", "memory", "write", 32)):
        query = {"bytes": 5 * GIB, "access": access, "element": element}
        show(daemon, "job", gpu, location=location, **query)
        browser.until("there is something to copy", "return document.querySelectorAll('.copyable pre').length === 3")
        more = "" if what == "plan" else f"&location={location}"
        wanted = daemon.json(f"/v1/gpus/{gpu}/{what}?" + "&".join(f"{k}={v}" for k, v in query.items()) + more)
        curl, c, python = browser.run("return [...document.querySelectorAll('.copyable pre')].map((p) => p.textContent)")
        equal(json.loads(subprocess.run(["sh", "-c", curl], check=True, stdout=subprocess.PIPE).stdout), wanted, curl)
        printed = compile_and_run(c)
        equal(printed.strip() if what == "plan" else json.loads(printed), wanted["reason"] if what == "plan" else wanted, c)
        done = subprocess.run(["python3", "-c", python], check=True, stdout=subprocess.PIPE, text=True, env=environment)
        equal(done.stdout.strip(), wanted["reason"], python)
    browser.check_quiet()


@case
def all_is_in_its_place_on_narrow_and_wide_screens():
    daemon, gpu = CHIPS["h200"]
    for width, highest in ((400, 200), (800, 105), (1400, 100)):
        browser.size((width, 900))
        for view in VIEWS:
            show(daemon, view, gpu)
            browser.until("curves are drawn for this screen", """return [...document.querySelectorAll('.curve')].every((c) =>
                Math.abs(c.viewBox.baseVal.width - Math.min(760, c.parentElement.clientWidth)) <= 1)""")
            if view == "job":
                browser.until("ways are ranked", "return document.querySelector('#ranked tbody tr')")
            what = f"{view}, {width} px"
            browser.check_sizes(what)
            rows = browser.run("return [...document.querySelectorAll('tbody tr')].map((r) => r.getBoundingClientRect().height)")
            assert view == "chip" or all(0 <= r <= highest for r in rows) and rows, (what, rows)
            hidden = browser.run("""return [...document.querySelectorAll('tbody td')].filter((c) => c.checkVisibility() &&
                c.getBoundingClientRect().right > innerWidth).map((c) => c.textContent);""")
            equal(hidden, [], f"{what}: cells off the screen")
        show(daemon, "job", gpu)
        fields = browser.run("""return [...document.querySelectorAll('.job .field')].map((f) => {
            const [field, control] = [f, f.querySelector('input, select')].map((n) => n.getBoundingClientRect());
            return [field.top, control.top, control.bottom];});""")
        lines = {top: {tuple(f[1:]) for f in fields if f[0] == top} for top, *_ in fields}
        assert all(len(controls) == 1 for controls in lines.values()), (width, lines)
        equal(len(fields), 4)
        if width == 1400:
            equal(len(lines), 1, "all fields fit in one line")
        show(daemon, "history", gpu)
        edges = browser.run("return ['.job select', '#measure'].map((s) => document.querySelector(s).getBoundingClientRect().bottom)")
        assert width == 400 or edges[0] == edges[1], (width, edges)
    browser.size(WIDE)
    browser.check_quiet()


@case
def the_matrix_of_pairs_is_shown_when_asked_for():
    daemon, gpu = CHIPS["h100"]
    show(daemon, "chip", gpu)
    before = browser.requests()
    assert not any("observations" in url for url, _ in before), before
    button = next(b for b in browser.all("button") if "matrix" in b.text)
    button.click()
    browser.until("the matrix is drawn", "return document.querySelector('canvas.heat')")
    groups = daemon.json(f"/v1/gpus/{gpu}/fingerprint")["topology"]["groups"]
    partners = browser.run("""return [...document.querySelectorAll('#pairs tbody tr')].map((r) =>
        [r.cells[0].textContent, r.cells[1].textContent]);""")
    mates = {str(sm): {s for s in g["sms"] if s != sm} for g in groups for sm in g["sms"]}
    for sm, text in partners:
        found = set()
        for part in text.split(", "):
            first, _, last = part.partition("–")
            found |= set(range(int(first), int(last or first) + 1))
        equal(found, mates[sm], "partners of SM " + sm)
    assert len(partners) > 100, len(partners)
    colors = browser.run("""const c = document.querySelector('canvas.heat');
        const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
        return new Set(Array.from({length: d.length / 4}, (_, i) => d[4 * i] << 16 | d[4 * i + 1] << 8 | d[4 * i + 2])).size;""")
    assert colors > 10, colors
    browser.check_accessible("matrix")
    browser.check_quiet()
    browser.screenshot("chip-h100-matrix")


def wait_for_measurement():
    browser.until("it is over", "return ['done', 'failed'].includes(document.querySelector('[data-state]')?.dataset.state)")
    equal(browser.run("return document.querySelector('[data-state]').dataset.state"), "done", browser.text("#progress"))


@case
def a_measurement_is_started_and_followed_and_compared():
    daemon = Daemon("--simulate", "k80", "--no-measure-on-start")
    browser.open(origin(daemon) + "/ui/")
    browser.until("it says so", "return document.getElementById('state')?.innerText === 'This GPU is unknown.'")
    show(daemon, "history")
    for count in (1, 2):
        Select(browser.one("[name=depth]")).select_by_value("quick")
        browser.one("#measure").click()
        browser.until("it is followed", "return document.querySelector('[data-state]')")
        wait_for_measurement()
        browser.until("it is listed", "return document.getElementById('history').dataset.count === arguments[0]", str(count))
        if count == 1:
            browser.run("document.getElementById('progress').replaceChildren()")
    rows = daemon.json("/v1/gpus/0/history")["fingerprints"]
    equal([r.text for r in browser.all("#history tbody td:nth-child(7)")], [r["id"] for r in rows])
    browser.one("#history button").click()
    browser.until("both are compared", "return document.getElementById('differences').innerText.includes('compared with')")
    browser.check_accessible("history")
    browser.check_quiet()
    browser.driver.get(browser.driver.current_url.replace("#history", "#chip"))
    settle("chip")
    equal(len(browser.all(".group")), len(daemon.json("/v1/gpus/0/fingerprint")["topology"]["groups"]))


@case
def the_page_shows_a_first_measurement_by_itself():
    daemon = Daemon("--simulate", "k80", "--no-measure-on-start")
    daemon.submit(0, "quick")
    browser.open(origin(daemon) + "/ui/#chip")
    browser.until("its groups appear", "return document.querySelector('.group')")
    browser.check_quiet()


@case
def the_token_is_asked_for():
    path = os.path.join(common.folder, "token")
    with open(path, "w", encoding="ascii") as file:
        file.write(TOKEN + "\n")
    os.chmod(path, 0o600)
    daemon = Daemon("--simulate", "k80", "--no-measure-on-start", "--token-file", path)
    show(daemon, "history")
    Select(browser.one("[name=depth]")).select_by_value("quick")
    for word in ("wrong" * 4, TOKEN):
        if not browser.all("[name=token]"):
            browser.one("#measure").click()
        field = browser.until("the token is asked for", "return document.querySelector('[name=token]')")
        browser.until("it has the focus", "return document.activeElement === arguments[0]", field)
        equal(field.get_attribute("type"), "password")
        field.send_keys(word, Keys.ENTER)
        browser.until("that was judged", "return document.querySelector('[data-state]') || document.querySelector('[name=token]')?.value === ''")
    wait_for_measurement()
    kept = browser.run("return [document.cookie, localStorage.length, sessionStorage.length, location.href.includes(arguments[0])]", TOKEN)
    equal(kept, ["", 0, 0, False], "where the token is kept")
    browser.check_quiet(but=("401",))  # the browser itself reports that answer


@case
def hostile_names_are_text():
    server = hostile_server(simulated.port)
    address = f"http://127.0.0.1:{server.server_address[1]}"
    for view in VIEWS:
        browser.open(f"{address}/ui/#{view}?gpu=0")
        settle(view)
        heading = browser.run("return document.querySelector('h1').textContent")
        assert heading.startswith(HOSTILE[:40]) and len(heading) <= 120, heading
        assert "hostile" not in browser.driver.title.split("·")[0], browser.driver.title
        equal(browser.run("return document.querySelectorAll('img, main script, iframe').length"), 0)
        unseen = browser.run("return (document.body.textContent.match(/[\\u0000-\\u0008\\u000b-\\u001f\\u202e]/g) ?? []).length")
        equal(unseen, 0, view + ": characters that are not seen")
        wide = browser.run("return document.documentElement.scrollWidth <= innerWidth")
        assert wide, view + ": a long name makes the page wider than the screen"
        browser.check_quiet()
    server.shutdown()


@case
def a_narrow_screen_needs_no_scrolling_sideways_and_paper_one_sheet():
    for name in ("h200", "k80-simulated"):
        daemon, gpu = CHIPS[name]
        for view in VIEWS:
            browser.size(NARROW)
            show(daemon, view, gpu)
            width = browser.run("return document.documentElement.scrollWidth")
            assert width <= NARROW[0], (name, view, width)
            browser.size(WIDE)
            equal(browser.pdf_pages(), 1, f"sheets of {name}, {view}")


@case
def screenshots():
    daemon, gpu = CHIPS["h200"]
    for view in VIEWS:
        for suffix, scheme, size in (("", "light", WIDE), ("-dark", "dark", WIDE), ("-narrow", "light", NARROW)):
            browser.size(size)
            browser.scheme(scheme)
            show(daemon, view, gpu)
            browser.screenshot(f"{view}{suffix}")
    browser.size(WIDE)
    browser.scheme("light")
    browser.check_quiet()


@case
def all_ends_well():
    browser.close()
    simulated.stop()
    real.stop()


common.main()
