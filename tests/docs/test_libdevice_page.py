"""The page of libdevice is what its tool writes."""

from __future__ import annotations

from pathlib import Path

from tilewright.tools.document_libdevice import PAGE, page

ROOT = Path(__file__).resolve().parents[2]


def test_the_checked_in_page_is_up_to_date() -> None:
    assert (ROOT / PAGE).read_text(encoding="utf-8") == page(), (
        "run python -m tilewright.tools.document_libdevice"
    )
