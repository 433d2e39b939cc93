"""``commensal doctor``: what a site's settings would do to a harvest, and a harvest to the site.

``facts.py`` is all that is known, ``gather.py`` finds it out, and the checks are pure functions from facts to findings: one file a
subject, all of them in ``checks.py``.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Severity(StrEnum):
    """What a finding means, worst first."""

    HARM = "harm"
    """A harvest would hurt primary jobs."""
    FAULT = "fault"
    """The harvest would not work."""
    ADVICE = "advice"
    """It would work better otherwise."""
    UNKNOWN = "unknown"
    """Could not be found out."""
    GOOD = "good"


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was looked at: ``words`` say what is so and what follows from it, ``fix`` what to do about it."""

    check: str
    severity: Severity
    words: str
    fix: str = ""


def harm(check: str, words: str, fix: str) -> Finding:
    """It would hurt primary jobs."""
    return Finding(check=check, severity=Severity.HARM, words=words, fix=fix)


def fault(check: str, words: str, fix: str) -> Finding:
    """It would not work."""
    return Finding(check=check, severity=Severity.FAULT, words=words, fix=fix)


def advice(check: str, words: str, fix: str) -> Finding:
    """It would work better otherwise."""
    return Finding(check=check, severity=Severity.ADVICE, words=words, fix=fix)


def unknown(check: str, words: str, fix: str) -> Finding:
    """Nobody could say."""
    return Finding(check=check, severity=Severity.UNKNOWN, words=words, fix=fix)


def good(check: str, words: str) -> Finding:
    """Nothing to do."""
    return Finding(check=check, severity=Severity.GOOD, words=words)
