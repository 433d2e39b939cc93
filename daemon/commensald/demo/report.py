"""The summary as a table for people."""

from __future__ import annotations

from rich.table import Table

from commensald.demo.summary import Summary


def table(summary: Summary) -> Table:
    """Every figure of the summary with its meaning in words."""
    rows = Table(box=None, padding=(0, 1), show_header=False)
    rows.add_column(justify="left", style="bold", no_wrap=True)
    rows.add_column(justify="left", no_wrap=True)
    for title, figure in _figures(summary):
        rows.add_row(title, figure)
    for training in summary.trainings:
        loss, accuracy = _number(training.loss, "{:.4f}"), _number(training.accuracy, "{:.3f}")
        rows.add_row(training.name, f"{training.samples:,} samples, loss {loss}, accuracy {accuracy}")
        if len(training.batches) > 1:
            rows.add_row("", f"in batches of {', '.join(map(str, training.batches))}")
        if training.ended is not None:
            rows.add_row("", training.ended)
    return rows


def _figures(summary: Summary) -> list[tuple[str, str]]:
    return [
        ("nodes", str(summary.nodes)),
        ("primary jobs started", str(summary.primary_jobs)),
        ("longest delay of one", _number(summary.primary_delay_seconds_max, "{:.3f} s")),
        ("idle", f"{summary.idle_node_seconds:.1f} node-seconds"),
        ("  harvested", _share(summary.harvested_node_seconds, summary.idle_node_seconds)),
        ("  in a ring", _share(summary.in_ring_node_seconds, summary.idle_node_seconds)),
        ("pilots", f"{summary.pilots} started, {summary.preemptions} preempted, {summary.kills} killed"),
        ("generations", f"{summary.generations}, the largest of {summary.members_max} members"),
        ("start to first step, median", _number(summary.join_seconds_median, "{:.2f} s")),
        ("kill to next step, median", _number(summary.recovery_seconds_median, "{:.2f} s")),
        ("steps", f"{summary.steps:,} settled, {summary.steps_lost} lost"),
        ("samples", f"{summary.samples_repeated} repeated, {summary.samples_skipped} skipped"),
        ("checkpoints", str(summary.checkpoints)),
        ("deadline misses", str(summary.deadline_misses)),
    ]


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else form.format(value)


def _share(part: float, whole: float) -> str:
    return f"{part:.1f} node-seconds ({part / whole:.0%})" if whole else f"{part:.1f} node-seconds"
