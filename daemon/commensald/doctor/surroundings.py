"""This host and the way to the compute nodes: shared folder, routes, MPI. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from commensald.doctor import Finding, fault, good, unknown
from commensald.doctor.facts import Pbs, Site, Slurm, Trial

LISTED = 5
OF_THIS_HOST = frozenset({"tmpfs", "ramfs", "overlay", "squashfs"})
"""File systems that are never exported."""


def shared_folder(site: Site, scheduler: Slurm | Pbs) -> Iterator[Finding]:
    """Compute nodes see the pilots' folder."""
    host, folder, trial = site.host, site.config.pilots.folder, site.trial
    if trial is not None and trial.node:
        yield from _tried(trial, folder)
    elif host.folder_shared:
        yield good("pilots' folder", f"{folder} is on a file system that is shared ({host.folder_type}).")
    elif _one_host(site, scheduler):
        yield good("pilots' folder", f"{folder} is local ({host.folder_type}), and so are all nodes.")
    elif host.folder_type in OF_THIS_HOST:
        yield fault("pilots' folder", f"{folder} is in {host.folder_type}, which no other host sees, so no pilot either.", SHARED)
    else:
        yield unknown(
            "pilots' folder",
            f"{folder} is on a file system of this host ({host.folder_type}): pilots find it only if it is exported to all nodes.",
            f"`commensal doctor --trial` tries it. {SHARED}",
        )


def _tried(trial: Trial, folder: str) -> Iterator[Finding]:
    if trial.folder_seen:
        yield good("pilots' folder", f"A job on {trial.node} wrote to {folder}, and this host read it.")
    else:
        said = f" It said: {trial.error}" if trial.error else ""
        yield fault("pilots' folder", f"A job on {trial.node} could not write to {folder} so that this host reads it.{said}", SHARED)


SHARED = "Keep pilots.folder, and the folder of every training, on a file system that all nodes mount."


def trial_job(site: Site, scheduler: Slurm | Pbs) -> Iterator[Finding]:
    """What the trial job says of MPI on its node."""
    trial = site.trial
    if trial is None:
        return
    if not trial.node:
        yield unknown("trial job", f"{trial.error}.", "Try again when a node is idle.")
    elif trial.ring is not None and trial.ring.error is not None:
        yield fault("trial job", f"MPI cannot form a ring of two processes on {trial.node}: {trial.ring.error}", MPI)
    elif trial.ring is not None:
        yield good("trial job", f"On {trial.node} two processes formed a ring in {trial.ring.seconds:.1f} s.")


MPI = "pip install 'commensal[worker]' for pilots.python; with a site's own MPI set MPI4PY_LIBMPI in pilots.environment."


NETWORK = "Run the daemon on a host in the cluster's network, with no firewall between it and the nodes, nor between nodes; daemon.bind."


def route(site: Site, scheduler: Slurm | Pbs) -> Iterator[Finding]:
    """Compute nodes and this host reach each other."""
    host = site.host
    if host.address.startswith("127.") and not _one_host(site, scheduler):
        yield fault(
            "route",
            f"Compute nodes are told to reach the daemon at {host.address}, which is every host's own address.",
            "daemon.bind = this host's address on the cluster's network.",
        )
    elif site.trial is not None and site.trial.folder_seen and not site.trial.reached:
        yield fault("route", f"A job on {site.trial.node} could not connect to this host at {host.address}.", NETWORK)
    elif host.unreachable:
        more = f" and {len(host.unreachable) - LISTED} more" if len(host.unreachable) > LISTED else ""
        yield fault(
            "route",
            f"{len(host.unreachable)} of {host.tried} nodes cannot be reached from here: {', '.join(host.unreachable[:LISTED])}{more}.",
            NETWORK,
        )
    elif host.tried == 0:
        yield unknown("route", "No node was there to be tried.", "Try again when nodes are up.")
    else:
        yield good("route", f"{host.tried} nodes can be reached; they reach the daemon at {host.address}.")


def ring(site: Site) -> Iterator[Finding]:
    """MPI forms a ring."""
    found = site.host.ring
    if found is None:
        yield unknown("MPI", "No ring was formed (--no-ring).", "Leave --no-ring away.")
    elif found.error is not None:
        yield fault(
            "MPI",
            f"MPI cannot form a ring of two processes on this host: {found.error}",
            MPI,
        )
    else:
        yield good("MPI", f"Two processes formed a ring over {site.host.address} in {found.seconds:.1f} s and agreed on a sum.")


def _one_host(site: Site, scheduler: Slurm | Pbs) -> bool:
    return bool(scheduler.hosts) and set(scheduler.hosts.values()) <= site.host.addresses
