"""Rank 1 dies in the first attempt. In the second, rank 0 is the slowest to come: a key left over from
the first would be read by the others. At the end rank 0 leaves while the others still use the store."""
import os
import signal
import time

import torch
import torch.distributed as dist

attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
if attempt == 1 and os.environ["RANK"] == "0":
    time.sleep(1)
dist.init_process_group("gloo")
total = torch.ones(1) * (dist.get_rank() + 1)
dist.all_reduce(total)
print("attempt", attempt, "sum", total.item(), flush=True)
if attempt == 0 and dist.get_rank() == 1:
    os.kill(os.getpid(), signal.SIGKILL)
dist.barrier()
if dist.get_rank() == 0:
    os._exit(0)
time.sleep(0.5)
store = dist.distributed_c10d._get_default_store()
store.set("late", "1")
print("late", store.get("late").decode(), flush=True)
