"""The batch script of a pilot: it runs once, makes its own clean environment and becomes the launcher, which gets MOM's signals."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_TEMPLATE = """#!/bin/sh
# Commensal pilot {uuid}
cd {folder} || exit 1
# PBS tells no job how often it has run. Preempted and requeued, it finds what its first life left, and nobody waits for it.
mkdir {uuid}.ran 2>/dev/null || {{ [ -d {uuid}.ran ] && exit 0; }}
{exports}
: "${{COMMENSAL_NODE:=$(sed -n '1s/[.].*//;1p' "$PBS_NODEFILE")}}"
export COMMENSAL_NODE
exec {command} </dev/null
"""


def pilot(uuid: str, folder: str, argv: Sequence[str], environment: Mapping[str, str]) -> str:
    """The script for ``argv`` in this environment, beside which it has only what PBS sets. Raises ValueError for a wrong name."""
    wrong = [name for name in environment if not _VARIABLE.fullmatch(name)]
    if wrong:
        raise ValueError(f"not a variable's name: {wrong[0]!r}")
    return _TEMPLATE.format(
        uuid=shlex.quote(uuid),
        folder=shlex.quote(folder),
        exports="\n".join(f"export {name}={shlex.quote(value)}" for name, value in sorted(environment.items())),
        command=shlex.join(argv),
    )
