"""What `scripts/slurm-cluster` writes for each release, and where it finds the programs of one. Live clusters are in tests/slurm."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
from slurm_cluster import releases
from slurm_cluster.configuration import cgroup_conf, slurm_conf
from slurm_cluster.settings import PATHS, ClusterError, Layout, Settings, keep, kept


def settings(version: str) -> Settings:
    return Settings(version=version, user="u", slurm_user="u", munge_user="u", host="h", grace_seconds=5, ports=(20000, 20001, 20002))


@pytest.mark.parametrize(
    ("version", "signal", "cgroups"),
    [
        ("22.05.8", "SlurmctldParameters=preempt_send_user_signal", ""),
        ("24.11.5", "PreemptParameters=send_user_signal", "CgroupPlugin=disabled\n"),
        ("26.05.5", "PreemptParameters=send_user_signal", "CgroupPlugin=disabled\n"),
    ],
)
def test_each_release_is_asked_in_its_own_words(version: str, signal: str, cgroups: str, tmp_path: Path) -> None:
    lines = slurm_conf(Layout(tmp_path), settings(version)).splitlines()
    assert [line for line in lines if "send_user_signal" in line] == [signal]
    assert cgroup_conf(settings(version)) == cgroups
    assert not [line for line in lines if line.startswith("PluginDir")]


def test_programs_that_are_not_the_installed_ones_come_first_with_their_plugins(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    assert layout.search_path == PATHS
    layout.programs.symlink_to(tmp_path)
    assert layout.search_path == f"{tmp_path}/programs/bin:{PATHS}"
    assert f"PluginDir={tmp_path}/programs/plugins" in slurm_conf(layout, settings("24.11.5")).splitlines()


def test_a_cluster_remembers_its_release(tmp_path: Path) -> None:
    keep(Layout(tmp_path), settings("24.11.5"))
    assert kept(Layout(tmp_path)).release == (24, 11)
    Layout(tmp_path).settings.write_text('{"user": "of an older slurm-cluster"}')
    with pytest.raises(ClusterError, match="no cluster was started here"):
        kept(Layout(tmp_path))


def test_roots_programs_are_everybodys_once_they_are_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(releases, "SHARED", tmp_path / "shared")
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "own"))
    assert releases.folder("24.11") == tmp_path / "own" / "commensal" / "slurm-24.11"
    shared = tmp_path / "shared" / "slurm-24.11"
    shared.mkdir(parents=True)
    assert releases.folder("24.11") != shared
    (shared / "whole").touch()
    assert releases.folder("24.11") == shared
