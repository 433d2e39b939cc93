"""Key pairs in files."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest
import zmq

from commensald.keys import KeyPair, public_key
from commensald.strict import InputError


def test_a_pair_is_made_once_and_for_its_owner_only(tmp_path: Path) -> None:
    public = public_key(tmp_path)
    assert public_key(tmp_path) == public
    pair = msgspec.json.decode((tmp_path / "commensal.key").read_bytes(), type=KeyPair)
    assert zmq.curve_public(pair.secret.encode()).decode() == pair.public == public
    assert stat.S_IMODE((tmp_path / "commensal.key").stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["commensal.key"]


def test_of_two_that_make_it_at_once_both_have_the_same(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(public_key, [tmp_path] * 32))) == 1


def test_what_is_no_pair_is_refused(tmp_path: Path) -> None:
    (tmp_path / "commensal.key").write_text("{}")
    with pytest.raises(InputError, match=r"commensal\.key: not a key pair"):
        public_key(tmp_path)
    with pytest.raises(InputError, match="No such file"):
        public_key(tmp_path / "none")
