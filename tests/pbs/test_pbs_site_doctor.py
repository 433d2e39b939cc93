"""`commensal doctor` under PBS, on a good site and on one that an administrator could have got wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pbs_commands import Pbs
from pbs_fake import KILL_DELAY_SECONDS, Fake
from pbs_house import PbsHouse

ASK = (sys.executable, "-c", "from commensald.cli.commensal import main; main()")


@pytest.fixture
def site(pbs: Pbs, fake: Fake, tmp_path: Path) -> Iterator[PbsHouse]:
    """All queues but the pilots' are express queues. No daemon runs."""
    fake.set("queue workq priority", "150")
    yield PbsHouse(tmp_path, pbs, "127.0.0.1")
    fake.set("queue scavq priority", "10")
    fake.set("queue scavq kill_delay", str(KILL_DELAY_SECONDS))


def found(site: PbsHouse, *words: str) -> dict[str, tuple[str, str]]:
    """Check -> (severity, words)."""
    command = [*ASK, "--config", str(site.folder / "commensal.toml"), "doctor", "--json", "--no-ring", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    findings: list[dict[str, Any]] = json.loads(done.stdout)["findings"]
    return {each["check"]: (each["severity"], each["words"]) for each in findings}


def test_a_good_site_is_found_good_and_a_trial_job_runs(site: PbsHouse) -> None:
    seen = found(site, "--trial")
    assert {seen[check][0] for check in ("queue", "queue priority", "preempt_order", "query_other_jobs", "qstat", "trial job")} == {"good"}
    assert not [check for check, (severity, _) in seen.items() if severity == "harm"]
    assert site.pbs.jobs() == {}


@pytest.mark.parametrize(
    ("what", "value", "check", "severity"),
    [
        ("queue scavq priority", "200", "queue priority", "harm"),
        ("sched preempt_order", "S", "preempt_order", "harm"),
        ("queue scavq kill_delay", "1", "kill_delay", "advice"),
    ],
)
def test_a_wrong_setting_is_told(site: PbsHouse, fake: Fake, what: str, value: str, check: str, severity: str) -> None:
    fake.set(what, value)
    assert found(site)[check][0] == severity
