"""Every file and every pass that the page for newcomers names is there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import tilewright
from tilewright.compiler.named_passes import pass_classes
from tilewright.targets.target import TARGETS

SOURCES = Path(tilewright.__file__).parent
PAGE = (Path(__file__).parents[2] / "docs/internals/where-to-look.md").read_text("utf-8")
_PATH = re.compile(r"`((?:[\w<>]+/)*(?:[\w<>]+|\{[\w,]+\})(?:\.py|/))`")
_PASS = re.compile(r"(?:--diff |--stage |pass(?:es)? `)([a-z]+(?:-[a-z]+)+)")


def paths_named(text: str) -> Iterator[str]:
    """The files and folders that a text names, `{a,b}` taken apart and a target for `<target>`."""
    for name in _PATH.findall(text):
        choice = re.search(r"\{(.*)\}", name)
        options = [name]
        if choice is not None:
            options = [name.replace(choice.group(0), part) for part in choice.group(1).split(",")]
        for option in options:
            targets = TARGETS if "<target>" in option else ("",)
            yield from (option.replace("<target>", target) for target in targets)


def test_files_are_there() -> None:
    found = list(paths_named(PAGE))
    root = SOURCES.parents[1]
    missing = [n for n in found if not (SOURCES / n).exists() and not (root / n).exists()]
    assert len(found) > 30 and not missing


def test_passes_are_there() -> None:
    found = set(_PASS.findall(PAGE))
    assert len(found) > 10 and found <= set(pass_classes())
