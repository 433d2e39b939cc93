"""What cannot be trained is refused by name, before it costs anything."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from training_parts import DATASET, linear, make, run

from commensal.gradients import GradientError
from commensal.refusals import CrossSampleStateError
from commensal.training import Training


class Counting(nn.Module):
    """Keeps a mean over all samples seen."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = linear()
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, inputs: Tensor) -> Tensor:
        self.seen += len(inputs)
        return self.inner(inputs)


@pytest.mark.parametrize(
    ("layer", "named"),
    [
        (nn.SyncBatchNorm(5), "'0' is a SyncBatchNorm"),
        (nn.utils.parametrizations.spectral_norm(nn.Linear(5, 5)), "'0.parametrizations.weight.0' uses spectral_norm"),
        (nn.utils.spectral_norm(nn.Linear(5, 5)), "'0' uses spectral_norm"),
        (nn.LazyLinear(5), "'0' is a LazyLinear"),
    ],
)
def test_state_across_samples_is_refused(layer: nn.Module, named: str) -> None:
    with pytest.raises(CrossSampleStateError, match=re.escape(named)):
        make(nn.Sequential(layer, linear()), steps=1)


def test_a_buffer_that_a_forward_changes_is_refused_in_the_first_step() -> None:
    model = Counting()
    with pytest.raises(CrossSampleStateError, match="'seen'"):
        run(make(model, steps=1), model)


@pytest.mark.parametrize(
    ("options", "error", "named"),
    [
        ({"batch_size": 0}, ValueError, "batch_size=0"),
        ({"batch_size": (64, 32)}, ValueError, "batch_size=(64, 32)"),
        ({"batch_size": 2.5}, TypeError, "batch_size=2.5"),
        ({"micro_batch": 0}, ValueError, "micro_batch=0"),
        ({"epochs": 1}, ValueError, "epochs=1, steps=1"),
        ({"steps": None}, ValueError, "given: none"),
        ({"steps": True}, TypeError, "steps=True"),
        ({"clip_norm": -1.0}, ValueError, "clip_norm=-1.0"),
        ({"clip_norm": float("nan")}, ValueError, "clip_norm=nan"),
        ({"precision": "half"}, ValueError, "precision='half'"),
        ({"deterministic": "yes"}, TypeError, "deterministic='yes'"),
        ({"deterministic": True, "precision": "float16"}, ValueError, "deterministic=True"),
        ({"deterministic": True, "batch_size": 8192, "micro_batch": 1}, ValueError, "8192 shards"),
        ({"lr_rule": "cubic"}, ValueError, "lr_rule='cubic'"),
        ({"checkpoint_seconds": -1.0}, ValueError, "checkpoint_seconds=-1.0"),
        ({"seed": -1}, ValueError, "seed=-1"),
    ],
)
def test_arguments_are_named_with_their_value(options: dict[str, Any], error: type[Exception], named: str) -> None:
    with pytest.raises(error, match=re.escape(named)):
        make(linear(), **{"steps": 1, **options})


def test_parameters_that_do_not_fit_are_named() -> None:
    with pytest.raises(ValueError, match=r"'bias' is torch.float64|'weight' is torch.float64"):
        make(linear().double(), steps=1)
    with pytest.raises(ValueError, match="no parameter that requires"):
        make(linear().requires_grad_(False), steps=1)
    foreign = torch.optim.SGD([*(model := linear()).parameters(), nn.Parameter(torch.ones(4))], lr=0.1)
    with pytest.raises(ValueError, match=r"parameter 2 of optimizer group 0 \(shape \(4,\)\)"):
        Training(model, foreign, DATASET, batch_size=4, steps=1)


def test_datasets_and_schedulers_that_do_not_fit_are_named() -> None:
    model = linear()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(TypeError, match="DataLoader"):
        Training(model, optimizer, torch.utils.data.DataLoader(DATASET), batch_size=4, steps=1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="ReduceLROnPlateau"):
        make(model, steps=1, scheduler=torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer))


def test_frozen_parameters_stay_and_a_thaw_is_noticed() -> None:
    model = nn.Sequential(linear(), nn.Linear(3, 3))
    model[0].requires_grad_(False)
    before = model[0].weight.clone()
    training = make(model, steps=4)

    def thaw() -> None:
        for inputs, targets in training:
            model[0].weight.requires_grad_(training.closed == 2)
            training.step(nn.functional.cross_entropy(model(inputs), targets))

    with pytest.raises(GradientError, match=r"requires_grad of 0\.weight"):
        thaw()
    assert training.closed == 2
    assert torch.equal(model[0].weight, before)
