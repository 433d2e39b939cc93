"""The elastic ring under every kind of coming and going: real processes, real MPI, real deaths."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from stage import Stage

from commensal import checkpoint
from commensald.coordinator import Limits

SCRIPT = Path(__file__).parent / "scripts" / "training.py"


@pytest.fixture
def stage(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Stage]:
    """A stage whose members take FAULTS (and whatever else) from the test's parameters."""
    environment = getattr(request, "param", {})
    with Stage(tmp_path, SCRIPT, Limits(form_timeout=6.0), environment) as made:
        yield made
    check_nothing_is_lost(made)


def orphans() -> list[psutil.Process]:
    """Sidecars whose trainer is gone."""
    found = [process for process in psutil.process_iter(["cmdline"]) if "commensal.ring.sidecar" in " ".join(process.info["cmdline"] or [])]
    return [process for process in found if process.ppid() == 1]


def check_nothing_is_lost(stage: Stage) -> None:
    """Settled steps are all there, each once, in order; no process of a member is left."""
    steps = [step["step"] for step in stage.of("step")]
    assert steps == list(range(1, len(steps) + 1))
    assert stage.of("steps.lost") == []
    psutil.wait_procs(orphans(), 3)
    assert orphans() == []


def sidecars(stage: Stage, name: str) -> list[psutil.Process]:
    """Sidecars of a member."""
    children = psutil.Process(stage.members[name].pid).children()
    return [child for child in children if "commensal.ring.sidecar" in " ".join(child.cmdline())]


def arm(stage: Stage) -> int:
    """Form a ring of three and let FAULTS happen a little later; gives the step."""
    stage.environment["ARM"] = str(stage.folder / "arm")
    stage.join(3)
    stage.wait_ring(3)
    step = stage.status().settled + 200
    beside = stage.folder / "arm.new"
    beside.write_text(str(step))
    beside.rename(stage.folder / "arm")
    return step


def goes_on(stage: Stage, seconds: float = 30.0) -> None:
    """More steps get settled."""
    before = stage.status().settled
    stage.wait(lambda: stage.status().settled > before + 2, seconds)


def test_members_join_and_leave_on_request(stage: Stage) -> None:
    first, *_ = stage.join(2)
    stage.wait_ring(2)
    stage.leave(first)
    assert stage.ended(first) == 0
    stage.wait_ring(1)
    goes_on(stage)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_a_signal_makes_a_member_leave(stage: Stage, number: int) -> None:
    first, *_ = stage.join(2)
    stage.wait_ring(2)
    stage.kill(first, number)
    assert stage.ended(first, 5.0) in (0, 75)
    goes_on(stage)


def test_the_daemons_view_of_a_deadline_makes_a_member_leave(stage: Stage) -> None:
    first, *_ = stage.join(2)
    stage.wait_ring(2)
    stage.daemon.do(lambda: stage.daemon.rings.deadline(f"pilot-{first}", 1.0))
    assert stage.ended(first, 5.0) in (0, 75)
    goes_on(stage)


def test_the_end_of_the_job_in_the_environment_makes_a_member_leave(stage: Stage) -> None:
    stage.join()
    stage.wait_ring(1)
    end = time.time() + 15.0
    stage.environment["SLURM_JOB_END_TIME"] = str(int(end))
    (short,) = stage.join()
    stage.wait_ring(2)
    assert stage.ended(short, 30.0) in (0, 75)
    assert time.time() < end + 0.5
    goes_on(stage)


def test_when_all_are_asked_the_last_ones_save_and_it_resumes_there(stage: Stage) -> None:
    names = stage.join(2)
    stage.wait_ring(2)
    for name in names:
        stage.kill(name, signal.SIGTERM)
    assert [stage.ended(name, 10.0) for name in names] == [0, 0]
    stage.wait(lambda: stage.status().generation is None)
    settled = stage.status().settled
    found = checkpoint.newest(stage.home)
    assert found is not None
    assert found.step == settled
    assert [step["step"] for step in stage.of("step")] == list(range(1, settled + 1)), "the last step is told, too"
    stage.join()
    goes_on(stage)


DEATHS = {
    "during a reduction": "m1:reduce",
    "the first member": "m0:reduce",
    "two at once": "m0:reduce m1:reduce",
    "between the deliveries of the last bucket": "m1:delivered",
    "the only member that closed": "m0:closed m1:slow m2:slow",
}


@pytest.mark.parametrize(
    "stage",
    [
        pytest.param({"FAULTS": faults, "COMMENSAL_TRANSPORT": transport}, id=f"{instant}, {transport}")
        for transport in ("mpi", "gloo")
        for instant, faults in DEATHS.items()
    ],
    indirect=True,
)
def test_a_death_at_an_exact_instant_costs_nothing(stage: Stage) -> None:
    doomed = {fault.split(":")[0] for fault in stage.environment["FAULTS"].split() if not fault.endswith("slow")}
    arm(stage)
    for name in sorted(doomed):
        stage.members.pop(name).wait(30)
    goes_on(stage)
    assert {event["member"] for event in stage.of("member.lost")} == doomed


@pytest.mark.parametrize("stage", [{"FAULTS": "m2:delivered m1:slow"}], indirect=True)
def test_a_survivor_that_missed_the_end_of_a_step_receives_it(stage: Stage) -> None:
    """m0 closes the step, m2 dies with it delivered, m1 has not seen it: m1 takes the state of m0 and never repeats the step."""
    step = arm(stage)
    stage.members.pop("m2").wait(30)
    goes_on(stage)
    assert stage.of("generation")[-1]["closed"] == step


def test_a_hung_sidecar_is_found_by_the_watchdog(stage: Stage) -> None:
    first, *_ = stage.join(2)
    stage.wait_ring(2)
    for sidecar in sidecars(stage, first):
        sidecar.send_signal(signal.SIGSTOP)
    stage.wait(lambda: any("no progress" in event["reason"] for event in stage.of("halt")), 15.0)
    goes_on(stage)


def test_a_newcomer_that_cannot_form_does_not_stop_the_ring(stage: Stage) -> None:
    """Its sidecars start, but speak another transport than those of the ring."""
    stage.join()
    stage.wait_ring(1)
    stage.environment["COMMENSAL_TRANSPORT"] = "gloo"
    (odd,) = stage.join()
    stage.wait(lambda: len(stage.of("proposal")) >= 3, 60.0)
    before = stage.status().settled
    goes_on(stage)
    assert stage.status().settled > before
    stage.kill(odd)
    del stage.environment["COMMENSAL_TRANSPORT"]
    stage.join()
    stage.wait_ring(2)


def test_a_death_while_forming_is_withdrawn(stage: Stage) -> None:
    stage.join()
    stage.wait_ring(1)
    (late,) = stage.join()
    stage.wait(lambda: len(stage.of("proposal")) == 2)
    stage.kill(late)
    goes_on(stage)
    stage.join()
    stage.wait_ring(2)


def test_the_ring_steps_on_while_the_daemon_is_away(stage: Stage) -> None:
    stage.join(2)
    stage.wait_ring(2)
    generation = stage.status().generation
    stage.daemon.close()
    stage.start_daemon()
    goes_on(stage)
    assert stage.status().generation == generation
    assert [event["generation"] for event in stage.of("adopted")] == [str(generation)]


def test_a_member_lost_while_the_daemon_is_away_is_made_up_for(stage: Stage) -> None:
    first, *_ = stage.join(3)
    stage.wait_ring(3)
    stage.daemon.close()
    stage.kill(first)
    stage.start_daemon()
    goes_on(stage, 10.0)
    stage.wait(lambda: len(stage.of("generation")[-1]["members"]) == 2)


@pytest.mark.parametrize("stage", [{"STEPS": "150"}], indirect=True)
def test_a_training_ends_for_all_its_members(stage: Stage) -> None:
    names = stage.join(2)
    assert [stage.ended(name) for name in names] == [0, 0]
    stage.wait(lambda: stage.status().settled == 150)
    assert stage.status().finished
    found = checkpoint.newest(stage.home)
    assert found is not None
    assert found.step == 150
