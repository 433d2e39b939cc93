"""A demo's log made by hand, and the builders of its events."""

from __future__ import annotations

import random


def event(at: float, kind: str, **fields: object) -> dict[str, object]:
    return {"at": at, "kind": kind, **fields}


def job(name: str, pilot: str | None, node: str, assigned: float, started: float, ended: float | None) -> list[dict[str, object]]:
    common = {"job": name, "pilot": pilot, "nodes": [node]}
    life = [event(assigned, "job.assigned", **common), event(started, "job.started", **common, pid=1)]
    return life if ended is None else [*life, event(ended, "job.ended", **common, reason="done", returncode=0)]


def step(at: float, number: int, generation: str, epoch: int, samples: list[int], loss: float = 1.0) -> dict[str, object]:
    return event(at, "step", training="net", step=number, generation=generation, epoch=epoch, samples=samples, loss=loss)


def ring(at: float, generation: str, *pilots: str) -> dict[str, object]:
    members = [{"member": f"{pilot}.1", "pilot": pilot, "node": pilot.replace("p", "n")} for pilot in pilots]
    return event(at, "generation", training="net", generation=generation, members=members, reason="join")


def stay(at: float, kind: str, pilot: str, number: int) -> dict[str, object]:
    fields = {"training": "net", "member": f"{pilot}.1", "pilot": pilot, "node": pilot.replace("p", "n"), "step": number}
    return event(at, f"stay.{kind}", **fields)


# Two nodes for 100 s. n1: a primary job 0-20 and another from 80 (assigned at 79.5); pilot p1 runs 22-79.9, in the ring 25-79.
# n2: down 90-100; p2 runs 5-60 and is killed then, in the ring 30-59.8.
LOG = [
    event(0, "cluster.started", nodes=["n1", "n2"], grace_seconds=10.0),
    event(0, "demo.started", nodes=2, trainings=["net"]),
    *job("1", None, "n1", 0.0, 0.1, 20.0),
    *job("2", "p2", "n2", 5.0, 5.0, 60.25),
    *job("3", "p1", "n1", 22.0, 22.0, 79.9),
    ring(24, "1.1", "p1"),
    stay(25, "began", "p1", 1),
    step(25, 1, "1.1", 0, [2, 0]),
    ring(29, "1.2", "p1", "p2"),
    stay(30, "began", "p2", 2),
    step(30, 2, "1.2", 0, [1, 3]),
    step(59.8, 3, "1.2", 1, [3, 2], 0.5),
    stay(59.8, "ended", "p2", 3),
    event(60, "job.killed", job="2", pilot="p2", reason="injected"),
    ring(61, "1.3", "p1"),
    step(61.5, 4, "1.3", 1, [1, 0], 0.25),
    event(70, "checkpoint", training="net", step=4, seconds=0.1, stall_seconds=0.01, size_bytes=10),
    event(71, "measured", training="net", step=4, values={"accuracy": 0.75}),
    event(79, "stay.ended", training="net", member="p1.1", pilot="p1", node="n1", step=4),
    event(79.5, "job.signalled", job="3", pilot="p1", signal="SIGTERM", reason="preempt"),
    *job("4", None, "n1", 79.5, 80.0, None),
    event(90, "node.state", node="n2", state="DOWN"),
    event(100, "demo.ended"),
]


def random_log(seed: int, seconds: float = 60.0, nodes: int = 4) -> list[dict[str, object]]:
    """Primary jobs and pilots in turn on every node, one growing and shrinking ring, some kills, a reservation, a node that goes down."""
    chance = random.Random(seed)
    names = [f"n{number}" for number in range(1, nodes + 1)]
    log = [event(0, "cluster.started", nodes=names, grace_seconds=10.0), event(0.5, "demo.started", nodes=nodes, trainings=["net"])]
    pilots: list[tuple[float, float, str]] = []
    for name in names:
        log += _life(name, seconds, chance, pilots)
    log += _rings(pilots)
    log += [step(at / 2 + 1, at, "1.1", at // 10, chance.sample(range(40), 4)) for at in range(int(seconds))]
    log.append(event(3, "reservation", name="r", nodes=chance.sample(names, 2), start=10.0, end=chance.choice([25.0, None])))
    down = chance.choice(names)
    log += [event(20, "node.state", node=down, state="DOWN"), event(31, "node.state", node=down, state="IDLE")]
    log += [event(at, "checkpoint", training="net", step=int(at)) for at in (15, 30)]
    return sorted([*log, event(seconds, "demo.ended")], key=lambda entry: float(str(entry["at"])))


def _life(node: str, seconds: float, chance: random.Random, pilots: list[tuple[float, float, str]]) -> list[dict[str, object]]:
    log, at = [], chance.uniform(0, 5)
    while at < seconds:
        name, busy, hole = f"{node}-{at:.1f}", chance.uniform(3, 12), chance.uniform(5, 20)
        log += job(f"a{name}", None, node, at, at + chance.uniform(0, 0.5), at + busy)
        begin, end = at + busy + 0.5, at + busy + hole
        log += job(f"b{name}", f"p{name}", node, begin, begin, end)
        if chance.random() < 0.3:
            log.append(event(end - 0.1, "job.killed", job=f"b{name}", pilot=f"p{name}", reason="injected"))
        else:
            log.append(event(end - 0.2, "job.signalled", job=f"b{name}", pilot=f"p{name}", signal="SIGTERM", reason="preempt"))
        pilots.append((begin + 2, end - 0.3, f"p{name}"))
        at += busy + hole
    return log


def _rings(pilots: list[tuple[float, float, str]]) -> list[dict[str, object]]:
    log = []
    for number, at in enumerate(sorted(edge for begin, end, _ in pilots for edge in (begin, end)), 1):
        members = [pilot for begin, end, pilot in pilots if begin <= at < end]
        log.append(ring(at, f"1.{number}", *members))
    for begin, end, pilot in pilots:
        fields = {"training": "net", "member": f"{pilot}.1", "pilot": pilot, "node": pilot[1:].split("-")[0]}
        log += [event(begin, "stay.began", **fields, step=1), event(end, "stay.ended", **fields, step=2)]
    return log
