"""The figures of a replay, for machines and for people."""

from __future__ import annotations

import msgspec

Row = tuple[str, str, str]
"""Figure, value, meaning."""


class Delays(msgspec.Struct, frozen=True, kw_only=True):
    """By how many seconds primary jobs started later than without pilots."""

    mean: float
    median: float
    most: float


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What ``commensal replay --json`` prints. ``None``: not asked for, or the log does not tell.

    ``n_eq`` are nodes; ``u`` is what was trained and ``u_star`` what the best split at each instant would train at no cost, both as a share
    of what N_eq dedicated nodes would train, as are the losses; ``used_node_time`` is a share of the pool's node-time; ``events`` counts
    changes of the pool; ``seconds`` is how long the replay took, decisions are timed one by one.
    """

    n_eq: float
    u: float
    u_star: float
    u_over_u_star: float
    used_node_time: float
    rescale_loss: float
    preempt_loss: float
    preempted_trainers: int
    finished_trainers: int
    events: int
    decision_seconds_p50: float
    decision_seconds_p99: float
    seconds: float
    primary_delay_seconds_mean: float | None = None
    primary_delay_seconds_p50: float | None = None
    primary_delay_seconds_max: float | None = None
    u_measured_ring: float | None = None


def rows(report: Report) -> list[Row]:
    """The report as a table."""
    return [
        ("N_eq", f"{report.n_eq:.1f}", "idle nodes, mean over time"),
        ("U", f"{report.u:.3f}", "trained, as a share of what N_eq dedicated nodes would train"),
        ("U*", f"{report.u_star:.3f}", "the same, with the best split at each instant and no costs"),
        ("U/U*", f"{report.u_over_u_star:.3f}", ""),
        *_ring(report),
        ("used", f"{report.used_node_time:.1%}", "of the idle node-time"),
        ("rescale loss", f"{report.rescale_loss:.1%}", "of what dedicated nodes would train"),
        ("preempt loss", f"{report.preempt_loss:.1%}", f"likewise; trainers lost nodes {report.preempted_trainers} times"),
        ("finished", f"{report.finished_trainers}", "trainers"),
        ("events", f"{report.events}", "changes of the pool"),
        ("decision", f"{report.decision_seconds_p50 * 1e3:.2f} ms", f"median; p99 {report.decision_seconds_p99 * 1e3:.2f} ms"),
        ("wall", f"{report.seconds:.1f} s", "reading the log included"),
        *_primary(report),
    ]


def _ring(report: Report) -> list[Row]:
    if report.u_measured_ring is None:
        return []
    return [("U, our ring", f"{report.u_measured_ring:.3f}", f"at its measured costs; {report.u_measured_ring / report.u_star:.3f} of U*")]


def _primary(report: Report) -> list[Row]:
    if report.primary_delay_seconds_mean is None:
        return []
    others = f"median {report.primary_delay_seconds_p50:.2f} s, longest {report.primary_delay_seconds_max:.2f} s"
    return [("primary delay", f"{report.primary_delay_seconds_mean:.2f} s", f"mean, against the same jobs without pilots; {others}")]
