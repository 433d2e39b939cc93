"""The bench's reading of slurmctld's log, on lines of 22.05 and 24.11."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "slurm"))
from waits import waits

OF_22_05 = """\
[2026-11-30T08:22:48.624] _slurm_rpc_submit_batch_job: JobId=15 InitPrio=10000 usec=480
[2026-11-30T08:22:49.322] job_signal: 18 of running JobId=14 successful 0x400001
[2026-11-30T08:22:49.322] job_signal: 10 of running JobId=14 successful 0x400001
[2026-11-30T08:22:50.858] _job_complete: JobId=14 done
[2026-11-30T08:22:51.341] sched: Allocate JobId=15 NodeList=n1 #CPUs=4 Partition=primary
[2026-11-30T08:22:54.716] _slurm_rpc_submit_batch_job: JobId=16 InitPrio=10000 usec=427
[2026-11-30T08:22:55.000] sched: Allocate JobId=16 NodeList=n1 #CPUs=4 Partition=scavenger
[2026-11-30T08:22:57.719] _slurm_rpc_submit_batch_job: JobId=17 InitPrio=10000 usec=289
[2026-11-30T08:22:58.443] job_signal: 10 of running JobId=16 successful 0x400001
[2026-11-30T08:22:58.443] job_signal: 10 of running JobId=10 successful 0x400001
[2026-11-30T08:22:58.600] _job_complete: JobId=16 done
[2026-11-30T08:22:59.207] _job_complete: JobId=10 done
[2026-11-30T08:22:59.443] sched/backfill: _start_job: Started JobId=17 in primary on n[1-2]
"""
OF_24_11 = """\
[2026-11-30T08:07:37.093] _slurm_rpc_submit_batch_job: JobId=3 InitPrio=10000 usec=896
[2026-11-30T08:07:38.004] sched: Allocate JobId=3 NodeList=n[1-4] #CPUs=16 Partition=primary
[2026-11-30T08:09:12.850] _slurm_rpc_submit_batch_job: JobId=14 InitPrio=10000 usec=372
[2026-11-30T08:09:13.000] job_signal: 18 of running JobId=10 successful 0x400001
[2026-11-30T08:09:13.820] _job_complete: JobId=10 done
[2026-11-30T08:09:14.004] sched: Allocate JobId=14 NodeList=n2 #CPUs=4 Partition=primary
"""


def test_each_preempting_jobs_wait_has_three_parts() -> None:
    alone, both = waits(OF_22_05)
    assert (alone.noticed, alone.leaving, alone.granted) == pytest.approx((0.698, 1.536, 0.483), abs=1e-3)
    assert (both.noticed, both.leaving, both.granted) == pytest.approx((0.724, 0.764, 0.236), abs=1e-3)


def test_a_job_that_preempts_nobody_is_left_out() -> None:
    (only,) = waits(OF_24_11)
    assert (only.noticed, only.leaving, only.granted) == pytest.approx((0.150, 0.820, 0.184), abs=1e-3)
