"""Sidecars form, reduce, broadcast and die: real processes, both transports."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import psutil
import pytest
from wiring import Broken, Wiring

from commensal.ring.client import Sidecar, SpareFailed, Spares, environment
from commensal.ring.commands import Done, Failed, Form, GivePort, Gone, Reduce
from commensal.ring.interface import NoInterface, address_towards, interface_of
from commensal.ring.sidecar import IGNORED

ADDRESS = "127.0.0.1"
WORDS = 3 * (1 << 18) + 5
Start = Callable[[int], list[Sidecar]]

pytestmark = pytest.mark.timeout(90)


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """No process, descriptor or shared-memory file survives a test."""
    before = len(os.listdir("/proc/self/fd"))
    yield
    assert psutil.Process().children(recursive=True) == []
    assert len(os.listdir("/proc/self/fd")) == before
    assert list(Path("/dev/shm").glob("mpich_shm*")) == []


def mpi(size: int) -> list[Sidecar]:
    return [Sidecar("mpi", ADDRESS, oversubscribed=True) for _ in range(size)]


def gloo(size: int) -> list[Sidecar]:
    return [Sidecar("gloo", ADDRESS) for _ in range(size)]


def wait_ready(sidecars: Sequence[Sidecar]) -> None:
    end = time.monotonic() + 30
    while not all(sidecar.ready for sidecar in sidecars):
        assert time.monotonic() < end
        for sidecar in sidecars:
            assert not any(isinstance(event, Gone) for event in sidecar.receive())
        time.sleep(0.01)


def fill(wiring: Wiring, seed: int = 0) -> npt.NDArray[np.float64]:
    """Fresh random words for every member; returns their sum in float64."""
    draws = [np.random.default_rng((seed, rank)).standard_normal(WORDS).astype(np.float32) for rank in wiring.ranks]
    for memory, draw in zip(wiring.memories, draws, strict=True):
        memory.floats().numpy()[:] = draw
    return np.asarray(np.sum(draws, axis=0, dtype=np.float64))


def check_reduction(wiring: Wiring, low: int, high: int, tag: int = 1) -> None:
    """Words [low, high) become the sum, bitwise the same on all; the others stay as they are."""
    expected = fill(wiring, tag)
    untouched = [memory.floats().numpy().copy() for memory in wiring.memories]
    wiring.reduce(tag, low, high)
    for memory, old in zip(wiring.memories, untouched, strict=True):
        words = memory.floats().numpy()
        np.testing.assert_allclose(words[low:high], expected[low:high], rtol=1e-4, atol=1e-5)
        assert np.array_equal(words[low:high], wiring.memories[0].floats().numpy()[low:high])
        assert np.array_equal(np.delete(words, slice(low, high)), np.delete(old, slice(low, high)))


@pytest.mark.parametrize(("start", "size"), [(mpi, 1), (mpi, 2), (mpi, 3), (mpi, 4), (gloo, 1), (gloo, 3)])
def test_members_sum_and_share(start: Start, size: int) -> None:
    with Wiring(start(size), WORDS) as wiring:
        formed = wiring.form(ADDRESS)
        assert len({event.crossover_words for event in formed}) == 1
        for tag, (low, high) in enumerate([(0, 1), (3, 10), (100, 5100), (0, WORDS), (WORDS - 2, WORDS)]):
            check_reduction(wiring, low, high, tag)
        root = size - 1
        wiring.memories[root].window[:] = 7
        wiring.broadcast(100, root, 10, 5000)
        assert all((memory.window[10:5000] == 7).all() for memory in wiring.memories)
        assert all(memory.window[9] == memory.window[5000] == 0 for memory in wiring.memories[:root])
        wiring.leave()


def test_crossover_is_measured_and_agreed() -> None:
    with Wiring(mpi(3), WORDS) as wiring:
        words = {event.crossover_words for event in wiring.form(ADDRESS)}
        assert len(words) == 1
        assert (1 << 12) <= (words.pop() or 0) <= (1 << 19)


@pytest.mark.parametrize("crossover", [0, 1 << 62])
def test_both_ways_of_reducing(crossover: int) -> None:
    """Our own ring and MPI_Allreduce, each for every size, down to fewer words than members."""
    with Wiring(mpi(3), WORDS) as wiring:
        assert {event.crossover_words for event in wiring.form(ADDRESS, crossover)} == {crossover}
        for tag, (low, high) in enumerate([(0, 1), (1, 3), (3, 10), (0, WORDS)]):
            check_reduction(wiring, low, high, tag)


def test_commands_queue_beyond_the_socket() -> None:
    """The trainer queues far more than a socket holds, reads nothing meanwhile, and is never blocked."""
    with Wiring(mpi(2), WORDS) as wiring:
        wiring.form(ADDRESS)
        fill(wiring)
        begun = time.monotonic()
        for tag in range(3000):
            for sidecar in wiring.sidecars:
                sidecar.send(Reduce(tag=tag, low=0, high=1))
        assert time.monotonic() - begun < 5
        wiring.wait(2999)
        tags = [event.tag for event in wiring.events[0] if isinstance(event, Done)]
        assert tags == list(range(3000))


@pytest.mark.parametrize(("start", "stranger"), [(mpi, 0), (mpi, 1), (mpi, 2), (gloo, 1)])
def test_a_stranger_is_refused(start: Start, stranger: int) -> None:
    """Whoever does not know the nonce: no generation comes to stand, and somebody says why."""
    with Wiring(start(3)) as wiring:
        wiring.start_forming(ADDRESS, ["other" if rank == stranger else "nonce" for rank in wiring.ranks])
        with pytest.raises(Broken, match="not of this generation"):
            wiring.until(lambda: False)


def test_a_port_at_another_address_is_refused() -> None:
    with Wiring(mpi(2)) as wiring:
        wiring.start_forming("127.0.0.2")
        with pytest.raises(Broken, match=r"not at its member's address 127\.0\.0\.2"):
            wiring.until(lambda: False)


@pytest.mark.parametrize(("start", "victim"), [(mpi, 0), (mpi, 2), (gloo, 2)])
def test_death_while_reducing(start: Start, victim: int) -> None:
    """Survivors cannot finish; they are killed at once, and a generation of spares sums right."""
    spares = start(2)
    with Wiring(start(3), WORDS) as wiring:
        wiring.form(ADDRESS)
        for rank in set(wiring.ranks) - {victim}:
            wiring.sidecars[rank].send(Reduce(tag=1, low=0, high=WORDS))
        time.sleep(0.05)
        wiring.sidecars[victim].process.send_signal(signal.SIGKILL)
        wiring.until(lambda: wiring.seen(victim, Gone), breaking=())
        assert not any(isinstance(event, Done) for events in wiring.events for event in events)
        check_killing(wiring.sidecars)
    check_new_generation(spares)


@pytest.mark.parametrize("delay_seconds", [0.0, 0.01])
@pytest.mark.parametrize("victim", [0, 1, 2])
def test_death_while_forming(victim: int, delay_seconds: float) -> None:
    spares = mpi(2)
    sidecars = mpi(3)
    wait_ready(sidecars)
    with Wiring(sidecars) as wiring:
        wiring.start_forming(ADDRESS)
        wiring.pump(0.001)
        time.sleep(delay_seconds)
        wiring.sidecars[victim].process.send_signal(signal.SIGKILL)
        wiring.until(lambda: wiring.seen(victim, Gone), breaking=())
        check_killing(wiring.sidecars)
    check_new_generation(spares)


def check_killing(sidecars: Sequence[Sidecar]) -> None:
    begun = time.monotonic()
    for sidecar in sidecars:
        sidecar.kill()
        sidecar.kill()
    assert time.monotonic() - begun < 0.5


def check_new_generation(spares: list[Sidecar]) -> None:
    with Wiring(spares, WORDS) as wiring:
        wiring.form(ADDRESS)
        check_reduction(wiring, 0, WORDS)


def test_signals_of_a_job_step_are_ignored() -> None:
    """From before exec, and while a reduction is under way."""
    sidecars = mpi(2)
    for sidecar in sidecars:
        for number in IGNORED:
            sidecar.process.send_signal(number)
    with Wiring(sidecars, WORDS) as wiring:
        wiring.form(ADDRESS)
        wiring.sidecars[0].send(Reduce(tag=5, low=0, high=WORDS))
        for number in IGNORED:
            wiring.sidecars[0].process.send_signal(number)
        wiring.sidecars[1].send(Reduce(tag=5, low=0, high=WORDS))
        wiring.wait(5)
    assert not signal.pthread_sigmask(signal.SIG_BLOCK, []) & set(IGNORED)


def test_a_sidecar_in_a_reduction_ends_with_its_trainer() -> None:
    """The trainer is killed while its sidecars wait for each other inside MPI."""
    script = (
        "import sys, time; from wiring import Wiring; from test_transport import mpi, ADDRESS; from commensal.ring.commands import Reduce\n"
        "wiring = Wiring(mpi(2)); wiring.form(ADDRESS); wiring.sidecars[0].send(Reduce(tag=1, low=0, high=9))\n"
        "print(*(sidecar.process.pid for sidecar in wiring.sidecars), flush=True); time.sleep(60)"
    )
    argv = [sys.executable, "-c", script]
    with subprocess.Popen(argv, cwd=Path(__file__).parent, stdout=subprocess.PIPE, text=True) as trainer:
        assert trainer.stdout is not None
        pids = [int(pid) for pid in trainer.stdout.readline().split()]
        sidecars = [psutil.Process(pid) for pid in pids]
        trainer.kill()
        trainer.wait(10)
    assert len(pids) == 2
    assert psutil.wait_procs(sidecars, timeout=10)[1] == []


def test_a_waiting_sidecar_uses_no_processor() -> None:
    with Wiring(mpi(2)) as wiring:
        wiring.form(ADDRESS)
        used = [psutil.Process(sidecar.process.pid).cpu_times() for sidecar in wiring.sidecars]
        time.sleep(1)
        now = [psutil.Process(sidecar.process.pid).cpu_times() for sidecar in wiring.sidecars]
        assert all(after.user + after.system - before.user - before.system <= 0.03 for before, after in zip(used, now, strict=True))


def test_waiting_for_a_late_member_leaves_the_processor_to_others() -> None:
    with Wiring(mpi(2)) as wiring:
        wiring.form(ADDRESS)
        wiring.sidecars[0].send(Reduce(tag=1, low=0, high=9))
        used = psutil.Process(wiring.sidecars[0].process.pid).cpu_times()
        time.sleep(1)
        now = psutil.Process(wiring.sidecars[0].process.pid).cpu_times()
        assert now.user + now.system - used.user - used.system <= 0.2
        wiring.sidecars[1].send(Reduce(tag=1, low=0, high=9))
        wiring.wait(1)


def test_torch_stays_out_of_the_mpi_sidecar_and_mpi_out_of_the_trainer() -> None:
    with Wiring(mpi(1)) as wiring:
        wait_ready(wiring.sidecars)
        maps = Path(f"/proc/{wiring.sidecars[0].process.pid}/maps").read_text()
    assert "libmpi" in maps
    assert "libtorch" not in maps
    assert "mpi4py" not in sys.modules


def test_environment_is_scrubbed() -> None:
    base = {
        "PMI_FD": "3", "PMIX_RANK": "0", "SLURM_JOB_ID": "1", "HYDRA_X": "1", "MPIEXEC_Y": "1", "COMMENSAL_MEMBER": "a.1",
        "LD_LIBRARY_PATH": "/site/lib", "PATH": "/bin",
    }  # fmt: skip
    found = environment(base, "eth7", oversubscribed=False)
    assert found["FI_TCP_IFACE"] == "eth7"
    assert found["PATH"] == "/bin"
    assert not set(base) - {"PATH"} & set(found)
    assert "MPIR_CVAR_ENABLE_HEAVY_YIELD" not in found
    chosen = environment(base | {"MPI4PY_LIBMPI": "/site/lib"}, "eth7", oversubscribed=True)
    assert chosen["LD_LIBRARY_PATH"] == "/site/lib"
    assert chosen["MPIR_CVAR_ENABLE_HEAVY_YIELD"] == chosen["MPIR_CVAR_POLLS_BEFORE_YIELD"] == "1"


def test_a_launcher_in_the_environment_does_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    """What srun --mpi=pmi2 sets makes MPI_Init fail where it is kept (research/mpi2.md section 1b)."""
    for name, value in {"PMI_FD": "11", "PMI_RANK": "0", "PMI_SIZE": "4", "SLURM_PROCID": "0", "LD_LIBRARY_PATH": "/nonexistent"}.items():
        monkeypatch.setenv(name, value)
    with Wiring(mpi(2)) as wiring:
        wiring.form(ADDRESS)


def test_interface_of_an_address() -> None:
    assert interface_of("127.0.0.1") == "lo"
    with pytest.raises(NoInterface, match=r"203\.0\.113\.9"):
        interface_of("203.0.113.9")
    assert interface_of(address_towards("127.0.0.1", 9)) == "lo"


def test_spares_are_warm_and_refilled() -> None:
    spares = Spares("mpi", ADDRESS, oversubscribed=True)
    try:
        wait_until(lambda: spares.warm == 2)
        taken = [spares.take(), spares.take(refill=False)]
        assert all(sidecar.ready for sidecar in taken)
        spares.refill()
        check_new_generation(taken)
        wait_until(lambda: spares.warm == 2)
    finally:
        spares.close()


def test_a_spare_that_dies_is_replaced() -> None:
    spares = Spares("mpi", ADDRESS, count=1)
    try:
        wait_until(lambda: spares.warm == 1)
        psutil.Process().children()[0].kill()
        wait_until(lambda: spares.warm == 0)
        spares.refill()
        wait_until(lambda: spares.warm == 1)
    finally:
        spares.close()


def test_spares_that_keep_failing_are_not_started_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPI4PY_LIBMPI", "/nonexistent/libmpi.so.12")
    monkeypatch.setenv("MPI4PY_MPIABI", "openmpi")
    spares = Spares("mpi", ADDRESS, count=1)
    try:
        with pytest.raises(SpareFailed, match="mpi"):
            wait_until(lambda: take_and_fail(spares))
    finally:
        spares.close()


def take_and_fail(spares: Spares) -> bool:
    """Go on as a trainer would: refill, and after some failures take."""
    time.sleep(0.05)
    spares.refill()
    if not spares.filenos():
        spares.take().kill()
    return False


def test_a_failure_is_told() -> None:
    """A port name that is none: the sidecar says so and ends."""
    with Wiring(mpi(1)) as wiring:
        wiring.sidecars[0].send(Form(nonce="nonce", rank=1, size=2, addresses=(ADDRESS, ADDRESS)))
        wiring.sidecars[0].send(GivePort(key="0-1", port="rubbish"))
        wiring.until(lambda: wiring.seen(0, Gone), breaking=())
        assert [event.text for event in wiring.events[0] if isinstance(event, Failed)] == [
            "Refused: no IPv4 address in the MPI port name 'rubbish'"
        ]


def wait_until(true: Callable[[], bool], limit_seconds: float = 30.0) -> None:
    end = time.monotonic() + limit_seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)
