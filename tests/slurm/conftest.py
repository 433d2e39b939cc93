"""One cluster for all tests of this folder; each test has a daemon of its own and leaves an empty queue."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator

import pytest
from installation import GRACE_SECONDS, VERSION, Installation, until
from native import Native

PATH = "/usr/sbin:/usr/bin:/bin"


@pytest.fixture(scope="session")
def cluster() -> Iterator[Installation]:
    """Four nodes of the ordinary user's own."""
    if os.geteuid() != 0 and VERSION is None and shutil.which("slurmctld", path=PATH) is None:
        pytest.skip("Slurm is not installed and only root may install it: scripts/slurm-cluster up")
    native = Native("slurm", 4, GRACE_SECONDS, VERSION)
    try:
        with Installation("slurm", native) as where:
            yield where
    finally:
        native.forget()


@pytest.fixture
def where(cluster: Installation) -> Iterator[Installation]:
    """The cluster with nothing on it and no daemon; what a test leaves is ended."""
    left = [f"{cluster.folder}/{name}" for name in ("state", "pilots", "trainings", "events.jsonl", "daemon.log")]
    cluster.account.run(["rm", "-rf", *left], {})
    cluster.account.run(["mkdir", f"{cluster.folder}/trainings"], {})
    try:
        yield cluster
    finally:
        cluster.end_daemon(signal.SIGTERM)
        cluster.up()
        cluster.slurm("scancel", "--quiet", "-u", cluster.account.user)
        until(lambda: not cluster.slurm("squeue", "-h").strip(), "the queue to be empty")
