"""Captures of three versions: what is read from the text is what stands in it, and what JSON says of the same queue."""

from __future__ import annotations

import pytest
from slurm_captures import (
    FOLDER,
    MARK,
    VERSIONS,
    WITH_JSON,
    capture,
    from_json,
    marked,
    show,
    shown_config,
    shown_jobs,
    shown_nodes,
    shown_partitions,
    shown_reservations,
)

from commensald.cluster import JobState, NodeState
from commensald.schedulers.slurm import sdiag, settings, text
from commensald.schedulers.slurm.jobs import jobs
from commensald.schedulers.slurm.nodes import nodes
from commensald.schedulers.slurm.reservations import reservations


@pytest.mark.parametrize("version", WITH_JSON)
def test_text_and_json_give_the_same_jobs(version: str) -> None:
    assert {each.id: each for each in shown_jobs(version)} == {each.id: each for each in jobs(from_json(version, "job"))}


@pytest.mark.parametrize("version", WITH_JSON)
def test_text_and_json_give_the_same_nodes(version: str) -> None:
    assert shown_nodes(version) == nodes(from_json(version, "node"))


@pytest.mark.parametrize("version", WITH_JSON)
def test_text_and_json_give_the_same_reservations(version: str) -> None:
    assert shown_reservations(version) == reservations(from_json(version, "res"))


@pytest.mark.parametrize("version", VERSIONS)
def test_every_line_is_a_job_that_is_understood(version: str) -> None:
    found = list(text.jobs(show(version, "job"), MARK))
    assert len(found) == show(version, "job").count("\n")
    assert all({"JobId", "JobName", "UserId", "JobState", "NodeList"} <= each.keys() for each in found)
    assert JobState.UNKNOWN not in {each.state for each in shown_jobs(version)}


@pytest.mark.parametrize("version", VERSIONS)
def test_keys_come_in_the_known_order(version: str) -> None:
    for line in show(version, "job").split("\n")[:-1]:
        fixed = line[line.index(" JobState=") : line.index(" Network=")]
        keys = [word.partition("=")[0] for word in fixed.split()]
        assert set(keys) <= {*text.ORDER}
        assert keys == sorted(keys, key=text.ORDER.index)


def test_jobs_of_22_05() -> None:
    found = {each.id: each for each in shown_jobs("22.05.8")}
    run = found["29"]
    assert (run.name, run.owner, run.state, run.nodes, run.comment) == ("run1", "alice", JobState.RUNNING, ("n1",), "lab run")
    assert (run.submitted, run.start, run.end, run.time_limit) == (1796000298.0, 1796000299.0, 1796001499.0, 1200.0)
    wide = found["31"]
    assert (wide.state, wide.node_count, wide.planned_nodes, wide.nodes) == (JobState.PENDING, 3, ("n1", "n2", "n3"), ())
    assert wide.start == 1796011101.0
    assert {"34_5", "34_6", "34_7"} <= found.keys()  # three at a time of the array's sixteen waiting tasks
    assert "34_8" not in found
    assert found["8"].state is JobState.ENDED


def test_a_job_of_a_site_with_accounting() -> None:
    found = jobs(text.jobs(marked(capture("22.05.8", "scontrol_job_dbd_o.txt")), MARK))
    assert {each.account for each in found} == {"users"}


def test_nodes_of_22_05() -> None:
    found = {each.name: each for each in shown_nodes("22.05.8")}
    assert found["n4"].state is NodeState.IDLE
    assert found["n4"].flags == {"DRAIN"}
    assert (found["n1"].cpus, found["n1"].cpus_used, found["n1"].memory_mib) == (4, 4, 4000)
    assert found["n1"].partitions == {"primary", "scavenger", "debug"}


@pytest.mark.parametrize(("version", "tells"), [("22.05.8", "no"), ("24.11.5", "yes"), ("26.05.5", "yes")])
def test_facts(version: str, tells: str) -> None:
    partition = shown_partitions(version)["scavenger"]
    facts = settings.facts(shown_config(version), partition, partition.grace_seconds, {"calls_scontrol": "7"})
    assert (facts.product, facts.version, facts.grace_seconds) == ("slurm", version, 30.0)
    assert (facts.backfill_resolution_seconds, facts.whole_minutes) == (10.0, True)
    assert facts.extra["preempt_send_user_signal"] == tells  # 22.05's capture has it in SchedulerParameters, where Slurm ignores it
    assert facts.extra["partition_preempt_mode"] == "REQUEUE"
    assert facts.extra["calls_scontrol"] == "7"
    assert partition.most_seconds == 86_400.0


@pytest.mark.parametrize("version", VERSIONS)
def test_load_of_the_controller(version: str) -> None:
    load = sdiag.parse(capture(version, "sdiag.txt"))
    assert load.backfill_mean_seconds is not None
    assert 0 < load.backfill_mean_seconds < 0.01
    assert load.job_query_seconds is not None
    assert sdiag.rest_seconds(load, 0.1) == load.job_query_seconds / sdiag.SHARE


@pytest.mark.parametrize(
    ("load", "query_seconds", "rest"),
    [
        (None, 0.1, 2.0),
        (sdiag.Load(threads=1, agents=0, job_query_seconds=0.5), 0.6, 10.0),
        (sdiag.Load(threads=1, agents=0, job_query_seconds=0.001), 5.0, 20.0),
        (sdiag.Load(threads=200, agents=0, job_query_seconds=0.001), 0.1, 60.0),
        (sdiag.Load(threads=1, agents=900, job_query_seconds=0.001), 0.1, 60.0),
        (None, 20.0, 120.0),
    ],
)
def test_a_slow_controller_is_left_alone_for_longer(load: sdiag.Load | None, query_seconds: float, rest: float) -> None:
    assert sdiag.rest_seconds(load, query_seconds) == pytest.approx(rest)


@pytest.mark.parametrize("version", VERSIONS)
def test_hostile_names_as_real_clusters_print_them(version: str) -> None:
    raw = (FOLDER / version / "scontrol_job_hostile_o.txt").read_bytes().decode(errors="replace")
    forger, plain, *pilots, accents = jobs(text.jobs(raw, MARK))
    user = "nobody" if version == "22.05.8" else "alice"
    assert {forger.owner, plain.owner, accents.owner} == {user}
    assert (plain.name, plain.comment) == ("x JobState=PENDING NodeList=n1 Comment=commensal:forged", "x JobState=RUNNING NodeList=n1")
    assert accents.name == "d\ufffdd\ufffd job"
    assert [(each.owner, each.name, each.comment) for each in pilots] == [("root", "commensal", "commensal:u1")] * len(pilots)
    assert [each.pilot("root") for each in (forger, plain, accents)] == [None] * 3
