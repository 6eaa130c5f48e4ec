"""Twenty steps of training with gradients of an embedding, a convolution and matrix products."""
import results

torch = results.torch_on_gpu()
torch.backends.cudnn.benchmark = False
model = torch.nn.Sequential(torch.nn.Embedding(1 << 18, 64), torch.nn.Conv1d(32, 16, 3, padding=1), torch.nn.GELU(),
                            torch.nn.LayerNorm(64), torch.nn.Flatten(), torch.nn.Linear(16 * 64, 256), torch.nn.ReLU(),
                            torch.nn.Linear(256, 10)).cuda()
step = torch.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(20):
    step.zero_grad()
    words, label = torch.randint(1 << 18, (256, 32), device="cuda"), torch.randint(10, (256,), device="cuda")
    loss = torch.nn.functional.cross_entropy(model(words), label)
    loss.backward()
    step.step()
results.show(loss, *model.parameters())
