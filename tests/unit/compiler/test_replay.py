"""The replay of the corpus: equal trees have equal texts, and a difference is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.corpus.everything import CASES
from tests.replay.__main__ import cause, report
from tests.replay.stages import digests
from tests.replay.texts import emitted, file_name, requests

_CASE = CASES[0]


def test_a_case_is_emitted_alike_twice_for_each_machine() -> None:
    texts = [{name: emitted(request) for name, request in requests(_CASE)} for _ in range(2)]
    assert texts[0] == texts[1]
    assert sorted(texts[0]) == ["cpu", "sm_90a"]
    assert all("define" in text for text in texts[0].values())


def test_file_names_are_unique() -> None:
    assert len({file_name(case, "cpu") for case in CASES}) == len(CASES)


def test_a_changed_text_is_named_with_its_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    for folder, line in ((before, "add"), (after, "sub")):
        folder.mkdir()
        (folder / "a.cpu.ll").write_text(f"load\n{line}\nstore\n")
        (folder / "b.cpu.ll").write_text("ret\n")
    (after / "c.cpu.ll").write_text("ret\n")
    assert report(before, after, show=1) == ["a.cpu.ll"]
    printed = capsys.readouterr().out
    assert "changed: a.cpu.ll  3 -> 3 lines" in printed
    assert "-add" in printed and "+sub" in printed
    assert "1 texts the same, 1 changed, 1 new, 0 gone" in printed


def test_the_cause_of_a_change_is_the_first_pass_that_leaves_something_else(tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    before.write_text("frontend\t1\nmerge\t1\nschedule\t2\nllir\t3")
    after.write_text("frontend\t1\nschedule\t2\nplace\t4\nllir\t5")
    assert cause(before, after) == "place (llir before)"
    after.write_text("frontend\t1\nnew\t1\nschedule\t6\nllir\t3")
    assert cause(before, after) == "schedule"
    assert cause(before, before) == "end"


def test_annotated_layouts_are_no_change_by_themselves() -> None:
    request = dict(requests(_CASE))["sm_90a"]
    left = dict(digests(request))
    assert left["verify-plan"] == left["decide-layouts"] != left["assign-layouts"]
