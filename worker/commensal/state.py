"""State dictionaries as a JSON header and a list of tensors, and back. No pickle: what JSON cannot say is refused by name."""

from __future__ import annotations

import json
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch

DTYPES = {
    "float64": torch.float64,
    "float32": torch.float32,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "int64": torch.int64,
    "int32": torch.int32,
    "int16": torch.int16,
    "int8": torch.int8,
    "uint8": torch.uint8,
    "bool": torch.bool,
}

Tree: TypeAlias = Any
"""Nested dictionaries, lists and tuples of tensors, numbers and text, as ``state_dict()`` gives them."""


class StateError(ValueError):
    """A state that cannot be written, or does not belong to this training."""


def flatten(tree: Tree) -> tuple[bytes, list[torch.Tensor]]:
    """A header that fully describes the tensors, the same bytes for the same state, and the tensors (detached, contiguous, on the CPU).

    Raises StateError naming the path of a value that is neither a tensor nor JSON.
    """
    tensors: list[torch.Tensor] = []
    encoded = _encode(tree, "", tensors)
    shapes = [{"dtype": str(t.dtype).removeprefix("torch."), "shape": list(t.shape)} for t in tensors]
    return json.dumps({"tensors": shapes, "tree": encoded}, separators=(",", ":")).encode(), tensors


def blank(header: bytes) -> list[torch.Tensor]:
    """Empty tensors as the header describes them."""
    return [torch.empty(entry["shape"], dtype=DTYPES[entry["dtype"]]) for entry in _read(header)["tensors"]]


def unflatten(header: bytes, tensors: Sequence[torch.Tensor]) -> Tree:
    """The tree again; it holds the given tensors. Raises StateError when header and tensors do not match."""
    content = _read(header)
    found = [(str(tensor.dtype).removeprefix("torch."), list(tensor.shape)) for tensor in tensors]
    if found != [(entry["dtype"], entry["shape"]) for entry in content["tensors"]]:
        raise StateError(f"{len(found)} tensors do not match a header of {len(content['tensors'])}")
    return _decode(content["tree"], tensors)


def _read(header: bytes) -> dict[str, Any]:
    content = json.loads(header)
    if not isinstance(content, dict) or not {"tensors", "tree"} <= content.keys():
        raise StateError(f"not a state header: {header[:80]!r}")
    return content


def _encode(value: Tree, path: str, tensors: list[torch.Tensor]) -> Tree:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, torch.Tensor):
        return _encode_tensor(value, path, tensors)
    if isinstance(value, (list, tuple)):
        items = [_encode(item, f"{path}[{index}]", tensors) for index, item in enumerate(value)]
        return items if type(value) is list else {"$tuple": items}
    if type(value) not in (dict, OrderedDict, Counter):
        raise StateError(f"{path} is a {type(value).__name__}: only tensors, numbers, text, lists, tuples and dicts can be saved")
    keys = sorted(value, key=lambda key: (str(type(key)), key))
    pairs = [(key, _encode(value[key], f"{path}.{key}".lstrip("."), tensors)) for key in keys]
    if type(value) is not Counter and all(isinstance(key, str) and not key.startswith("$") for key in keys):
        return dict(pairs)
    if not all(isinstance(key, (int, str)) for key in keys):
        raise StateError(f"{path} has keys that are neither text nor integers")
    return {"$counter" if type(value) is Counter else "$dict": [list(pair) for pair in pairs]}


def _encode_tensor(value: torch.Tensor, path: str, tensors: list[torch.Tensor]) -> dict[str, int]:
    if value.dtype not in DTYPES.values() or value.layout != torch.strided:
        raise StateError(f"{path} is a tensor of {value.dtype}, {value.layout}, which cannot be saved")
    tensors.append(value.detach().cpu().contiguous())
    return {"$tensor": len(tensors) - 1}


def _decode(value: Tree, tensors: Sequence[torch.Tensor]) -> Tree:
    if isinstance(value, list):
        return [_decode(item, tensors) for item in value]
    if not isinstance(value, dict):
        return value
    builders: dict[str, Callable[[Any], Any]] = {
        "$tensor": lambda index: tensors[index],
        "$tuple": lambda items: tuple(_decode(item, tensors) for item in items),
        "$dict": lambda pairs: {key: _decode(item, tensors) for key, item in pairs},
        "$counter": lambda pairs: Counter({key: _decode(item, tensors) for key, item in pairs}),
    }
    if len(value) == 1 and (kind := next(iter(value))) in builders:
        return builders[kind](value[kind])
    return {key: _decode(item, tensors) for key, item in value.items()}
