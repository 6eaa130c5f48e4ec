"""PyTorch's operators in the NVTX ranges of PyTorch, and an operator in a range of the program."""
import results

torch = results.torch_on_gpu()
table = torch.randn(1 << 21, 64, device="cuda")
index = torch.randint(table.shape[0], (1 << 18,), device="cuda")
for _ in range(8):
    with torch.autograd.profiler.emit_nvtx():
        found = [table.index_select(0, index), table[:4096].softmax(-1),
                 torch.nn.functional.embedding_bag(index.view(-1, 32), table, mode="sum")]
    with torch.cuda.nvtx.range("range of the program, 1"):
        found.append(table[:4096].tanh())
results.show(*found)
