"""A training script that trains nothing: it says that it runs, and which signal ended it."""

import os
import signal
import time
from pathlib import Path
from types import FrameType

FOLDER, ME = Path(os.environ["COMMENSAL_FOLDER"]), os.environ["COMMENSAL_PILOT"]


def heard(number: int, frame: FrameType | None) -> None:
    """Keep the first one, and end by it: a script that ends by itself without having trained counts as failed."""
    (FOLDER / f"heard-{ME}").write_text(signal.Signals(number).name)
    signal.signal(number, signal.SIG_DFL)
    signal.raise_signal(number)


for each in (signal.SIGTERM, signal.SIGUSR1):
    signal.signal(each, heard)
(FOLDER / f"runs-{ME}").write_text(str(os.getpid()))
time.sleep(600)
