"""The autoscaler between a daemon's demands and its decisions."""

from __future__ import annotations

import msgspec
import pytest

from commensald.allocate.exact import counts
from commensald.allocate.units import speedup
from commensald.config import AllocateSection, Config
from commensald.decision import Demand
from commensald.plausible import faults
from commensald.scaling import Scaling

SECTION = AllocateSection(allocator="batch", autoscale=True, autoscale_seconds=100.0)


def demand(name: str, **more: object) -> Demand:
    return Demand(training=name, owner="me", **{"max_nodes": 4, "curve": ((1, 1.0), (4, 4.0)), **more})  # type: ignore[arg-type]


def test_without_an_interval_nothing_is_held() -> None:
    asked = (demand("a"), demand("b"))
    assert Scaling().hold(asked, 2, 0.0, AllocateSection()) == (asked, ())


def test_between_intervals_a_training_keeps_its_share_and_an_arrival_waits() -> None:
    scaling = Scaling()
    (first,), rejected = scaling.hold((demand("a"),), 3, 0.0, SECTION)
    assert (first.active, first.max_nodes, rejected) == (True, 3, ())
    held, _ = scaling.hold((demand("a"), demand("b")), 4, 50.0, SECTION)
    assert [(each.max_nodes, each.active) for each in held] == [(3, True), (1, False)]
    held, _ = scaling.hold((demand("a"), demand("b")), 4, 100.0, SECTION)
    assert [each.active for each in held] == [True, True]
    assert sum(each.max_nodes for each in held) == 4


def test_who_does_not_fit_is_rejected_if_so_configured() -> None:
    section = msgspec.structs.replace(SECTION, autoscale_rejects=True)
    held, rejected = Scaling().hold((demand("a"), demand("wide", min_nodes=4)), 3, 0.0, section)
    assert rejected == ("wide",)
    assert [each.active for each in held] == [True, False]


def test_one_that_pauses_has_to_arrive_again() -> None:
    scaling = Scaling()
    scaling.hold((demand("a"),), 2, 0.0, SECTION)
    scaling.hold((demand("a", active=False),), 2, 10.0, SECTION)
    held, _ = scaling.hold((demand("a"),), 2, 20.0, SECTION)
    assert not held[0].active


@pytest.mark.parametrize(("allocator", "wrong"), [("exact", True), ("batch", False)])
def test_it_needs_the_allocator_of_batches(allocator: str, wrong: bool) -> None:
    config = msgspec.convert({"allocate": {"allocator": allocator, "autoscale": True}}, Config)
    assert ("allocate.autoscale" in dict(faults(config))) == wrong


def test_in_speedups_a_quick_model_does_not_starve_a_slow_one() -> None:
    quick = demand("quick", curve=((1, 8000.0), (2, 12000.0), (4, 16000.0)))
    slow = demand("slow", curve=((1, 1.0), (2, 2.0), (4, 4.0)))
    assert counts([quick, slow], [0, 0], 4, 120.0) == (4, 0)
    assert counts([speedup(quick), speedup(slow)], [0, 0], 4, 120.0) == (1, 3)
    assert speedup(demand("wide", min_nodes=2, curve=((2, 10.0), (4, 16.0)))).curve == ((2, 2.0), (4, 3.2))
