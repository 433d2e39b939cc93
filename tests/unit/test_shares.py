"""Equal shares, by hand."""

from __future__ import annotations

import pytest

from commensald.allocate.shares import equal, equal_fair
from commensald.decision import Demand


def trainings(*limits: tuple[int, int]) -> list[Demand]:
    return [Demand(training=f"t{index}", owner="me", min_nodes=least, max_nodes=most) for index, (least, most) in enumerate(limits)]


@pytest.mark.parametrize(
    ("limits", "nodes", "sizes"),
    [
        (((1, 64),) * 3, 10, (4, 3, 3)),
        (((1, 4), (1, 64), (1, 5)), 20, (4, 11, 5)),
        (((1, 64),) * 3, 5, (5, 0, 0)),
        (((1, 2),) * 3, 5, (2, 2, 1)),
        (((4, 8), (1, 8), (4, 8)), 9, (6, 3, 0)),
        (((4, 8), (3, 8)), 3, (0, 3)),
        ((), 3, ()),
    ],
)
def test_the_authors_rule_gives_a_share_only_above_the_minimum_and_the_rest_to_the_first(
    limits: tuple[tuple[int, int], ...], nodes: int, sizes: tuple[int, ...]
) -> None:
    assert equal(trainings(*limits), [0] * len(limits), nodes, 120.0) == sizes


@pytest.mark.parametrize(
    ("limits", "nodes", "sizes"),
    [
        (((1, 64),) * 3, 11, (4, 4, 3)),
        (((1, 64),) * 3, 2, (1, 1, 0)),
        (((1, 4), (1, 64), (1, 5)), 20, (4, 11, 5)),
        (((1, 2),) * 3, 50, (2, 2, 2)),
        (((4, 8), (1, 8), (4, 8)), 9, (5, 4, 0)),
        (((4, 8), (3, 8)), 3, (0, 3)),
        ((), 3, ()),
    ],
)
def test_equal_fair_spreads_the_remainder_one_each(limits: tuple[tuple[int, int], ...], nodes: int, sizes: tuple[int, ...]) -> None:
    assert equal_fair(trainings(*limits), [0] * len(limits), nodes, 120.0) == sizes
