"""Hosts on this machine: namespaces, each behind a link (veth) to a bridge that can be taken down: what is sent then vanishes, and
nobody is told. Needs root."""
import os
import shutil
import subprocess
import sys

HUB = "10.77.0.1"  # this side of the bridge
INSIDE = "PROA_TEST_NAMESPACES"


def able():
    """Whether namespaces can be made here."""
    if os.geteuid() or not all(map(shutil.which, ("ip", "unshare", "mount"))):
        return False
    made = subprocess.run(["unshare", "--mount", "--net", "--propagation", "private", "ip", "link", "add", "hub", "type", "bridge"],
                          capture_output=True)
    return made.returncode == 0


def isolated():
    return INSIDE in os.environ


def isolate(hosts):
    """Starts this program again in mount and network namespaces of its own, with links to so many hosts."""
    if not isolated():
        os.environ[INSIDE] = "1"
        os.execvp("unshare", ["unshare", "--mount", "--net", "--propagation", "private", sys.executable, *sys.argv])
    commands = ["mkdir -p /run/netns", "mount -t tmpfs none /run/netns", "mount -t tmpfs none /dev/shm", "ip link set lo up",
                "ip link add hub type bridge", f"ip addr add {HUB}/24 dev hub", "ip link set hub up"]
    for h in range(hosts):
        commands += [f"ip netns add h{h}", f"ip link add v{h} type veth peer name eth0 netns h{h}", f"ip link set v{h} master hub up",
                     f"ip -n h{h} addr add {address(h)}/24 dev eth0", f"ip -n h{h} link set eth0 up", f"ip -n h{h} link set lo up"]
    for command in commands:
        subprocess.run(command.split(), check=True)


def address(host):
    return f"{HUB}{host}"


def at(host):
    """The words before a command that runs it at a host."""
    return ["ip", "netns", "exec", f"h{host}"]


def set_link(host, state):
    """state: up or down."""
    subprocess.run(["ip", "link", "set", f"v{host}", state], check=True)
