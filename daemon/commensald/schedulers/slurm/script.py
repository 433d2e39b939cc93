"""The batch script of a pilot: it makes its own clean environment and runs the launcher as a job step, which gets Slurm's signals."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_TEMPLATE = """#!/bin/sh
# {title}
# Preempted and requeued by a site's own rule: nobody waits for this incarnation.
[ "${{SLURM_RESTART_COUNT:-0}}" -ge 1 ] && exit 0
{exports}
exec srun --nodes=1 --ntasks=1 --cpus-per-task="${{SLURM_CPUS_ON_NODE:-1}}" --mem=0 --kill-on-bad-exit=1 \\
    --input=none --export=ALL {command}
"""


def pilot(uuid: str, argv: Sequence[str], environment: Mapping[str, str]) -> str:
    """The script for ``argv`` in this environment, beside which it has only what Slurm sets. Raises ValueError for a wrong name."""
    wrong = [name for name in environment if not _VARIABLE.fullmatch(name)]
    if wrong:
        raise ValueError(f"not a variable's name: {wrong[0]!r}")
    return _TEMPLATE.format(
        title=f"Commensal pilot {uuid}",
        exports="\n".join(f"export {name}={shlex.quote(value)}" for name, value in sorted(environment.items())),
        command=shlex.join(argv),
    )
