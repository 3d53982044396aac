"""The progress bar of long work: after a second, on a terminal, and gone in the end."""

from __future__ import annotations

import io
import os
import pty
import sys
import threading

import pytest

from tilewright.runtime import progress
from tilewright.runtime.progress import progress_bar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def use_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal as stderr; in the test itself, for pytest sets its own before each."""
    made = Terminal()
    monkeypatch.setattr(sys, "stderr", made)
    monkeypatch.setenv("TERM", "xterm")
    return made


def wait_for_bar() -> None:
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.join()


def test_nothing_is_written_where_there_is_no_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_PATIENCE_S", 0.0)
    with progress_bar("tuning", 2) as step:
        wait_for_bar()
        step("best 1 ms")
    assert capsys.readouterr() == ("", "")


def test_short_work_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = use_terminal(monkeypatch)
    with progress_bar("tuning", 2) as step:
        step("best 1 ms")
    assert terminal.getvalue() == ""


def test_long_work_shows_a_bar_before_its_first_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(progress, "_PATIENCE_S", 0.0)
    terminal = use_terminal(monkeypatch)
    with progress_bar("tuning softmax", 20) as step:
        wait_for_bar()
        assert "tuning softmax" in terminal.getvalue() and "0/20" in terminal.getvalue()
        step("best 1.5 ms")
    assert "1/20" in terminal.getvalue() and "best 1.5 ms" in terminal.getvalue()
    assert not any(isinstance(thread, threading.Timer) for thread in threading.enumerate())


def test_the_patience_is_one_second() -> None:
    assert progress._PATIENCE_S == 1.0


def test_a_pseudo_terminal_counts_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_PATIENCE_S", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as writer:
        monkeypatch.setattr(sys, "stderr", writer)
        with progress_bar("tuning", 3):
            wait_for_bar()
        written = os.read(ours, 4096).decode()
    os.close(ours)
    assert "tuning" in written
