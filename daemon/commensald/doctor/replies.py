"""Answers of Slurm's commands that only the doctor asks for, as facts. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from commensald.doctor.accounting import BUDGETS, JOB_LIMITS
from commensald.doctor.facts import Association, Backfill, Qos
from commensald.schedulers.slurm.records import Record
from commensald.schedulers.slurm.times import TimeError, duration

LIMITS = frozenset((*BUDGETS, *JOB_LIMITS))
_SEEING = frozenset({"Operator", "Administrator"})
_DEPTH = re.compile(r"\tDepth Mean:\s*(\d+)")
_MEAN = re.compile(r"\tMean cycle:\s*(\d+)")


def table(text: str) -> Iterator[Mapping[str, str]]:
    """Rows of ``sacctmgr --parsable2``, by the names in its first line."""
    lines = [line for line in text.split("\n") if "|" in line]
    for line in lines[1:]:
        yield dict(zip(lines[0].split("|"), line.split("|"), strict=False))


def qos(text: str) -> tuple[Qos, ...]:
    """Of ``sacctmgr --parsable2 show qos``."""
    return tuple(_qos(row) for row in table(text) if row.get("Name"))


def associations(text: str, owner: str, cluster: str, account: str | None) -> tuple[Association, ...]:
    """The owner's rows of ``sacctmgr --parsable2 show assoc`` on this cluster and those of its accounts; ``account`` narrows it to one."""
    rows = [row for row in table(text) if row.get("Cluster", "").lower() == cluster.lower()]
    own = [row for row in rows if row.get("User") == owner and account in (None, row.get("Account"))]
    accounts = {row.get("Account") for row in own}
    return tuple(_association(row) for row in (*own, *(row for row in rows if not row.get("User") and row.get("Account") in accounts)))


def operator(text: str) -> bool:
    """Of ``sacctmgr --parsable2 show user NAME``: it may see what PrivateData hides."""
    return any(row.get("Admin") in _SEEING for row in table(text))


def backfill(text: str) -> Backfill | None:
    """Of ``sdiag``; ``None`` before the first pass."""
    _, _, rest = text.partition("Backfilling stats")
    mean, depth = _MEAN.search(rest), _DEPTH.search(rest)
    return Backfill(cycle_seconds=int(mean[1]) / 1e6, depth=float(depth[1])) if mean and depth else None


def refusal(text: str) -> str:
    """What matters of sbatch's words: the last line, without its own name before it."""
    line = (text.strip().splitlines() or ["no reason given"])[-1]
    return re.sub(r"^(sbatch: )?(error: )?", "", line)


def address(record: Record, usual_port: str) -> tuple[str, int] | None:
    """Where a node's slurmd listens, by its record (which leaves the usual port out); ``None`` where it does not say."""
    host, port = record.get("NodeAddr", ""), record.get("Port", usual_port)
    return (host, int(port)) if host and port.isdigit() else None


def _qos(row: Mapping[str, str]) -> Qos:
    return Qos(
        name=row["Name"],
        preempts=frozenset(filter(None, row.get("Preempt", "").split(","))),
        preempt_modes=frozenset(filter(None, row.get("PreemptMode", "").upper().split(","))),
        grace_seconds=_seconds(row.get("GraceTime", "")),
        exempt_seconds=_seconds(row.get("PreemptExemptTime", "")),
        usage_factor=_factor(row.get("UsageFactor", "")),
        limits=_limits(row),
    )


def _association(row: Mapping[str, str]) -> Association:
    return Association(account=row.get("Account", ""), user=row.get("User", ""), default_qos=row.get("Def QOS", ""), limits=_limits(row))


def _limits(row: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in row.items() if name in LIMITS and value}


def _seconds(text: str) -> float:
    try:
        return max(duration(text) or 0.0, 0.0)
    except TimeError:
        return 0.0


def _factor(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 1.0
