"""lib_abuse.py: requests that no honest client sends, as bytes.

REFUSED: the answer is a 4xx, 501 or 505, or the connection is closed without an answer. nginx 1.22 refuses 55 of
these too, and interprets the others. LEFT: refused by nginx, and invisible to an application over libmicrohttpd
0.9.75; each with its reason. SILENT: there is no answer at all.
"""
POST = b"POST /v1/gpus/0/measurements HTTP/1.1\r\nHost: a\r\n"
GET = b"GET /healthz HTTP/1.1\r\nHost: a\r\n"
# A text that must not be read as a separate request (request smuggling).
NEXT = b"POST /v1/gpus/0/measurements HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"


def field(line, start=GET):
    return start + line + b"\r\n\r\n"


REFUSED = {
    # The end of the body is ambiguous.
    "two Content-Length": POST + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
    "two that differ": POST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    "Content-Length list": POST + b"Content-Length: 2, 2\r\n\r\n{}",
    "Content-Length +2": POST + b"Content-Length: +2\r\n\r\n{}",
    "Content-Length -1": POST + b"Content-Length: -1\r\n\r\n",
    "Content-Length 0x2": POST + b"Content-Length: 0x2\r\n\r\n{}",
    "Content-Length 2 2": POST + b"Content-Length: 2 2\r\n\r\n{}",
    "Content-Length empty": POST + b"Content-Length:\r\n\r\n{}",
    "Content-Length abc": POST + b"Content-Length: abc\r\n\r\n",
    "Content-Length 10 GB": POST + b"Content-Length: 10737418240\r\n\r\n",
    "Content-Length 2^63": POST + b"Content-Length: 9223372036854775808\r\n\r\n",
    "Content-Length 2^64": POST + b"Content-Length: 18446744073709551616\r\n\r\n",
    "length and chunked": POST + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunked and length": POST + b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
    "chunked twice": POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"
                            b"0\r\n\r\n",
    "xchunked": POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "gzip, chunked": POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "chunked, identity": POST + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "chunked in HTTP/1.0": b"POST /v1/gpus/0/measurements HTTP/1.0\r\nHost: a\r\n"
                           b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunk of no size": POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
    "chunk of -1": POST + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n{}\r\n0\r\n\r\n",
    "chunk of 2^64": POST + b"Transfer-Encoding: chunked\r\n\r\n10000000000000002\r\n{}\r\n0\r\n\r\n",
    "chunk longer than it says": POST + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{}\r\n0\r\n\r\n",
    # Header fields that two readers may interpret differently.
    "space before the colon": POST + b"Content-Length : 2\r\n\r\n{}",
    "no colon": field(b"NoColonHere"),
    "name with a space": field(b"X A: b"),
    "name with a bracket": field(b"X(A): b"),
    "name with a control": field(b"X\x01A: b"),
    "control in a value": field(b"X-A: b\x01c"),
    "bare CR in a value": field(b"X-A: b\rc: d"),
    "first field begins with a space": b"GET /healthz HTTP/1.1\r\n X: y\r\nHost: a\r\n\r\n",
    # The target host is ambiguous.
    "two Host": b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    "the same Host twice": b"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
    "no Host": b"GET / HTTP/1.1\r\n\r\n",
    "Host with a slash": b"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n",
    "Host with a space": b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
    "two Authorization": field(b"Authorization: Bearer a\r\nAuthorization: Bearer b"),
    # The first line is wrong.
    "NUL as %00": b"GET /healthz%00 HTTP/1.1\r\nHost: a\r\n\r\n",
    "NUL in the path": b"GET /healthz\0x HTTP/1.1\r\nHost: a\r\n\r\n",
    "NUL in the query": b"GET /readyz?verbose\0x HTTP/1.1\r\nHost: a\r\n\r\n",
    "broken percent": b"GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n",
    "percent at the end": b"GET /% HTTP/1.1\r\nHost: a\r\n\r\n",
    "target is no path": b"GET healthz HTTP/1.1\r\nHost: a\r\n\r\n",
    "control in the path": b"GET /\x01healthz HTTP/1.1\r\nHost: a\r\n\r\n",
    "out of the root": b"GET /../healthz HTTP/1.1\r\nHost: a\r\n\r\n",
    "out of the root, encoded": b"GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.1\r\nHost: a\r\n\r\n",
    "two slashes": b"GET //healthz HTTP/1.1\r\nHost: a\r\n\r\n",
    "target of 64 KB": b"GET /" + b"a" * 65536 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
    "unknown method": b"BREW /healthz HTTP/1.1\r\nHost: a\r\n\r\n",
    "method in lower case": b"get /healthz HTTP/1.1\r\nHost: a\r\n\r\n",
    "TRACE": b"TRACE / HTTP/1.1\r\nHost: a\r\n\r\n",
    "CONNECT": b"CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n",
    "HTTP/3.7": b"GET /healthz HTTP/3.7\r\nHost: a\r\n\r\n",
    "HTTP/1.": b"GET /healthz HTTP/1.\r\nHost: a\r\n\r\n",
    "no protocol name": b"GET /healthz HTPP/1.1\r\nHost: a\r\n\r\n",
    "HTTP/2 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    # The request is too long.
    "field of 64 KB": field(b"X-A: " + b"b" * 65536),
    "field name of 64 KB": field(b"X" * 65536 + b": b"),
    "5000 fields": field(b"\r\n".join(b"X%d: y" % i for i in range(5000))),
    "2000 ranges": field(b"Range: bytes=" + b",".join(b"%d-%d" % (i, i) for i in range(2000))),
    "40 parameters": b"GET /v1/gpus?" + b"&".join(b"a%d=1" % i for i in range(40)) +
                     b" HTTP/1.1\r\nHost: a\r\n\r\n",
    "chunk extension of 70 KB": POST + b"Transfer-Encoding: chunked\r\n\r\n2;x=" + b"y" * 71680 +
                                b"\r\n{}\r\n0\r\n\r\n",
}

# nginx also refuses these requests. An application over libmicrohttpd gets no sign of their faults.
LEFT = {
    "NUL in a value": field(b"X-A: b\0c"),  # the library cuts the value there; it is used for nothing
    "folded field": GET + b"X-A: b\r\n c\r\n\r\n",  # arrives joined, as RFC 9112 allows
    "empty name": field(b": b"),  # the library does not show it
}

# There is no answer; the deadline ends the connection.
SILENT = {"TLS hello": b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03" + bytes(32)}
