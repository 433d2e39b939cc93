"""The trial job under PBS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from commensald.config import Config
from commensald.doctor.probe import LIMIT_SECONDS, Seen, specification
from commensald.schedulers import SchedulerError
from commensald.schedulers.pbs import answers, commands, script
from commensald.schedulers.pbs.names import hosts, job_id, submitted_id
from commensald.schedulers.pbs.records import Record
from commensald.schedulers.pbs.times import instant
from commensald.schedulers.runner import Runner


class PbsJobs:
    """With qsub and qstat; see :class:`~commensald.doctor.probe.Jobs`."""

    def __init__(self, config: Config, runner: Runner, environment: Mapping[str, str]) -> None:
        self._config, self._runner, self._environment = config, runner, environment

    async def submit(self, name: str, argv: Sequence[str]) -> str:
        """Queue it."""
        pilots = self._config.pilots
        tagged = commands.qsub(specification(self._config, name), LIMIT_SECONDS, commands.Shape(), None)
        at = tagged.index("-v")
        return submitted_id(await self._ask(tagged[:at] + tagged[at + 2 :], script.pilot(name, pilots.folder, argv, pilots.environment)))

    async def seen(self, job: str) -> Seen | None:
        """The job as it is now."""
        try:
            answer = await self._ask(("qstat", "-f", "-F", "json", job_id(job)))
        except SchedulerError as error:
            if commands.only_gone(error.text):
                return None
            raise
        record = answers.jobs(answer).records.get(job)
        return None if record is None else seen(record)

    async def cancel(self, job: str) -> None:
        """End it."""
        await self._ask(commands.qdel([job]))

    async def _ask(self, argv: Sequence[str], stdin: str = "") -> str:
        return await self._runner.run(argv, self._environment, stdin)


def seen(record: Record) -> Seen:
    """What a record says of the job. Pure."""
    found = hosts(record.get("exec_host", ""))
    return Seen(record["job_state"], str(instant(record.get("stime", "")) or ""), found[0] if found else "")
