"""The boxes of a block: decided once, overridden by annotating, refused with a reason."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp

from tests.passes.laid_out import named
from tests.unit.targets.nvidia import descriptor_launching
from tests.unit.targets.nvidia.descriptor_kernels import copy_block, described, numbers
from tests.unit.targets.nvidia.descriptor_launching import check, lowered
from tilewright.compiler.compile import Observer, StageResult
from tilewright.compiler.instruments import verifier_of
from tilewright.compiler.named_passes import full_context
from tilewright.compiler.request import CompileRequest
from tilewright.ir.annotations import annotate, annotated, decided
from tilewright.ir.text import parse_module
from tilewright.support.errors import PlanRefused
from tilewright.targets.nvidia.tma.box_annotations import BoxAttr

TEXT = """
"builtin.module"() ({{
  "tt.func"() <{{function_type = () -> (), sym_name = "k"}}> ({{
    "tt.return"() {{ttng.box = #ttng.box<"{box}">}} : () -> ()
  }}) : () -> ()
}}) : () -> ()
"""
ARGUMENTS = (
    described(numbers((128, 128), "float16"), (64, 64)),
    described(numbers((128, 128), "float16") * 0, (64, 64)),
    64,
    64,
)


@pytest.fixture
def given(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A box that is annotated on every access through a descriptor before the passes run."""
    text = str(request.param)
    (end,) = named(parse_module(TEXT.format(box=text), full_context()), "tt.return")

    def annotating(of: CompileRequest) -> Observer:
        verify = verifier_of(of)

        def watch(stage: str, result: StageResult) -> None:
            if stage == "frontend" and isinstance(result, ModuleOp):
                for op in result.walk():
                    if op.name in ("tt.descriptor_load", "tt.descriptor_store"):
                        annotate(op, BoxAttr(decided(end, BoxAttr)))
            verify(stage, result)

        return watch

    monkeypatch.setattr(descriptor_launching, "verifier_of", annotating)
    return text


def boxes() -> set[str]:
    """The boxes of everything that moves in the scheduled kernel, and of the maps."""
    module = lowered(copy_block, ARGUMENTS, {}).scheduled.module
    return {str(annotated(op, BoxAttr)) for op in module.walk() if BoxAttr.name in op.attributes}


def test_a_block_is_one_box_where_its_rows_are_as_long_as_the_swizzle() -> None:
    assert boxes() == {"64x64, swizzle 128"}


@pytest.mark.parametrize(
    "given",
    [
        "32x64, swizzle 128",
        "8x64, swizzle 128",
        "64x32, swizzle 64",
        "16x16, swizzle 32",
        "64x64, swizzle 0",
        "4x64, swizzle 0",
    ],
    indirect=True,
)
def test_a_box_that_was_annotated_is_the_one_that_moves(given: str) -> None:
    assert boxes() == {given}
    check(copy_block, (2, 2), *ARGUMENTS)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("64x32, swizzle 128", "rows of 64 bytes are not as long as the swizzle"),
        ("48x64, swizzle 128", "the block is 64x64"),
        ("64x128, swizzle 128", "the block is 64x64"),
        ("64, swizzle 0", "it has 1 dims, the block has 2"),
        ("64x64, swizzle 48", "a swizzle has 32, 64 or 128 bytes, or 0"),
        ("4x64, swizzle 128", "do not start where the swizzle does, at multiples of 1024"),
        ("64x32, swizzle 0", "the box is not contiguous in shared memory"),
        ("1x32, swizzle 0", "the block takes 128 copies"),
    ],
    indirect=["given"],
)
def test_a_box_that_the_engine_does_not_move_is_refused(given: str, reason: str) -> None:
    with pytest.raises(PlanRefused, match=f"the box `{given}` is refused: .*{reason}") as caught:
        boxes()
    assert caught.value.span is not None
