"""``pbsdsh -- COMMAND``: the command once in each node of the job, where every node is this machine; ends with the first bad exit code."""

import os
import signal
import subprocess
import sys

with open(os.environ["PBS_NODEFILE"]) as file:
    hosts = list(dict.fromkeys(file.read().split()))
command = sys.argv[sys.argv.index("--") + 1 :] if "--" in sys.argv else sys.argv[1:]
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, lambda number, frame: None)  # the tasks get it too, and they end us
tasks = []
for node, _host in enumerate(hosts):
    place = {"PBS_NODENUM": str(node), "PBS_TASKNUM": str(node + 2)}
    tasks.append(subprocess.Popen(command, env={**os.environ, **place}))
sys.exit(next((code for code in [task.wait() for task in tasks] if code), 0))
