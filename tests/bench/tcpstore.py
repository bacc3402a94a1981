"""PyTorch's own clients at ddrun's store and at PyTorch's, in one run: operations a second of all clients
together, ddrun's beside PyTorch's (1 is equal, more is faster).

usage: ddrun --nproc-per-node=N --agent-store=on tests/bench/tcpstore.py [seconds=1]
"""
import os
import statistics
import sys
import time
from datetime import timedelta

from torch.distributed import TCPStore

RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
ROUNDS = 5


def connect(host, port, master=False):
    return TCPStore(host, port, is_master=master, wait_for_workers=False, timeout=timedelta(seconds=60))


def meet(store, name):
    if store.add(name, 1) == WORLD:
        store.set(name + ".all", "")
    store.wait([name + ".all"])


def rate(store, name, operation):
    meet(store, name)
    count, end = 0, time.perf_counter() + SECONDS / ROUNDS
    while time.perf_counter() < end:
        for _ in range(20):
            operation(store)
        count += 20
    store.add(name + ".count", count)
    meet(store, name + ".end")
    return int(store.add(name + ".count", 0)) / (SECONDS / ROUNDS)


def main():
    ours = connect(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
    if RANK == 0:
        host = connect("127.0.0.1", 0, master=True)
        ours.set("port", str(host.port))
    theirs = connect("127.0.0.1", int(ours.get("port")))
    value = b"v" * 128
    operations = {
        "set": lambda store: store.set("key", value),
        "get": lambda store: store.get("key"),
        "add": lambda store: store.add("sum", 1),
        "wait": lambda store: store.wait(["key"]),
    }
    for name, operation in operations.items():
        rates = {"ddrun": [], "PyTorch": []}
        for turn in range(ROUNDS):  # in turns: the machine is noisy
            for who, store in (("ddrun", ours), ("PyTorch", theirs)):
                rates[who].append(rate(store, f"{name}.{turn}", operation))
        if RANK == 0:
            own, peer = (statistics.median(rates[who]) for who in ("ddrun", "PyTorch"))
            print(f"{WORLD:3} clients  {name:4}  ddrun {own:9.0f}/s  PyTorch {peer:9.0f}/s  {own / peer:5.2f}", flush=True)
    meet(ours, "done")


main()
