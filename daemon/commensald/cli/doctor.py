"""doctor."""

from __future__ import annotations

import asyncio
import os
import pwd
from collections.abc import Sequence

import click

from commensald.cli.lazy import Failed
from commensald.cli.tables import json_option, print_json
from commensald.config import load
from commensald.doctor import Finding, Severity
from commensald.doctor.checks import examine, hurts
from commensald.doctor.gather import gather

WORDS = {
    Severity.HARM: "HARM",
    Severity.FAULT: "FAULT",
    Severity.ADVICE: "advice",
    Severity.UNKNOWN: "unknown",
    Severity.GOOD: "good",
}


@click.command()
@click.option("--no-ring", is_flag=True, help="Form no ring of two processes to try MPI.")
@click.option("--trial", is_flag=True, help="Run a job where pilots go, for a few seconds, to measure what one costs.")
@json_option
@click.pass_context
def doctor(context: click.Context, no_ring: bool, trial: bool, as_json: bool) -> None:
    """Say what this site's settings mean for a harvest, and how to fix what is wrong.

    HARM: a harvest would hurt primary jobs (exit code 1). FAULT: it would not work.
    """
    config = load(context.meta.get("commensal.config")).config
    owner = pwd.getpwuid(os.getuid()).pw_name
    findings = examine(asyncio.run(gather(config, owner, ring=not no_ring, trial=trial)))
    if as_json:
        print_json({"hurts": hurts(findings), "findings": findings})
    else:
        _print(findings)
    if hurts(findings):
        raise Failed("a harvest here would hurt primary jobs")


def _print(findings: Sequence[Finding]) -> None:
    for each in findings:
        click.echo(f"{WORDS[each.severity]:<8} {each.check}: {each.words}")
        if each.fix:
            click.echo(f"{'':<8} fix: {each.fix}")
