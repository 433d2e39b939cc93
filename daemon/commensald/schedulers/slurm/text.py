"""``scontrol -o show`` taken apart, so that what a user wrote (a job's name, command, comment...) cannot pass for what Slurm wrote.

Records of nodes, partitions and reservations hold administrators' words only and are split at their keys, the first of a kind winning.

Records of jobs are bounded by free text at both ends, and the name may even hold line breaks and whole records. So we ask for times in a
format that carries a **mark** nobody can guess (``SLURM_TIME_FORMAT=%s~3f9a...``, drawn anew for each query): ``SubmitTime=`` with the mark
is a place that Slurm wrote, one in each record. From there the fixed keys are read backwards to the owner and forwards to the nodes, in
the order in which all known versions print them (``slurm_sprint_job_info``); the comment follows the working directory on the same line.
What a user can still do is to describe a job of his own wrongly. Only where a site tracks workload keys there is free text (``WCKey``)
between owner and anchor as well; where it makes two readings of the owner possible, the job has none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from commensald.schedulers.slurm.records import Record, UnreadableError

_PRINTED = (
    "JobState Reason FailedNode Dependency Requeue Restarts BatchFlag Reboot ExitCode DerivedExitCode RunTime TimeLimit "
    "TimeMin SubmitTime EligibleTime AccrueTime ResizeTime StartTime EndTime Deadline PreemptEligibleTime PreemptTime "
    "SuspendTime SecsPreSuspend LastSchedEval Scheduler Partition AllocNode:Sid ReqNodeList ExcNodeList NodeList BatchHost "
    "SchedNodeList NumNodes NumCPUs NumTasks CPUs/Task ReqB:S:C:T TRES ReqTRES AllocTRES Socks/Node NtasksPerN:B:S:C CoreSpec "
    "MinCPUsNode MinMemoryNode MinMemoryCPU MinTmpDiskNode BatchFeatures Features DelayBoot ClusterFeatures Prefer "
    "Reservation OverSubscribe Exclusive Contiguous Licenses LicensesAlloc "
)
ORDER = tuple(_PRINTED.split())
"""Keys between a job's name and its free texts in the order of all versions; others may stand between them and are left out."""

_RANK = {key: rank for rank, key in enumerate(ORDER)}
_NEEDED = frozenset({"JobState", "TimeLimit", "SubmitTime", "StartTime", "EndTime", "Partition", "NodeList", "NumNodes"})
_KEPT = _NEEDED | {"Reason", "EligibleTime", "PreemptTime", "SchedNodeList"}
_HEAD = re.compile(
    r"\nJobId=(?P<JobId>\d+)"
    r"(?: ArrayJobId=(?P<ArrayJobId>\d+) ArrayTaskId=(?P<ArrayTaskId>[^ \n]+)(?: ArrayTaskThrottle=(?P<ArrayTaskThrottle>\d+))?)?"
    r"(?: HetJobId=(?P<HetJobId>\d+) HetJobOffset=(?P<HetJobOffset>\d+))? JobName=",
    re.ASCII,
)
_OWNER = re.compile(
    r" (?:HetJobIdSet=[^ \n]+ )?UserId=(?P<UserId>[^()=\n]*\(\d+\)) GroupId=[^()=\n]*\(\d+\) MCS_label=[^ \n]*"
    r" Priority=(?P<Priority>\d+) Nice=-?\d+ Account=(?P<Account>[^ \n]*) QOS=(?P<QOS>[^ \n]*)",
    re.ASCII,
)
_AFTER_COMMENT = re.compile(r" (?:Extra|StdErr|StdIn|StdOut|Switches|SegmentSize|BurstBuffer|MailUser|Power|Tres[A-Z]\w+|Mem\w+|Cpus\w+)=")
_KEY = re.compile(r"(?:^| )([A-Za-z][A-Za-z_:/]*)=")
_NOTHING = re.compile(r"No \w+ in the system\s*")


def split(text: str, first: str) -> Iterator[Record]:
    """Records of nodes, partitions or reservations, one a line, each beginning with the key ``first``. Raises UnreadableError."""
    for line in _whole(text).split("\n"):
        if line.startswith(f"{first}="):
            yield _fields(line)


def jobs(text: str, mark: str, *, workload_keys: bool = False) -> Iterator[Record]:
    """Records of jobs; times lose the ``mark`` that they were asked to carry. Raises UnreadableError.

    ``workload_keys``: whether the site tracks them (``TrackWCKey``, slurm.conf(5)), and so prints one in each record.
    """
    text = "\n" + _whole(text)
    begin = 0
    for anchor in re.finditer(rf" SubmitTime=\d+{re.escape(mark)} EligibleTime=", text):
        yield _job(text, begin, anchor.start(), mark, workload_keys)
        begin = anchor.end()
    if not begin and _HEAD.search(text):
        raise UnreadableError("jobs without times in the format asked for", text[:300])


def _whole(text: str) -> str:
    """``text`` unless it was cut; "No jobs in the system" is nothing. An empty answer is none."""
    if _NOTHING.fullmatch(text):
        return ""
    if not text.endswith("\n"):
        raise UnreadableError("an answer that was cut short", text[-300:])
    return text


def _fields(line: str) -> Record:
    found: dict[str, str] = {}
    keys = list(_KEY.finditer(line))
    for key, after in zip(keys, [*keys[1:], None], strict=True):
        found.setdefault(key[1], line[key.end() : after.start() if after else len(line)].strip())
    return found


def _job(text: str, begin: int, anchor: int, mark: str, workload_keys: bool) -> Record:
    """The job whose marked time stands at ``anchor``; the one before was anchored just before ``begin``."""
    heads = list(_HEAD.finditer(text, begin, anchor))
    if not heads:
        raise UnreadableError("a job without an id", text[begin:anchor][:300])
    # The last one: an id before it belongs to the free text of another's record, and our own jobs' names hold no line break.
    head = heads[-1]
    fixed = max(text.rfind(" JobState=", head.end(), anchor), head.end())
    end = text.find("\n", anchor)
    record = {key: value for key, value in head.groupdict().items() if value}
    owners = list(_OWNER.finditer(text, heads[0].end(), fixed))
    owner = owners[-1] if owners and (len(owners) == 1 if workload_keys else owners[-1].end() == fixed) else None
    record["JobName"] = text[head.end() : owner.start() if owner else fixed]
    record |= owner.groupdict() if owner else {}
    return record | _fixed(text, fixed, anchor, end, mark) | _comment(text, anchor, end)


def _fixed(text: str, begin: int, anchor: int, end: int, mark: str) -> dict[str, str]:
    """The keys of known order around the anchor, empty when their order is not the known one."""
    free = text.find(" Network=", anchor, end)
    found: dict[str, str] = {}
    rank = -1
    for word in text[begin : free if free >= 0 else end].split(" "):
        key, equals, value = word.partition("=")
        if equals and key in _RANK:
            if _RANK[key] <= rank:
                return {}
            rank = _RANK[key]
            if key in _KEPT:
                found[key] = value.removesuffix(mark)
    return found if found.keys() >= _NEEDED else {}


def _comment(text: str, anchor: int, end: int) -> dict[str, str]:
    """The comment follows the working directory; it ends with its line, whatever follows."""
    at = anchor
    for key in (" Network=", " Command=", " WorkDir=", " Comment="):
        at = text.find(key, at, end)
        if at < 0:
            return {}
    begin = at + len(" Comment=")
    after = _AFTER_COMMENT.search(text, begin, end)
    return {"Comment": text[begin : after.start() if after else end].strip()}
