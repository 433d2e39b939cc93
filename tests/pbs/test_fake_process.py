"""The fake as a process: jobs are real, and get the environment, the files and the signals of sig.log and tracejob."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pbs_commands import Pbs, until
from pbs_fake import KILL_DELAY_SECONDS, Fake

CAPTURED = Path(__file__).parents[1] / "fixtures" / "pbs" / "sig.log"
TRAPS = "trap 'date +\"TERM %s.%N\" >> {log}; exit 3' TERM\necho $PBS_JOBID >> {log}\nwhile :; do sleep 0.05; done\n"


def test_environment_is_what_mom_gives(pbs: Pbs, tmp_path: Path) -> None:
    log = tmp_path / "environment"
    pbs.qsub(f"env > {log}.part; cat $PBS_NODEFILE >> {log}.part; mv {log}.part {log}", "-q", "scavq", "-v", "FOO=bar", "-o", "/dev/null")
    until(log.exists, "the job to run")
    text = log.read_text()
    theirs = set(re.findall(r"\b(PBS_\w+)=", CAPTURED.read_text()))
    assert theirs == {name for name in re.findall(r"^(\w+)=", text, re.M) if name.startswith("PBS_")}
    assert "PBS_ENVIRONMENT=PBS_BATCH\n" in text
    assert "FOO=bar\n" in text
    assert not re.search(r"^(SLURM|PMI)", text, re.M)
    assert text.splitlines()[-1] in pbs.nodes()


def test_output_is_kept_where_it_was_asked_for(pbs: Pbs, tmp_path: Path) -> None:
    direct = pbs.qsub("echo out; echo err >&2; sleep 60", "-k", "oed", "-j", "oe", "-o", str(tmp_path / "direct"), "-q", "scavq")
    until(lambda: (tmp_path / "direct").exists() and (tmp_path / "direct").read_text() == "out\nerr\n", "output while it runs")
    pbs.run("qdel", direct)
    job = pbs.qsub("echo out; echo err >&2", "-o", f"{tmp_path}/", "-e", str(tmp_path / "errors"))
    until(lambda: (tmp_path / "errors").exists(), "output at the end")
    assert ((tmp_path / f"{job}.OU").read_text(), (tmp_path / "errors").read_text()) == ("out\n", "err\n")


def test_term_comes_at_once_and_the_primary_job_starts_when_the_pilot_is_gone(pbs: Pbs, tmp_path: Path) -> None:
    log, mark = tmp_path / "log", tmp_path / "mark"
    scav = pbs.qsub(TRAPS.format(log=log), "-q", "scavq", "-l", "select=4:ncpus=4", "-o", "/dev/null", "-j", "oe")
    until(log.exists, "the pilot to run")
    began = time.time()
    pbs.qsub(f"date +%s.%N > {mark}", "-q", "primaryq", "-l", "select=1:ncpus=4", "-o", "/dev/null", "-j", "oe")
    until(lambda: mark.exists() and bool(mark.read_text()), "the primary job")
    told = float(log.read_text().split()[2])
    assert told - began < 0.5
    assert float(mark.read_text()) - told < 1.0
    until(lambda: pbs.jobs()[scav].get("run_count") == 2, "the pilot to be back")


def test_kill_comes_after_kill_delay(pbs: Pbs, tmp_path: Path) -> None:
    log = tmp_path / "log"
    job = pbs.qsub(f"trap 'echo heard >> {log}' TERM; echo >> {log}; while :; do sleep 0.05; done", "-q", "scavq", "-o", "/dev/null")
    until(log.exists, "the job to run")
    began = time.monotonic()
    pbs.run("qdel", job)
    until(lambda: job not in pbs.jobs(), "the job to be gone")
    assert KILL_DELAY_SECONDS - 0.5 < time.monotonic() - began < KILL_DELAY_SECONDS + 2.0
    assert "heard" in log.read_text()
    assert (pbs.past(job)["job_state"], pbs.past(job)["Exit_status"]) == ("F", 256 + 9)


def test_suspended_processes_stand_still(pbs: Pbs, fake: Fake, tmp_path: Path) -> None:
    fake.set("sched preempt_order", "S")
    log = tmp_path / "log"
    scav = pbs.qsub(f"while :; do echo >> {log}; sleep 0.02; done", "-q", "scavq", "-l", "select=4:ncpus=4", "-o", "/dev/null")
    until(log.exists, "the job to run")
    prim = pbs.qsub("sleep 2", "-q", "primaryq", "-o", "/dev/null")
    until(lambda: pbs.jobs()[scav]["job_state"] == "S", "the job to be suspended")
    still = log.stat().st_size
    time.sleep(0.5)
    assert log.stat().st_size == still
    until(lambda: prim not in pbs.jobs() and log.stat().st_size > still, "the job to go on")


def test_jobs_run_on_while_the_server_is_away(pbs: Pbs, fake: Fake, tmp_path: Path) -> None:
    job = pbs.qsub(f"sleep 0.5; touch {tmp_path}/done; sleep 60", "-q", "scavq", "-o", "/dev/null")
    fake.away(away=True)
    until(lambda: not (fake.folder / "pbs.sock").exists(), "the server to be away")
    with pytest.raises(subprocess.CalledProcessError) as caught:
        pbs.jobs()
    assert caught.value.stderr == "Connection refused\nqstat: cannot connect to server pbs-f (errno=111)\n"
    until((tmp_path / "done").exists, "the job to go on")
    fake.away(away=False)
    until((fake.folder / "pbs.sock").exists, "the server to be back")
    assert pbs.jobs()[job]["job_state"] == "R"


def test_an_array_is_several_jobs(pbs: Pbs, tmp_path: Path) -> None:
    array = pbs.qsub(f"touch {tmp_path}/$PBS_ARRAY_INDEX; sleep 60", "-J", "3-5", "-q", "scavq", "-o", "/dev/null", "-j", "oe")
    until(lambda: sorted(path.name for path in tmp_path.iterdir()) == ["3", "4", "5"], "the subjobs to run")
    pbs.run("qdel", array)
    until(lambda: not pbs.jobs(), "the array to be gone")


def test_it_does_not_outlive_its_guardian(tmp_path: Path) -> None:
    folder = tmp_path / "pbs"
    with subprocess.Popen(["sleep", "60"]) as guardian:
        command = [sys.executable, "-m", "fakepbs", "up", str(folder), "--guardian", str(guardian.pid)]
        subprocess.run(command, check=True, timeout=30, env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)})
        guardian.kill()
    until(lambda: not (folder / "pid").exists(), "the fake to end")
