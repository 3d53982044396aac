"""The page of the command line is what its tool writes, and says what every option means."""

from __future__ import annotations

from pathlib import Path

import click

from tilewright.tools.document_cli import PAGE, page
from tilewright.tools.main import tool

ROOT = Path(__file__).resolve().parents[2]


def test_the_checked_in_page_is_up_to_date() -> None:
    assert (ROOT / PAGE).read_text(encoding="utf-8") == page(), (
        "run python -m tilewright.tools.document_cli"
    )


def test_every_command_and_option_says_what_it_is_for() -> None:
    waiting: list[click.Command] = [tool]
    while waiting:
        command = waiting.pop()
        assert command.help, command.name
        assert all(p.help for p in command.params if isinstance(p, click.Option)), command.name
        waiting += command.commands.values() if isinstance(command, click.Group) else ()
