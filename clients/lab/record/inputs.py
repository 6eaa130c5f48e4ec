#!/usr/bin/env python3
"""Writes a random input of a recorded program to the standard output.

  inputs.py graph NODES           Rodinia's bfs: on average six edges of each node
  inputs.py points N FEATURES     kmeans, in its binary form
  inputs.py grid SIDE             Rodinia's hotspot: equal temperatures
  inputs.py reference BASES       MUMmerGPU: a genome
  inputs.py reads BASES N LENGTH  MUMmerGPU: pieces of this genome
"""
import random
import struct
import sys

WIDTH = 60  # of a line of a genome


def graph(nodes):
    degrees = [random.randint(2, 10) for _ in range(nodes)]
    begins = [0] * nodes
    for i in range(1, nodes):
        begins[i] = begins[i - 1] + degrees[i - 1]
    edges = begins[-1] + degrees[-1]
    print(nodes, *map("%d %d".__mod__, zip(begins, degrees)), 0, edges, sep="\n")
    print("\n".join("%d 1" % int(random.random() * nodes) for _ in range(edges)))


def points(count, features):
    sys.stdout.buffer.write(struct.pack("ii", count, features))
    part = struct.pack("%df" % (1 << 16), *(random.random() for _ in range(1 << 16)))
    size = 4 * count * features
    for begin in range(0, size, len(part)):
        sys.stdout.buffer.write(part[:size - begin])


def grid(side):
    for _ in range(side):
        sys.stdout.write("323.5\n" * side)


def genome(bases):
    return "".join(random.choices("ACGT", k=bases))


def reference(bases):
    text = genome(bases)
    print(">reference", *(text[i:i + WIDTH] for i in range(0, bases, WIDTH)), sep="\n")


def reads(bases, count, length):
    text = genome(bases)
    for i in range(count):
        begin = random.randrange(bases - length)
        print(">%d\n%s" % (i, text[begin:begin + length]))


random.seed(1)
{"graph": graph, "points": points, "grid": grid, "reference": reference, "reads": reads}[sys.argv[1]](
    *map(int, sys.argv[2:]))
