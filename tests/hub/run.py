"""Runs JupyterHub with a config until standard input ends, and then ends whatever it has started."""

import os
import signal
import subprocess
import sys
import threading


def descendants(pid):
    """The processes below one; users' servers are in sessions of their own, so that no group has them all."""
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True).stdout
    children = {}
    for line in listed.splitlines():
        child, parent = map(int, line.split())
        children.setdefault(parent, []).append(child)
    found, todo = [], [pid]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found


def end(hub):
    for pid in [*descendants(hub.pid), hub.pid]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


hub = subprocess.Popen([sys.executable, "-m", "jupyterhub", "-f", sys.argv[1]], stdin=subprocess.DEVNULL)
threading.Thread(target=lambda: (hub.wait(), os._exit(1)), daemon=True).start()
signal.signal(signal.SIGTERM, lambda *_: (end(hub), os._exit(0)))
sys.stdin.read()
end(hub)
os._exit(0)
