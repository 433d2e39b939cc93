"""Programmes small enough to solve by hand, and what is said where HiGHS is missing."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from commensald import plausible
from commensald.allocate.highs import Programme
from commensald.config import load
from commensald.strict import InputError


def test_rows_add_up_terms_along_their_second_axis() -> None:
    pytest.importorskip("highspy")
    programme = Programme()
    pairs = programme.columns(2, 2, upper=5.0, gain=[[1.0, 2.0], [3.0, 1.0]])
    whole = programme.columns(2, upper=9.0, integer=False)
    programme.rows((1.0, pairs), (-1.0, whole), at_least=0.0, at_most=0.0)
    programme.rows((1.0, whole), at_most=[3.0, 4.0])
    programme.rows(([2.0, 1.0], pairs[:, 0]), at_most=[5.0, 2.5])
    found = programme.solve(10.0, (whole, [0.0, 0.0]))
    assert found.optimal
    assert not found.infeasible
    assert np.rint(found.values[pairs]).tolist() == [[0, 3], [2, 2]]
    assert found.values[whole].tolist() == pytest.approx([3.0, 4.0])


def test_what_cannot_be_is_said_to_be_infeasible() -> None:
    pytest.importorskip("highspy")
    programme = Programme()
    programme.rows((1.0, programme.columns(2)), at_least=[1.0, 2.0])
    found = programme.solve(10.0)
    assert (found.optimal, found.infeasible) == (False, True)


def test_without_highspy_a_solver_and_a_configuration_say_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "highspy", None)
    with pytest.raises(InputError, match=r"pip install 'commensal\[milp\]'"):
        Programme().solve(1.0)
    monkeypatch.setattr(plausible, "find_spec", lambda name: None)
    path = tmp_path / "c.toml"
    path.write_text("[allocate]\nallocator = 'milp'\n")
    with pytest.raises(InputError, match=r"allocate.allocator: 'milp' needs HiGHS: pip install 'commensal\[milp\]'"):
        load(path, {})
