"""``python -m fakepbs up|down FOLDER``: start the fake and its commands in a folder, or stop it by its pid file."""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from fakepbs.server import Server
from fakepbs.site import Site

COMMANDS = ("qsub", "qdel", "qrerun", "qrls", "qsig", "qstat", "pbsnodes", "pbs_rstat", "pbs_rsub", "pbs_rdel", "qmgr")
HERE = Path(__file__).parent
PATIENCE_SECONDS = 10.0


def up(folder: Path, site: Site, guardian: int | None = None) -> None:
    """Returns when commands are answered. The server goes on in the background, but not for longer than the process ``guardian``."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "server_name").write_text(f"{site.server}\n")
    (folder / "faults").mkdir(exist_ok=True)
    _put_commands(folder / "bin")
    if os.fork() == 0:
        os.setsid()
        _serve(folder, site, guardian)
    _until(lambda: (folder / "pbs.sock").exists())


def down(folder: Path) -> None:
    """End it and its jobs, and wait until it has gone."""
    try:
        pid = int((folder / "pid").read_text())
        os.kill(pid, signal.SIGTERM)
    except (FileNotFoundError, ProcessLookupError):
        return
    _until(lambda: not Path(f"/proc/{pid}").exists())


def _serve(folder: Path, site: Site, guardian: int | None) -> None:
    code = 1
    try:
        log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for number, file in ((0, os.open(os.devnull, os.O_RDONLY)), (1, log), (2, log)):
            os.dup2(file, number)
        (folder / "pid").write_text(str(os.getpid()))
        asyncio.run(Server(folder, site).run(guardian))
        code = 0
    finally:
        (folder / "pid").unlink(missing_ok=True)
        os._exit(code)


def _put_commands(folder: Path) -> None:
    """No site packages: a command is to start in a few hundredths of a second."""
    folder.mkdir(exist_ok=True)
    for source, names in (("client.py", COMMANDS), ("pbsdsh.py", ("pbsdsh",))):
        text = f"#!{sys.executable} -SEs\n{(HERE / source).read_text()}"
        for name in names:
            (folder / name).write_text(text)
            (folder / name).chmod(0o755)


def _until(what: Callable[[], bool]) -> None:
    give_up = time.monotonic() + PATIENCE_SECONDS
    while not what():
        if time.monotonic() > give_up:
            raise SystemExit("fake PBS: it takes too long")
        time.sleep(0.01)


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="fakepbs", description=__doc__)
    parser.add_argument("command", choices=("up", "down"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--cpus", type=int, default=4)
    parser.add_argument("--guardian", type=int, help="end when this process has ended")
    options = parser.parse_args()
    if options.command == "up":
        shutil.rmtree(options.folder / "faults", ignore_errors=True)
        nodes = {f"n{number}": options.cpus for number in range(1, options.nodes + 1)}
        up(options.folder, Site(nodes=nodes), options.guardian)
    else:
        down(options.folder)
