"""`triton.tools`: words of signatures, and one launch function over the variants of a kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.api import alias

import triton  # isort: skip - `alias` has put it on the path
from triton.tools import compile as aot  # isort: skip
from triton.tools import link  # isort: skip

assert alias.ALIAS.is_dir()


def header(path: Path, name: str, symbol: str, words: str) -> Path:
    path.write_text(f"#pragma once\n{aot.LINK_MARK} {name} {symbol} {words}\n", encoding="utf-8")
    return path


def test_words_of_a_signature_are_types_with_hints_or_constants() -> None:
    assert aot.parse_word(" *fp32:16") == aot.Word("*fp32", "16")
    assert aot.parse_word("i32:1") == aot.Word("i32", "1")
    assert aot.parse_word("1024") == aot.Word("constexpr", "", 1024)
    assert aot.parse_word("0.5").constant == 0.5
    assert aot.parse_word("None").is_constant
    with pytest.raises(triton.CompilationError, match="no type and no number"):
        aot.parse_word("float33")
    with pytest.raises(triton.CompilationError, match="the hint '8'"):
        aot.parse_word("i32:8")


def test_types_of_c_follow_the_signature() -> None:
    assert aot.Word("*bf16").c_type == "CUdeviceptr"
    assert aot.Word("u64").c_type == "uint64_t"
    with pytest.raises(triton.CompilationError, match="cannot be passed from C"):
        _ = aot.Word("tensordesc<fp32[16]>").c_type


def test_linked_variants_are_tried_by_the_number_of_their_hints(tmp_path: Path) -> None:
    plain = header(tmp_path / "a.h", "add", "add_1", "*fp32::x,i32::n,constexpr::B")
    aligned = header(tmp_path / "b.h", "add", "add_2", "*fp32:16:x,i32:1:n,constexpr::B")
    link.main([str(plain), str(aligned), "-o", str(tmp_path / "add")])
    text = (tmp_path / "add.c").read_text(encoding="utf-8")
    first, second = text.index("return add_2(stream, x, n)"), text.index("return add_1(")
    assert first < second
    assert "if ((x % 16 == 0) && (n == 1))" in text
    assert "CUresult add(CUstream stream, CUdeviceptr x, int32_t n);" in (
        tmp_path / "add.h"
    ).read_text(encoding="utf-8")


def test_variants_with_other_arguments_are_refused(tmp_path: Path) -> None:
    one = header(tmp_path / "a.h", "add", "add_1", "*fp32::x")
    two = header(tmp_path / "b.h", "add", "add_2", "*fp16::x")
    with pytest.raises(triton.CompilationError, match="take different arguments"):
        link.main([str(one), str(two), "-o", str(tmp_path / "add")])


def test_a_header_of_somebody_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.h"
    path.write_text("int x;\n", encoding="utf-8")
    with pytest.raises(triton.CompilationError, match="was not written by"):
        link.read_header(path)
