"""Ledger against queue."""

from __future__ import annotations

from commensald.cluster import Facts, Job, JobState, Snapshot
from commensald.ledger import Fragment, PilotRecord
from commensald.observe import follow
from commensald.reconcile import absences, backoff, begun, ended, ours, overdue, pilots, requeued, seconds_left, strangers


def record(uuid: str, submitted: float = 0.0, node: str | None = "n1", started: float | None = None) -> PilotRecord:
    return PilotRecord(uuid=uuid, owner="ada", node=node, job=None, time_limit=None, submitted=submitted, started=started)


def job(uuid: str, state: JobState = JobState.RUNNING, owner: str = "ada", **more: object) -> Job:
    return Job(id=f"j-{uuid}", name="p", owner=owner, state=state, node_count=1, comment=f"commensal:{uuid}", **more)  # type: ignore[arg-type]


def seen(*jobs: Job) -> dict[str, Job]:
    return ours(Snapshot(taken=0.0, nodes=(), jobs=jobs, reservations=(), facts=Facts(product="test", version="1")), "ada")


def test_only_our_own_account_can_carry_our_tag() -> None:
    assert set(seen(job("a"), job("b", owner="eve"), job("c", JobState.ENDED))) == {"a"}


def test_a_pilot_that_the_ledger_does_not_know_is_a_stranger() -> None:
    jobs = seen(job("a"), job("b"), job("c", JobState.COMPLETING))
    assert strangers(jobs, {"a"}) == ("j-b",)


def test_absences_are_counted_only_where_the_snapshot_could_have_shown_it() -> None:
    records = (record("old", 1.0), record("new", 5.0), record("here", 1.0))
    once = absences(records, {"here"}, {}, asked=4.0)
    assert once == {"old": 1}
    assert absences(records, {"here"}, once, asked=6.0) == {"old": 2, "new": 1}


def test_a_pilot_that_comes_back_is_counted_anew() -> None:
    assert absences((record("a"),), {"a"}, {"a": 1}, asked=1.0) == {}


def test_pilots_as_decide_takes_them() -> None:
    jobs = seen(job("run", nodes=("n7",), end=9.0), job("claimed", nodes=("n2",), preempted_at=1.0), job("queued", JobState.PENDING))
    records = [record(each) for each in ("run", "claimed", "queued", "submitted", "ended")]
    found = {each.uuid: each for each in pilots(records, jobs, {"ended", "run"}, {"queued"})}
    assert set(found) == {"run", "claimed", "queued", "submitted"}
    assert (found["run"].node, found["run"].running, found["run"].ends, found["run"].preempted) == ("n7", True, 9.0, False)
    assert found["claimed"].preempted
    assert (found["queued"].running, found["queued"].preempted) == (False, True)
    assert (found["submitted"].running, found["submitted"].node) == (False, "n1")


def test_the_deadline_is_the_earlier_of_end_and_grace() -> None:
    assert seconds_left(job("a"), 30.0, 100.0) is None
    assert seconds_left(job("a", end=160.0), 30.0, 100.0) == 60.0
    assert seconds_left(job("a", end=160.0, preempted_at=90.0), 30.0, 100.0) == 20.0
    assert seconds_left(job("a", end=110.0, preempted_at=90.0), 30.0, 100.0) == 10.0
    assert seconds_left(job("a", end=90.0), 30.0, 100.0) == 0.0
    assert seconds_left(job("a", JobState.PENDING, end=160.0), 30.0, 100.0) is None


def test_a_pilots_start_and_node_are_kept_when_the_queue_first_shows_them() -> None:
    jobs = seen(job("runs", nodes=("n7",), start=5.0), job("waits", JobState.PENDING, start=9.0), job("known", nodes=("n2",), start=6.0))
    records = (record("runs", node=None), record("waits"), record("known", started=6.0), record("absent"))
    assert [(each.uuid, each.node, each.started) for each in begun(records, jobs)] == [("runs", "n7", 5.0)]


def test_ended_jobs_are_told_from_those_that_are_there() -> None:
    gone, other = job("a", JobState.ENDED), job("b", JobState.ENDED, owner="eve")
    look = Snapshot(taken=0.0, nodes=(), jobs=(gone, other, job("c")), reservations=(), facts=Facts(product="test", version="1"))
    assert ended(look, "ada") == {"a": gone}


def test_a_state_that_cannot_be_read_counts_as_present() -> None:
    jobs = seen(job("a", JobState.UNKNOWN))
    assert absences((record("a"),), jobs, {"a": 1}, asked=1.0) == {}
    (found,) = pilots((record("a"),), jobs, {"a"}, ())
    assert (found.running, found.preempted, found.node) == (False, False, "n1")


def test_a_pilot_that_waits_for_a_second_life_is_cancelled() -> None:
    jobs = seen(job("again", JobState.PENDING), job("held", JobState.HELD), job("first", JobState.PENDING), job("runs", nodes=("n1",)))
    records = (record("again", started=1.0), record("held", started=1.0), record("first"), record("runs", started=1.0))
    assert requeued(records, jobs) == ("again", "held")


def test_a_pilot_that_outlives_its_grace_is_overdue() -> None:
    jobs = seen(
        job("late", preempted_at=60.0), job("leaving", preempted_at=69.0), job("ending", JobState.COMPLETING, preempted_at=1.0), job("a")
    )
    assert overdue(jobs, 30.0, 100.0) == ("late",)
    graces = seen(
        job("told", preempted_at=60.0, end=99.0), job("over", preempted_at=60.0, end=97.0), job("put-back", preempted_at=60.0, end=9e4)
    )
    assert overdue(graces, 0.0, 100.0) == ("over", "put-back")


def test_failures_in_a_row_wait_longer_and_a_long_good_run_forgives() -> None:
    waits, failures, retry_at, now = [], 0, None, 0.0
    for _ in range(6):
        failures, retry_at = backoff(failures, retry_at, now, 5.0, 60.0)
        waits.append(retry_at - now)
        now = retry_at + 1.0
    assert waits == [5.0, 10.0, 20.0, 40.0, 60.0, 60.0]
    assert retry_at is not None
    assert backoff(failures, retry_at, retry_at - 1.0, 5.0, 60.0) == (failures, retry_at)
    assert backoff(failures, retry_at, retry_at + 61.0, 5.0, 60.0) == (1, retry_at + 66.0)
    assert backoff(10_000, 0.0, 1.0, 5.0, 60.0)[1] == 61.0


def test_fragments_begin_last_and_end() -> None:
    lasting, changed = follow({}, {"n1", "n2"}, (), 1.0)
    assert changed == [Fragment(node="n1", began=1.0, ended=None), Fragment(node="n2", began=1.0, ended=None)]
    lasting, changed = follow(lasting, {"n1", "n2"}, (), 2.0)
    assert not changed
    lasting, changed = follow(lasting, set(), {"n1"}, 3.0)
    assert changed == [Fragment(node="n1", began=1.0, ended=3.0, claimed=True), Fragment(node="n2", began=1.0, ended=3.0)]
    assert not lasting
