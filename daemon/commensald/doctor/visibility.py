"""Whether Slurm answers the daemon, shows it what it must see, and takes its pilots. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from commensald.doctor import Finding, advice, fault, good, unknown
from commensald.doctor.facts import Site, Slurm
from commensald.doctor.pilots import partition
from commensald.doctor.settings import setting

OLDEST = (22, 5)
HIDDEN = {"jobs": "who waits for a node", "nodes": "which nodes are idle", "reservations": "when nodes are reserved"}
MOST_SKEW_SECONDS = 2.0


def version(site: Site, slurm: Slurm) -> Iterator[Finding]:
    """A Slurm that we can read."""
    if major_minor(slurm.version) < OLDEST:
        yield fault("version", f"Slurm {slurm.version} is older than 22.05: its answers are read differently.", "Update Slurm.")
    else:
        yield good("version", f"Slurm {slurm.version} answers.")


def private_data(site: Site, slurm: Slurm) -> Iterator[Finding]:
    """PrivateData hides nothing that the forecast rests on."""
    private = {each.strip() for each in setting(slurm, "PrivateData").split(",")}
    hidden = [words for kind, words in HIDDEN.items() if kind in private]
    if hidden and not slurm.operator:
        yield fault(
            "PrivateData",
            f"PrivateData hides {' and '.join(hidden)} from {site.owner}: windows are guessed from how long holes have lasted.",
            f"sacctmgr modify user {site.owner} set adminlevel=operator (it may then see all jobs, and change them).",
        )
    else:
        yield good("PrivateData", "The daemon sees all jobs, nodes and reservations.")


def permission(site: Site, slurm: Slurm) -> Iterator[Finding]:
    """The pilots' partition is up and would take a pilot."""
    own = partition(slurm, site.config)
    if own is not None and not own.up:
        yield fault("permission", f"The pilots' partition {own.name} is not up.", f"scontrol update partition={own.name} state=up")
    elif slurm.refusal is not None:
        yield fault(
            "permission",
            f"Slurm would not take a pilot of {site.owner}: {slurm.refusal}",
            "Allow the account in the partition (AllowAccounts, AllowGroups, AllowQos), or change pilots.partition, account or qos.",
        )
    else:
        yield good("permission", f"Slurm would take a pilot of {site.owner}.")


def clock(site: Site, slurm: Slurm) -> Iterator[Finding]:
    """The controller's clock and ours agree."""
    ahead = slurm.clock_ahead_seconds
    if ahead is None:
        yield unknown("clock", "The controller's clock cannot be seen.", "Let the owner run sdiag.")
    elif abs(ahead) > MOST_SKEW_SECONDS:
        way = "ahead of" if ahead > 0 else "behind"
        yield advice(
            "clock", f"The controller's clock is {abs(ahead):.0f} s {way} this host's: every margin grows by it.", "Run NTP on both."
        )
    else:
        yield good("clock", "The controller's clock and this host's agree.")


def bindings(site: Site, slurm: Slurm) -> Iterator[Finding]:
    """pyslurm, where it is installed, is of this Slurm's release."""
    found = site.host.pyslurm
    if found is None:
        yield good("pyslurm", "pyslurm is not installed: Slurm is asked through its commands.")
    elif major_minor(found) != major_minor(slurm.version):
        release = ".".join(slurm.version.split(".")[:2])
        yield advice(
            "pyslurm",
            f"pyslurm {found} is not of Slurm {slurm.version}'s release, so it is not used: Slurm is asked through its commands.",
            f"pip install 'pyslurm == {release}.*', if there is one, or remove it.",
        )
    else:
        yield good("pyslurm", f"pyslurm {found} fits Slurm {slurm.version}.")


def major_minor(text: str) -> tuple[int, int]:
    """``22.05.8`` -> (22, 5), as pyslurm's ``22.5.3`` does; (0, 0) for what is no version."""
    parts = text.split(".")
    return (int(parts[0]), int(parts[1])) if len(parts) > 1 and parts[0].isdigit() and parts[1].isdigit() else (0, 0)
