"""pyslurm in its helper process: a module of the real one's shape, and helpers that hang, die or end with libslurm's ``fatal:``."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from pathlib import Path

import pytest
from slurm_captures import MARK, capture, marked
from slurm_commands import VERSION, folder_of_commands

from commensald.cluster import Job, JobState, Node, NodeState, Reservation
from commensald.schedulers.runner import Runner
from commensald.schedulers.slurm import commands
from commensald.schedulers.slurm.bindings import HELPER, Bindings, BindingsError, release
from commensald.schedulers.slurm.jobs import jobs
from commensald.schedulers.slurm.nodes import nodes
from commensald.schedulers.slurm.partitions import partitions
from commensald.schedulers.slurm.queries import Queries
from commensald.schedulers.slurm.reservations import reservations

PYSLURM = '''
"""As pyslurm 24.11 shows itself (PySlurm/pyslurm, pyslurm/core/*.pyx): collections with load(), attributes, None for what is not set."""
from enum import Flag, auto
from types import SimpleNamespace as Of
__version__ = "24.11.0"
class RPCError(Exception): pass
class ReservationFlags(Flag):
    MAINTENANCE = auto()
    FLEX = auto()
def _job(**given):
    plain = dict.fromkeys("array_id array_task_id array_tasks_waiting array_tasks_parallel account priority time_limit submit_time "
        "eligible_time start_time end_time preempt_time allocated_nodes scheduled_nodes comment".split())
    return Of(**{**plain, "name": "d\\u00e9d\\u00e9 job", "user_id": 1000, "user_name": "alice", "partition": "primary", "num_nodes": 1,
        "state_reason": "None", **given})
class _Latin:
    """A job whose name is no UTF-8."""
    def __init__(self, job):
        self.job = job
    def __getattr__(self, key):
        return b"d\\xe9d\\xe9".decode() if key == "name" else getattr(self.job, key)
class Jobs:
    @staticmethod
    def load():
        print("a word that libslurm prints to stdout")
        return {1: _job(id=1, state="RUNNING", allocated_nodes="n[1-2]", num_nodes=2, time_limit=20, start_time=100, end_time=1300,
                        submit_time=90, comment="commensal:u", preempt_time=700),
                2: _job(id=2, state="PENDING", array_id=2, array_tasks_waiting="1-9", array_tasks_parallel=2, submit_time=90),
                3: _Latin(_job(id=3, state="PENDING", submit_time=90))}
class Nodes:
    @staticmethod
    def load():
        return {"n1": Of(name="n1", state="IDLE+PLANNED", allocated_cpus=0, total_cpus=8, real_memory=4000, configured_gres={"gpu:a100": 4},
                         allocated_gres={"gpu:a100": {"count": "1", "indexes": "0"}}, active_features=["x"], partitions=["primary"])}
class Reservations:
    @staticmethod
    def load():
        return {"m": Of(name="m", nodes="n[1-2]", start_time=500, end_time=900, flags=ReservationFlags.MAINTENANCE | ReservationFlags.FLEX,
                        reoccurrence="DAILY")}
class Partitions:
    @staticmethod
    def load():
        return {"primary": Of(name="primary", is_default=True, state="UP", priority_tier=1, preemption_grace_time=None,
                              max_time=2880, preempt_mode="REQUEUE", nodes="n[1-2]")}
'''


def environment(tmp_path: Path, module: str = PYSLURM) -> dict[str, str]:
    (tmp_path / "pyslurm").mkdir()
    (tmp_path / "pyslurm" / "__init__.py").write_text(module)
    return {"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path)}


def test_records_are_those_of_the_command_line(tmp_path: Path) -> None:
    async def ask() -> None:
        bindings = Bindings(10.0, environment(tmp_path))
        await bindings.start("24.11.5")
        job, *tasks, latin = jobs(await bindings.load("jobs"))
        assert (latin.id, latin.name, latin.owner) == ("3", "d\N{REPLACEMENT CHARACTER}d\N{REPLACEMENT CHARACTER}", "alice")
        assert job == Job(
            id="1",
            name="dédé job",
            owner="alice",
            state=JobState.RUNNING,
            node_count=2,
            partition="primary",
            nodes=("n1", "n2"),
            submitted=90.0,
            start=100.0,
            end=1300.0,
            time_limit=1200.0,
            comment="commensal:u",
            preempted_at=700.0,
        )
        assert [each.id for each in tasks] == ["2_1", "2_2"]
        assert nodes(await bindings.load("nodes")) == (
            Node(
                name="n1",
                state=NodeState.IDLE,
                flags=frozenset({"PLANNED"}),
                cpus=8,
                gpus=4,
                gpus_used=1,
                memory_mib=4000,
                features=frozenset({"x"}),
                partitions=frozenset({"primary"}),
            ),
        )
        assert reservations(await bindings.load("reservations")) == (
            Reservation(name="m", nodes=frozenset({"n1", "n2"}), start=500.0, end=900.0, flags=frozenset({"DAILY", "MAINT", "FLEX"})),
        )
        partition = partitions(await bindings.load("partitions"))["primary"]
        assert (partition.default, partition.grace_seconds, partition.most_seconds) == (True, 0.0, 2 * 86_400.0)
        await bindings.close()
        with pytest.raises(BindingsError, match="has ended"):
            await bindings.load("jobs")

    asyncio.run(ask())


def test_a_partitions_longest_limit_has_two_names(tmp_path: Path) -> None:
    older = environment(tmp_path, PYSLURM.replace("max_time=2880", 'max_time_limit="UNLIMITED"'))

    async def ask() -> None:
        bindings = Bindings(10.0, older)
        await bindings.start("24.11.5")
        assert partitions(await bindings.load("partitions"))["primary"].most_seconds is None
        await bindings.close()

    asyncio.run(ask())


@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("raise ImportError('libslurm.so.42: cannot open')", "libslurm"),
        ("import os, sys\nprint('fatal: Could not establish a configuration source', file=sys.stderr, flush=True)\nos._exit(1)", "fatal:"),
        ("import time\ntime.sleep(60)", "no answer within"),
        ("__version__ = '23.11.0'", "does not fit"),
        ("raise OverflowError('value too large to convert to uint16_t')", "uint16_t"),
    ],
)
def test_a_module_that_cannot_be_used_is_refused_at_the_start(tmp_path: Path, module: str, words: str) -> None:
    with pytest.raises(BindingsError, match=words):
        asyncio.run(Bindings(2.0, environment(tmp_path, module)).start("24.11.5"))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("raise RPCError('Unable to contact slurm controller')", "Unable to contact"),
        ("return {1: object()}", "has no attribute"),
        ("import time; time.sleep(60)", "no answer within"),
        ("import os; os.kill(os.getpid(), 11)", "has ended"),
        ("import os, sys; print('fatal: xmalloc', file=sys.stderr, flush=True); os._exit(1)", "fatal: xmalloc"),
        ("raise OverflowError('value too large to convert to uint16_t')", "uint16_t"),
    ],
)
def test_a_helper_that_fails_later_stops_nothing_and_the_command_line_takes_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, body: str, words: str
) -> None:
    broken = f"__version__ = '22.05.1'\nclass RPCError(Exception): pass\nclass Jobs:\n    @staticmethod\n    def load():\n        {body}\n"
    slurm = tmp_path / "commands"
    slurm.mkdir()
    folder_of_commands(slurm, MARK, {"scontrol_job_o.txt": marked(capture(VERSION, "scontrol_job_o.txt"))})

    async def ask() -> None:
        runner, helper = Runner(10.0), Bindings(1.5, environment(tmp_path, broken))
        queries = Queries(runner, lambda form: commands.environment(str(slurm), None, form), helper)
        ticking = asyncio.create_task(longest_gap())
        for _ in range(3):
            assert len(await queries.records("jobs", {"SLURM_VERSION": VERSION})) == 42
        ticking.cancel()
        assert runner.calls == {"pyslurm": 1, "scontrol": 3}
        assert max(GAPS) < 0.5
        await queries.close()

    GAPS.clear()
    with caplog.at_level(logging.INFO):
        asyncio.run(ask())
    told = [each.message for each in caplog.records if "using Slurm's commands" in each.message]
    assert len(told) == 1
    assert words in told[0]


GAPS: list[float] = []


async def longest_gap() -> None:
    """How long the loop was ever kept from turning."""
    while True:
        before = time.monotonic()
        await asyncio.sleep(0.01)
        GAPS.append(time.monotonic() - before)


def test_a_missing_interpreter_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BindingsError, match="cannot be started"):
        asyncio.run(Bindings(2.0, {}, argv=(str(tmp_path / "none"),)).start("24.11.5"))


def test_the_release_is_the_first_two_numbers() -> None:
    assert release("24.11.0") == release("24.11.5")
    assert release("22.5.1") == release("22.05.8")
    assert release("24.11.0") != release("25.11.2")


def test_only_the_helper_knows_pyslurm() -> None:
    assert HELPER[0] == sys.executable
    assert "pyslurm" not in sys.modules
