"""A fake PBS of four nodes for all tests of this folder, its commands at the front of PATH; each test leaves an empty queue.

With PBS_TEST=real (``scripts/test --pbs``) it is the PBS that is on PATH instead, and what only the fake can show is skipped.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from pbs_commands import Pbs, chosen
from pbs_fake import Fake

REAL = os.environ.get("PBS_TEST") == "real"


@pytest.fixture(scope="session")
def fake() -> Iterator[Fake]:
    """Started once."""
    if REAL:
        pytest.skip("a real PBS is asked for")
    with tempfile.TemporaryDirectory(prefix="commensal-pbs-") as folder, Fake(Path(folder)) as fake:
        yield fake


@pytest.fixture
def pbs(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pbs]:
    """The commands of the fake, with nothing in its queue, no fault and its first settings."""
    monkeypatch.setenv("PATH", f"{fake.folder / 'bin'}:{os.environ['PATH']}")
    pbs = Pbs()
    yield pbs
    fake.mend()
    pbs.empty()


@pytest.fixture
def any_pbs(request: pytest.FixtureRequest) -> Pbs:
    """The fake, or the real one."""
    found: Pbs = chosen() if REAL else request.getfixturevalue("pbs")
    return found
