"""lib_hosts.py: hosts that a survey must survive. They are dead, slow, send too much, send wrong data, or are no
daemon. Relays change the answers of a real daemon.

    with lib_hosts.Zoo(folder) as zoo:
        zoo.dead(), zoo.hangs(), zoo.drips(), ...     each gives "127.0.0.1:PORT" or a URL
        zoo.ca                                        certificates to trust

Each host has a listening socket and a thread for each connection. A handler gets the connection and the request.
"""
import http.client
import json
import os
import socket
import ssl
import subprocess
import threading

GIB = 1 << 30
JSON = "application/json"


def head(status="200 OK", kind=JSON, length=None, more=()):
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", *more]
    lines.append("Connection: close" if length is None else f"Content-Length: {length}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def answer(status, kind, body, more=()):
    body = body if isinstance(body, bytes) else body.encode()
    return head(status, kind, len(body), more) + body


class Host:
    """A host that accepts connections until it is closed. `handle(connection, target, fields)` answers one request."""

    def __init__(self, handle, tls=None):
        self.handle = handle
        self.tls = tls
        self.sent = 0  # bytes
        self.requests = []  # (target, fields)
        self.closing = threading.Event()
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    @property
    def name(self):
        return f"127.0.0.1:{self.port}"

    def accept(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        try:
            if self.tls:
                connection = self.tls.wrap_socket(connection, server_side=True)
            data = b""
            while b"\r\n\r\n" not in data:
                more = connection.recv(65536)
                if not more:
                    return
                data += more
            lines = data.decode("latin-1").split("\r\n")
            fields = dict(line.lower().split(": ", 1) for line in lines[1:] if ": " in line)
            self.requests.append((lines[0].split(" ")[1], fields))
            self.handle(self, connection, self.requests[-1][0], fields)
        except (OSError, ssl.SSLError):
            pass  # the other side has had enough
        finally:
            connection.close()

    def send(self, connection, data):
        connection.sendall(data)
        self.sent += len(data)

    def close(self):
        self.closing.set()
        self.socket.close()


class Zoo:
    def __init__(self, folder):
        self.folder = folder
        self.hosts = []
        self.ca = os.path.join(folder, "zoo-ca.pem")
        self.made_ca = False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for host in self.hosts:
            host.close()

    def add(self, handle, tls=None):
        self.hosts.append(Host(handle, tls))
        return self.hosts[-1]

    def says(self, data):
        """Adds a host that answers any request with these bytes and closes the connection."""
        return self.add(lambda host, connection, *_: host.send(connection, data))

    # ---- dead and slow ----

    def dead(self):
        """Returns an address at which no program listens. The port is bound, so that no other program gets it."""
        taken = socket.socket()
        taken.bind(("127.0.0.1", 0))
        self.hosts.append(taken)
        return f"127.0.0.1:{taken.getsockname()[1]}"

    def hangs(self):
        return self.add(lambda host, *_: host.closing.wait())

    def drips(self, what="head"):
        """Sends a byte now and then, without end."""
        def handle(host, connection, *_):
            host.send(connection, head() if what == "body" else b"HTTP/1.1 200 OK\r\nX-More: ")
            while not host.closing.wait(0.05):
                host.send(connection, b"x" if what == "head" else b" ")
        return self.add(handle)

    # ---- too much ----

    def pours(self, length=None, more=b" " * 65536, total=2 * GIB):
        """Answers 2 GiB of JSON, with or without its length."""
        def handle(host, connection, *_):
            host.send(connection, head(length=length) + b'{"gpus": [')
            while host.sent < total and not host.closing.is_set():
                host.send(connection, more)
        return self.add(handle)

    def endless_head(self):
        def handle(host, connection, *_):
            host.send(connection, b"HTTP/1.1 200 OK\r\n")
            while not host.closing.is_set():
                host.send(connection, b"X-More: " + b"y" * 1000 + b"\r\n")
        return self.add(handle)

    # ---- relays in front of a real daemon ----

    @staticmethod
    def ask(real, target, fields=None):
        host, port = real.rsplit(":", 1)
        connection = http.client.HTTPConnection(host, int(port))
        try:
            connection.request("GET", target, headers=fields or {})
            got = connection.getresponse()
            return got.status, got.headers, got.read()
        finally:
            connection.close()

    def relay(self, real, change=None, tls=None, etag=True):
        """Forwards the answers of the daemon at `real`; `change(target, status, document)` may return another
        (status, document)."""
        def handle(host, connection, target, fields):
            tag = fields.get("if-none-match")
            status, headers, body = self.ask(real, target, {"If-None-Match": tag} if tag else None)
            kind = headers.get("Content-Type", JSON)
            if change:
                document = json.loads(body) if body else None
                status, document = change(target, status, document)
                kind = JSON if status == 200 else "application/problem+json"
                body = json.dumps(document, separators=(",", ":")).encode()
            more = [f"ETag: {headers['ETag']}"] if etag and not change and headers["ETag"] else []
            host.send(connection, answer(f"{status} Said", kind, body if status != 304 else b"", more))
        return self.add(handle, tls)

    # ---- certificates ----

    def openssl(self, *arguments):
        subprocess.run(["openssl", *arguments], check=True, cwd=self.folder,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def make_ca(self):
        if not self.made_ca:
            self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                         "-keyout", "zoo-ca.key", "-out", "zoo-ca.pem", "-subj", "/CN=CA of a test",
                         "-days", "2")
        self.made_ca = True

    def certified(self, name="IP:127.0.0.1", by_ca=True, days="2"):
        """Returns a context for TLS with a certificate for `name`, signed by the CA or by itself."""
        self.make_ca()
        stem = f"zoo-{len(self.hosts)}"
        signed = ["-CA", "zoo-ca.pem", "-CAkey", "zoo-ca.key"] if by_ca else []
        self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                     "-keyout", stem + ".key", "-out", stem + ".pem", "-subj", "/CN=" + stem, "-days", days,
                     "-addext", "subjectAltName=" + name, "-addext", "basicConstraints=critical,CA:FALSE",
                     *signed)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(os.path.join(self.folder, stem + ".pem"),
                                os.path.join(self.folder, stem + ".key"))
        return context
