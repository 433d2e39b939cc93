"""Every parser of Slurm's output on any text: it answers or says what it cannot read, and inverts what Slurm's grammar can write."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commensald.cluster import JobState, NodeState
from commensald.node_lists import node_names
from commensald.schedulers import SchedulerError
from commensald.schedulers.slurm import commands, names, records, script, sdiag, states, text, times
from commensald.schedulers.slurm import settings as configuration
from commensald.schedulers.slurm.jobs import jobs
from commensald.schedulers.slurm.nodes import nodes
from commensald.schedulers.slurm.partitions import partitions
from commensald.schedulers.slurm.reservations import reservations

PIECES = st.lists(
    st.one_of(
        st.sampled_from(
            ["JobId=", "NodeName=", "SubmitTime=", "=", " ", "\n", "-", ":", "[", "]", ",", "~m", "UNLIMITED", "JobName=a", ";x", "+"]
        ),
        st.integers(0, 10**6).map(str),
        st.text(max_size=6),
        st.sampled_from(["9" * 400, "9" * 5000, "1e999", "nan", "inf"]),
    ),
    max_size=20,
).map("".join)


def _split(first: str) -> Callable[[str], Iterator[records.Record]]:
    return lambda given: text.split(given + "\n", first)


PARSERS: dict[str, Callable[[str], object]] = {
    "instant": times.instant,
    "duration": times.duration,
    "measure": times.measure,
    "node_name": names.node_name,
    "node_names": node_names,
    "job_id": names.job_id,
    "submitted_id": names.submitted_id,
    "count": records.count,
    "tagged": lambda given: commands.tagged(given, "u"),
    "sdiag": sdiag.parse,
    "config": lambda given: configuration.parse(given, "~m"),
    "jobs": lambda given: jobs(text.jobs(given + "\n", "~m")),
    "nodes": lambda given: nodes(_split("NodeName")(given)),
    "partitions": lambda given: partitions(_split("PartitionName")(given)),
    "reservations": lambda given: reservations(_split("ReservationName")(given)),
    "node_state": states.node_state,
    "job_state": lambda given: states.job_state([given]),
}


@pytest.mark.parametrize("name", PARSERS)
@settings(deadline=None, max_examples=100)
@given(given=PIECES)
def test_any_text_is_answered_or_refused(name: str, given: str) -> None:
    with contextlib.suppress(SchedulerError):
        PARSERS[name](given)


@given(st.integers(0, 500), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
def test_durations_are_read_as_slurm_writes_them(days: int, hours: int, minutes: int, seconds: int) -> None:
    total = days * 86_400 + hours * 3600 + minutes * 60 + seconds
    written = f"{days}-{hours:02}:{minutes:02}:{seconds:02}" if days else f"{hours:02}:{minutes:02}:{seconds:02}"
    assert times.duration(written) == total


@given(
    st.lists(st.integers(0, 999), min_size=1, max_size=12, unique=True),
    st.sampled_from(["n", "rack1-n", "a.b_c-"]),
    st.sampled_from(["", "-4"]),
)
def test_folded_lists_are_unfolded(numbers: set[int], prefix: str, suffix: str) -> None:
    folded = f"{prefix}[{','.join(f'{number:03}' for number in numbers)}]{suffix}"
    assert set(node_names(folded)) == {f"{prefix}{number:03}{suffix}" for number in numbers}


@given(st.sampled_from(sorted(NodeState.__members__)), st.lists(st.sampled_from(["DRAIN", "PLANNED", "CLOUD", "NEW_FLAG"]), unique=True))
def test_states_of_nodes_are_read_back(base: str, flags: list[str]) -> None:
    assert states.node_state("+".join([base, *flags])) == (NodeState[base], frozenset(flags))


@given(st.text(max_size=12))
def test_an_unknown_word_for_a_job_counts_as_present(word: str) -> None:
    known = word.upper().partition(" BY ")[0] in states.JOBS
    assert known or states.job_state([word]) is JobState.UNKNOWN
    assert known or states.job_state(["RUNNING", word]) is JobState.UNKNOWN


@given(st.floats(0, 10**7))
def test_a_limit_in_minutes_never_exceeds_the_limit_in_seconds(seconds: float) -> None:
    minutes = times.whole_minutes(seconds)
    assert minutes >= 1
    assert minutes * 60 <= max(seconds, 60.0)


@given(
    st.dictionaries(st.from_regex(r"[A-Z_]{1,8}", fullmatch=True), st.text(st.characters(exclude_characters="\0", codec="utf-8"))),
    st.lists(st.text()),
)
def test_a_script_holds_no_directive_and_no_loose_line(environment: dict[str, str], argv: list[str]) -> None:
    written = script.pilot("u", ["python", *argv], environment)
    assert written.startswith("#!/bin/sh\n")
    assert "\n#SBATCH" not in written.partition("\nexport ")[0]
