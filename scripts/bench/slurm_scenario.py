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
    "slurm_harvest.py": (),
    "slurm_faults.py": ("--kills", "3"),
    "slurm_maintenance.py": (),
    "slurm_deadline.py": ("--runs", "3"),
}
"""Each part, and what makes it shorter."""


def main() -> int:
    """Exit code 1 when a part failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--version", action="append", help="of Slurm: 22.05, 24.11 or 26.05, perhaps several times (the installed one)")
    parser.add_argument("--containers", action="store_true", help="on the cluster of containers (scripts/docker), perhaps beside versions")
    parser.add_argument("--short", action="store_true", help="fewer kills and deadlines: 18 minutes for each cluster instead of 25")
    options = parser.parse_args()
    clusters = [("--version", each) for each in options.version or ()] + [("--containers",)] * options.containers or [()]
    failed = [" ".join((part, *cluster)) for cluster in clusters for part in PARTS if not _passes(part, cluster, options.short)]
    print(f"\nfailed: {', '.join(failed) or 'none'}")
    return int(bool(failed))


def _passes(part: str, cluster: tuple[str, ...], short: bool) -> bool:
    began = time.monotonic()
    command = [sys.executable, str(HERE / part), *cluster, *(PARTS[part] if short else ())]
    print(f"\n$ {' '.join(command[1:])}", flush=True)
    code = subprocess.run(command, check=False).returncode
    print(f"exit code {code} after {time.monotonic() - began:.0f} s", flush=True)
    return code == 0


if __name__ == "__main__":
    sys.exit(main())
