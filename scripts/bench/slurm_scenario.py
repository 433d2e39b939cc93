#!/usr/bin/env python3
"""All that a release of Slurm must show: harvest, faults, maintenance and deadlines, one after the other, each on a cluster of its own."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
PARTS: dict[str, tuple[str, ...]] = {
    "slurm_harvest.py": ("--seconds", "90"),
    "slurm_faults.py": ("--kills", "3"),
    "slurm_maintenance.py": (),
    "slurm_deadline.py": ("--runs", "3"),
}
"""Each part, and what makes it shorter."""


def main() -> int:
    """Exit code 1 when a part failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--version", action="append", help="of Slurm: 22.05, 24.11 or 26.05, perhaps several times (the installed one)")
    parser.add_argument("--short", action="store_true", help="a quarter of an hour for each version instead of half an hour")
    options = parser.parse_args()
    failed = [
        f"{part} {version or ''}" for version in options.version or [None] for part in PARTS if not _passes(part, version, options.short)
    ]
    print(f"\nfailed: {', '.join(failed) or 'none'}")
    return int(bool(failed))


def _passes(part: str, version: str | None, short: bool) -> bool:
    began = time.monotonic()
    command = [sys.executable, str(HERE / part), *(["--version", version] if version else []), *(PARTS[part] if short else ())]
    print(f"\n$ {' '.join(command[1:])}", flush=True)
    code = subprocess.run(command, check=False).returncode
    print(f"exit code {code} after {time.monotonic() - began:.0f} s", flush=True)
    return code == 0


if __name__ == "__main__":
    sys.exit(main())
