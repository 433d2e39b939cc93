"""What all tests share: in CI the property tests try the same examples each time, so that a change is judged by what it changed.

At a desk they try new ones each time; COMMENSAL_EXAMPLES makes the membership's try more.
"""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")
