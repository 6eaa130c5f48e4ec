#!/usr/bin/env python3
"""Trains a transformer on rows of an embedding table, for bench_profile_overhead.py.

    lib_profile_training.py --out FILE [--gib N] [--seconds N | --steps N]

The table has N GiB of bfloat16 (100) and sparse gradients, so a step changes only the rows of its batch. The training
ends after --seconds, or after --steps. FILE gets the number of steps, the loss, the seconds of the steps, and the
memory of the GPU that is in use beside PyTorch's own, which includes the contexts of all processes.
"""
import argparse
import json
import time

import torch

GPU = torch.cuda.is_available()
DEVICE = "cuda" if GPU else "cpu"  # without a GPU the script itself is tested
WIDTH, WORDS, BATCH, CLASSES = (512, 256, 64, 1000) if GPU else (64, 16, 4, 10)
EACH = 16                          # steps between two looks at the memory


class Model(torch.nn.Module):
    def __init__(self, layers):
        super().__init__()
        layer = torch.nn.TransformerEncoderLayer(WIDTH, 8, 4 * WIDTH, batch_first=True, dropout=0)
        self.layers = torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.last = torch.nn.Linear(WIDTH, CLASSES)

    def forward(self, rows):
        return self.last(self.layers(rows).mean(1))


def other_bytes():
    """Returns the bytes of the GPU that are in use and are not reserved by PyTorch."""
    if not GPU:
        return 0
    free, total = torch.cuda.mem_get_info()
    return total - free - torch.cuda.memory_reserved()


def train(table, steps, seconds):
    """Returns the number of steps, the last loss, and the most bytes beside PyTorch's."""
    model = Model(6 if GPU else 1).to(DEVICE, torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    sparse = torch.optim.SGD(table.parameters(), lr=1e-2)
    begin, done, most, loss = time.monotonic(), 0, 0, None
    while done < steps if steps else time.monotonic() - begin < seconds:
        for _ in range(min(EACH, steps - done) if steps else EACH):
            words = torch.randint(table.num_embeddings, (BATCH, WORDS), device=DEVICE)
            label = torch.randint(CLASSES, (BATCH,), device=DEVICE)
            optimizer.zero_grad()
            sparse.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(table(words)).float(), label)
            loss.backward()
            optimizer.step()
            sparse.step()
            done += 1
        loss = loss.item()  # waits for the steps
        most = max(most, other_bytes())
    return done, loss, most


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gib", type=float, default=100)
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    torch.manual_seed(1)
    rows = int(options.gib * (1 << 30)) // (2 * WIDTH)
    weight = torch.empty(rows, WIDTH, device=DEVICE, dtype=torch.bfloat16).normal_(0, 0.02)
    table = torch.nn.Embedding(rows, WIDTH, _weight=weight, sparse=True, device=DEVICE, dtype=torch.bfloat16)
    begin = time.monotonic()
    steps, loss, most = train(table, options.steps, options.seconds)
    with open(options.out, "w", encoding="utf-8") as file:
        json.dump({"steps": steps, "loss": loss, "seconds": time.monotonic() - begin, "other_bytes": most}, file)


if __name__ == "__main__":
    main()
