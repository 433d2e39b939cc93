"""Commands that answer as Slurm's do, in a folder of their own: for the answers that a real cluster gives only when it is unwell."""

from __future__ import annotations

from pathlib import Path

from slurm_captures import capture

VERSION = "22.05.8"
_SHOW = """#!/bin/sh
echo "$@" >> "{folder}/asked"
mark="${{SLURM_TIME_FORMAT#%s}}"
for word; do last="$before"; before="$word"; done
case "$before" in config) name=config;; job) name=job_o;; node) name=node_o;; partition) name=part_o;; reservation) name=res_o;; esac
sed "s/~MARK/$mark/g" "{folder}/scontrol_$name.txt"
"""


def folder_of_commands(folder: Path, mark: str, marked: dict[str, str]) -> None:
    """``scontrol`` and ``sdiag`` that print these captures (by file name) with the mark that is asked for instead of ``mark``."""
    for name, text in marked.items():
        (folder / name).write_text(text.replace(mark, "~MARK"), encoding="utf-8")
    (folder / "sdiag.txt").write_text(capture(VERSION, "sdiag.txt"), encoding="utf-8")
    command(folder, "scontrol", _SHOW.format(folder=folder))
    command(folder, "sdiag", f'#!/bin/sh\necho sdiag >> "{folder}/asked"\ncat "{folder}/sdiag.txt"\n')


def command(folder: Path, name: str, script: str) -> None:
    """An executable of this name."""
    path = folder / name
    path.write_text(script, encoding="utf-8")
    path.chmod(0o755)
