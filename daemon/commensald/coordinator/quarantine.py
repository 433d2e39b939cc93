"""Members that fail to form again and again are left out for a while, so that one bad node cannot stop a ring for ever."""

from __future__ import annotations

from commensald.coordinator import Limits


class Quarantine:
    """Counts failures in a row by member; times are given by the caller."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._failures: dict[str, int] = {}
        self._until: dict[str, float] = {}

    def failed(self, member: str, now: float) -> bool:
        """Note a failure; true when it was one too many."""
        self._failures[member] = self._failures.get(member, 0) + 1
        if self._failures[member] < self._limits.quarantine_failures:
            return False
        self.ban(member, now)
        return True

    def succeeded(self, member: str) -> None:
        """Forget the failures of a member that has formed."""
        self._failures.pop(member, None)

    def ban(self, member: str, now: float) -> None:
        """Keep a member out from now."""
        self._failures.pop(member, None)
        self._until[member] = now + self._limits.quarantine_seconds

    def holds(self, member: str, now: float) -> bool:
        """Whether a member is kept out."""
        return now < self._until.get(member, now)
