"""lib_proxy.py: a server in front of a daemon that forwards every answer and puts hostile texts into it. The daemon
itself cuts names and drops control characters, and the page must not depend on that."""
import http.client
import http.server
import json
import threading

MARKUP = "<img src=x onerror=\"document.title='hostile'\"><script>document.title='hostile'</script></td></svg>"
HOSTILE = MARKUP + "\u202e\u0007\u001b[31m\u0000'\"&amp;" + "A" * 4096
NAMED = ("name", "hostname", "driver_version", "daemon_version", "reason", "why", "message", "signature", "detail")
PASSED = ("Content-Type", "ETag", "Cache-Control", "Content-Security-Policy", "Vary", "Location")


def spoil(value):
    """Returns the document with the text of every member of these names replaced."""
    if isinstance(value, dict):
        return {k: HOSTILE if k in NAMED and isinstance(v, str) else spoil(v) for k, v in value.items()}
    return [spoil(v) for v in value] if isinstance(value, list) else value


def hostile_server(port):
    """Serves the answers of the daemon on `port` on its own port. Returns the server; its address is
    server_address."""
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):  # pylint: disable=invalid-name
            connection = http.client.HTTPConnection("127.0.0.1", port)
            connection.request("GET", self.path)
            response = connection.getresponse()
            body = response.read()
            if response.headers.get("Content-Type", "").startswith("application/json"):
                body = json.dumps(spoil(json.loads(body))).encode()
            connection.close()
            self.send_response(response.status)
            for name in PASSED:
                if name in response.headers:
                    self.send_header(name, response.headers[name])
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):  # pylint: disable=arguments-differ
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
