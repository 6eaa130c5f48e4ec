"""Matrix products by cuBLAS, of three types."""
import results

torch = results.torch_on_gpu()
found = []
for dtype in (torch.float32, torch.bfloat16, torch.float16):
    a, b = (torch.randn(2048, 2048, device="cuda", dtype=dtype) for _ in range(2))
    for _ in range(10):
        product = a @ b
    found += [product, torch.baddbmm(a.view(4, 512, 2048), b.view(4, 512, 2048)[:, :, :512], a.view(4, 512, 2048))]
results.show(*found)
