"""A ring under PBS loses a node by suspension and by deletion (preempt_order, pbs_sched_attributes(7B)), goes on, and gets it back.

Requeueing is what test_pbs_harvest.py plays; pilots are never checkpointed (``-c n``), so that C leaves it to the next method.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pbs_commands import Pbs, until
from pbs_fake import Fake
from pbs_house import PbsHouse

from commensald.demo.history import history
from commensald.demo.record import read

STARTS_SECONDS = {"SR": 1.0, "CD": 3.0}
"""Bounds that a busy machine can keep."""


def takes_a_node(house: PbsHouse, order: str, seconds: float) -> None:
    """A ring of two is one member alone while a primary job runs."""
    pbs = house.pbs
    house.filled(2)
    where = f"select=1:host={min(house.members())}:ncpus=4"
    job = pbs.qsub("sleep 8", "-q", pbs.primary, "-l", where, "-l", "walltime=1:00", "-o", "/dev/null", "-j", "oe")
    until(lambda: pbs.jobs()[job]["job_state"] == "R", f"the primary job, by {order}", seconds)
    until(lambda: len(house.members()) == 1, f"a member alone after {order}")
    until(lambda: job not in pbs.jobs(), "the primary job to end")


@pytest.mark.timeout(400)
def test_other_methods_than_requeueing_take_a_node_at_once_and_no_step(pbs: Pbs, fake: Fake, tmp_path: Path) -> None:
    with PbsHouse(tmp_path, pbs, "127.0.0.1", pilots={"standing": 0}) as house:
        house.begin()
        house.give("digits", 2)
        for order, seconds in STARTS_SECONDS.items():
            fake.set("sched preempt_order", order)
            takes_a_node(house, order, seconds)
        house.filled(2)
        house.run("drain")
        past = history("digits", read([json.loads(line) for line in (tmp_path / "events").read_text().splitlines()]))
        assert (past.lost, past.repeated) == (0, 0)
        assert len(past.steps) > 50
