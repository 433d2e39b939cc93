"""The training loop alone against plain torch."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint
from training_parts import DATASET, INPUTS, TARGETS, linear, make, net, run

from commensal import training as loop
from commensal.data import Position, upcoming
from commensal.gradients import GradientError
from commensal.ring import Place, Replica
from commensal.ring.alone import Alone
from commensal.settling import StepInfo
from commensal.training import LoopError, Training


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("micro_batch", [8, 7, 70])
@pytest.mark.parametrize("deterministic", [True, False])
def test_updates_equal_plain_torch(reduction: str, micro_batch: int, deterministic: bool) -> None:
    """Three steps of 32, 32 and 6 samples, in micro-batches that do not divide them, with momentum and clipping."""
    model, plain = linear(), linear()
    training = make(model, epochs=1, micro_batch=micro_batch, clip_norm=0.3, deterministic=deterministic)
    optimizer = torch.optim.SGD(plain.parameters(), lr=0.1, momentum=0.9)
    for inputs, targets in training:
        training.step(functional.cross_entropy(model(inputs), targets, reduction=reduction), loss_reduction=reduction)
    for offset in (0, 32, 64):
        chosen = torch.tensor(upcoming(Position(seed=0, length=70, offset=offset, batch=32), 32))
        functional.cross_entropy(plain(INPUTS[chosen]), TARGETS[chosen]).backward()
        nn.utils.clip_grad_norm_(plain.parameters(), 0.3)
        optimizer.step()
        optimizer.zero_grad()
    assert training.closed == 3
    assert training.epoch == 1
    torch.testing.assert_close(model.state_dict(), plain.state_dict())


def test_zero_grad_and_grad_clearing_change_nothing() -> None:
    model, careless = net(), net()
    run(make(model, steps=4), model)
    optimizer = torch.optim.SGD(careless.parameters(), lr=0.1, momentum=0.9)
    training = Training(careless, optimizer, DATASET, batch_size=32, micro_batch=8, steps=4)
    for inputs, targets in training:
        optimizer.zero_grad(set_to_none=False)
        loss = functional.cross_entropy(careless(inputs), targets)
        careless.zero_grad()
        training.step(loss)
    torch.testing.assert_close(model.state_dict(), careless.state_dict(), rtol=0, atol=0)


def test_running_statistics_are_the_weighted_mean_over_shards() -> None:
    """70 samples in shards of 23, 23 and 24: torch's own statistics of each shard, from the same start, averaged by samples."""
    norm = nn.BatchNorm1d(5)
    model = nn.Sequential(norm, linear())
    shards = run(make(model, steps=1, batch_size=70, micro_batch=25), model)
    sums: dict[str, Tensor] = {"running_mean": torch.zeros(5), "running_var": torch.zeros(5)}
    for shard in shards:
        fresh = nn.BatchNorm1d(5)
        fresh(shard)
        for name in sums:
            sums[name] += getattr(fresh, name) * len(shard) / 70
    assert sorted(map(len, shards)) == [23, 23, 24]
    torch.testing.assert_close({name: getattr(norm, name) for name in sums}, sums)
    assert norm.num_batches_tracked == 1


def test_randomness_belongs_to_the_shard_and_leaves_the_outside_alone() -> None:
    drawn = []
    for outside in (1, 2):
        torch.manual_seed(outside)
        np.random.seed(outside)
        random.seed(outside)
        expected = (torch.initial_seed(), torch.get_rng_state().clone(), random.getstate(), np.random.get_state()[1].tolist())
        model = linear()
        torch.manual_seed(outside)
        training = make(model, steps=2)
        masks = []
        for inputs, targets in training:
            masks.append((torch.rand(1).item(), np.random.rand(), random.random()))
            training.step(functional.cross_entropy(model(inputs), targets))
        drawn.append(masks)
        assert torch.equal(torch.get_rng_state(), expected[1])
        assert random.getstate() == expected[2]
        assert np.random.get_state()[1].tolist() == expected[3]
    assert drawn[0] == drawn[1]
    assert len(set(drawn[0])) == 8


def test_settled_steps_are_told_once_with_exactly_their_parameters() -> None:
    model = net()
    training = make(model, epochs=2)
    told: list[StepInfo] = []
    sums: list[float] = []
    applied = [sum(float(p.detach().sum()) for p in model.parameters())]
    training.on_step(told.append)
    training.on_step(lambda step: sums.append(training.evaluate(lambda m: sum(float(p.sum()) for p in m.parameters()))))
    for inputs, targets in training:
        training.step(functional.cross_entropy(model(inputs), targets))
        if len(applied) < training.closed + 1:
            applied.append(sum(float(p.detach().sum()) for p in model.parameters()))
    assert [step.step for step in told] == [1, 2, 3, 4, 5, 6]
    assert [step.samples for step in told] == [32, 32, 6] * 2
    assert [step.epoch for step in told] == [0, 0, 0, 1, 1, 1]
    assert sums == applied[1:]
    assert training.lead


def test_evaluation_in_the_body_sees_the_closed_state_and_disturbs_nothing() -> None:
    quiet, watched = net(), net()
    run(make(quiet, steps=4), quiet)
    training = make(watched, steps=4)
    for inputs, targets in training:
        loss = functional.cross_entropy(watched(inputs), targets)
        before = watched[1].running_mean.clone()
        seen = training.evaluate(lambda model: (model.training, model[1].running_mean.clone(), torch.rand(1)))
        assert not seen[0]
        assert not torch.equal(seen[1], before)
        assert torch.equal(watched[1].running_mean, before)
        assert watched.training
        training.step(loss)
    torch.testing.assert_close(quiet.state_dict(), watched.state_dict(), rtol=0, atol=0)


def test_sixteen_bits_by_autocast_and_loss_scale() -> None:
    """bfloat16 computes in the body only; a float16 gradient that overflows skips the update and halves the scale."""
    model = linear()
    for inputs, targets in (training := make(model, steps=1, precision="bfloat16")):
        assert model(inputs).dtype == torch.bfloat16
        training.step(functional.cross_entropy(model(inputs), targets))
        assert model(inputs).dtype == torch.float32
    before = model.weight.detach().clone()
    training = make(model, steps=1, precision="float16")
    for inputs, targets in training:
        training.step(functional.cross_entropy(model(inputs), targets) * 1e30 * 1e8)
    assert torch.equal(model.weight, before)
    assert training._replica._update.scaler.get_scale() == 32768.0


@pytest.mark.parametrize(("goal", "steps"), [({"steps": 5}, 5), ({"samples": 65}, 3), ({"epochs": 2}, 6)])
def test_ends_at_its_goal(goal: dict[str, int], steps: int) -> None:
    model = linear()
    training = make(model, **goal)
    run(training, model)
    assert training.closed == steps
    assert run(training, model) == []


class Chosen(Alone):
    """Asks for a global batch."""

    def __init__(self, batch: int) -> None:
        super().__init__(None, 1.0)
        self.batch = batch

    def begin(self, replica: Replica) -> Place:
        return Place(rank=0, size=1, speeds=(1.0,), batch=self.batch)


@pytest.mark.parametrize(("rule", "factor"), [("linear", 2.0), ("sqrt", 2**0.5), (None, 1.0)])
def test_an_elastic_batch_scales_the_rate_of_its_steps(monkeypatch: pytest.MonkeyPatch, rule: str | None, factor: float) -> None:
    """64 samples where 32 are the smallest batch; the ragged rest of 6 belongs to a batch of 64 too; the rate itself stays."""
    monkeypatch.setattr(loop, "_ring", lambda folder, seconds, batches: Chosen(64))
    model, plain = linear(), linear()
    training = make(model, epochs=1, batch_size=(32, 64), lr_rule=rule)
    run(training, model)
    optimizer = torch.optim.SGD(plain.parameters(), lr=0.1 * factor, momentum=0.9)
    for offset in (0, 64):
        chosen = torch.tensor(upcoming(Position(seed=0, length=70, offset=offset, batch=64), 64))
        optimizer.zero_grad()
        functional.cross_entropy(plain(INPUTS[chosen]), TARGETS[chosen]).backward()
        optimizer.step()
    torch.testing.assert_close(model.state_dict(), plain.state_dict())
    assert training.closed == 2


def test_a_batch_outside_the_allowed_range_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "_ring", lambda folder, seconds, batches: Chosen(65))
    model = linear()
    with pytest.raises(ValueError, match=r"a batch of 65 is outside batch_size=\(32, 64\)"):
        run(make(model, epochs=1, batch_size=(32, 64)), model)


class Reentrant(nn.Module):
    """Two reentrant checkpoints over the same layer: its gradient comes in two parts."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.inner = nn.Linear(5, 5), nn.Linear(5, 5)

    def forward(self, inputs: Tensor) -> Tensor:
        once = checkpoint(self.inner, self.first(inputs), use_reentrant=True)
        return checkpoint(self.inner, once, use_reentrant=True)


def test_a_gradient_that_comes_after_its_bucket_is_named() -> None:
    model = Reentrant()
    with pytest.raises(GradientError, match=r"'inner\.(weight|bias)' got a second gradient"):
        run(make(model, steps=1), model)


def test_a_body_without_step_and_a_step_without_body_are_errors() -> None:
    model = linear()
    training = make(model, steps=1)
    with pytest.raises(LoopError, match=r"shard 0 of step 1"):
        for _ in training:
            pass
    with pytest.raises(LoopError, match="without a micro-batch"):
        make(model, steps=1).step(torch.zeros((), requires_grad=True))


def test_a_loss_that_is_no_mean_is_named() -> None:
    model = linear()
    training = make(model, steps=1)
    inputs, targets = next(iter(training))
    with pytest.raises(ValueError, match=r"shape \(8,\)"):
        training.step(functional.cross_entropy(model(inputs), targets, reduction="none"))
    with pytest.raises(ValueError, match="loss_reduction='none'"):
        training.step(model(inputs).sum(), loss_reduction="none")
