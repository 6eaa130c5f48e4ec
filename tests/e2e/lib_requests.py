"""lib_requests.py: random requests to the routes that a snapshot can answer, valid and invalid ones.

    requests = Requests(seed)
    requests.most_gib = 80          # of the GPU that they are about
    requests.target(uuid)           # "/v1/gpus/0/plan?bytes=3GiB&element=128"
"""
import random
import urllib.parse

GIB = 1 << 30
OTHERS = ("/", "/openapi.yaml", "/v1/gpus", "/v1/fingerprints", "/v1/nothing", "/v1/gpus/0/nothing",
          "/v1/gpus/%00/plan", "/v1/gpus/0/plan?bytes=1&bytes=2", "/v1/gpus?x=%zz", "/v1//gpus")


class Requests:
    """The same seed gives the same requests. Only one thread may use it."""

    def __init__(self, seed):
        self.draw = random.Random(seed)
        self.most_gib = 1
        one_of, several, maybe = self.one_of, self.several, self.maybe_several
        access, flag = one_of("read", "atomic", "write", "sideways"), one_of("true", "false", "1")
        element = one_of("4", "128", "512", "2M")
        self.routes = {
            "scope": {"access": access, "granularity": maybe(self.size)},
            "placement": {"windows": self.count, "granularity": self.size},
            "plan": {"access": access, "element": maybe(element), "transaction": maybe(one_of("32", "64")),
                     "touches": maybe(one_of("1", "0", "0.25", "3", "-1")), "written_bytes": self.real,
                     "launch_us": self.real, "reserve": self.size, "accesses": self.count, "no_sm_binding": flag,
                     "single_pass": flag, "input_bytes": self.real, "input_gbps": self.real, "scan_gps": self.real,
                     "in_reach_gbps": self.real, "output_bytes": self.real, "partition_bytes": self.real,
                     "granularity": maybe(self.size), "windows": self.count,
                     "contiguous": one_of("0", "0.5", "1", "1.5"), "concentration": one_of("0.5", "1", "0", "1.5"),
                     "window_concentration": one_of("0.25", "0.9", "nan")},
            "split": {"weight": several(self.real)},
            "explain": {"access": access, "element": one_of("4", "128"), "gbps": self.real,
                        "contiguous": one_of("0", "0.25", "-1")},
            "memory": {"access": access, "element": element, "location": one_of("any", "device", "host", "moon")},
            "fit": {"shared_bytes": self.size, "blocks_per_sm": self.count, "reuse": one_of("same", "own", "none"),
                    "element": one_of("4", "128", "512")},
            "fingerprint": {}, "environment": {}, "": {},
        }

    def one_of(self, *words):
        return lambda: self.draw.choice(words)

    def several(self, item):
        return lambda: ",".join(item() for _ in range(self.draw.randrange(1, 5)))

    def maybe_several(self, item):
        """Returns a function that gives mostly one value, and sometimes a list of two or three values."""
        return lambda: item() if self.draw.random() < 0.6 else ",".join(
            item() for _ in range(self.draw.randrange(2, 4)))

    def size(self):
        """Returns a size with or without a unit, which is mostly valid and mostly fits into the memory."""
        draw, most = self.draw, self.most_gib
        return draw.choice((
            lambda: str(draw.randrange(1, most * GIB)), lambda: f"{draw.randrange(1, 2 + most)}GiB",
            lambda: f"{draw.randrange(1, 4096)}M", lambda: f"{draw.randrange(1, 1 + most)}.5G",
            lambda: f"{draw.randrange(1, 400)}GiB",
            lambda: draw.choice(("0", "-1", "1Q", "", "1e9", "2P", "99999999999999999999"))))()

    def real(self):
        draw = self.draw
        return draw.choice((lambda: f"{draw.uniform(0.001, 5000):.6g}", lambda: f"{draw.randrange(1, 64)}",
                            lambda: draw.choice(("0", "-2", "nan", "1e7", "0x10", "1e3"))))()

    def count(self):
        draw = self.draw
        return draw.choice((lambda: str(draw.randrange(1, 40)),
                            lambda: draw.choice(("0", "257", "007", "x", "9223372036854775807"))))()

    def target(self, uuid):
        draw = self.draw
        if draw.random() < 0.03:
            return draw.choice(OTHERS)
        route = draw.choice(list(self.routes) + ["plan", "plan", "split", "placement"])
        gpu = draw.choice(("0", "0", uuid, uuid.lower(), draw.choice(("1", "GPU-unknown"))))
        query = []
        if draw.random() < 0.95 and route not in ("fingerprint", "environment", ""):
            query.append(("bytes", self.several(self.size)() if route == "split" else
                          self.maybe_several(self.size)() if route in ("plan", "scope") else self.size()))
        # A request has only a few parameters, because otherwise most requests would have an error.
        names = self.routes[route]
        for name, value in draw.sample(list(names.items()), min(len(names), draw.randrange(4))):
            query.append((name, value()))
        if draw.random() < 0.02:
            query.append(("unknown", "1"))
        draw.shuffle(query)
        return f"/v1/gpus/{gpu}" + (f"/{route}" if route else "") + (
            "?" + urllib.parse.urlencode(query) if query else "")
