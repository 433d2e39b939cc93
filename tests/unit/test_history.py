"""What the daemon says of saves."""

from __future__ import annotations

import pytest

from commensal.messages import Saved, SaveFailed
from commensald.coordinator.history import History
from commensald.coordinator.pace import Seen


class NoCounts:
    """Nothing has been counted before."""

    def record_settled(self, training: str, settled: int, samples: int) -> None:
        raise AssertionError("no step is reported here")

    def settled(self, training: str) -> tuple[int, int]:
        return 0, 0

    def record_pace(self, training: str, seen: Seen) -> None:
        assert training == "t"

    def pace(self, training: str) -> Seen:
        return Seen()


def test_of_saves_that_fail_in_a_row_the_first_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    history = History("t", NoCounts(), lambda kind, **fields: None, 0.0)
    failed = SaveFailed(member="m", step=3, error="No space left on device")
    saved = Saved(member="m", step=4, seconds=1.0, stall_seconds=0.1, size_bytes=8)
    for _ in range(3):
        history.save_failed(failed, 1.0)
    assert caplog.messages == ["training t: step 3 was not saved: No space left on device"]
    assert history.checkpoint_error == "No space left on device"
    history.saved(saved, 2.0)
    assert history.checkpoint_error is None
    history.save_failed(failed, 3.0)
    assert len(caplog.messages) == 2
