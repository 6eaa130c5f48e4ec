"""A function that torch.compile fuses. Its sums are of integers, because the compiler chooses the shape of a launch by
time, and the shape decides the order of additions."""
import results

torch = results.torch_on_gpu()


@torch.compile
def rows(table, index):
    chosen = table[index]
    return chosen * 2 + 1, (chosen > 0).to(torch.int64).sum(1)


table = torch.randn(1 << 20, 64, device="cuda")
index = torch.randint(table.shape[0], (1 << 18,), device="cuda")
for _ in range(20):
    found = rows(table, index)
results.show(*found)
