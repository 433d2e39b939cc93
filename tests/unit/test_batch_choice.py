"""Which batch trains fastest on so many nodes, and how nodes follow from it."""

from __future__ import annotations

from itertools import product

import msgspec
import numpy as np
import pytest

from commensald.allocate.batch import choose, counts, scaled
from commensald.allocate.elastic import ElasticBatch, efficiency, fastest
from commensald.allocate.throughput import Profile, Throughput
from commensald.decision import Demand

PLAIN = Throughput(alpha_c=0.02, beta_c=0.001, alpha_n=0.05, beta_n=0.005)
TABLES = Profile(processing=((16, 0.05), (32, 0.06), (64, 0.09), (128, 0.3)), communication=((1, 0.0), (2, 0.05), (10, 0.1)))


def training(name: str = "t", **more: object) -> Demand:
    fields = {"owner": "me", "max_nodes": 8, **more}
    return Demand(training=name, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "elastic",
    [
        ElasticBatch(least=32, most=500, times=PLAIN, per_device=64),
        ElasticBatch(least=32, most=500, times=TABLES, per_device=128),
        ElasticBatch(least=20, most=300, times=msgspec.structs.replace(PLAIN, micro_batch=24)),
        ElasticBatch(least=20, most=300, times=msgspec.structs.replace(PLAIN, micro_batch=24), per_device=50),
        ElasticBatch(least=32, most=500, times=PLAIN, noise_scale=80.0),
    ],
)
def test_no_batch_of_the_range_is_faster(elastic: ElasticBatch) -> None:
    batches, progress = fastest(elastic, 10)
    for nodes in range(1, 11):
        limit = min(elastic.most, (elastic.per_device or elastic.most) * nodes)
        every = elastic.progress(np.array(nodes), np.arange(elastic.least, limit + 1))
        assert elastic.least <= batches[nodes - 1] <= limit
        assert progress[nodes - 1] == pytest.approx(every.max(), rel=1e-3)


def test_the_limit_of_a_device_keeps_a_batch_from_few_nodes() -> None:
    elastic = ElasticBatch(least=100, most=500, times=PLAIN, per_device=40)
    assert fastest(elastic, 4)[0] == (0, 0, 120, 160)
    assert [choose(training(elastic=elastic), nodes) for nodes in (2, 3, 13)] == [None, 120, 500]
    assert choose(training(), 3) is None


def test_a_sample_of_a_large_step_is_worth_less_the_lower_the_noise() -> None:
    assert efficiency(np.array([64, 192]), 64, 64.0).tolist() == [1.0, 0.5]
    by_samples = ElasticBatch(least=32, most=4096, times=PLAIN)
    sizes = [fastest(msgspec.structs.replace(by_samples, noise_scale=noise), 4)[0][3] for noise in (10.0, 1000.0, 1e9)]
    assert sizes[0] < sizes[1] < sizes[2] == fastest(by_samples, 4)[0][3] == 4096


def test_scaling_factors_are_relative_to_the_initial_batch_on_one_node() -> None:
    elastic = ElasticBatch(least=32, most=512, times=PLAIN, per_device=64, initial=32)
    curve = dict(scaled(training(elastic=elastic)).curve)
    assert curve[1] == pytest.approx((64 / 0.084) / (32 / 0.052))
    assert curve[8] == pytest.approx((512 / (0.084 + 0.08)) / (32 / 0.052))
    assert scaled(training(curve=((1, 50.0), (2, 80.0)))).curve == ((1, 1.0), (2, 1.6))


def test_everyone_has_its_smallest_size_and_who_came_first_where_not_all_fit() -> None:
    flat = training("flat", elastic=ElasticBatch(least=8, most=8, times=Throughput(alpha_c=1.0, beta_c=0.0)))
    steep = training("steep", elastic=ElasticBatch(least=128, most=1024, times=PLAIN, per_device=64), max_nodes=12)
    assert counts([flat, steep], [0, 0], 10, 120.0) == (1, 9)
    assert counts([flat, steep], [0, 0], 3, 120.0) == (1, 2)
    assert counts([flat, steep], [0, 0], 2, 120.0) == (1, 0)


def test_a_training_too_small_for_its_smallest_batch_gets_nothing() -> None:
    large = training("large", elastic=ElasticBatch(least=256, most=512, times=PLAIN, per_device=64), max_nodes=3)
    assert counts([large, training("small", max_nodes=2, curve=((2, 2.0),))], [0, 0], 8, 120.0) == (0, 2)


def test_a_rescale_that_does_not_pay_is_not_made() -> None:
    elastic = ElasticBatch(least=64, most=512, times=PLAIN, per_device=64)
    dear = training(elastic=elastic, stall_seconds=100.0)
    assert counts([dear], [4], 5, 120.0) == (4,)
    assert counts([dear], [4], 5, 12_000.0) == (5,)


def test_the_sum_of_scaling_factors_is_the_largest_there_is() -> None:
    three = [
        training("a", elastic=ElasticBatch(least=64, most=512, times=PLAIN, per_device=64)),
        training("b", elastic=ElasticBatch(least=100, most=400, times=TABLES, per_device=64), weight=2.0),
        training("c", curve=((1, 10.0), (2, 11.0), (3, 40.0), (8, 60.0)), max_nodes=5),
    ]
    factors = [scaled(each) for each in three]
    worth = [{nodes: dict(each.curve).get(nodes) for nodes in range(each.min_nodes, each.max_nodes + 1)} for each in factors]
    worth[2] |= {nodes: float(np.interp(nodes, *zip(*factors[2].curve, strict=True))) for nodes in worth[2]}
    found = counts(three, [0, 0, 0], 9, 120.0)
    best = max(
        sum(each.weight * float(values[nodes] or 0) for each, values, nodes in zip(three, worth, sizes, strict=True))
        for sizes in product(*worth)
        if sum(sizes) <= 9
    )
    assert sum(found) <= 9
    total = sum(each.weight * float(values[nodes] or 0) for each, values, nodes in zip(three, worth, found, strict=True))
    assert total == pytest.approx(best, rel=1e-6)
