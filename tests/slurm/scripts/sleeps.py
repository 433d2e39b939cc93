"""A training script that trains nothing: it says that it runs, and which signal ended it."""

import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType

FOLDER, ME = Path(os.environ["COMMENSAL_FOLDER"]), os.environ["COMMENSAL_PILOT"]


def heard(number: int, frame: FrameType | None) -> None:
    """Keep the first one, and go."""
    (FOLDER / f"heard-{ME}").write_text(signal.Signals(number).name)
    sys.exit(0)


for each in (signal.SIGTERM, signal.SIGUSR1):
    signal.signal(each, heard)
(FOLDER / f"runs-{ME}").write_text(str(os.getpid()))
time.sleep(600)
