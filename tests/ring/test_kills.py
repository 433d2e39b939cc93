"""Members killed without notice at random instants, again and again: each time the ring recovers and nothing settled is lost.

COMMENSAL_KILLS sets how many; the measured claim of fifty is this test with COMMENSAL_KILLS=50.
"""

from __future__ import annotations

import os
import random
import statistics
import time
from pathlib import Path

import psutil
import pytest
from stage import Stage

SCRIPT = Path(__file__).parent / "scripts" / "training.py"
KILLS = int(os.environ.get("COMMENSAL_KILLS", "8"))


def shared_memory() -> set[str]:
    """Segments that MPICH might leave behind."""
    return {path.name for path in Path("/dev/shm").iterdir()}


@pytest.mark.timeout(60 + 30 * KILLS)
def test_random_kills_lose_nothing(tmp_path: Path) -> None:
    before = shared_memory()
    chance = random.Random(KILLS)
    recoveries: list[float] = []
    with Stage(tmp_path, SCRIPT) as stage:
        stage.join(3)
        stage.wait_ring(3)
        for _ in range(KILLS):
            time.sleep(chance.uniform(0.0, 0.5))
            killed, generations = time.time(), len(stage.of("generation"))
            stage.kill(chance.choice(sorted(stage.members)))
            stage.wait(lambda known=generations: any(newer(stage, step, known) for step in stage.of("step")[-50:]))
            recoveries.append(next(step["at"] for step in stage.of("step")[-1000:] if newer(stage, step, generations)) - killed)
            stage.join()
            stage.wait_ring(3)
        processes = list(stage.members.values())
        lost = len(stage.of("member.lost"))
        steps = [step["step"] for step in stage.of("step")]
    print(
        f"{KILLS} kills: recovery median {statistics.median(recoveries):.3f} s, longest {max(recoveries):.3f} s, {len(steps)} steps settled"
    )
    assert steps == list(range(1, len(steps) + 1))
    assert stage.of("steps.lost") == []
    assert lost == KILLS
    assert all(process.poll() is not None for process in processes)
    left = [process for process in psutil.process_iter(["cmdline", "environ"]) if str(tmp_path) in str(process.info["environ"])]
    assert psutil.wait_procs(left, 3)[1] == []
    assert shared_memory() <= before


def newer(stage: Stage, step: dict[str, object], generations: int) -> bool:
    """The step was closed by a ring that was formed after the first ``generations``."""
    return step["generation"] in [event["generation"] for event in stage.of("generation")[generations:]]
