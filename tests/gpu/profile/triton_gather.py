"""A kernel of Triton that gathers rows."""
import results

torch = results.torch_on_gpu()
try:
    import triton
    import triton.language as tl
except ImportError as missing:
    results.skip(str(missing))


@triton.jit
def gather(index, table, out, count, WIDTH: tl.constexpr, ROWS: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, WIDTH)[None, :]
    i = tl.load(index + row, mask=row < count, other=0)[:, None]
    numbers = tl.load(table + i * WIDTH + column)
    tl.store(out + row[:, None] * WIDTH + column, numbers, mask=row[:, None] < count)


table = torch.randn(1 << 21, 64, device="cuda")
index = torch.randint(table.shape[0], (1 << 18,), device="cuda")
out = torch.empty(index.numel(), 64, device="cuda")
for _ in range(20):
    gather[(triton.cdiv(index.numel(), 32),)](index, table, out, index.numel(), 64, 32)
results.show(out)
