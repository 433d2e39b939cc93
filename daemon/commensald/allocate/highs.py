"""Mixed-integer linear programmes, built by arrays of columns and rows and solved with HiGHS (extra ``milp``)."""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from commensald.strict import InputError

Floats = NDArray[np.float64]
Columns = NDArray[np.int32]


_STRICT = {
    "output_flag": False,
    "mip_rel_gap": 0.0,
    "mip_abs_gap": 0.0,
    "mip_feasibility_tolerance": 1e-9,
    "primal_feasibility_tolerance": 1e-9,
    "dual_feasibility_tolerance": 1e-9,
}
_LARGEST_GAIN = 1_000.0
"""Gains are scaled to it: what is better by less than an absolute tolerance HiGHS does not look for."""


class Solution(msgspec.Struct, frozen=True, kw_only=True):
    """What HiGHS found: a value for each column if ``optimal``, HiGHS's own word for it, its seconds."""

    optimal: bool
    infeasible: bool
    status: str
    values: Floats
    seconds: float


class Programme:
    """Columns of [0, upper], whose gains are maximised within rows of at_least <= sum <= at_most."""

    def __init__(self) -> None:
        self._upper, self._gains, self._integer = _Stack(np.float64), _Stack(np.float64), _Stack(np.int32)
        self._starts, self._columns, self._coefficients = _Stack(np.int32), _Stack(np.int32), _Stack(np.float64)
        self._at_least, self._at_most = _Stack(np.float64), _Stack(np.float64)

    def columns(self, *shape: int, upper: ArrayLike = 1.0, gain: ArrayLike = 0.0, integer: bool = True) -> Columns:
        """New columns, their numbers in the given shape; ``upper`` and ``gain`` are broadcast to it."""
        first = self._upper.size
        for stack, filling in ((self._upper, upper), (self._gains, gain), (self._integer, integer)):
            stack.add(np.broadcast_to(filling, shape))
        return np.arange(first, self._upper.size, dtype=np.int32).reshape(shape)

    def rows(self, *terms: tuple[ArrayLike, Columns], at_least: ArrayLike = -math.inf, at_most: ArrayLike = math.inf) -> None:
        """As many new rows as each term (coefficients, columns) has; columns of a second axis are added up."""
        columns = [_upright(each) for _, each in terms]
        coefficients = [np.broadcast_to(_upright(factor), each.shape) for (factor, _), each in zip(terms, columns, strict=True)]
        sums = np.concatenate(columns, axis=1)
        self._starts.add(self._columns.size + np.arange(len(sums)) * sums.shape[1])
        self._columns.add(sums)
        self._coefficients.add(np.concatenate(coefficients, axis=1))
        self._at_least.add(np.broadcast_to(at_least, len(sums)))
        self._at_most.add(np.broadcast_to(at_most, len(sums)))

    def solve(self, limit_seconds: float, start: tuple[Columns, ArrayLike] | None = None) -> Solution:
        """The optimum, proved, or none; ``start`` are columns and values to begin with. Raises InputError without highspy."""
        highspy = load()
        solver = highspy._core._Highs()  # Highs itself greets on stdout, where --json goes
        for name, setting in (*_STRICT.items(), ("time_limit", limit_seconds)):
            solver.setOptionValue(name, setting)
        solver.passModel(self._model(highspy))
        if start is not None:
            columns, values = start
            solver.setSolution(columns.size, columns.ravel(), np.asarray(values, np.float64).ravel())
        solver.run()
        status = solver.getModelStatus()
        return Solution(
            optimal=status == highspy.HighsModelStatus.kOptimal,
            infeasible=status == highspy.HighsModelStatus.kInfeasible,
            status=solver.modelStatusToString(status),
            values=np.array(solver.getSolution().col_value),
            seconds=solver.getRunTime(),
        )

    def _model(self, highspy: ModuleType) -> object:
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = self._upper.size, self._starts.size
        gains = self._gains.whole()
        model.col_cost_ = gains * (_LARGEST_GAIN / (np.abs(gains).max(initial=0.0) or 1.0))
        model.sense_ = highspy.ObjSense.kMaximize
        model.col_lower_, model.col_upper_ = np.zeros(self._upper.size), self._upper.whole()
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        model.integrality_ = [kinds[each] for each in self._integer.whole()]
        model.row_lower_, model.row_upper_ = self._at_least.whole(), self._at_most.whole()
        model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        model.a_matrix_.start_ = np.append(self._starts.whole(), np.int32(self._columns.size))
        model.a_matrix_.index_, model.a_matrix_.value_ = self._columns.whole(), self._coefficients.whole()
        return model


def load() -> ModuleType:
    """The module highspy. Raises InputError, saying what to install, where it is missing."""
    try:
        import highspy
    except ImportError as error:
        raise InputError("the allocator 'milp' needs HiGHS: pip install 'commensal[milp]'") from error
    return highspy


class _Stack:
    """Arrays laid end to end."""

    def __init__(self, kind: type[np.float64] | type[np.int32]) -> None:
        self._kind, self._parts, self.size = kind, [], 0  # type: ignore[var-annotated]

    def add(self, part: NDArray[Any]) -> None:
        self._parts.append(part.astype(self._kind).ravel())
        self.size += part.size

    def whole(self) -> NDArray[Any]:
        return np.concatenate(self._parts) if self._parts else np.zeros(0, self._kind)


def _upright(each_row: ArrayLike) -> NDArray[Any]:
    """One entry for each row as a column, so that it is broadcast along the rows."""
    entries = np.asarray(each_row)
    return entries[:, None] if entries.ndim == 1 else entries
