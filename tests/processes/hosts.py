"""Machines made of network namespaces: each has an address of its own, and a cable to a switch that can be cut."""

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]


def problem():
    """Why there can be no such machines here; None where there can."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "network namespaces need root on Linux"
    name = f"wiseale-probe-{os.getpid()}"
    try:
        made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return "network namespaces need the command ip (Debian's iproute2)"
    subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
    return f"network namespaces are not allowed: {made.stderr.strip()}" if made.returncode else None


class Hosts:
    """Machines 0, 1, ... with the addresses 10.77.0.1, 10.77.0.2, ..., which nothing outside can reach."""

    def __init__(self, count):
        self.count = count
        self._prefix = f"wiseale-{os.getpid()}"

    def name(self, host):
        return f"{self._prefix}-{host}"

    def address(self, host):
        return f"10.77.0.{host + 1}"

    def connect(self):
        switch = self.name("switch")
        ip("netns", "add", switch)
        ip("-n", switch, "link", "add", "bridge", "type", "bridge")
        ip("-n", switch, "link", "set", "bridge", "up")
        for host in range(self.count):
            name = self.name(host)
            ip("netns", "add", name)
            ip("-n", switch, "link", "add", f"port{host}", "type", "veth", "peer", "name", "eth0", "netns", name)
            ip("-n", switch, "link", "set", f"port{host}", "master", "bridge", "up")
            ip("-n", name, "address", "add", f"{self.address(host)}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
            ip("-n", name, "link", "set", "lo", "up")

    def disconnect(self):
        for host in (*range(self.count), "switch"):
            subprocess.run(["ip", "netns", "del", self.name(host)], check=False)

    def cut(self, host):
        """Take the cable of a machine out of the switch: nothing arrives any more, and no connection is closed."""
        ip("-n", self.name("switch"), "link", "set", f"port{host}", "down")

    def connect_again(self, host):
        """Put the cable back."""
        ip("-n", self.name("switch"), "link", "set", f"port{host}", "up")

    def torchrun(self, host, *command, restarts=0):
        """Start a command as one rank of a run on all machines; a machine's output is its process's."""
        launcher = [
            *(sys.executable, "-m", "torch.distributed.run", "--nnodes", str(self.count), "--nproc-per-node", "1"),
            *("--rdzv-backend", "c10d", "--rdzv-endpoint", f"{self.address(0)}:29400", "--rdzv-id", "test"),
            *("--local-addr", self.address(host), "--max-restarts", str(restarts)),
            *("--rdzv-conf", f"is_host={int(host == 0)}"),  # its own name is not that of its address
        ]
        paths = os.pathsep.join([str(ROOT), str(ROOT / "src")])
        own = {"GLOO_SOCKET_IFNAME": "eth0", "OMP_NUM_THREADS": "1", "PYTHONPATH": paths}
        if restarts:
            own["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] = "1"  # or ranks meet the addresses of those before the restart
        return subprocess.Popen(
            ["ip", "netns", "exec", self.name(host), *launcher, *map(str, command)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | own,
        )


@contextmanager
def connected(count):
    hosts = Hosts(count)
    try:
        hosts.connect()
        yield hosts
    finally:
        hosts.disconnect()


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, capture_output=True)
