"""What a user reads who writes a pipeline or a module of text that is wrong."""

from __future__ import annotations

import pytest

from tests.plugins.goldens import Golden
from tilewright import TilewrightError
from tilewright.compiler.named_passes import run_passes_on_text

KERNEL = """"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (f32) -> ()}> ({
  ^bb0(%x: f32):
    BODY
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
"""
SUM = '%y = "arith.addf"(%x, %x) : (f32, f32) -> f32'

PIPELINES = {
    "no_such_pass": "merge-duplicate",
    "no_such_option": "place-shared{shared_bytes=1024}",
    "no_such_machine": "place-shared{machine=sm_42}",
    "pass_at_another_level": "merge-duplicates place-shared",
    "pass_before_what_it_reads": "assign-layouts insert-global-barriers copy-async",
    "pass_behind_the_last_level": "schedule{target=nvidia} merge-duplicates",
    "no_pipeline": "merge-duplicates {",
}
TEXTS = {
    "op_that_nobody_knows": '%y = "arith.sum"(%x, %x) : (f32, f32) -> f32',
    "op_whose_parts_do_not_fit": (
        '%y = "tt.make_range"() <{start = 0 : i32, end = 8 : i32}> : () -> tensor<4xi32>'
    ),
    "op_without_a_property": '%y = "arith.cmpf"(%x, %x) : (f32, f32) -> i1',
    "value_before_its_definition": '%y = "arith.addf"(%x, %z) : (f32, f32) -> f32',
    "string_without_an_end": '%y = "arith.addf(%x, %x) : (f32, f32) -> f32',
    "custom_form": "%y = arith.addf %x, %x : f32",
    "too_many_bits": (
        '%y = "arith.constant"() <{value = dense<0x1ffff> : tensor<2xf16>}> : () -> tensor<2xf16>'
    ),
}


def message(text: str, passes: str) -> str:
    with pytest.raises(TilewrightError) as caught:
        run_passes_on_text(text, passes, name="kernel.mlir")
    return str(caught.value)


@pytest.mark.parametrize("name", PIPELINES)
def test_wrong_pipelines_say_what_is_wrong_and_what_to_write(name: str, golden: Golden) -> None:
    golden(f"golden/{name}", message(KERNEL.replace("BODY", SUM), PIPELINES[name]))


@pytest.mark.parametrize("name", TEXTS)
def test_wrong_text_is_shown_with_its_line(name: str, golden: Golden) -> None:
    golden(f"golden/{name}", message(KERNEL.replace("BODY", TEXTS[name]), "merge-duplicates"))


def test_text_of_another_level_names_the_first_op_that_does_not_belong(golden: Golden) -> None:
    tile = '%y = "tt.make_range"() <{start = 0 : i32, end = 64 : i32}> : () -> tensor<64xi32>'
    golden("golden/text_of_another_level", message(KERNEL.replace("BODY", tile), "place-shared"))
