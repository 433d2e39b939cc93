"""The state of a training that membership and checkpoints move about."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import msgspec
import torch
from torch import nn

from commensal import checkpoint
from commensal.data import Position
from commensal.manifest import CheckpointError
from commensal.noise import Moments
from commensal.state import StateError, Tree, blank, flatten, unflatten
from commensal.update import Update


class TrainingReplica:
    """Model, optimizer, scheduler, loss scale and position in the data: a ring.Replica.

    The state at construction is kept, so that a member can begin anew as if it had never stepped.
    """

    def __init__(self, model: nn.Module, update: Update, position: Position, folder: Path | None) -> None:
        self.position = position
        self.moments = Moments()
        """Of the gradient, over the steps closed: what the noise scale is worked out from."""
        self._model = model
        self._update = update
        self._folder = folder
        header, tensors = self.export()
        self._fresh = header, [tensor.clone() for tensor in tensors]

    @property
    def closed(self) -> int:
        """Steps in this state."""
        return self.position.closed

    @property
    def signature(self) -> str:
        """Equal for two processes exactly when they can be members of one ring: same parameters, buffers, optimizer and data length."""
        return hashlib.sha256(self._fresh[0]).hexdigest()

    def export(self) -> tuple[bytes, Sequence[torch.Tensor]]:
        """A header that fully describes the tensors, and the tensors; they may share memory with the live state."""
        scheduler = self._update.scheduler
        return flatten(
            {
                "kinds": self._kinds(),
                "model": self._model.state_dict(),
                "optimizer": self._update.optimizer.state_dict(),
                "scheduler": None if scheduler is None else scheduler.state_dict(),
                "scaler": self._update.scaler.state_dict(),
                "position": msgspec.to_builtins(self.position),
                "moments": msgspec.to_builtins(self.moments),
            }
        )

    def _kinds(self) -> list[str]:
        return [type(part).__name__ for part in (self._model, self._update.optimizer, self._update.scheduler)]

    def blank(self, header: bytes) -> Sequence[torch.Tensor]:
        """Empty tensors as the header describes them."""
        return blank(header)

    def load(self, header: bytes, tensors: Sequence[torch.Tensor]) -> None:
        """Become that state. Raises StateError when it belongs to another model, seed or dataset."""
        tree = unflatten(header, tensors)
        position = msgspec.convert(tree["position"], Position)
        if (position.seed, position.length) != (self.position.seed, self.position.length):
            raise self._foreign(
                f"the state belongs to seed {position.seed} and {position.length} samples, "
                f"this training has seed {self.position.seed} and {self.position.length}"
            )
        if tree["kinds"] != self._kinds():
            raise self._foreign(f"the state was written by {tree['kinds']}, this training has {self._kinds()}")
        try:
            self._model.load_state_dict(tree["model"])
            self._update.optimizer.load_state_dict(_cloned(tree["optimizer"]))
        except (RuntimeError, ValueError) as error:
            raise self._foreign(f"the state belongs to another model or optimizer: {error}") from error
        if self._update.scheduler is not None:
            self._update.scheduler.load_state_dict(tree["scheduler"])
        if tree["scaler"] and self._update.scaler.is_enabled():
            self._update.scaler.load_state_dict(tree["scaler"])
        self.position = position
        self.moments = msgspec.convert(tree.get("moments", ()), Moments)

    def _foreign(self, words: str) -> StateError:
        """Members are of one model: a state of another can only have come from the folder."""
        return StateError(words if self._folder is None else f"{self._folder / 'checkpoints'}: {words}")

    def resume(self, closed: int) -> None:
        """Become the state after ``closed`` steps from disk, or the fresh one for 0. Raises CheckpointError when there is none."""
        if closed == 0:
            self.load(*self._fresh)
            return
        if self._folder is None:
            raise CheckpointError(f"no folder to load step {closed} from")
        self.load(*checkpoint.load(checkpoint.find(self._folder, closed)))


def _cloned(value: Tree) -> Tree:
    if isinstance(value, torch.Tensor):
        return value.clone()
    if isinstance(value, dict):
        return {key: _cloned(item) for key, item in value.items()}
    return [_cloned(item) for item in value] if isinstance(value, list) else value
