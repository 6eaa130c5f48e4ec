"""lib_browser.py: a browser without a screen for the tests of the pages: Debian's chromium, driven by Selenium.

    browser = Browser()
    browser.open(url)
    browser.until("the view is there", "return document.querySelector('main').dataset.view == 'chip'")
    browser.check_quiet()             fails if the console has a message, or if another server got a request
    browser.check_accessible("chip")

All waits are for states of the page. If there is no browser, the import of this module ends the script with status 77.
"""
import atexit
import base64
import glob
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import urllib.parse

# The modules must be Debian's, like in common.py, which is imported after this module.
if not importlib.util.find_spec("selenium") and "REACH_TEST_PYTHON" not in os.environ and \
        os.path.exists("/usr/bin/python3"):
    os.environ["REACH_TEST_PYTHON"] = "of the distribution"
    os.execv("/usr/bin/python3", ["/usr/bin/python3"] + sys.argv)

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")
if not (CHROMIUM and DRIVER and importlib.util.find_spec("selenium")):
    print("no browser: chromium, chromium-driver and python3-selenium are needed (.ci/deps check)")
    sys.exit(77)

# Requests to a daemon on this machine must not go through the proxy of the machine.
os.environ["NO_PROXY"] = os.environ["no_proxy"] = "127.0.0.1,localhost"

from selenium import webdriver  # pylint: disable=wrong-import-position
from selenium.webdriver.chrome.service import Service  # pylint: disable=wrong-import-position
from selenium.webdriver.common.action_chains import ActionChains  # pylint: disable=wrong-import-position
from selenium.webdriver.common.by import By  # pylint: disable=wrong-import-position
from selenium.webdriver.remote.remote_connection import RemoteConnection  # pylint: disable=wrong-import-position

import common  # pylint: disable=wrong-import-position

WIDE, NARROW = (1280, 900), (390, 844)
SCREENSHOTS = os.environ.get("REACH_SCREENSHOTS")
# This browser reaches no other host than this one. It starts no process in advance for a page that may follow, and has
# no extensions.
ARGUMENTS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
             "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-extensions",
             "--disable-features=SpareRendererForSitePerProcess,Translate,OptimizationHints,MediaRouter",
             "--disable-default-apps", "--disable-sync", "--force-device-scale-factor=1", "--lang=en-US",
             "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1")

# Finds visible texts with too little contrast to their background (WCAG 2.1, 1.4.3).
CONTRAST = """
const parts = (c) => c.match(/[\\d.]+/g).map(Number);
const linear = (v) => (v /= 255, v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
function behind(node) {
    for (; node; node = node.parentElement) {
        const c = parts(getComputedStyle(node).backgroundColor);
        if (c.length < 4 || c[3] === 1) return c;
    }
    return [255, 255, 255];
}
const found = [];
const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
let seen = 0;
while (walk.nextNode()) {
    const node = walk.currentNode.parentElement;
    if (!walk.currentNode.data.trim() || !node.checkVisibility() || node.closest(".hidden, .skip, option, noscript")) continue;
    const style = getComputedStyle(node);
    const svg = node instanceof SVGElement;
    const [a, b] = [light(parts(svg ? style.fill : style.color)), light(behind(svg ? node.closest("svg").parentElement : node))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    seen++;
    if (ratio < (large ? 3 : 4.5)) found.push([walk.currentNode.data.slice(0, 40), node.className, ratio]);
}
return [seen, found];
"""

# Finds texts that are displayed smaller than 11 px, and elements that extend past the screen without a scroll box.
SIZES = """
const seen = (n) => n.checkVisibility() && !n.closest(".hidden, .skip, option, noscript, thead");
const small = [], outside = [];
let texts = 0;
const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walk.nextNode()) {
    const node = walk.currentNode.parentElement;
    if (!walk.currentNode.data.trim() || !seen(node)) continue;
    const scale = node instanceof SVGElement ? node.getScreenCTM().a : 1;
    const size = scale * parseFloat(getComputedStyle(node).fontSize);
    texts++;
    if (size < 11) small.push([walk.currentNode.data.slice(0, 40), size]);
}
const scrolls = (n) => n && (["auto", "scroll"].includes(getComputedStyle(n).overflowX) || scrolls(n.parentElement));
for (const node of document.body.querySelectorAll("*")) {
    const box = node.getBoundingClientRect();
    if (seen(node) && box.width > 0 && (box.right > innerWidth + 1 || box.left < -1) && !scrolls(node.parentElement))
        outside.push([node.outerHTML.slice(0, 80), box.left, box.right]);
}
return [texts, small, outside];
"""

# Finds controls, pictures and elements with a role that have no name.
NAMES = """
const name = (n) => (n.getAttribute("aria-label") ?? n.closest("label")?.textContent ?? n.textContent ?? "").trim();
return [...document.querySelectorAll("a, button, input, select, progress, svg, canvas, nav, [role]:not([role=status], [role=alert]), [tabindex='0']")]
    .filter((n) => n.checkVisibility() && !name(n)).map((n) => n.outerHTML.slice(0, 120));
"""


class Browser:
    def __init__(self):
        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM
        for argument in ARGUMENTS + (f"--user-data-dir={common.folder}/browser",):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        RemoteConnection.set_timeout(common.PATIENCE_S)
        self.driver = webdriver.Chrome(options=options, service=Service(DRIVER))
        self.driver.set_script_timeout(common.PATIENCE_S)
        self.driver.set_page_load_timeout(common.PATIENCE_S)
        self.size(WIDE)
        atexit.register(self.close)

    def size(self, size):
        self.cdp("Emulation.setDeviceMetricsOverride", width=size[0], height=size[1], deviceScaleFactor=1,
                 mobile=False)

    def scheme(self, name):
        self.cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def cdp(self, command, **arguments):
        return self.driver.execute_cdp_cmd(command, arguments)

    def open(self, url):
        """Loads a page again even if only the part of the URL after # has changed. A reload takes half the CPU time of a
        visit to another page, which starts a process."""
        if url.partition("#")[0] == self.driver.current_url.partition("#")[0]:
            self.run("history.replaceState(null, '', arguments[0])", url)
            self.driver.refresh()
        else:
            self.driver.get(url)

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def until(self, what, script, *arguments):
        return common.until(what, lambda: self.run(script, *arguments))

    def one(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def text(self, selector):
        return self.run("return document.querySelector(arguments[0])?.innerText ?? ''", selector)

    def actions(self):
        return ActionChains(self.driver)

    def focused(self):
        return self.driver.switch_to.active_element

    def messages(self):
        return [f"{entry['level']}: {entry['message']}" for entry in self.driver.get_log("browser")]

    def requests(self):
        """Returns the addresses that were requested since the last call, each with the address of the requesting
        page."""
        entries = [json.loads(e["message"])["message"] for e in self.driver.get_log("performance")]
        return [(e["params"]["request"]["url"], e["params"]["documentURL"]) for e in entries
                if e["method"] == "Network.requestWillBeSent" and
                not e["params"]["documentURL"].startswith("chrome:")]  # the browser's own first page

    def check_quiet(self, but=()):
        """Checks that the console is empty except for texts with one of `but`, and that no page sent a request to
        another server."""
        loud = [m for m in self.messages() if not any(text in m for text in but)]
        common.equal(loud, [], "messages in the console")
        asked = self.requests()
        assert asked, "no request was seen: the log does not work"
        elsewhere = [(url, page) for url, page in asked if origin_of(url) != origin_of(page) and not url.startswith("data:")]
        common.equal(elsewhere, [], "requests to elsewhere")

    def check_accessible(self, what, axe=True):
        """Checks contrast and names in light and dark, and runs axe-core if it is installed, unless `axe` is False.
        axe-core takes a second for each 2500 elements."""
        for scheme in ("light", "dark"):
            self.scheme(scheme)
            seen, pale = self.run(CONTRAST)
            assert seen > 10, (what, seen)
            common.equal(pale, [], f"{what}, {scheme}: texts of too little contrast")
            if axe and axe_source():
                common.equal(self.axe(), [], f"{what}, {scheme}: axe-core")
        self.scheme("light")
        common.equal(self.run(NAMES), [], f"{what}: without a name")

    def check_sizes(self, what):
        """Checks that all texts can be read, and that no element is beyond the edges of the screen."""
        texts, small, outside = self.run(SIZES)
        assert texts > 10, (what, texts)
        common.equal(small, [], f"{what}: texts below 11 px")
        common.equal(outside, [], f"{what}: beyond the screen")

    def axe(self):
        self.run(axe_source() + "; window.axe = axe;")
        result = self.driver.execute_async_script("""
            const done = arguments[0];
            axe.run(document, {resultTypes: ["violations"]}).then((r) => done(r), (e) => done({violations: [{id: String(e), nodes: []}]}));
            """)
        return [(v["id"], [n["html"][:120] for n in v["nodes"][:3]]) for v in result["violations"]]

    def pdf_pages(self):
        pdf = base64.b64decode(self.cdp("Page.printToPDF", printBackground=True, preferCSSPageSize=True)["data"])
        return pdf.count(b"/Type /Page\n") + pdf.count(b"/Type /Page ") + pdf.count(b"/Type /Page/")

    def screenshot(self, name):
        """Saves the whole page as a PNG in the folder REACH_SCREENSHOTS, if that is set."""
        if not SCREENSHOTS:
            return
        size = self.cdp("Page.getLayoutMetrics")["cssContentSize"]
        image = self.cdp("Page.captureScreenshot", format="png", captureBeyondViewport=True,
                         clip={"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1})
        path = os.path.join(SCREENSHOTS, name + ".png")
        os.makedirs(SCREENSHOTS, exist_ok=True)
        with open(path, "wb") as file:
            file.write(base64.b64decode(image["data"]))
        if shutil.which("pngquant"):
            subprocess.run(["pngquant", "--force", "--skip-if-larger", "--strip", "--output", path, "64", path], check=False)

    def close(self):
        atexit.unregister(self.close)
        self.driver.quit()


def origin_of(url):
    return urllib.parse.urlsplit(url)[:2]


def axe_source():
    """Returns the text of axe.min.js, which .ci/deps fetches into build/browser, or "" if that file is missing."""
    found = glob.glob(os.path.join(ROOT, "build", "browser", "**", "axe.min.js"), recursive=True)
    if not found:
        return ""
    with open(found[0], encoding="utf-8") as file:
        return file.read()
