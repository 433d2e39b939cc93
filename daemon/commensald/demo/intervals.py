"""Arithmetic on stretches of time: each value is an ascending tuple of disjoint (begin, end), in seconds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

Spans: TypeAlias = tuple[tuple[float, float], ...]


def union(spans: Iterable[tuple[float, float]]) -> Spans:
    """Overlapping and touching stretches merged, empty ones dropped."""
    merged: list[tuple[float, float]] = []
    for begin, end in sorted(span for span in spans if span[1] > span[0]):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((begin, end))
    return tuple(merged)


def intersection(left: Spans, right: Spans) -> Spans:
    """Where both are."""
    return union((max(a, c), min(b, d)) for a, b in left for c, d in right)


def complement(spans: Spans, begin: float, end: float) -> Spans:
    """What ``spans`` leave free of [begin, end]."""
    edges = [begin, *(edge for span in spans for edge in span), end]
    return union((max(a, begin), min(b, end)) for a, b in zip(edges[::2], edges[1::2], strict=True))


def difference(left: Spans, right: Spans) -> Spans:
    """``left`` without ``right``."""
    return intersection(left, complement(right, left[0][0], left[-1][1])) if left else ()


def seconds(spans: Spans) -> float:
    """Total length."""
    return sum(end - begin for begin, end in spans)
