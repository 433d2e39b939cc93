"""From settled steps to durations, stalls and warm-ups."""

from __future__ import annotations

from itertools import accumulate

import pytest

from commensald.allocate.observations import Closed, Observation, Rescale, learn_rescale, stalls, steps


def closes(*rings: tuple[str, int, list[float]]) -> list[Closed]:
    """Steps of 64 samples; each ring with its nodes and the seconds since the step before."""
    gaps = [(ring, nodes, gap) for ring, nodes, taken in rings for gap in taken]
    times = accumulate(gap for *_, gap in gaps)
    return [Closed(at=at, ring=ring, nodes=nodes, batch=64) for at, (ring, nodes, _) in zip(times, gaps, strict=True)]


def test_durations_are_taken_within_a_ring_only() -> None:
    seen = steps(closes(("1.1", 1, [0.0, 1.0, 1.0]), ("1.2", 2, [5.0, 0.5])))
    assert seen == (
        Observation(nodes=1, batch=64, step_seconds=1.0),
        Observation(nodes=1, batch=64, step_seconds=1.0),
        Observation(nodes=2, batch=64, step_seconds=0.5),
    )


def test_a_stall_is_what_the_first_step_of_a_ring_takes_too_long() -> None:
    log = closes(("1.1", 1, [0.0, 1.0]), ("1.2", 2, [3.0, 0.5, 0.5, 0.75]), ("1.3", 3, [0.3, 0.4]), ("1.4", 4, [9.0]))
    assert stalls(log) == (pytest.approx(2.5), 0.0)


def test_costs_are_medians_over_all_changes_and_what_is_not_seen_stays() -> None:
    seen = [Rescale(stall_seconds=1.0, warmup_seconds=(4.0, 6.0)), Rescale(stall_seconds=2.0), Rescale(stall_seconds=9.0)]
    assert learn_rescale(seen) == (2.0, 5.0)
    assert learn_rescale(seen[1:2], warmup_seconds=7.0) == (2.0, 7.0)
    assert learn_rescale([], 1.5, 8.0) == (1.5, 8.0)
