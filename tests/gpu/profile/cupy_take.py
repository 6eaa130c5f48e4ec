"""CuPy: random rows, a kernel of the user, and sorted numbers."""
import results

try:
    import cupy
except ImportError as missing:
    results.skip(str(missing))

cupy.random.seed(1)
table = cupy.random.randint(0, 1 << 30, (1 << 21, 32), dtype=cupy.int64)
index = cupy.random.randint(0, table.shape[0], 1 << 18, dtype=cupy.int64)
squares = cupy.ElementwiseKernel("int64 x", "int64 y", "y = x * x", "squares")
for _ in range(20):
    rows = cupy.take(table, index, axis=0)
    found = [rows, squares(rows), cupy.sort(index)]
results.show(*map(cupy.asnumpy, found))
