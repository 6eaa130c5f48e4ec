"""A CUDA graph that is replayed with other indices."""
import results

torch = results.torch_on_gpu()
table = torch.randn(1 << 20, 64, device="cuda")
batches = torch.randint(table.shape[0], (20, 1 << 18), device="cuda")
index, total = torch.zeros_like(batches[0]), torch.zeros(1 << 18, 64, device="cuda")


def step():
    total.add_(table.index_select(0, index)).mul_(0.5)


stream = torch.cuda.Stream()
with torch.cuda.stream(stream):
    step()
stream.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    step()
    step()
for batch in batches:
    index.copy_(batch)
    graph.replay()
results.show(total)
