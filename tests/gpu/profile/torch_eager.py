"""PyTorch's operators, one after the other."""
import results

torch = results.torch_on_gpu()
table = torch.randn(1 << 21, 64, device="cuda")
index = torch.randint(table.shape[0], (1 << 18,), device="cuda")
for _ in range(8):
    found = [torch.nn.functional.embedding(index, table),
             torch.nn.functional.embedding_bag(index.view(-1, 32), table, mode="sum"),
             table.index_select(0, index).softmax(-1), torch.nn.functional.layer_norm(table[:4096], (64,)),
             torch.sort(index)[0], torch.topk(table[:4096], 8)[0], torch.where(table[:4096] > 0, 1.0, 2.0),
             index.cumsum(0), table[:4096].amax(1), torch.cat([index, index])]
results.show(*found)
