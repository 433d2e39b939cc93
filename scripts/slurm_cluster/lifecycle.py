"""A cluster's life: made, started, asked, ended."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import socket
import time
from pathlib import Path

from slurm_cluster import packages
from slurm_cluster.configuration import cgroup_conf, slurm_conf
from slurm_cluster.processes import alive, end, end_leftovers, run, wait
from slurm_cluster.settings import ClusterError, Layout, Settings, free_ports, keep, kept

READY_SECONDS = 30.0
FOLDERS = ("etc", "log", "munge", "run", "spool", "state")


def up(layout: Layout, version: str | None, nodes: int, grace_seconds: int) -> str:
    """Start what does not run: all of a new cluster, or the missing daemons of one that is there. Says in how many seconds."""
    began = time.monotonic()
    settings = _running(layout, version) if any_alive(layout) else _make(layout, version, nodes, grace_seconds)
    if alive(layout, "munged") is None:
        _start_munged(layout, settings)
    if alive(layout, "slurmctld") is None:
        run(layout, ["slurmctld"])
    for node in settings.nodes:
        if alive(layout, f"slurmd.{node}") is None:
            (layout.folder / "spool" / node).mkdir(exist_ok=True)
            run(layout, ["slurmd", "-N", node, *_stepd(layout)])
    if not wait(lambda: _ready(layout, settings), READY_SECONDS):
        raise ClusterError(f"not all nodes are ready after {READY_SECONDS:g} s; see {layout.folder}/log")
    return f"Slurm {settings.version}: {len(settings.nodes)} nodes ready after {time.monotonic() - began:.1f} s"


def down(layout: Layout) -> str:
    """End every job and daemon of this cluster, and remove what it kept; its logs stay."""
    settings = kept(layout)
    if alive(layout, "slurmctld") is not None and alive(layout, "munged") is not None:
        _end_jobs(layout)
    end(layout, [f"slurmd.{node}" for node in settings.nodes])
    end(layout, ["slurmctld"])
    end_leftovers(layout)
    end(layout, ["munged"])
    for name in ("state", "spool", "run", "munge"):
        shutil.rmtree(layout.folder / name, ignore_errors=True)
    layout.settings.unlink()
    return "down"


def status(layout: Layout) -> str:
    """Daemons, nodes, jobs."""
    settings = kept(layout)
    daemons = ["munged", "slurmctld", *(f"slurmd.{node}" for node in settings.nodes)]
    lines = [f"{name:<12} {alive(layout, name) or 'not running'}" for name in daemons]
    if alive(layout, "slurmctld") is None:
        return "\n".join(lines)
    return "\n".join([*lines, run(layout, ["sinfo", "-N", "-l"]), run(layout, ["squeue"])])


def any_alive(layout: Layout) -> bool:
    """Whether a daemon of this cluster runs."""
    return layout.settings.exists() and any(
        alive(layout, name) for name in ("munged", "slurmctld", *(f"slurmd.{node}" for node in kept(layout).nodes))
    )


def _running(layout: Layout, version: str | None) -> Settings:
    settings = kept(layout)
    if version is not None and not settings.version.startswith(f"{version}."):
        raise ClusterError(f"{layout.folder}: Slurm {settings.version} is running, not {version}; `down` ends it")
    return settings


def _stepd(layout: Layout) -> list[str]:
    """slurmd(8), ``-d``: otherwise it starts the installed one."""
    return ["-d", f"{layout.programs}/bin/slurmstepd"] if layout.programs.exists() else []


def _make(layout: Layout, version: str | None, nodes: int, grace_seconds: int) -> Settings:
    found, programs = packages.require(version)
    me = pwd.getpwuid(os.geteuid()).pw_name
    settings = Settings(
        version=found,
        user=me,
        slurm_user=_account("slurm", me),
        munge_user=_account("munge", me),
        host=socket.gethostname().partition(".")[0],
        grace_seconds=grace_seconds,
        ports=free_ports(nodes + 1, start=secrets.randbelow(10_000)),
    )
    for name in ("state", "spool", "run", "munge", "log"):
        shutil.rmtree(layout.folder / name, ignore_errors=True)
    for name in FOLDERS:
        (layout.folder / name).mkdir(mode=0o755, parents=True, exist_ok=True)
    layout.programs.unlink(missing_ok=True)
    if programs is not None:
        layout.programs.symlink_to(programs)
    _write_key(layout)
    layout.conf.write_text(slurm_conf(layout, settings))
    layout.conf.with_name("cgroup.conf").write_text(cgroup_conf(settings))
    if os.geteuid() == 0:
        _own(settings.munge_user, layout.munge, layout.munge / "munge.key")
        _own(settings.slurm_user, *(layout.folder / name for name in ("state", "log", "run")))
    keep(layout, settings)
    return settings


def _account(name: str, me: str) -> str:
    """The daemons' own account, where root starts them and a package has made it."""
    return name if os.geteuid() == 0 and any(each.pw_name == name for each in pwd.getpwall()) else me


def _write_key(layout: Layout) -> None:
    """munged refuses a key that others may read (munged(8))."""
    path = layout.munge / "munge.key"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o400)
    with os.fdopen(descriptor, "wb") as file:
        file.write(secrets.token_bytes(1024))


def _own(user: str, *paths: Path) -> None:
    for path in paths:
        shutil.chown(path, user, user)


def _start_munged(layout: Layout, settings: Settings) -> None:
    run(
        layout,
        [
            "munged",
            f"--key-file={layout.munge}/munge.key",
            f"--socket={layout.socket}",
            f"--pid-file={layout.pid_file('munged')}",
            f"--log-file={layout.log('munged')}",
            f"--seed-file={layout.munge}/seed",
        ],
        user=settings.munge_user if settings.munge_user != settings.user else None,
    )


def _ready(layout: Layout, settings: Settings) -> bool:
    try:
        states = run(layout, ["sinfo", "-h", "-N", "-p", "primary", "-o", "%T"]).split()
    except ClusterError:
        return False
    return len(states) == len(settings.nodes) and all(state in ("idle", "mixed", "allocated", "planned") for state in states)


def _end_jobs(layout: Layout) -> None:
    """Pending ones first, so that none starts as others end."""
    run(layout, ["scancel", "--quiet", "--state=PENDING"])
    for job in set(run(layout, ["squeue", "-h", "-o", "%A"]).split()):
        run(layout, ["scancel", "--quiet", "--signal=KILL", "--full", job])
        run(layout, ["scancel", "--quiet", job])
    wait(lambda: not run(layout, ["squeue", "-h", "-o", "%A"]).split(), 10.0)
