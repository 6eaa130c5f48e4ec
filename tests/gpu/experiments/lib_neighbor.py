# For docs/disturbance.md.
"""Runs another job on the same GPU, for survey_busy.py and bench_beside.py, until its standard input ends.

    lib_neighbor.py KIND      needs PyTorch; the exit status is 77 if PyTorch or a GPU is missing

  matmul    products of two 8192 x 8192 bf16 matrices; the other name is matmul-8192-bf16
  gathers   2^24 elements at random from a table of 32 GiB
  tiny      kernels of one block, one after another
  training  steps of a network of four layers of 4096 x 4096, forward, backward and update
  memory    no work, but all memory except 900 MiB (LEAVE_BYTES) is taken
  matmul-4096-fp16, matmul-2048-fp32  products of other matrices
  attention    attention over 4096 tokens with 32 heads of 128 numbers in bf16
  gather-free  2^24 elements at random from a table in all free memory except 4 GiB (REST_BYTES)
  bursts       products of 4096 x 4096 bf16 matrices, with pauses of 1 to 30 ms after each few of them
  host-copies  copies of 256 MiB over the link to the host, in both directions
  transformer  steps of a transformer of 8 layers with 1024 numbers for each of 8 x 1024 tokens

It prints one line when the GPU is at work, and at the end one line about the work done. For an input line "progress" it
prints "STEPS SECONDS"; "pause" and "go" stop and resume the work.
"""
import random
import select
import sys
import time

SKIPPED = 77
MIB = 1 << 20
GIB = 1 << 30
LEAVE_BYTES = 900 * MIB
REST_BYTES = 4 * GIB
TABLE_BYTES = 32 * GIB
PIECE_BYTES = 64 * MIB

try:
    import torch
except ImportError:
    torch = None


class Orders:
    """Reads the orders on standard input."""

    def __init__(self):
        self.began = time.monotonic()
        self.end = False

    def follow(self, done, wait=False):
        """Executes the pending orders. With `wait` it first waits for an order."""
        while not self.end and select.select([sys.stdin], [], [], None if wait else 0)[0]:
            line = sys.stdin.readline().strip()
            self.end = not line
            if line == "progress":
                print("%d %.6f" % (done, time.monotonic() - self.began), flush=True)
            elif line == "pause":
                torch.cuda.synchronize()
                print("paused", flush=True)
                wait = True
                continue
            elif line == "go":
                print("working", flush=True)
            if line != "progress":
                return


def matmul(n=8192, dtype="bfloat16", batch=16):
    a, b = (torch.randn(n, n, dtype=getattr(torch, dtype), device="cuda") for _ in range(2))
    product = torch.empty_like(a)
    return lambda: torch.matmul(a, b, out=product), batch


def attention():
    q, k, v = (torch.randn(4, 32, 4096, 128, dtype=torch.bfloat16, device="cuda") for _ in range(3))
    return lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v), 8


def bursts():
    product, _ = matmul(4096)
    chance = random.Random(1)

    def step():
        for _ in range(chance.randint(1, 16)):
            product()
        torch.cuda.synchronize()
        time.sleep(chance.uniform(0.001, 0.030))
    return step, 1


def host_copies():
    down, up = (torch.zeros(256 * MIB, dtype=torch.uint8).pin_memory() for _ in range(2))
    there = torch.zeros(256 * MIB, dtype=torch.uint8, device="cuda")

    def step():
        there.copy_(down, non_blocking=True)
        up.copy_(there, non_blocking=True)
    return step, 4


def training_step(model, optimizer, batch):
    def step():
        optimizer.zero_grad(set_to_none=True)
        model(batch).float().square().mean().backward()
        optimizer.step()
    return step


def transformer():
    layer = torch.nn.TransformerEncoderLayer(1024, 16, 4096, dropout=0.0, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 8).to("cuda", torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    tokens = torch.randn(8, 1024, 1024, device="cuda", dtype=torch.bfloat16)
    return training_step(model, optimizer, tokens), 1


def gather_free():
    return gathers(torch.cuda.mem_get_info()[0] - REST_BYTES)


def gathers(table_bytes=TABLE_BYTES):
    table = torch.empty(table_bytes // 8, dtype=torch.int64, device="cuda")
    table.fill_(1)
    where = [torch.randint(table.numel(), (1 << 24,), device="cuda") for _ in range(4)]
    found = torch.empty(1 << 24, dtype=torch.int64, device="cuda")
    turn = [0]

    def step():
        turn[0] += 1
        torch.index_select(table, 0, where[turn[0] % len(where)], out=found)
    return step, 16


def tiny():
    x = torch.zeros(128, device="cuda")
    return lambda: x.add_(1.0), 2000


def training():
    layers = [layer for _ in range(4) for layer in (torch.nn.Linear(4096, 4096), torch.nn.ReLU())]
    model = torch.nn.Sequential(*layers).to("cuda", torch.bfloat16)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    batch = torch.randn(2048, 4096, device="cuda", dtype=torch.bfloat16)
    return training_step(model, optimizer, batch), 16


def memory():
    """The returned function holds the pieces."""
    pieces = []
    while torch.cuda.mem_get_info()[0] >= LEAVE_BYTES + PIECE_BYTES:
        pieces.append(torch.empty(PIECE_BYTES, dtype=torch.uint8, device="cuda"))
    return lambda: len(pieces), 0


KINDS = {"matmul": matmul, "gathers": gathers, "tiny": tiny, "training": training, "memory": memory,
         "matmul-8192-bf16": matmul, "matmul-4096-fp16": lambda: matmul(4096, "float16", 128),
         "matmul-2048-fp32": lambda: matmul(2048, "float32", 128), "attention": attention,
         "gather-free": gather_free, "bursts": bursts, "host-copies": host_copies, "transformer": transformer}


def work(step, batch):
    """Runs batches of `batch` steps without a pause; 0 means that it only waits. Returns the number of steps."""
    done = 0
    orders = Orders()
    ends = []
    while not orders.end:
        for _ in range(batch):
            step()
        ends.append(torch.cuda.Event())
        ends[-1].record()
        if len(ends) > 2:  # one batch more is always queued
            ends.pop(0).synchronize()
        if done == 0:
            torch.cuda.synchronize()
            print("working, %d MiB free" % (torch.cuda.mem_get_info()[0] // MIB), flush=True)
        done += max(batch, 1)
        orders.follow(done, wait=batch == 0)
    return done


def main():
    if torch is None or not torch.cuda.is_available():
        print("no PyTorch, or none that has a GPU here", flush=True)
        return SKIPPED
    step, batch = KINDS[sys.argv[1]]()
    began = time.monotonic()
    done = work(step, batch)
    seconds = time.monotonic() - began
    print("%d steps in %.1f s, %.1f per second" % (done if batch else 0, seconds,
                                                   done / seconds if batch else 0), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
