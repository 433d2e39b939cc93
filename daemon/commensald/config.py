"""Configuration: where values come from, and what each of them is.

Later ones win: /etc/commensal/commensal.toml, /etc/commensal/conf.d/*.toml (by name), $XDG_CONFIG_HOME/commensal/commensal.toml,
COMMENSAL_<SECTION>_<KEY> in the environment, flags. ``--config FILE`` replaces the files. config/commensal.toml explains every key.
"""

from __future__ import annotations

import os
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from commensald.coordinator import Limits
from commensald.decision import AllocatorName, BigM
from commensald.plausible import faults
from commensald.strict import InputError, convert, read_toml, refuse_unknown, unknown

SYSTEM = Path("/etc/commensal")
Positive = Annotated[float, msgspec.Meta(gt=0)]
Seconds = Annotated[float, msgspec.Meta(ge=0)]
Count = Annotated[int, msgspec.Meta(ge=1)]
_IN_PILOTS = ("MEMBER", "PILOT", "TRAINING", "NODE", "FOLDER", "TRANSPORT", "GRACE_SECONDS", "PYTHON", "CROWDED", "LOCAL_JOB")
_IN_TESTS = ("KILLS", "EXAMPLES", "TEST_SECONDS")
NO_KEYS = frozenset(f"COMMENSAL_{name}" for name in (*_IN_PILOTS, *_IN_TESTS))
"""Variables that are ours and no part of the configuration."""


def _state() -> str:
    return str(Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "commensal")


def _runtime() -> Path:
    folder = os.environ.get("XDG_RUNTIME_DIR")
    return Path(folder) / "commensal" if folder else Path(_state()) / "run"


class DaemonSection(msgspec.Struct, frozen=True, kw_only=True):
    """``[daemon]``: the daemon itself; ``bind`` ``None`` is this host's own address, ``events`` ``None`` keeps no event log."""

    state: str = msgspec.field(default_factory=_state)
    socket: str = msgspec.field(default_factory=lambda: str(_runtime() / "commensald.sock"))
    bind: str | None = None
    events: str | None = None
    poll_seconds: Positive = 10.0
    stale_seconds: Positive = 60.0


class SchedulerSection(msgspec.Struct, frozen=True, kw_only=True):
    """``[scheduler]``: which batch scheduler; for the embedded one its socket, for Slurm and PBS how their commands are found."""

    kind: Literal["local", "slurm", "pbs"] = "local"
    socket: str = msgspec.field(default_factory=lambda: str(_runtime() / "local-cluster.sock"))
    slurm_conf: str | None = None
    pbs_conf: str | None = None
    path: str | None = None
    command_seconds: Positive = 20.0
    pyslurm: bool = True
    shrink_to_fit: bool = True


class PilotsSection(msgspec.Struct, frozen=True, kw_only=True):
    """``[pilots]``: the scavenger jobs; ``folder`` holds their key and logs and is shared with the compute nodes."""

    folder: str = msgspec.field(default_factory=lambda: str(Path(_state()) / "pilots"))
    python: str = sys.executable
    environment: dict[str, str] = {}
    partition: str | None = None
    qos: str | None = None
    account: str | None = None
    max_pilots: Count = 64
    standing: Annotated[int, msgspec.Meta(ge=0)] | None = None
    max_minutes: Positive | None = None
    start_lag_seconds: Seconds = 1.0
    minimum_window_seconds: Seconds = 10.0
    submissions_per_cycle: Count = 16


class LimitsSection(msgspec.Struct, frozen=True, kw_only=True):
    """``[limits]``: how much of the cluster is asked for at most (limits.py applies them); ``None`` is without limit."""

    in_flight: Count | None = 16
    pilots_per_minute: Count | None = 60
    pilots_per_hour: Count | None = None
    pilots_per_training: Count | None = None
    node_seconds_per_day: Positive | None = None
    quiet_hours: tuple[str, ...] = ()
    kill_switch: str | None = None


class CapTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """``[allocate.caps.NAME]``: most nodes, of a folded list or of all, for the trainings of an owner, an account, or all together."""

    most: Annotated[int, msgspec.Meta(ge=0)]
    nodes: str | None = None
    owner: str | None = None
    account: str | None = None


class AllocateSection(msgspec.Struct, frozen=True, kw_only=True):
    """``[allocate]``: who shares the nodes among trainings, and what a node is worth to one."""

    allocator: AllocatorName = "exact"
    unit: Literal["speedup", "samples"] = "speedup"
    look_ahead_seconds: Positive = 120.0
    milp_over: Literal["nodes", "counts"] = "nodes"
    big_m: BigM = "correct"
    milp_seconds: Positive = 10.0
    caps: dict[str, CapTable] = {}
    fair_share: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.0
    survival_aware: bool = False
    survival_cap_seconds: Positive = 600.0
    autoscale: bool = False
    autoscale_seconds: Positive = 600.0
    autoscale_rejects: bool = False


class BackoffSection(msgspec.Struct, frozen=True, kw_only=True):
    """``[backoff]``: the pause after a script has failed, doubled at each failure in a row; after ``attempts`` it is given up."""

    first_seconds: Positive = 5.0
    most_seconds: Positive = 600.0
    attempts: Count = 10


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that may be configured."""

    daemon: DaemonSection = msgspec.field(default_factory=DaemonSection)
    scheduler: SchedulerSection = msgspec.field(default_factory=SchedulerSection)
    pilots: PilotsSection = msgspec.field(default_factory=PilotsSection)
    limits: LimitsSection = LimitsSection()
    ring: Limits = Limits()
    allocate: AllocateSection = AllocateSection()
    backoff: BackoffSection = BackoffSection()


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """A configuration, the files it was read from, and where each given key came from: one not in ``origins`` has its default."""

    config: Config
    origins: Mapping[str, str]
    files: tuple[str, ...]


def load(
    explicit: Path | None = None, environ: Mapping[str, str] | None = None, flags: Mapping[str, Any] | None = None, system: Path = SYSTEM
) -> Loaded:
    """Reads the configuration; ``flags`` maps "section.key" to values. Raises InputError with one line."""
    environ = os.environ if environ is None else environ
    merged: dict[str, dict[str, Any]] = {}
    origins: dict[str, str] = {}
    for origin, tables in _layers(explicit, environ, flags or {}, system):
        convert(tables, Config, origin)
        for section, table in tables.items():
            merged.setdefault(section, {}).update(table)
            origins.update({f"{section}.{key}": origin for key in table})
    config = convert(merged, Config, "configuration")
    for key, words in faults(config):
        raise InputError(f"{origins.get(key, 'default')}: {key}: {words}")
    return Loaded(config=config, origins=origins, files=tuple(str(path) for path in _files(explicit, environ, system)))


def sections(config: Config) -> dict[str, dict[str, Any]]:
    """Plain tables of all values; those that are ``None`` are left out, as TOML has no word for it."""
    plain: dict[str, dict[str, Any]] = msgspec.to_builtins(config)
    return {name: {key: value for key, value in table.items() if value is not None} for name, table in plain.items()}


def _layers(
    explicit: Path | None, environ: Mapping[str, str], flags: Mapping[str, Any], system: Path
) -> Iterator[tuple[str, dict[str, Any]]]:
    for path in _files(explicit, environ, system):
        yield str(path), read_toml(path)
    for name, section, key, text in _from_environment(environ):
        yield name, {section: {key: _value(section, key, text, name)}}
    for name, value in flags.items():
        section, _, key = name.partition(".")
        yield f"--{key.replace('_', '-')}", {section: {key: value}}


def _files(explicit: Path | None, environ: Mapping[str, str], system: Path) -> list[Path]:
    if explicit is not None:
        return [explicit]
    home = Path(environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    candidates = [system / "commensal.toml", *sorted((system / "conf.d").glob("*.toml")), home / "commensal" / "commensal.toml"]
    return [path for path in candidates if path.exists()]


def _from_environment(environ: Mapping[str, str]) -> Iterator[tuple[str, str, str, str]]:
    """(variable, section, key, text) of every variable of ours. Raises InputError at one that names no section."""
    for name, text in sorted(environ.items()):
        if not name.startswith("COMMENSAL_") or name in NO_KEYS:
            continue
        section, _, key = name.removeprefix("COMMENSAL_").lower().partition("_")
        if section not in Config.__struct_fields__:
            raise InputError(unknown(name, _variables(), "variable"))
        yield name, section, key, text


def _variables() -> list[str]:
    return [f"COMMENSAL_{section}_{key}".upper() for section, table in msgspec.to_builtins(Config()).items() for key in table]


def _value(section: str, key: str, text: str, name: str) -> object:
    """``text`` as the TOML value that ``section.key`` expects; a string needs no quotes."""
    refuse_unknown({section: {key: text}}, Config, name)
    types = {field.name: field.type for field in msgspec.structs.fields(Config)}
    wanted = {field.name: field.type for field in msgspec.structs.fields(types[section])}[key]
    if wanted in (str, str | None):
        return text
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
