"""Arrays: their jobs stand for them, of those that wait the first few."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from commensald.cluster import Job, JobState
from commensald.schedulers.pbs.names import array_of
from commensald.schedulers.pbs.records import Record, integer

ARRAY_JOBS = 20
"""Of an array's waiting jobs so many are planned, as with Slurm."""


def first_of_arrays(read: Iterable[Job], records: Mapping[str, Record]) -> Iterator[Job]:
    """All jobs, but of an array's waiting ones the first few, as many as may run; what is planned for it is planned for the first."""
    every = list(read)
    array = {job.id: array_of(job.id) for job in every}
    running = Counter(array[job.id] for job in every if job.nodes)
    waiting = Counter[str]()
    for job in every:
        whole = array[job.id]
        if whole is None or job.state is not JobState.PENDING:
            yield job
            continue
        waiting[whole] += 1
        most = integer(records.get(whole, {}).get("max_run_subjobs", "0"))
        if waiting[whole] <= min(ARRAY_JOBS, max(most - running[whole], 0) if most else ARRAY_JOBS):
            yield job if waiting[whole] == 1 else msgspec.structs.replace(job, start=None, planned_nodes=())
