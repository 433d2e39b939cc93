"""Pilots on a real Slurm: where they start, what they are told, how they leave, and that nothing of them is left."""

from __future__ import annotations

import random
import re
import signal
import time
from pathlib import Path

from installation import GRACE_SECONDS, Installation, until

from commensald.schedulers import PilotSpec
from commensald.schedulers.slurm import commands, script

SCRIPTS = Path(__file__).parent / "scripts"
EXIT_SECONDS = 2.0
"""From a primary job's submission to its start: the promise, and what Slurm itself takes."""


def start(where: Installation, **pilots: object) -> None:
    where.start_daemon(pilots={"minimum_window_seconds": 5.0, **pilots})
    where.submit("sleeps", SCRIPTS / "sleeps.py", ())


def running(where: Installation) -> dict[str, str]:
    """Node -> job of the pilots that run."""
    return {node: job for job, state, node in where.jobs() if state == "RUNNING"}


def filled(where: Installation) -> None:
    try:
        until(lambda: set(running(where)) == set(where.nodes), "a pilot on every node", 60.0)
    except AssertionError as error:
        error.add_note("\n".join([where.slurm("squeue"), where.ask("status"), where.ask("trainings"), where.ask("windows")]))
        raise


def at_work(where: Installation) -> None:
    until(lambda: len(list(where.folder.glob("trainings/sleeps/runs-*"))) == len(where.nodes), "a process on every node")


def primary(where: Installation, nodes: int, seconds: float, *options: str) -> float:
    """Seconds from its submission to its first process; it goes on."""
    mark, began = where.folder / f"primary-{time.time_ns()}", time.time()
    payload = f"date +%s.%N > {mark}; sleep {seconds}"
    where.slurm("sbatch", "-p", "primary", f"-N{nodes}", "--exclusive", "-t1", "-o/dev/null", *options, "--wrap", payload)
    until(lambda: mark.exists() and bool(mark.read_text().strip()), "a primary job to start")
    return float(mark.read_text()) - began


def shown(where: Installation, job: str, key: str) -> str:
    match = re.search(rf"\b{key}=(\S+)", where.slurm("scontrol", "-o", "show", "job", job))
    assert match is not None
    return match[1]


def test_every_idle_node_gets_a_pilot_that_runs_as_a_step(where: Installation) -> None:
    start(where)
    filled(where)
    jobs = running(where).values()
    until(lambda: {f"{job}.0" for job in jobs} <= set(where.slurm("squeue", "-h", "-s", "-o", "%i").split()), "the steps to start")
    for job in jobs:
        assert shown(where, job, "Requeue") == "0"
        assert shown(where, job, "NumNodes") == "1"
    until(lambda: {each.state for each in where.status().pilots if each.node} == {"running"}, "the daemon to see them")
    assert where.status().frozen is None


def test_a_primary_job_gets_its_node_at_once_and_the_pilot_is_gone(where: Installation) -> None:
    start(where)
    filled(where)
    at_work(where)
    before = running(where)
    delay = primary(where, 2, 3.0)
    taken = set(before.values()) - set(running(where).values())
    assert len(taken) == 2
    assert delay < EXIT_SECONDS + 1.0
    heard = [path.read_text() for path in where.folder.glob("trainings/sleeps/heard-*")]
    assert len(heard) == 2
    assert set(heard) <= {"SIGUSR1", "SIGTERM"}  # Slurm's own, or the launcher's to a process that is younger than a second
    assert not {job for job, _, _ in where.jobs()} & taken
    filled(where)


def test_a_second_incarnation_exits_at_once(where: Installation) -> None:
    log = where.folder / "incarnations"
    text = script.pilot("u", ["sh", "-c", f"echo run >> {log}; sleep 100"], {"PATH": where.environment["PATH"]})
    path = where.folder / "again.sh"
    where.account.run(["sh", "-c", 'printf %s "$1" > "$2"', "sh", text, str(path)], {})
    job = where.slurm("sbatch", "--parsable", "-p", "scavenger", "--requeue", "-o/dev/null", str(path)).strip()
    until(log.exists, "the first incarnation")
    where.slurm("scontrol", "requeue", job)
    until(lambda: shown(where, job, "JobState") == "COMPLETED", "the second incarnation to end", 60.0)
    assert shown(where, job, "Restarts") == "1"
    assert log.read_text() == "run\n"


def test_nodes_on_which_pilots_die_at_once_are_left_alone(where: Installation) -> None:
    start(where, python="/bin/false", standing=0)
    until(lambda: where.status().left_alone == tuple(where.nodes), "all nodes to be left alone", 60.0)
    time.sleep(2.0)
    assert where.jobs() == []
    assert sum(event["kind"] == "pilot.submitted" for event in where.events()) == 3 * len(where.nodes)


def test_a_pilot_killed_by_hand_is_replaced_once(where: Installation) -> None:
    start(where)
    filled(where)
    before = running(where)
    where.slurm("scancel", "--signal=KILL", "--full", before["n2"])
    until(lambda: running(where).get("n2") not in (None, before["n2"]), "another pilot on n2")
    time.sleep(3.0)
    after = running(where)
    assert {node: job for node, job in after.items() if node != "n2"} == {node: job for node, job in before.items() if node != "n2"}
    assert len([node for _, state, node in where.jobs() if state == "RUNNING"]) == 4


def test_a_controller_that_is_away_freezes_decisions_and_ends_no_pilot(where: Installation) -> None:
    start(where)
    filled(where)
    at_work(where)
    before = running(where)
    where.signal_cluster("slurmctld", signal.SIGTERM)
    until(lambda: where.status().frozen is not None, "the daemon to notice", 60.0)
    where.up()
    until(lambda: where.status().frozen is None, "the daemon to go on", 60.0)
    time.sleep(3.0)
    assert running(where) == before


def test_a_slurmd_that_dies_and_comes_back_keeps_its_pilot(where: Installation) -> None:
    start(where)
    filled(where)
    before = running(where)
    where.signal_cluster("slurmd.n3", signal.SIGKILL)
    time.sleep(3.0)
    where.up()
    time.sleep(3.0)
    assert running(where) == before


def test_a_daemon_killed_at_any_instant_leaves_no_orphan_and_no_twin(where: Installation) -> None:
    dice = random.Random(5)
    start(where)
    for _ in range(5):
        time.sleep(dice.uniform(0.0, 2.0))
        where.end_daemon(signal.SIGKILL)
        where.start_daemon()
    filled(where)
    time.sleep(3.0)
    nodes = [node for _, state, node in where.jobs() if state == "RUNNING"]
    assert sorted(nodes) == where.nodes
    known = {each.job for each in where.status().pilots}
    assert {job for job, _, _ in where.jobs()} <= known
    where.ask("drain")
    until(lambda: not where.jobs(), "the queue to be empty")


def test_pilots_end_before_a_reservation(where: Installation) -> None:
    begins = int(time.time()) + 260
    where.slurm(
        *("scontrol", "create", "reservation", "reservationname=soon", f"starttime={time.strftime('%FT%T', time.localtime(begins))}"),
        *("duration=5", "nodes=ALL", "flags=maint,ignore_jobs", f"users={where.account.user}"),
    )
    try:
        start(where)
        filled(where)
        for job in running(where).values():
            ends = time.mktime(time.strptime(shown(where, job, "EndTime"), "%Y-%m-%dT%H:%M:%S"))
            assert begins - 150 < ends <= begins
        assert "reservation soon" in where.ask("windows")
    finally:
        where.slurm("scontrol", "delete", "reservationname=soon")


def test_standing_pilots_fill_a_new_hole_before_the_daemon_has_looked(where: Installation) -> None:
    primary(where, 4, 8.0)
    where.start_daemon(daemon={"poll_seconds": 20.0}, pilots={"standing": 2})
    where.submit("sleeps", SCRIPTS / "sleeps.py", ())
    until(lambda: [state for _, state, _ in where.jobs()] == ["PENDING"], "a pilot to stand by")
    until(lambda: not where.slurm("squeue", "-h", "-p", "primary").strip(), "the primary job to end")
    assert until(lambda: bool(running(where)), "the standing pilot to start", 10.0) < 4.0
    where.ask("pause", "sleeps")
    until(lambda: not where.jobs(), "all pilots to be withdrawn", 60.0)


def test_limits_of_the_login_node_are_not_those_of_a_pilot(where: Installation) -> None:
    told, path = where.folder / "limit", where.folder / "limit.sh"
    where.account.run(["sh", "-c", 'echo "#!/bin/sh\nulimit -S -n > $0.new; mv $0.new $0" > "$1"', str(told), str(path)], {})
    spec = PilotSpec(uuid="u", argv=(), folder=str(where.folder), partition="scavenger")
    where.slurm("sh", "-c", 'ulimit -S -n 300 && exec "$@"', "sh", *commands.sbatch(spec, 60.0), str(path))
    until(told.exists, "the pilot to tell")
    node = int((where.folder / "slurm" / "run" / "slurmd.n1.pid").read_text())
    limits = Path(f"/proc/{node}/limits").read_text()
    assert int(told.read_text()) == int(re.findall(r"Max open files +(\d+)", limits)[0]) > 300


def test_grace_is_what_the_cluster_says(where: Installation) -> None:
    start(where)
    at_work(where)
    pid_file = next(where.folder.glob("trainings/sleeps/runs-*"))
    environment = Path(f"/proc/{int(pid_file.read_text())}/environ").read_bytes().split(b"\0")
    assert f"COMMENSAL_GRACE_SECONDS={float(GRACE_SECONDS)}".encode() in environment
    assert b"SLURM_JOB_PARTITION=scavenger" in environment
