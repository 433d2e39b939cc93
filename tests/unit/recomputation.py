"""The demo's summary worked out a second time, in another way than the product does: instant by instant, from plain dictionaries.

Between two neighbouring events nothing changes, so one look at the start of each gap, at each node, gives every node-second.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from statistics import median

import pytest

Log = list[dict[str, object]]


def of(log: Log, *kinds: str) -> Log:
    return [entry for entry in log if entry["kind"] in kinds]


def node_seconds(log: Log) -> tuple[float, float, float]:
    begin, end = (of(log, kind)[0]["at"] for kind in ("demo.started", "demo.ended"))
    fences = [entry[key] for entry in log for key in ("at", "start", "end") if entry.get(key) is not None]
    cuts = sorted({begin, end, *(cut for cut in fences if begin < cut < end)})
    idle = harvested = ringed = 0.0
    for left, right in pairwise(cuts):
        past = [entry for entry in log if entry["at"] <= left]
        for node in of(log, "cluster.started")[0]["nodes"]:
            free = is_free(past, node, left)
            pilot = holds(past, node, "job.started", pilots=True) if free else None
            idle += (right - left) * free
            harvested += (right - left) * (pilot is not None)
            ringed += (right - left) * (pilot is not None and steps(past, node))
    return idle, harvested, ringed


def is_free(past: Log, node: str, now: float) -> bool:
    states = [entry["state"] for entry in of(past, "node.state") if entry["node"] == node]
    reserved = any(node in r["nodes"] and r["start"] <= now and (r["end"] is None or now < r["end"]) for r in of(past, "reservation"))
    return states[-1:] != ["DOWN"] and not reserved and holds(past, node, "job.assigned", pilots=False) is None


def holds(past: Log, node: str, since: str, *, pilots: bool) -> object:
    ended = {entry["job"] for entry in of(past, "job.ended")}
    jobs = [entry for entry in of(past, since) if node in entry["nodes"] and entry["job"] not in ended]
    return next((entry["job"] for entry in jobs if (entry["pilot"] is not None) == pilots), None)


def steps(past: Log, node: str) -> bool:
    stays = Counter(entry["member"] for entry in of(past, "stay.began") if entry["node"] == node)
    stays.subtract(entry["member"] for entry in of(past, "stay.ended") if entry["member"] in stays)
    return any(count > 0 for count in stays.values())


def recompute(log: Log) -> dict[str, object]:
    end = of(log, "demo.ended")[0]["at"]
    idle, harvested, ringed = node_seconds(log)
    inside = [entry for entry in log if entry["at"] <= end]
    starts = {entry["job"]: entry for entry in of(inside, "job.started")}
    waits = [starts.get(e["job"], {"at": end})["at"] - e["at"] for e in of(inside, "job.assigned") if e["pilot"] is None]
    terms = of(inside, "job.signalled")
    rings = of(inside, "generation")
    joins = {}
    for entry in of(inside, "stay.began"):
        joins.setdefault(entry["pilot"], entry["at"])
    began = {entry["pilot"]: entry["at"] for entry in starts.values()}
    used = Counter((e["training"], e["epoch"], index) for e in of(log, "step") for index in e["samples"])
    return {
        "nodes": len(of(log, "cluster.started")[0]["nodes"]),
        "primary_jobs": sum(entry["pilot"] is None for entry in starts.values()),
        "primary_delay_seconds_max": pytest.approx(max(waits)),
        "idle_node_seconds": pytest.approx(idle),
        "harvested_node_seconds": pytest.approx(harvested),
        "in_ring_node_seconds": pytest.approx(ringed),
        "pilots": sum(entry["pilot"] is not None for entry in starts.values()),
        "preemptions": len({e["pilot"] for e in terms if e["pilot"] is not None and e["reason"] == "preempt"}),
        "kills": len({e["pilot"] for e in of(inside, "job.killed") if e["pilot"]} - {e["pilot"] for e in terms}),
        "generations": len(rings),
        "members_max": max(len(ring["members"]) for ring in rings),
        "join_seconds_median": pytest.approx(median(at - began[pilot] for pilot, at in joins.items())),
        "steps": len({(e["training"], e["step"]) for e in of(log, "step")}),
        "samples_repeated": sum(count - 1 for count in used.values()),
        "checkpoints": len(of(log, "checkpoint")),
    }
