"""
Several processes, several machines
===================================

The WiSE-ALE prior looks at the whole batch. Shared by several processes it has to look at the whole *global* batch, or
two GPUs would train another model than one. Here one run is made by one process and by two, and the weights compared.
"""

# %%
# A small file of signals: pulses at random places.

import json
import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from wiseale import load

rng = np.random.default_rng(0)
t, centre = np.linspace(0, 1, 32), rng.uniform(0.2, 0.8, 600)
np.save("pulses.npy", np.exp(-0.5 * ((t - centre[:, None]) / 0.06) ** 2)[:, None].astype(np.float32))

# %%
# The same command with ``--processes 1`` and ``--processes 2``. ``--batch-size`` is the *global* batch; torch's
# DistributedDataParallel shares the gradients.

for processes in ("1", "2"):
    options = f"pulses.npy --latent-dim 2 --max-epochs 8 --threads 1 --no-figures --processes {processes}"
    command = [sys.executable, "-m", "wiseale", "train", *options.split(), "--out", f"run-{processes}"]
    subprocess.run(command, check=True, capture_output=True)
    print("$ wiseale", *command[3:])

# %%
# **Equal up to rounding.** The order of rows and the noise depend on the seed alone, never on the number of processes,
# and the posteriors of all processes are gathered *with their gradient*.

X = np.load("pulses.npy")
one, two = load("run-1").transform(X), load("run-2").transform(X)
print(f"largest difference between the codes: {np.abs(one - two).max():.1e}")

curves = {
    processes: [
        json.loads(line)["train"]["loss"] for line in Path(f"run-{processes}/metrics.jsonl").read_text().splitlines()
    ]
    for processes in (1, 2)
}
figure, (left, right) = plt.subplots(1, 2, figsize=(8.5, 3.4), layout="constrained")
left.plot(curves[1], color="#0072B2", linewidth=4, alpha=0.4, label="1 process")
left.plot(curves[2], color="#D55E00", linestyle="--", label="2 processes")
left.set(xlabel="epoch", ylabel="loss in nats per pulse")
left.legend(frameon=False)
right.scatter(*one.T, c=centre, s=14)
right.scatter(*two.T, s=60, facecolors="none", edgecolors="black", linewidths=0.2)
right.set(xlabel="$z_1$", ylabel="$z_2$", title="codes of both runs: dots and circles")
plt.show()

# %%
# **Several machines** use ``torchrun``, with data and run directory on a path that every machine reads. On each of two
# machines::
#
#     torchrun --nnodes 2 --nproc-per-node 4 --rdzv-backend c10d --rdzv-endpoint first-machine:29500 \
#         -m wiseale train mnist --batch-size 512 --out /shared/run
#
# If a process dies, the others end within seconds and say which; ``wiseale resume`` continues from the last checkpoint.
# This page runs on one machine. More, and what has and has not been tested: :doc:`/many_processes`.
#
# For *many small runs* there is no need for any of this: ``wiseale compare`` gives every run its own core.
