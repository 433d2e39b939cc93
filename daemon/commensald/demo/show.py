"""The demo's events as they come in, shown: a live view on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.live import Live

from commensald.demo import plain, view
from commensald.demo.board import Board
from commensald.demo.follow import Follower
from commensald.demo.record import Entry, read
from commensald.demo.scenario import TRAININGS, Scenario
from commensald.events import Event

SOURCES = ("cluster", "daemon", "demo")
STATUS_SECONDS = 10.0


class Show(Protocol):
    """What the demo's loop needs of a view."""

    board: Board

    def update(self, elapsed: float) -> None:
        """Take in new events and show them; ``elapsed`` is the demo's clock in seconds."""

    def say(self, text: str) -> None:
        """A word to the person watching."""


class Feed:
    """The new entries of all logs, in order of time within each look."""

    def __init__(self, scenario: Scenario) -> None:
        self._followers = [Follower(scenario.log(name)) for name in SOURCES]

    def read(self) -> list[Entry]:
        """What was added since the last look."""
        return read(event for follower in self._followers for event in follower.read())


class LiveShow:
    """The live view."""

    def __init__(self, scenario: Scenario, live: Live) -> None:
        self.board = Board(list(TRAININGS))
        self._feed = Feed(scenario)
        self._live = live
        self._seconds = scenario.seconds
        self._strip = view.Strip(scenario.seconds, max(20, min(120, live.console.width - 10)))

    def update(self, elapsed: float) -> None:
        """Draw the present state."""
        for entry in self._feed.read():
            self.board.apply(entry)
        self._strip.sample(self.board, elapsed, time.time())
        self._live.update(view.render(self.board, self._strip, elapsed, self._seconds))

    def say(self, text: str) -> None:
        """Print above the view."""
        self._live.console.print(text)


class PlainShow:
    """Plain lines."""

    def __init__(self, scenario: Scenario, console: Console) -> None:
        self.board = Board(list(TRAININGS))
        self._feed = Feed(scenario)
        self._console = console
        self._next_status = STATUS_SECONDS

    def update(self, elapsed: float) -> None:
        """Print what has happened, and the state of the rings when it is time."""
        for entry in self._feed.read():
            self.board.apply(entry)
            text = plain.line(entry)
            if text is not None:
                self._print(elapsed, text)
        if elapsed >= self._next_status:
            self._next_status += STATUS_SECONDS
            for text in plain.status(self.board):
                self._print(elapsed, text)

    def say(self, text: str) -> None:
        """Print it."""
        self._console.print(text, highlight=False)

    def _print(self, elapsed: float, text: str) -> None:
        self._console.print(f"{elapsed:6.1f} s  {text}", highlight=False, soft_wrap=True)


@contextmanager
def open_show(scenario: Scenario) -> Iterator[Show]:
    """The view that suits standard output."""
    console = Console()
    if not console.is_terminal:
        yield PlainShow(scenario, console)
        return
    with Live(console=console, refresh_per_second=8, transient=False) as live:
        yield LiveShow(scenario, live)


def merge(scenario: Scenario) -> list[Event]:
    """All events of all logs, by time."""
    events = [event for name in SOURCES for event in Follower(scenario.log(name)).read()]
    return sorted(events, key=lambda event: float(str(event["at"])))
