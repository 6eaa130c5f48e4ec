"""lib_nfd.py: a reader of feature files that follows node feature discovery, a server with the answers of a test, and
a watch on a directory."""
import ctypes
import datetime
import http.server
import os
import re
import socketserver
import struct
import threading

# The form of a label in the Kubernetes page "Labels and Selectors", section "Syntax and character set".
WORD = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
MAX_BYTES = 65536  # NFD source/local: a larger file is skipped


def when(text):
    return datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(
        tzinfo=datetime.timezone.utc).timestamp()


def read(text):
    """Returns the labels and the end of each, as the local source of NFD reads them. Fails on a line that NFD would
    drop or could not make a label of."""
    assert len(text.encode()) <= MAX_BYTES, len(text)
    assert text.endswith("\n"), text[-80:]
    labels, expiry = {}, None
    for line in text.splitlines():
        if line.startswith("# +"):
            directive, _, value = line[3:].partition("=")
            assert directive == "expiry-time", line
            expiry = when(value)
        elif not line.startswith("#"):
            assert expiry, f"a label without an end: {line}"
            name, _, value = line.partition("=")
            namespace, _, name = name.partition("/")
            assert NAMESPACE.fullmatch(namespace) and len(namespace) <= 253, line
            assert WORD.fullmatch(name) and WORD.fullmatch(value), line
            assert (namespace, name) not in labels, line
            labels[namespace, name] = value
    assert labels, text
    return {name: value for (_, name), value in labels.items()}, expiry


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """Answers every request with the current bytes of `body`."""
    daemon_threads = True
    request_queue_size = 64  # a Unix socket whose queue is full refuses a connection

    def __init__(self, path):
        super().__init__(path, Handler)
        self.body = b"{}"
        self.path = path
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):  # pylint: disable=invalid-name
        body = self.server.body
        try:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        except BrokenPipeError:
            pass  # who asked has been ended by the test

    def address_string(self):
        return "unix"

    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass


class Watch:
    """Watches the events of a directory, by inotify."""
    CREATE, MODIFY, CLOSE_WRITE, MOVED_TO, ATTRIB = 0x100, 0x2, 0x8, 0x80, 0x4

    def __init__(self, folder):
        libc = ctypes.CDLL(None, use_errno=True)
        self.fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        assert self.fd >= 0
        mask = self.CREATE | self.MODIFY | self.CLOSE_WRITE | self.MOVED_TO
        assert libc.inotify_add_watch(self.fd, os.fsencode(folder), mask) >= 0

    def events(self):
        """Returns the events since the last call: (mask, name)."""
        try:
            data = os.read(self.fd, 1 << 20)
        except BlockingIOError:
            return []
        found, at = [], 0
        while at < len(data):
            _, mask, _, length = struct.unpack_from("iIII", data, at)
            found.append((mask, data[at + 16:at + 16 + length].rstrip(b"\0").decode()))
            at += 16 + length
        return found
