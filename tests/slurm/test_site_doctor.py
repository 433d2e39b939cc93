"""`commensal doctor` of an ordinary user on a real Slurm, as it is and as an administrator could have got it wrong."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
from installation import ASK, Installation

PARTITION = ("scontrol", "update", "partitionname=scavenger")


def doctor(where: Installation, *words: str) -> tuple[int, dict[str, Any]]:
    """Exit code and answer."""
    where._configure({})
    command = [where.account.python, *ASK, "--config", str(where.folder / "commensal.toml"), "doctor", "--json", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False, **where.account.options(where.environment))
    return done.returncode, json.loads(done.stdout)


def test_a_good_site_is_found_good_and_a_ring_is_formed(where: Installation) -> None:
    code, answer = doctor(where)
    wrong = {each["check"]: each["words"] for each in answer["findings"] if each["severity"] in ("harm", "fault")}
    assert (code, answer["hurts"], wrong) == (0, False, {})
    found = {each["check"]: each["severity"] for each in answer["findings"]}
    assert found["MPI"] == found["route"] == found["permission"] == found["partition tier"] == "good"


def test_a_slow_epilog_is_measured_and_nothing_of_the_trial_is_left(where: Installation) -> None:
    conf, epilog = where.folder / "slurm" / "etc" / "slurm.conf", where.folder / "trainings" / "epilog"
    where.account.run(["sh", "-c", 'printf "#!/bin/sh\\nsleep 3\\n" > "$0" && chmod 755 "$0"', str(epilog)], {})
    before = conf.read_text()
    conf.write_text(f"{before}Epilog={epilog}\n")
    try:
        where.slurm("scontrol", "reconfigure")
        code, answer = doctor(where, "--trial", "--no-ring")
    finally:
        conf.write_text(before)
        where.slurm("scontrol", "reconfigure")
    found = {each["check"]: (each["severity"], each["words"]) for each in answer["findings"]}
    assert code == 1
    assert found["prolog and epilog"][0] == "harm"
    assert float(found["prolog and epilog"][1].partition("is free ")[2].split()[0]) >= 2.5
    assert found["pilots' folder"][0] == found["route"][0] == found["trial job"][0] == "good"
    assert list((where.folder / "pilots").glob("doctor-*")) == []


@pytest.mark.parametrize(
    ("change", "undo", "check", "severity", "code"),
    [
        ("prioritytier=10", "prioritytier=1", "partition tier", "harm", 1),
        ("preemptmode=off", "preemptmode=requeue", "preempt mode", "harm", 1),
        ("gracetime=0", "gracetime=4", "grace", "advice", 0),
        ("state=down", "state=up", "permission", "fault", 0),
        ("oversubscribe=force:2", "oversubscribe=no", "sharing", "harm", 1),
    ],
)
def test_a_wrong_partition_is_told(where: Installation, change: str, undo: str, check: str, severity: str, code: int) -> None:
    where.slurm(*PARTITION, change)
    try:
        got, answer = doctor(where, "--no-ring")
    finally:
        where.slurm(*PARTITION, undo)
    assert (check, severity) in [(each["check"], each["severity"]) for each in answer["findings"]]
    assert got == code
