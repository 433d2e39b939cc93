"""What PBS's JSON has been seen to be instead of JSON (research/peers.md, rows 42 to 53): each is read as far as it goes, and said."""

from __future__ import annotations

import json

import msgspec
import pytest
from pbs_captures import capture, read
from pbs_writer import Attributes, Raw, as_json, as_text

from commensald.cluster import JobState
from commensald.schedulers.pbs import answers, text
from commensald.schedulers.pbs.jobs import Around, jobs
from commensald.schedulers.pbs.queries import completed
from commensald.schedulers.pbs.records import UnreadableError

HONEST = read("qstat_tf2.json").records
WHOLE = capture("qstat_tf2.json")
HOME = '"PBS_O_HOME":\t"/home/alice",'
BASH = '"BASH_FUNC_module%%":\t"() {  eval "$(/usr/bin/modulecmd bash \\$*)"\n}",'


def put(words: str) -> str:
    """The answer with ``words`` among the variables of job 3."""
    begin = WHOLE.index('"3.pbs-s"')
    at = WHOLE.index(HOME, begin)
    return WHOLE[:at] + words + WHOLE[at:]


@pytest.mark.parametrize(
    "words",
    ['"foo":\t005,', '"foo":\t0x1F,', '"foo":\t-inf,', '"foo":\t"\\x1b[0m",', '"foo":\t"C:\\",', '"foo":\t"\\u12",', BASH, BASH * 2],
    ids=["leading zero", "hexadecimal", "infinite", "bad escape", "backslash at the end", "half an escape", "function", "two functions"],
)
def test_a_users_variable_is_mended_or_left_out(words: str) -> None:
    reading = answers.jobs(put(words))
    assert reading.whole
    assert reading.records == HONEST
    assert reading.repaired == ("3.pbs-s",)


def test_a_variable_of_a_whole_record_is_an_invented_job() -> None:
    forged = '"a":\t"x"}},"99.pbs-s":\t{"Job_Owner":\t"us@s","job_state":\t"R","Variable_List":\t{'
    found = answers.jobs(put(forged)).records
    assert found.keys() == {*HONEST, "99.pbs-s"}
    assert all(found[name] == HONEST[name] for name in HONEST.keys() - {"3.pbs-s"})


@pytest.mark.parametrize("other", ["4.pbs-s", "0.pbs-s"], ids=["after", "before"])
def test_a_variable_that_names_another_job_makes_that_one_present(other: str) -> None:
    forged = f'"a":\t"x"}}}},"{other}":\t{{"Job_Owner":\t"us@s","job_state":\t"F","Variable_List":\t{{'
    reading = answers.jobs(put(forged))
    assert reading.unreadable == (other,)
    shown = {each.id: each.state for each in jobs(reading, Around(), 0.0)}
    assert shown[other] is JobState.UNKNOWN
    assert shown["5.pbs-s"] is JobState.RUNNING


BRACES = {
    "beside Jobs": ('"a":\t"x"}}},"Other":\t{"q":\t{"Variable_List":\t{', ""),
    "within a job": ('"b":\t{"c":\t{"d":\t"",', '"e":\t""}},"f":\t"",'),
}


@pytest.mark.parametrize("where", BRACES)
def test_variables_full_of_braces_hide_nobodys_job(where: str) -> None:
    opened, closed = BRACES[where]
    shown = put(opened)
    begin = shown.index(HOME, shown.index('"5.pbs-s"'))
    shown = shown[:begin] + closed + shown[begin:]
    json.loads(shown)  # it is JSON, and job 4 is not where jobs are
    reading = answers.jobs(shown)
    assert {*reading.records, *reading.unreadable} == HONEST.keys()
    assert all(reading.records[name] == HONEST[name] for name in reading.records.keys() - {"3.pbs-s", "5.pbs-s"})
    assert "4.pbs-s" in reading.records


def test_what_a_user_adds_to_his_own_job_does_not_outweigh_the_server() -> None:
    reading = answers.jobs(put('"a":\t"x"}, "job_state":\t"F", "exec_vnode":\t"(n9:ncpus=1)", "b":\t{'))
    assert reading.records["3.pbs-s"]["job_state"] == "R"
    assert reading.records["3.pbs-s"]["exec_vnode"] == "(pbs-m1:ncpus=2)"
    assert reading.records.keys() == HONEST.keys()


def test_a_repeated_jobs_key_loses_nothing() -> None:
    for written in ('},\n\t"Jobs":\t{\n\t\t"5.pbs-s"', '"Jobs":\t{\n\t\t"5.pbs-s"'):  # valid JSON, and with a missing brace (openpbs#585)
        reading = answers.jobs(WHOLE.replace('"5.pbs-s"', written, 1))
        assert reading.records == HONEST
        assert reading.whole


def test_the_first_of_two_equal_keys_counts() -> None:
    queues = capture("qstat_Q.json").replace('"total_jobs":\t8,', '"max_queued":\t"[u:PBS_GENERIC=1]",\n"max_queued":\t"[o:PBS_ALL=2]",')
    assert answers.others(queues, "Queue")["primaryq"]["max_queued"] == "[u:PBS_GENERIC=1]"


def test_a_table_before_the_json_is_passed_over() -> None:
    assert answers.jobs(capture("qstat_ans.txt") + WHOLE).records == HONEST
    nothing = answers.jobs(capture("qstat_ans.txt") + '{\n\t"timestamp":\t1796000835,\n\t"pbs_version":\t"23.06.06"\n}\n')
    assert (nothing.records, nothing.whole) == ({}, True)


@pytest.mark.parametrize("given", ["", "qstat: cannot connect to server srv (errno=15010)", capture("qstat_ans.txt")])
def test_what_is_no_json_is_refused(given: str) -> None:
    with pytest.raises(UnreadableError):
        answers.jobs(given)


def test_a_cut_answer_is_not_whole() -> None:
    at = WHOLE.index('"stime"', WHOLE.index('"5.pbs-s"'))
    reading = answers.jobs(WHOLE[:at])
    assert not reading.whole
    assert [*reading.records] == ["0.pbs-s", "3.pbs-s", "4.pbs-s"]
    assert reading.unreadable == ("5.pbs-s",)
    assert not answers.jobs(WHOLE[: WHOLE.index('"5.pbs-s"')]).whole


def test_nodes_are_read_whole_or_not_at_all() -> None:
    shown = capture("pbsnodes_a.json")
    mended = answers.others(shown.replace('"lab: offline"', '"C:\\disk"'), "nodes")
    assert mended["pbs-m2"]["comment"] == "C:\\disk"
    for broken in (shown[: len(shown) // 2], shown.replace('"lab: offline"', '"the "bad" one"')):
        with pytest.raises(UnreadableError):
            answers.others(broken, "nodes")


def test_text_fills_in_what_json_could_not_say() -> None:
    queue: dict[str, Attributes] = {
        f"{number}.srv": {"Job_Name": Raw('"x"'), "Job_Owner": "ann@srv", "job_state": "R", "queue": "q"} for number in (1, 2, 3)
    }
    broken = as_json(queue).replace('"1.srv":\t{', '"1.srv":\t{ ###', 1).replace('"ann@srv"', '"ann', 1)
    reading = answers.jobs(broken)
    assert reading.unreadable == ("1.srv",)
    both = completed(reading, text.jobs(as_text(queue)))
    assert (both.unreadable, both.repaired) == ((), ("1.srv",))
    assert both.records["1.srv"]["Job_Owner"] == "ann@srv"
    ended = completed(reading, text.jobs(as_text({name: queue[name] for name in ("2.srv", "3.srv")})))
    assert (ended.unreadable, ended.records.keys()) == ((), {"2.srv", "3.srv"})
    cut = completed(reading, msgspec.structs.replace(text.jobs(""), whole=False))
    assert cut.unreadable == ("1.srv",)


def test_lines_of_a_value_are_no_attributes_unless_they_look_like_it() -> None:
    server = "Job Id: 1.srv\n    Job_Owner = ann@srv\n    job_state = R\n"
    record = text.jobs(server + "    Variable_List = A=() {\n echo\n    job_state = F\n}\n    queue = q\n\n").records["1.srv"]
    assert (record["job_state"], record["queue"]) == ("R", "q")
