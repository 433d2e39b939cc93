"""`commensal doctor` on a PBS, with a trial job."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import toml
from pbs_commands import Pbs

ASK = (sys.executable, "-c", "from commensald.cli.commensal import main; main()")


def doctor(pbs: Pbs, folder: Path, *words: str) -> tuple[int, dict[str, tuple[str, str]]]:
    """Exit code, and severity and words of each check."""
    found = shutil.which("qstat")
    assert found is not None
    tables: dict[str, Any] = {
        "daemon": {"bind": "127.0.0.1"},
        "scheduler": {"kind": "pbs", "path": str(Path(found).parent)},
        "pilots": {"folder": str(folder / "pilots"), "partition": pbs.scavenger},
    }
    (folder / "commensal.toml").write_text(toml.dumps(tables))
    command = [*ASK, "--config", str(folder / "commensal.toml"), "doctor", "--json", "--no-ring", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    findings = json.loads(done.stdout)["findings"]
    return done.returncode, {each["check"]: (each["severity"], each["words"]) for each in reversed(findings)}


def test_a_trial_job_runs_where_pilots_go_and_leaves_nothing(pbs: Pbs, tmp_path: Path) -> None:
    code, found = doctor(pbs, tmp_path, "--trial")
    assert found["trial job"][0] == found["pilots' folder"][0] == found["prolog and epilog"][0] == "good", found
    assert found["preempt_order"][0] == found["query_other_jobs"][0] == found["qstat"][0] == "good"
    assert found["kill_delay"][0] == "advice"  # 5 s on the fake
    assert code == 1
    assert "workq" in found["queue priority"][1]  # the fake has a queue that cannot preempt
    assert list((tmp_path / "pilots").iterdir()) == []
    assert pbs.jobs() == {}
