"""What a cluster is made of: its folder, its ports, its nodes. Pure but for the look at which ports are free."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

PATHS = "/usr/sbin:/usr/bin:/sbin:/bin"
PORTS = range(20_000, 32_000)
"""Below the ports that Linux gives to outgoing connections (net.ipv4.ip_local_port_range)."""


class ClusterError(Exception):
    """Something that a person must hear of, in one line."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What is kept in ``cluster.json`` from ``up`` to ``down``.

    ``version``: "24.11.5"; ``ports``: the controller's, then one for each node.
    """

    version: str
    user: str
    slurm_user: str
    munge_user: str
    host: str
    grace_seconds: int
    ports: tuple[int, ...]

    @property
    def nodes(self) -> tuple[str, ...]:
        """n1, n2..."""
        return tuple(f"n{number}" for number in range(1, len(self.ports)))

    @property
    def release(self) -> tuple[int, ...]:
        """(24, 11)."""
        return tuple(int(number) for number in self.version.split(".")[:2])


@dataclass(frozen=True)
class Layout:
    """Where things lie in the cluster's ``folder``."""

    folder: Path

    @property
    def conf(self) -> Path:
        return self.folder / "etc" / "slurm.conf"

    @property
    def programs(self) -> Path:
        """A link to Slurm's programs where they are not the installed ones."""
        return self.folder / "programs"

    @property
    def search_path(self) -> str:
        """Where Slurm's commands are looked for."""
        return f"{self.programs}/bin:{PATHS}" if self.programs.exists() else PATHS

    @property
    def settings(self) -> Path:
        return self.folder / "cluster.json"

    @property
    def munge(self) -> Path:
        return self.folder / "munge"

    @property
    def socket(self) -> Path:
        return self.munge / "munge.sock"

    def pid_file(self, daemon: str) -> Path:
        """``daemon`` is munged, slurmctld, or slurmd.NODE."""
        return (self.munge if daemon == "munged" else self.folder / "run") / f"{daemon}.pid"

    def log(self, daemon: str) -> Path:
        """Where the daemon of that name writes."""
        return (self.munge if daemon == "munged" else self.folder / "log") / f"{daemon}.log"


def keep(layout: Layout, settings: Settings) -> None:
    """Write them for the commands to come."""
    layout.settings.write_text(json.dumps(asdict(settings)) + "\n")


def kept(layout: Layout) -> Settings:
    """What ``up`` kept. Raises ClusterError when there is no cluster in the folder."""
    try:
        told = json.loads(layout.settings.read_text())
        return Settings(**{**told, "ports": tuple(told["ports"])})
    except FileNotFoundError as error:
        raise ClusterError(f"{layout.folder}: no cluster was started here") from error
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise ClusterError(f"{layout.settings}: no cluster was started here: {error}") from error


def free_ports(count: int, start: int) -> tuple[int, ...]:
    """``count`` ports on which nobody listens, looked for upwards from ``start``."""
    found: list[int] = []
    for port in _from(start):
        if _free(port):
            found.append(port)
        if len(found) == count:
            return tuple(found)
    raise ClusterError(f"no {count} free ports between {PORTS.start} and {PORTS.stop}")


def _from(start: int) -> Iterator[int]:
    for offset in range(len(PORTS)):
        yield PORTS[(start + offset) % len(PORTS)]


def _free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
            return True
        except OSError:
            return False
