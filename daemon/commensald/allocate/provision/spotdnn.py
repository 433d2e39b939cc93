"""spotDNN on one page: Shang et al., IWQoS 2023, equations (1) to (16) and Algorithm 1, in the paper's symbols.

Asynchronous training: each worker pushes to a parameter server when it is ready. A cluster is a mix, a row of counts by kind, and
everything is computed for many mixes at once. Where the authors' published code and the paper differ, this is the paper: the PCIe term of
(7) has the paper's sign (their profile subtracts a transfer over the network less one over PCIe), windows do not wrap around, they are
sorted by descending T^i, and (15) and (16) bound them. ``loss.form = "sqrt"`` is their code's loss, without convergence coefficient.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import msgspec
import numpy as np

from commensald.allocate.provision.loss import Loss, Progress
from commensald.allocate.provision.pace import Floats, Goal, Kind, Mixes, Pace, Performance, Priced


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """The parameter server and the way to it, in MB and MB/s: ``parameters`` S_parm, ``request`` B_req (what one worker draws),
    ``bandwidth`` B_ps (of several servers: their sum), ``pcie`` B_pcie, and a1, b1 of (9).
    """

    parameters: float
    request: float
    bandwidth: float
    pcie: float
    a1: float
    b1: float

    def contention(self, members: Floats) -> Floats:
        """(9) P = min(a1 sqrt(|N|) + b1, 1), and not below 0, where the fitted line has no meaning."""
        return np.clip(self.a1 * np.sqrt(members) + self.b1, 0.0, 1.0)

    def worker_bandwidth(self, members: Floats) -> Floats:
        """(8) B_wk: beyond B_ps / |N| a worker gets an even share as often as requests collide, else what it asks for."""
        share = self.bandwidth / np.maximum(members, 1)
        collide = self.contention(members)
        return np.where(self.request > share, collide * share + (1 - collide) * self.request, self.request)

    def transfer_seconds(self, members: Floats, gpus: Floats) -> Floats:
        """(7) T_comm = 2 S_parm / B_wk + 2 g S_parm / B_pcie, mixes by kinds."""
        network = 2 * self.parameters / self.worker_bandwidth(members)
        return np.add.outer(network, 2 * gpus * self.parameters / self.pcie)


@dataclass(frozen=True)
class ParameterServer:
    """The performance model, (2) and (4) to (9), and the bound (15)."""

    kinds: tuple[Kind, ...]
    server: Server

    @cached_property
    def alone_seconds(self) -> Floats:
        """T^i as measured on one worker."""
        return np.array([kind.seconds for kind in self.kinds])

    @cached_property
    def gpus(self) -> Floats:
        """g_i."""
        return np.array([float(kind.gpus) for kind in self.kinds])

    @cached_property
    def compute_seconds(self) -> Floats:
        """T_comp by (6): what was measured less the transfer of a worker alone. Negative where the profile contradicts itself."""
        return np.asarray(self.alone_seconds - self.server.transfer_seconds(np.ones(1), self.gpus)[0])

    @cached_property
    def smallest_batch(self) -> float:
        """b_min."""
        return min(kind.batch for kind in self.kinds)

    @cached_property
    def fastest(self) -> float:
        """v_max = max b_i / T^i."""
        return max(kind.batch / kind.seconds for kind in self.kinds)

    @property
    def most(self) -> int | None:
        """(15) n_upper = floor(((1 - b1) / a1)^2), beyond which all requests collide (P = 1)."""
        server = self.server
        return math.floor(((1 - server.b1) / server.a1) ** 2) if server.a1 > 0 and server.b1 < 1 else None

    def pace(self, mixes: Mixes) -> Pace:
        """Each mix's T_exp, b_w, |N| and R."""
        members = mixes.sum(axis=1).astype(float)
        seconds = self.compute_seconds + self.server.transfer_seconds(members, self.gpus)  # (6) T^i = T_comm + T_comp
        with np.errstate(divide="ignore"):
            together = 1 / (mixes / seconds).sum(axis=1)  # (2) T_exp = 1 / sum 1/T^i
        speed = np.array([kind.batch for kind in self.kinds]) / seconds  # v_i
        total = np.maximum((mixes * speed).sum(axis=1), 1e-300)
        weighted = np.where(members > 0, total * together, 0.0)  # (4) b_w = v T_exp
        return Pace(together, weighted, members, convergence_coefficient(mixes, speed / total[:, None]))


def convergence_coefficient(mixes: Mixes, weights: Floats) -> Floats:
    """(5) R = sqrt((w_1 - 1)^2 + w_2^2 + ... ), the distance to training on one worker; 0 for one worker, towards 1 for many.

    The paper does not say which worker is the first; here it is the one with the largest share, the nearest single worker.
    """
    largest = np.where(mixes > 0, weights, 0.0).max(axis=1)
    squares = (mixes * weights**2).sum(axis=1)
    return np.asarray(np.sqrt(np.maximum(squares + 1 - 2 * largest, 0.0)))


def gpu_batch(memory_gib: float, a2: float, b2: float) -> int:
    """(10) b_k = 2^floor(log2(a2 mem_k + b2)), the batch that a GPU's memory holds."""
    return int(2 ** math.floor(math.log2(a2 * memory_gib + b2)))


def fewest(performance: Performance, loss: Loss, goal: Goal, done: Progress | None = None) -> int:
    """(16) n_lower = ceil(b_min j / (v_max T_obj)), with j the steps of the least batch without staleness (sqrt(g4)).

    A bound as long as j b_w grows with b_w, as it does where staleness costs more than a large batch gains.
    """
    steps = float(loss.fewest_steps(goal.loss, performance.smallest_batch, done))
    if goal.deadline_seconds is None or not 0 < goal.deadline_seconds < math.inf or math.isinf(steps):
        return 1
    return max(math.ceil(performance.smallest_batch * steps / (performance.fastest * goal.deadline_seconds) - 1e-9), 1)


def price(performance: Performance, loss: Loss, goal: Goal, mixes: Mixes, done: Progress | None = None, overhead: float = 0.0) -> Priced:
    """(1) T = j T_exp, with j of (3) at the loss of the goal (12), and (11) C = T sum n_m p_m, whose unit of time is the hour.

    After a revocation (``done`` is what was reached) T grows by ``overhead`` seconds, the paper's T_ohd.
    """
    pace = performance.pace(mixes)
    steps = loss.steps(goal.loss, pace, done)
    seconds = steps * pace.step_seconds + overhead
    charge = mixes @ np.array([kind.charge for kind in performance.kinds])
    return Priced(mixes, pace, steps, seconds, seconds / 3600 * charge)


def algorithm_1(
    performance: Performance, loss: Loss, goal: Goal, existing: Mixes | None = None, done: Progress | None = None, overhead: float = 0.0
) -> Priced:
    """All clusters that Algorithm 1 looks at; its answer is their ``best``: the cheapest with T <= T_obj (13) and n_m <= Lim_m (14).

    ``existing`` is E, the instances that remain after a revocation; the quotas of ``performance.kinds`` are what can be had beyond it.
    """
    held = np.zeros(len(performance.kinds), np.int64) if existing is None else existing
    total = int(held.sum()) + sum(kind.quota for kind in performance.kinds)
    most = total if performance.most is None else min(performance.most, total)
    return price(performance, loss, goal, windows(performance, fewest(performance, loss, goal, done), most, held), done, overhead)


def windows(performance: Performance, least: int, most: int, existing: Mixes) -> Mixes:
    """N = E + I[idx .. idx + n - 1]: rows of ``least`` to ``most`` members, those of E (``existing``) with them.

    I lists every instance that can be had, T^i descending, so that a window is of neighbours in speed. A window that leaves and takes in
    an instance of the same kind as it slides is the same mix, and is left out; no window holds more than ``most`` of a kind.
    """
    quotas = np.minimum([kind.quota for kind in performance.kinds], most)
    order = np.argsort(-performance.alone_seconds, kind="stable")
    listed = np.repeat(order, quotas[order])
    upto = np.vstack([np.zeros_like(quotas), np.eye(quotas.size, dtype=np.int64)[listed].cumsum(axis=0)])
    held = int(existing.sum())
    found = [np.zeros((0, quotas.size), np.int64)]
    for size in range(max(least - held, 0), min(max(most - held, 0), listed.size) + 1):
        begins = np.flatnonzero(np.append(True, listed[: listed.size - size] != listed[size:]))
        found.append(upto[begins + size] - upto[begins])
    return np.concatenate(found) + existing
