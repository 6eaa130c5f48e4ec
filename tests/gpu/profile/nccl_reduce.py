"""Two processes with a GPU each, and sums by NCCL."""
import os

import results


def work(rank, queue):
    torch = results.torch_on_gpu(2)
    torch.cuda.set_device(rank)
    torch.distributed.init_process_group("nccl", rank=rank, world_size=2)
    torch.manual_seed(rank)
    table, total = torch.randn(1 << 20, 64, device="cuda"), torch.zeros(1 << 18, 64, device="cuda")
    for _ in range(20):
        rows = table.index_select(0, torch.randint(1 << 20, (1 << 18,), device="cuda"))
        torch.distributed.all_reduce(rows)
        total += rows
    torch.cuda.synchronize()
    queue.put((rank, total.cpu().numpy()))
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


def main():
    torch = results.torch_on_gpu(2)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=os.environ.get("MASTER_PORT", "29511"))
    context = torch.multiprocessing.get_context("spawn")
    queue = context.SimpleQueue()
    processes = [context.Process(target=work, args=(rank, queue)) for rank in range(2)]
    for process in processes:
        process.start()
    found = dict(queue.get() for _ in processes)
    for process in processes:
        process.join()
    results.show(found[0], found[1])


if __name__ == "__main__":
    main()
