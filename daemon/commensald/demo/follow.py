"""Following event logs while they grow."""

from __future__ import annotations

from pathlib import Path

import msgspec

from commensald.events import Event


class Follower:
    """Reads what was added to an event log since the last look; a line that is still being written waits for the next."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._decoder = msgspec.json.Decoder(dict[str, object])

    def read(self) -> list[Event]:
        """New events, in the order of the file; none while the file does not exist."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                text = file.read()
        except FileNotFoundError:
            return []
        whole = text[: text.rfind(b"\n") + 1]
        self._offset += len(whole)
        return [self._decoder.decode(line) for line in whole.splitlines()]
