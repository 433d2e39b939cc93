"""Configuration: layers, origins, and one clear line for what cannot be used."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commensald.config import Config, load, sections
from commensald.strict import InputError

ROOT = Path(__file__).parents[2]
KEYS = {f"{section}.{key}" for section in Config.__struct_fields__ for key in getattr(Config(), section).__struct_fields__}


def refused(text: str, tmp_path: Path, environ: dict[str, str] | None = None) -> str:
    path = tmp_path / "c.toml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        load(path, environ or {})
    assert "\n" not in str(caught.value)
    return str(caught.value).replace(str(path), "c.toml")


def test_later_layers_win_and_each_value_keeps_its_origin(tmp_path: Path) -> None:
    system, home = tmp_path / "etc", tmp_path / "home"
    for path, text in {
        system / "commensal.toml": "[daemon]\nstate = '/a'\npoll_seconds = 1\nstale_seconds = 9\nbind = 'x'\n",
        system / "conf.d" / "10.toml": "[daemon]\npoll_seconds = 2\n",
        system / "conf.d" / "20.toml": "[daemon]\npoll_seconds = 3\nstale_seconds = 8\n",
        home / "commensal" / "commensal.toml": "[daemon]\nstale_seconds = 7\n",
    }.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    environ = {"XDG_CONFIG_HOME": str(home), "COMMENSAL_DAEMON_BIND": "y", "COMMENSAL_MEMBER": "p.1"}
    loaded = load(None, environ, {"daemon.events": "/e"}, system)
    daemon = loaded.config.daemon
    assert (daemon.state, daemon.poll_seconds, daemon.stale_seconds, daemon.bind, daemon.events) == ("/a", 3, 7, "y", "/e")
    assert loaded.origins == {
        "daemon.state": str(system / "commensal.toml"),
        "daemon.poll_seconds": str(system / "conf.d" / "20.toml"),
        "daemon.stale_seconds": str(home / "commensal" / "commensal.toml"),
        "daemon.bind": "COMMENSAL_DAEMON_BIND",
        "daemon.events": "--events",
    }


def test_an_explicit_file_replaces_the_search(tmp_path: Path) -> None:
    (tmp_path / "commensal.toml").write_text("[daemon]\npoll_seconds = 1\n")
    (tmp_path / "mine.toml").write_text("[daemon]\nstale_seconds = 2\n")
    daemon = load(tmp_path / "mine.toml", {}, system=tmp_path).config.daemon
    assert (daemon.poll_seconds, daemon.stale_seconds) == (10.0, 2.0)
    assert load(tmp_path / "mine.toml", {}, system=tmp_path).files == (str(tmp_path / "mine.toml"),)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[daemn]\n", "c.toml: unknown key 'daemn' (did you mean 'daemon'?)"),
        ("[ring]\nlost_afer = 1\n", "c.toml: unknown key 'ring.lost_afer' (did you mean 'ring.lost_after'?)"),
        ("[daemon]\npoll_seconds = 'soon'\n", "c.toml: daemon.poll_seconds: expected float, got 'soon'"),
        ("[daemon]\npoll_seconds = 0\n", "c.toml: daemon.poll_seconds: expected float > 0.0, got 0"),
        ("[ring]\nlost_after = nan\n", "c.toml: ring.lost_after: expected a number > 0, got nan"),
        ("daemon = 1\n", "c.toml: daemon: expected object, got 1"),
        ("[daemon]\npoll_seconds = inf\n", "c.toml: daemon.poll_seconds: expected a finite number, got inf"),
        ("[limits]\nnode_seconds_per_day = inf\n", "c.toml: limits.node_seconds_per_day: expected a finite number, got inf"),
        ("[ring]\nbeat_seconds = 2\n", "c.toml: ring.beat_seconds: expected less than ring.lost_after (2), got 2"),
        ("[backoff]\nfirst_seconds = 700\n", "c.toml: backoff.first_seconds: expected at most backoff.most_seconds (600), got 700"),
        ("[limits]\nquiet_hours = ['8-18']\n", "c.toml: limits.quiet_hours: expected two times like 22:00-06:00, got '8-18'"),
        ("[limits]\nquiet_hours = ['08:00-08:00']\n", "c.toml: limits.quiet_hours: expected two different times, got 08:00-08:00"),
        ("[scheduler]\nkind = 'slrum'\n", "c.toml: scheduler.kind: expected 'local' or 'slurm' or 'pbs', got 'slrum'"),
        ("[allocate]\ncaps.a = { mots = 1 }\n", "c.toml: unknown key 'allocate.caps.a.mots' (did you mean 'allocate.caps.a.most'?)"),
        ("[allocate]\ncaps.a = { most = -1 }\n", "c.toml: allocate.caps.a.most: expected int >= 0, got -1"),
        ("[allocate]\ncaps.a = {}\n", "c.toml: key 'allocate.caps.a.most' is missing"),
        ("[allocate]\ncaps.a = 3\n", "c.toml: allocate.caps[...]: expected object, got int"),
        (
            "[allocate]\ncaps.a = { most = 1 }\n",
            "c.toml: allocate.caps: expected allocate.allocator = 'milp', the only one that keeps caps, got 'exact'",
        ),
        ("[allocate]\nallocator = 'milp'\ncaps.a = { most = 1, nodes = 'n[1' }\n", "c.toml: allocate.caps: a.nodes: not a node list: n[1"),
        ("[pilots]\nenvironment = { A = 1 }\n", "c.toml: pilots.environment[...]: expected str, got int"),
    ],
)
def test_what_cannot_be_used_is_named(text: str, line: str, tmp_path: Path) -> None:
    assert refused(text, tmp_path) == line


def test_a_missing_and_a_broken_file_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.toml: cannot be read: No such file"):
        load(tmp_path / "none.toml", {})
    assert refused("[daemon\n", tmp_path).startswith("c.toml: not TOML: ")


def test_a_variable_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    line = refused("", tmp_path, {"COMMENSAL_DAEMON_POLL_SECOND": "1"})
    assert line == "COMMENSAL_DAEMON_POLL_SECOND: unknown key 'daemon.poll_second' (did you mean 'daemon.poll_seconds'?)"
    line = refused("", tmp_path, {"COMMENSAL_PILOTS_MAX_PILOTS": "many"})
    assert line == "COMMENSAL_PILOTS_MAX_PILOTS: pilots.max_pilots: expected int, got 'many'"


def test_a_variable_that_names_no_key_is_refused(tmp_path: Path) -> None:
    line = refused("", tmp_path, {"COMMENSAL_DEAMON_BIND": "1"})
    assert line == "unknown variable 'COMMENSAL_DEAMON_BIND' (did you mean 'COMMENSAL_DAEMON_BIND'?)"
    assert refused("", tmp_path, {"COMMENSAL_SOCKET": "/s"}).startswith("unknown variable 'COMMENSAL_SOCKET'")
    assert load(None, {"HOME": "/", "COMMENSAL_PILOT": "p", "COMMENSAL_GRACE_SECONDS": "1"}, system=tmp_path).origins == {}


@settings(deadline=None, max_examples=50)
@given(st.sampled_from(sorted(KEYS)), st.integers(0, 40), st.characters(categories=["Ll"]))
def test_a_misspelt_key_is_always_refused(tmp_path_factory: pytest.TempPathFactory, name: str, position: int, letter: str) -> None:
    section, key = name.split(".")
    wrong = key[: position % (len(key) + 1)] + letter + key[position % (len(key) + 1) :]
    path = tmp_path_factory.getbasetemp() / "misspelt.toml"
    path.write_text(f"[{section}]\n'{wrong}' = 1\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"unknown key '.*' \(did you mean '"):
        load(path, {})


def test_the_shipped_file_explains_every_key_and_nothing_else(tmp_path: Path) -> None:
    shipped = (ROOT / "config" / "commensal.toml").read_text()
    (tmp_path / "all.toml").write_text(re.sub(r"(?m)^#(?=[a-z_]+ = )", "", shipped))
    assert set(load(tmp_path / "all.toml", {}).origins) == KEYS


def test_the_shipped_defaults_are_the_defaults(tmp_path: Path) -> None:
    shipped = re.sub(r"(?m)^#(?=[a-z_]+ = )", "", (ROOT / "config" / "commensal.toml").read_text())
    (tmp_path / "all.toml").write_text(shipped)
    given, plain = sections(load(tmp_path / "all.toml", {}).config), sections(Config())
    for section in ("ring", "allocate", "backoff"):
        assert given[section] == plain[section]
    assert given["daemon"]["poll_seconds"] == plain["daemon"]["poll_seconds"]


@pytest.mark.parametrize("path", sorted((ROOT / "config" / "examples").glob("[es]*.toml")), ids=lambda path: path.name)
def test_the_examples_can_be_used(path: Path) -> None:
    assert load(path, {}).origins
