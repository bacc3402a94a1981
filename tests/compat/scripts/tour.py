"""What scripts do with torch.distributed: groups, object collectives, barriers, DDP with a sampler."""
import argparse

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

# Flags that look like a launcher's belong to the script.
parser = argparse.ArgumentParser()
parser.add_argument("--nnodes", type=int)
parser.add_argument("--role")
arguments = parser.parse_args()
assert (arguments.nnodes, arguments.role) == (7, "mine")

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()

everything = [None] * world
dist.all_gather_object(everything, {"rank": rank})
assert [one["rank"] for one in everything] == list(range(world))

evens = dist.new_group(list(range(0, world, 2)))
if rank % 2 == 0:
    value = torch.tensor([float(rank)])
    dist.all_reduce(value, group=evens)
    assert value.item() == sum(range(0, world, 2))
dist.monitored_barrier()

torch.manual_seed(0)
data = TensorDataset(torch.randn(64, 8), torch.randn(64, 1))
sampler = DistributedSampler(data, shuffle=True, seed=1)
model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    sampler.set_epoch(epoch)
    for inputs, targets in DataLoader(data, batch_size=8, sampler=sampler):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(inputs), targets).backward()
        optimizer.step()
digest = sum(parameter.double().sum().item() for parameter in model.parameters())
print("digest", repr(digest), flush=True)
dist.destroy_process_group()
