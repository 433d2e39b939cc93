"""The daemon's log: standard error, with the journal's priorities when the journal reads it (sd-daemon(3))."""

from __future__ import annotations

import logging
import os
import sys

_PRIORITIES = {logging.DEBUG: 7, logging.INFO: 6, logging.WARNING: 4, logging.ERROR: 3, logging.CRITICAL: 2}


class _Journal(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        prefix = f"<{_PRIORITIES.get(record.levelno, 6)}>"
        return "\n".join(prefix + line for line in super().format(record).splitlines())


def read_by_journal() -> bool:
    """Whether $JOURNAL_STREAM names our standard error."""
    there = os.fstat(sys.stderr.fileno())
    return os.environ.get("JOURNAL_STREAM") == f"{there.st_dev}:{there.st_ino}"


def log_to_stderr(*, verbose: bool) -> None:
    """Set the root logger up."""
    handler = logging.StreamHandler()
    journal = read_by_journal()
    handler.setFormatter(
        _Journal("%(name)s: %(message)s") if journal else logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    )
    logging.basicConfig(level=logging.DEBUG if verbose else logging.INFO, handlers=[handler], force=True)
