"""The embedded cluster as a process: real jobs, real signals, over its socket."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import psutil
import pytest

from commensald.cluster import JobState, NodeState, Reservation
from commensald.schedulers import PilotSpec, SchedulerError
from commensald.schedulers.local.client import LocalScheduler
from commensald.schedulers.local.protocol import SubmitPrimary

COMMAND = (sys.executable, "-c", "from commensald.schedulers.local.command import local_cluster; local_cluster()")
GRACE_SECONDS = 1.5


class Cluster:
    """A running ``local-cluster`` of four nodes."""

    def __init__(self, folder: Path, *extra: str) -> None:
        self.folder, self.socket, self.events_file = folder, folder / "socket", folder / "events"
        argv = (*COMMAND, "--socket", str(self.socket), "--nodes", "4", "--events", str(self.events_file), "--kill-wait", "0.5", *extra)
        environment = {**os.environ, "SLURM_JOB_ID": "outer", "SLURM_PROCID": "3", "PMI_RANK": "3"}
        self.process = subprocess.Popen(argv, env=environment, stderr=subprocess.PIPE, text=True)
        self.client = LocalScheduler(self.socket)

    def pilot(self, uuid: str, script: str, node: str | None = None, time_limit: float | None = None) -> PilotSpec:
        """A pilot that runs a shell script."""
        return PilotSpec(uuid=uuid, argv=("bash", "-c", script), folder=str(self.folder), node=node, time_limit=time_limit)

    def log(self, uuid: str) -> list[str]:
        """The lines that a pilot has written."""
        path = self.folder / f"{uuid}.log"
        return path.read_text().split("\n")[:-1] if path.exists() else []

    def events(self, kind: str, job: str | None = None) -> list[dict[str, object]]:
        """What the event log holds."""
        found = [json.loads(line) for line in self.events_file.read_text().splitlines()]
        return [e for e in found if e["kind"] == kind and job in (None, e.get("job"))]

    async def event(self, kind: str, job: str) -> dict[str, object]:
        """Wait for an event of a job."""
        await until(lambda: bool(self.events(kind, job)))
        return self.events(kind, job)[0]


async def until(seen: Callable[[], bool], seconds: float = 15.0) -> None:
    """Wait for something to be so."""
    deadline = time.monotonic() + seconds
    while not seen():
        assert time.monotonic() < deadline, "it never came"
        await asyncio.sleep(0.01)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A cluster that ends with the test."""
    running = Cluster(tmp_path, "--grace", str(GRACE_SECONDS))
    yield running
    running.process.terminate()
    assert running.process.wait(15) == 0
    assert running.process.stderr is not None
    assert running.process.stderr.read() == ""
    assert not running.socket.exists()


def go(cluster: Cluster, scenario: Callable[[], Awaitable[None]]) -> None:
    """Run a scenario once the cluster answers."""

    async def whole() -> None:
        await cluster.client.wait_ready(15)
        await scenario()

    asyncio.run(whole())


def test_pilot_gets_slurms_environment_and_its_log_is_appended(cluster: Cluster) -> None:
    async def scenario() -> None:
        (cluster.folder / "u.log").write_text("before\n")
        spec = cluster.pilot("u", "env | grep -E '^(SLURM|PMI)' | sort; echo done >&2", node="n3", time_limit=90.0)
        job = await cluster.client.submit(spec)
        started = await cluster.event("job.started", job)
        await cluster.event("job.ended", job)
        lines = cluster.log("u")
        assert lines[0] == "before"
        assert lines[-1] == "done"
        given = dict(line.split("=", 1) for line in lines[1:-1])
        assert (given["SLURM_JOB_ID"], given["SLURMD_NODENAME"], given["SLURM_JOB_NODELIST"]) == (job, "n3", "n3")
        assert abs(float(given["SLURM_JOB_END_TIME"]) - 90.0 - float(str(started["at"]))) < 2.0
        assert not {"SLURM_PROCID", "PMI_RANK"} & given.keys()

    go(cluster, scenario)


STUBBORN = """
trap 'echo main >> $0.seen' TERM
(trap 'echo child >> $0.seen; exit' TERM; echo up; while :; do sleep 0.02; done) &
(setsid bash -c 'trap "echo daemon >> $0.seen; exit" TERM; echo up; while :; do sleep 0.02; done' $0 &)
while :; do sleep 0.02; done
"""


def test_preemption_signals_every_process_and_kills_at_the_end_of_grace(cluster: Cluster) -> None:
    async def scenario() -> None:
        seen = cluster.folder / "p.seen"
        spec = PilotSpec(uuid="p", argv=("bash", "-c", STUBBORN, str(cluster.folder / "p")), folder=str(cluster.folder), node="n1")
        pilot = await cluster.client.submit(spec)
        await until(lambda: cluster.log("p").count("up") == 2)
        primary = await cluster.client.submit_primary(SubmitPrimary(seconds=0.2, node_count=4, time_limit=5.0))
        shown = {job.id: job for job in (await cluster.client.snapshot()).jobs}
        assert shown[pilot].preempted_at is not None
        assert shown[pilot].end == shown[pilot].preempted_at + GRACE_SECONDS
        assert shown[primary].state is JobState.PENDING
        assigned, started = await cluster.event("job.assigned", primary), await cluster.event("job.started", primary)
        assert sorted(seen.read_text().split()) == ["child", "daemon", "main"]
        assert GRACE_SECONDS <= float(str(started["at"])) - float(str(assigned["at"])) < GRACE_SECONDS + 1.0
        killed, ended = await cluster.event("job.killed", pilot), await cluster.event("job.ended", pilot)
        assert (killed["reason"], ended["reason"], ended["returncode"]) == ("grace", "grace", -signal.SIGKILL)
        assert [(e["signal"], e["reason"]) for e in cluster.events("job.signalled", pilot)] == [("TERM", "preempt")]

    go(cluster, scenario)


def test_a_primary_starts_as_soon_as_an_obedient_pilot_is_gone(cluster: Cluster) -> None:
    async def scenario() -> None:
        script = "trap 'exit 0' TERM; sleep 1000 & echo up; wait"
        pilots = [await cluster.client.submit(cluster.pilot(f"u{i}", script)) for i in range(4)]
        await until(lambda: all(cluster.log(f"u{i}") for i in range(4)))
        primary = await cluster.client.submit_primary(SubmitPrimary(seconds=0.2, node_count=4))
        started = await cluster.event("job.started", primary)
        assert float(str(started["at"])) - float(str(cluster.events("job.assigned", primary)[0]["at"])) < 1.0
        for pilot in pilots:
            assert cluster.events("job.ended", pilot)[0]["returncode"] in (0, -signal.SIGTERM)
            assert not cluster.events("job.killed", pilot)

    go(cluster, scenario)


def test_stopped_pilot_hears_sigterm(cluster: Cluster) -> None:
    async def scenario() -> None:
        pilot = await cluster.client.submit(cluster.pilot("u", "trap 'exit 5' TERM; echo up; while :; do sleep 0.02; done"))
        await until(lambda: bool(cluster.log("u")))
        pid = int(str(cluster.events("job.started", pilot)[0]["pid"]))
        os.kill(pid, signal.SIGSTOP)
        await cluster.client.cancel([pilot, "unknown"])
        assert (await cluster.event("job.ended", pilot))["returncode"] == 5

    go(cluster, scenario)


def test_injected_kill_leaves_no_process_and_frees_the_node(cluster: Cluster) -> None:
    async def scenario() -> None:
        script = "trap '' TERM; (setsid sleep 321 &); sleep 322 & echo up; wait"
        pilot = await cluster.client.submit(cluster.pilot("u", script, node="n2"))
        await until(lambda: bool(cluster.log("u")))
        await cluster.client.kill(pilot)
        ended = await cluster.event("job.ended", pilot)
        assert (ended["reason"], ended["nodes"]) == ("injected", ["n2"])
        left = [p.info["cmdline"] for p in psutil.process_iter(["cmdline", "status"]) if p.info["status"] != psutil.STATUS_ZOMBIE]
        assert not [line for line in left if line in (["sleep", "321"], ["sleep", "322"])]
        states = {node.name: node.state for node in (await cluster.client.snapshot()).nodes}
        assert states["n2"] is NodeState.IDLE
        with pytest.raises(SchedulerError, match="does not run"):
            await cluster.client.kill(pilot)

    go(cluster, scenario)


def test_what_the_main_process_leaves_behind_is_killed_before_the_node_is_free(cluster: Cluster) -> None:
    async def scenario() -> None:
        pilot = await cluster.client.submit(cluster.pilot("u", "sleep 323 & exit 7"))
        assert (await cluster.event("job.ended", pilot))["returncode"] == 7
        assert not [p for p in psutil.process_iter(["cmdline"]) if p.info["cmdline"] == ["sleep", "323"]]

    go(cluster, scenario)


def test_time_limit_ends_a_job(cluster: Cluster) -> None:
    async def scenario() -> None:
        pilot = await cluster.client.submit(cluster.pilot("u", "trap '' TERM; while :; do sleep 0.02; done", time_limit=0.5))
        ended = await cluster.event("job.ended", pilot)
        assert ended["reason"] == "limit"
        assert 1.0 <= float(str(ended["at"])) - float(str(cluster.events("job.started", pilot)[0]["at"])) < 2.5

    go(cluster, scenario)


def test_nodes_and_reservations_over_the_socket(cluster: Cluster) -> None:
    async def scenario() -> None:
        pilot = await cluster.client.submit(cluster.pilot("u", "sleep 100", node="n1"))
        await cluster.event("job.started", pilot)
        await cluster.client.set_node("n1", up=False)
        assert (await cluster.event("job.ended", pilot))["reason"] == "node_fail"
        await cluster.client.reserve(Reservation(name="r", nodes=frozenset({"n2"}), start=time.time(), end=time.time() + 60))
        nodes = {node.name: node for node in (await cluster.client.snapshot()).nodes}
        assert (nodes["n1"].state, nodes["n2"].reservation) == (NodeState.DOWN, "r")
        for wrong in (cluster.client.set_node("n9", up=True), cluster.client.submit(cluster.pilot("w", "true", node="n9"))):
            with pytest.raises(SchedulerError, match="n9"):
                await wrong

    go(cluster, scenario)


def test_bad_pilots_are_refused_or_end_at_once(cluster: Cluster) -> None:
    async def scenario() -> None:
        with pytest.raises(SchedulerError, match=r"cannot write to folder /nowhere"):
            await cluster.client.submit(PilotSpec(uuid="u", argv=("true",), folder="/nowhere"))
        with pytest.raises(SchedulerError, match="no command"):
            await cluster.client.submit(PilotSpec(uuid="u", argv=(), folder=str(cluster.folder)))
        with pytest.raises(SchedulerError, match="a uuid is"):
            await cluster.client.submit(cluster.pilot("../u", "true"))
        with pytest.raises(SchedulerError, match="seconds"):
            await cluster.client.submit_primary(SubmitPrimary(seconds=-1.0))
        for argv in (("no-such-command",), ("true", "\0")):
            job = await cluster.client.submit(PilotSpec(uuid="u", argv=argv, folder=str(cluster.folder)))
            assert (await cluster.event("job.ended", job))["returncode"] == 127
        assert cluster.process.stderr is not None
        assert "no-such-command" in cluster.process.stderr.readline()
        assert "null byte" in cluster.process.stderr.readline()

    go(cluster, scenario)


def test_socket_is_ours_alone_and_nonsense_is_answered(cluster: Cluster) -> None:
    async def scenario() -> None:
        assert cluster.socket.stat().st_mode & 0o777 == 0o600
        reader, writer = await asyncio.open_unix_connection(cluster.socket)
        for nonsense in (b"{}\n", b"]\n", b'{"type": "Explode"}\n'):
            writer.write(nonsense)
            assert json.loads(await reader.readline())["type"] == "Refused"
        writer.close()

    go(cluster, scenario)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command, to its end."""
    return subprocess.run((*COMMAND, *arguments), capture_output=True, text=True, timeout=30, check=False)


def test_busy_socket_is_wrong_use_and_a_stale_one_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))
        other.listen()
        busy = run("--socket", str(path), "--duration", "0")
        assert (busy.returncode, busy.stderr) == (2, f"Error: {path}: another server answers on this socket\n")
    assert run("--socket", str(path), "--duration", "0").returncode == 0
    path.write_text("mine")
    assert run("--socket", str(path), "--duration", "0").returncode == 2
    assert path.read_text() == "mine"


def test_a_cluster_that_is_not_there_is_said_with_its_cure(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with pytest.raises(SchedulerError, match=f"start one with 'commensald local-cluster --socket {path}', or set scheduler.kind"):
        asyncio.run(LocalScheduler(path).snapshot())


def test_bad_trace_is_one_line_and_exit_code_two(tmp_path: Path) -> None:
    trace = tmp_path / "log.swf"
    trace.write_text("; MaxProcs: 8\n1 2 three\n")
    wrong = run("--socket", str(tmp_path / "socket"), "--trace", str(trace))
    assert (wrong.returncode, wrong.stderr) == (2, f"Error: {trace}:2: expected 18 fields, found 3: '1 2 three'\n")
    missing = run("--socket", str(tmp_path / "socket"), "--trace", str(tmp_path / "none"))
    assert (missing.returncode, missing.stderr) == (2, f"Error: {tmp_path / 'none'}: No such file or directory\n")


def test_shutdown_ends_all_jobs(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, "--generate", "3")

    async def scenario() -> None:
        await until(lambda: bool(cluster.events("job.started")))
        await cluster.client.submit(cluster.pilot("u", "trap '' TERM; sleep 324 & while :; do sleep 0.02; done"))
        await until(lambda: bool(cluster.events("job.started")))
        await cluster.client.shutdown()

    go(cluster, scenario)
    assert cluster.process.wait(15) == 0
    assert {e["job"] for e in cluster.events("job.started")} == {e["job"] for e in cluster.events("job.ended")}
    assert not [p for p in psutil.process_iter(["cmdline"]) if p.info["cmdline"] == ["sleep", "324"]]
