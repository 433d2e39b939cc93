"""What PBS's commands say when they fail, and the exit codes that go with it: the low byte of the server's error number (pbs_error.h)."""

from __future__ import annotations

UNKNOWN_JOB = (153, "Unknown Job Id {}")
FINISHED = (35, "Job has finished {}")
BAD_STATE = (168, "Request invalid for state of job {}")
NOT_RERUNABLE = (190, "Job is not rerunnable {}")
UNKNOWN_QUEUE = (170, "Unknown queue")
QUEUE_DISABLED = (173, "Queue is not enabled")
NO_NODE = (214, "Unknown node {}")
ILLEGAL = (166, "Illegal attribute or resource value {}")
NO_MINIMUM = (58, "max_walltime without min_walltime")


class PbsError(Exception):
    """A request that the server refuses: the command's words and exit code."""

    def __init__(self, error: tuple[int, str], what: str = "") -> None:
        self.code = error[0]
        super().__init__(error[1].format(what))
