"""PBS's two readers against each other and against damage: what one user's environment holds costs nobody else's job."""

from __future__ import annotations

import contextlib
import string
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pbs_writer import Attributes, Raw, as_json, as_text

from commensald.cluster import JobState, NodeState
from commensald.schedulers import PilotSpec, SchedulerError
from commensald.schedulers.pbs import answers, commands, names, records, repair, script, states, text, times
from commensald.schedulers.pbs.jobs import Around, jobs
from commensald.schedulers.pbs.nodes import nodes
from commensald.schedulers.pbs.queues import queues
from commensald.schedulers.pbs.reservations import reservations

OURS = "11111111-2222-3333-4444-555555555555"
FREE = st.text(st.sampled_from(string.ascii_letters + string.digits + " -+:/()[]{}#'\"\\=._%"), min_size=1, max_size=120).map(str.strip)
DAY = st.integers(10, 28).map(lambda day: f"Mon Nov {day} 01:07:09 2026")
IDS = st.builds("{}{}.srv".format, st.integers(0, 9999), st.sampled_from(["", "[]", "[1]", "[20]"]))
FORGED = '"}},"{other}":\t{{"Job_Owner":\t"us@srv","job_state":\t"F","Variable_List":\t{{"a":"'
FRAGMENTS = st.sampled_from(
    [
        "005",
        "\\x",
        "\\",
        '"',
        '() {  echo "$1"\n}',
        "\n",
        "\t\t},\n",
        '"Jobs":\t{',
        '"job_state":\t"F",\n',
        '\t\t\t"job_state":\t"F",\n',
        "}",
        "{",
        "]",
        ",",
        "\\u12",
        "Job Id: 5.srv\n",
        "    job_state = F\n",
        FORGED.format(other="7.srv"),
        '"7.srv":\t{\n',
    ]
)


def job(state: str, owner: str, moment: str, variables: dict[str, str]) -> Attributes:
    return {
        "Job_Name": "x",
        "Job_Owner": f"{owner}@srv",
        "job_state": state,
        "queue": "primaryq",
        "exec_vnode": "(n1:ncpus=4+n2:ncpus=4)",
        "mtime": moment,
        "Priority": 0,
        "Resource_List": {"nodect": "2", "walltime": "00:20:00"},
        "stime": moment,
        "substate": 42,
        "Variable_List": {"PBS_O_HOME": "/home/x", **variables, "PBS_O_HOST": "srv"},
        "etime": moment,
        "run_count": 1,
    }


VARIABLES = st.dictionaries(st.from_regex(r"[A-Z_]{1,12}", fullmatch=True), FREE, max_size=3)
JOBS = st.builds(job, st.sampled_from("QRHESWBX"), st.sampled_from(["us", "eve", "ann"]), DAY, VARIABLES)
QUEUE = st.dictionaries(IDS, JOBS, max_size=6)


@settings(deadline=None)
@given(QUEUE)
def test_json_and_text_are_read_the_same(queue: dict[str, Attributes]) -> None:
    first, second = answers.jobs(as_json(queue)), text.jobs(as_text(queue))
    assert first.records == second.records
    assert list(first.records) == list(queue)
    assert (first.whole, first.repaired, first.unreadable) == (second.whole, second.repaired, second.unreadable) == (True, (), ())


def damaged(queue: dict[str, Attributes], whose: str, what: str) -> dict[str, Attributes]:
    variables = queue[whose]["Variable_List"]
    assert isinstance(variables, dict)
    return {**queue, whose: {**queue[whose], "Variable_List": {**variables, "EVIL": Raw(what)}}}


@settings(deadline=None, max_examples=300)
@given(
    st.dictionaries(IDS, JOBS, min_size=1, max_size=5), st.lists(FRAGMENTS, min_size=1, max_size=6).map("".join), st.booleans(), st.data()
)
def test_a_users_environment_costs_nobody_elses_job(queue: dict[str, Attributes], evil: str, quoted: bool, data: st.DataObject) -> None:
    whose = data.draw(st.sampled_from(sorted(queue)))
    honest = answers.jobs(as_json(queue)).records
    reading = answers.jobs(as_json(damaged(queue, whose, f'"{evil}"' if quoted else evil)))
    assert {*reading.records, *reading.unreadable} >= queue.keys()
    for name in queue.keys() - {whose}:
        assert name in reading.unreadable or reading.records[name] == honest[name]
        assert name == "7.srv" or name in reading.records  # the one that the forgery names
    if whose in reading.records:
        server = ("Job_Owner", "job_state", "queue", "exec_vnode", "stime", "mtime", "Resource_List.walltime")
        assert [reading.records[whose][key] for key in server] == [honest[whose][key] for key in server]


@settings(deadline=None, max_examples=200)
@given(st.dictionaries(IDS, JOBS, min_size=1, max_size=4), st.floats(0, 1))
@example({"1.srv": job("R", "us", "Mon Nov 30 01:07:09 2026", {}), "2.srv": job("Q", "us", "Mon Nov 30 01:07:09 2026", {})}, 0.97)
def test_a_cut_answer_is_read_as_far_as_it_goes(queue: dict[str, Attributes], where: float) -> None:
    for write, read in ((as_json, answers.jobs), (as_text, text.jobs)):
        whole = write(queue)
        shown = whole[: int(len(whole) * where)]
        try:
            reading = read(shown)
        except records.UnreadableError:
            continue
        honest = read(whole).records
        assert all(reading.records[name] == honest[name] for name in reading.records)
        between = write is as_text and shown.endswith("\n\n")  # text that ends between two jobs does not show that it was cut
        assert not reading.whole or reading.records == honest or between or not shown


@given(st.text(max_size=40))
def test_numbers_that_json_does_not_know_are_quoted(word: str) -> None:
    for number in ("005", "-007", "0x1F", "inf", "nan", "1e", "+5", ".5", "1."):
        assert repair.mended(f'{{"a":\t{number},\n"b": 5}}') == f'{{"a":\t"{number}",\n"b": 5}}'
    written = as_json({"1.srv": {"Job_Owner": "us", "job_state": "R", "a": word}})
    assert repair.mended(written) == written


PIECES = st.lists(
    st.one_of(
        FRAGMENTS,
        st.sampled_from(
            ["Job Id: 1.srv\n", "Resv ID: R1.srv\n", "    job_state = R\n", "\n\n", '{"Jobs":{"1.srv":{', "(", ")", "+", ":", "/"]
        ),
        st.integers(0, 10**6).map(str),
        st.text(max_size=6),
        st.sampled_from(["9" * 400, "1e999", "[" * 3000, '{"a":' * 3000]),
    ),
    max_size=20,
).map("".join)

PARSERS: dict[str, Callable[[str], object]] = {
    "instant": times.instant,
    "duration": times.duration,
    "job_id": names.job_id,
    "submitted_id": names.submitted_id,
    "node_name": names.node_name,
    "vnodes": names.vnodes,
    "hosts": names.hosts,
    "count": records.count,
    "mebibytes": records.mebibytes,
    "node_state": states.node_state,
    "job_state": states.job_state,
    "members": repair.members,
    "mended": repair.mended,
    "jobs": lambda given: jobs(answers.jobs(given), Around(), 0.0),
    "jobs as text": lambda given: jobs(text.jobs(given), Around(), 0.0),
    "nodes": lambda given: nodes(answers.others(given, "nodes")),
    "queues": lambda given: queues(answers.others(given, "Queue")),
    "reservations": lambda given: reservations(text.reservations(given), {}),
    "attributes": text.attributes,
}


@pytest.mark.parametrize("name", PARSERS)
@settings(deadline=None, max_examples=100)
@given(given=PIECES)
def test_any_text_is_answered_or_refused(name: str, given: str) -> None:
    with contextlib.suppress(SchedulerError):
        PARSERS[name](given)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(sorted({"exec_vnode", "stime", "Resource_List.walltime", "Priority", "run_count"})), PIECES))
def test_a_job_whose_facts_cannot_be_read_counts_as_present(record: dict[str, str]) -> None:
    given = {"1.srv": {"Job_Owner": "us@srv", "job_state": "R", **record}}
    (found,) = jobs(records.Reading(records=given), Around(), 0.0)
    assert found.state in (JobState.RUNNING, JobState.UNKNOWN)


@given(st.text(max_size=12))
def test_an_unknown_letter_for_a_job_counts_as_present(letter: str) -> None:
    assert letter in states.JOBS or states.job_state(letter) is JobState.UNKNOWN


@given(st.lists(st.sampled_from(sorted(states.NODES)), min_size=1, max_size=3), st.sampled_from(["", "<various>", "new-word"]))
def test_an_unknown_word_keeps_a_node_unused(words: list[str], unknown: str) -> None:
    state, flags = states.node_state(",".join([*words, *([unknown] if unknown else [])]))
    assert (unknown.upper() in flags) == bool(unknown)
    assert not unknown or state in (NodeState.UNKNOWN, NodeState.DOWN)


@given(st.integers(1, 10**7), st.integers(0, 59), st.integers(0, 59))
def test_walltimes_are_read_as_they_are_written(hours: int, minutes: int, seconds: int) -> None:
    total = hours * 3600.0 + minutes * 60 + seconds
    assert times.duration(times.clock(total)) == total


@given(st.lists(st.tuples(st.sampled_from(["n1", "n2", "big[0]", "big[1]"]), st.integers(1, 8)), min_size=1, max_size=6))
def test_chunks_are_read_as_they_are_written(chunks: list[tuple[str, int]]) -> None:
    pieces = [f"{name}:ncpus={count}:mem=5kb" for name, count in chunks]
    expected = tuple(dict.fromkeys(name for name, _ in chunks))
    assert names.vnodes("+".join(f"({piece})" for piece in pieces)) == expected
    assert names.vnodes(f"({'+'.join(pieces)})") == expected


@given(
    st.dictionaries(st.from_regex(r"[A-Z_]{1,8}", fullmatch=True), st.text(st.characters(exclude_characters="\0", codec="utf-8"))),
    st.lists(st.text()),
)
def test_a_script_holds_no_directive(environment: dict[str, str], argv: list[str]) -> None:
    written = script.pilot("u", "/shared/pilots", ["python", *argv], environment)
    assert written.startswith("#!/bin/sh\n")
    assert "\n#PBS" not in written.partition("\ncd ")[0]  # PBS looks for directives up to the first command


@given(st.floats(0, 10**7), st.sampled_from([None, 60.0]))
def test_a_pilot_never_asks_for_more_than_it_may_have(seconds: float, least: float | None) -> None:
    spec = PilotSpec(uuid=OURS, argv=("true",), folder="/shared", node="n1")
    limits = [word for word in commands.qsub(spec, seconds, commands.Shape(), least) if "walltime=" in word]
    asked = limits[0].rpartition("=")[2]
    assert times.duration(asked) <= max(seconds, 1.0)
