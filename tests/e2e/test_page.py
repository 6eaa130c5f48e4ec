#!/usr/bin/env python3
"""Tests the files of the page at /ui/ in the way in which a browser requests them: over TCP and, through a tunnel, the
Unix socket. tests/browser tests the page itself."""
import gzip
import os
import re

import common
from common import case, equal

MOST_BYTES = 150 << 10
daemon = common.Daemon("--simulate", "k80", "--no-measure-on-start")
FILES = [r["path"] for r in daemon.json("/")["routes"] if r["path"].startswith("/ui/")]


def file(path, unix=False, **headers):
    answer = daemon.request("GET", path, headers={k.replace("_", "-"): v for k, v in headers.items()}, unix=unix)
    equal(answer.status, 200, path)
    return answer


@case
def compressed_and_plain_are_the_same_text():
    assert len(FILES) >= 3, FILES
    total = 0
    for path in FILES:
        plain, packed = file(path), file(path, Accept_Encoding="gzip, deflate, br")
        equal((plain.headers["Content-Encoding"], packed.headers["Content-Encoding"]), (None, "gzip"), path)
        equal(gzip.decompress(packed.body), plain.body, path)
        equal(file(path, unix=True, Accept_Encoding="gzip").body, packed.body, path)
        total += len(packed.body)
    print(f"# {total} bytes compressed")
    assert total < MOST_BYTES, total


@case
def all_addresses_in_the_page_are_relative_and_there():
    page = file("/ui/").body.decode()
    named = re.findall(r'(?:src|href)="([^"]*)"', page)
    equal({"/ui/" + n for n in named if "." in n}, set(FILES) - {"/ui/"})
    for name in named:
        assert not re.match(r"[a-z]+:|/", name) or name.startswith("data:"), name
    assert "style=" not in page and not re.search(r"\bon[a-z]+=", page), "the policy forbids these"
    script = file("/ui/page.js").body.decode()
    assert "innerHTML" not in script and "eval(" not in script
    elsewhere = set(re.findall(r"https?://[\w./-]+", script)) - {"http://www.w3.org/2000/svg"}
    equal({u for u in elsewhere if not u.startswith("http://www.w3.org/")}, set())


@case
def a_browser_keeps_what_has_not_changed():
    for path in FILES:
        for accepted in ({}, {"Accept-Encoding": "gzip"}):
            first = daemon.request("GET", path, headers=accepted)
            again = daemon.request("GET", path, headers={**accepted, "If-None-Match": first.headers["ETag"]})
            equal((again.status, again.body), (304, b""), path)


@case
def the_page_needs_no_token():
    path = os.path.join(common.folder, "token")
    with open(path, "w", encoding="ascii") as token:
        token.write("a-token-of-sixteen-letters-or-more\n")
    os.chmod(path, 0o600)
    guarded = common.Daemon("--simulate", "k80", "--no-measure-on-start", "--token-file", path)
    equal(guarded.get("/ui/").status, 200)
    guarded.stop()


@case
def it_ends_well():
    daemon.stop()


common.main()
