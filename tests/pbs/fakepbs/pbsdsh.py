"""``pbsdsh [-n NODE] -- COMMAND``: the command in one or each of the job's nodes, where every node is this machine (pbsdsh(1B)).

A task gets the environment that MOM gave the job, not what the script has exported. Signals reach it as part of the job's session; the
real one forwards them.
"""

import os
import signal
import subprocess
import sys

with open(os.environ["PBS_NODEFILE"]) as file:
    hosts = list(dict.fromkeys(file.read().split()))
with open(f"/proc/{os.getsid(0)}/environ") as file:
    given = dict(pair.partition("=")[::2] for pair in file.read().split("\0") if pair)
at = sys.argv.index("--")
nodes = [int(sys.argv[2])] if sys.argv[1] == "-n" else range(len(hosts))
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, lambda number, frame: None)
places = [{"PBS_NODENUM": str(node), "PBS_TASKNUM": str(node + 2)} for node in nodes]
tasks = [subprocess.Popen(sys.argv[at + 1 :], env={**given, **place}, cwd=given["HOME"]) for place in places]
sys.exit(next((code for code in [task.wait() for task in tasks] if code), 0))
