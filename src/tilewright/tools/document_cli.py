"""Writes `docs/cli.md`, the page of the command line, from the commands themselves.

`python -m tilewright.tools.document_cli` after a change of a command; a test compares.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import click

from tilewright.tools.main import tool

PAGE = Path("docs/cli.md")
_HEAD = """# The command line

<!-- written by python -m tilewright.tools.document_cli -->

`tilewright COMMAND`, or `python -m tilewright COMMAND`; `--help` after a command says the same as
this page. Our errors end a command with code 1 and without a traceback.

`ir`, `explain`, `compile` and `simulate` look at kernels as they are specialised, and a kernel is
specialised by a launch. So they **run the file from its first line on**, on the CPU, as
`python FILE` would; a file that launches nothing at its top level but has a function `main()` is
asked to run that. There
are two ways to run less of it:

* `--function NAME` imports the file, so that what stands under `if __name__ == "__main__":` does
  not run, and calls one function of it. Only what that function launches is shown.
* `--arg NAME=TYPE`, for each parameter of one kernel, describes a launch in place of making it.
  The file is imported for its definitions.

What the file prints, and what its kernels and its child processes print, goes to stderr: stdout has
the command's own output alone, and can be redirected.

```
tilewright explain train.py                               # all of it runs
tilewright explain train.py --function one_step           # one function runs
tilewright explain train.py:softmax --target sm_90a       # one kernel, for a GPU that is not there
tilewright ir train.py:softmax --arg x=*fp32:16 --arg n=i32 --arg BLOCK=1024 --stage llir
tilewright compile train.py -o out                        # every stage, and the machine code
```

"""


def page() -> str:
    """The text of the page."""
    sections = [_section(words, command) for words, command in _commands("tilewright", tool)]
    return _HEAD + "\n".join(sections)


def _commands(words: str, group: click.Group) -> Iterator[tuple[str, click.Command]]:
    """Every command with the words that call it; groups before what is in them."""
    for name, command in sorted(group.commands.items()):
        yield f"{words} {name}", command
        if isinstance(command, click.Group):
            yield from _commands(f"{words} {name}", command)


def _section(words: str, command: click.Command) -> str:
    arguments = [_argument_text(p) for p in command.params if isinstance(p, click.Argument)]
    options = [p for p in command.params if isinstance(p, click.Option)]
    usage = " ".join([words, *(["[OPTIONS]"] if options else []), *arguments])
    if isinstance(command, click.Group):
        usage += " COMMAND"
    lines = [f"## {words}", "", "```", usage, "```", "", *_help_lines(command.help or ""), ""]
    if options:
        lines += ["| option | meaning |", "| --- | --- |", *map(_option_row, options), ""]
    return "\n".join(lines)


def _argument_text(argument: click.Argument) -> str:
    name = argument.metavar or (argument.name or "").upper()
    text = f"[{name}]" if not argument.required else name
    return f"{text}…" if argument.nargs != 1 else text


def _help_lines(text: str) -> Iterator[str]:
    r"""The paragraphs of a help text; what follows `\b` is kept as it is, in a fence."""
    for number, paragraph in enumerate(inspect.cleandoc(text).split("\n\n")):
        if number:
            yield ""
        if paragraph.lstrip().startswith("\b"):
            yield from ("```", inspect.cleandoc(paragraph.split("\n", 1)[1]), "```")
        else:
            yield re.sub(r"\s*\n\s*", "\n", paragraph.strip())


def _option_row(option: click.Option) -> str:
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    value = "" if option.is_flag else f" `{option.metavar or (option.name or '').upper()}`"
    default = option.default
    shown = f" Default: `{default}`." if option.show_default and default is not None else ""
    help_text = (option.help or "").rstrip()
    return f"| {names}{value} | {help_text}{shown} |".replace("\n", " ")


def main() -> None:
    """Write the page below the current folder."""
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
