"""Roles of which ptxas says that they spill or wait give way to a form that does not."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.unit.targets.nvidia.bulk_kernels import product
from tilewright.compiler.build import make_request
from tilewright.compiler.compile import FORM, compile_request
from tilewright.compiler.request import CompileRequest
from tilewright.compiler.stages import formed_request, stage_text
from tilewright.frontend.devices import DevicePlacement
from tilewright.runtime.artifact import Artifact
from tilewright.targets.nvidia.host import named_machine
from tilewright.tools.explain import explain

pytestmark = pytest.mark.ptxas


def request_of(rows: int, columns: int, **options: object) -> CompileRequest:
    a, b, c = (np.zeros((1024, 1024), np.float16) for _ in range(3))
    args = (a, b, c, 1024, 1024, 1024, 1024, 1, 1024, 1, 1024)
    blocks = {"BM": rows, "BN": columns, "BK": 64, "GROUP": 8}
    call = product.specialize_call(args, {**blocks, **options})
    machine, place = named_machine("sm_90a"), DevicePlacement("nvidia")
    return make_request(call.source, call.specialization, call.options, place, machine)


def spilled(artifact: Artifact) -> int:
    return json.loads(artifact.sections["resources.json"])["spill_store_bytes"]


def test_one_group_of_large_tiles_becomes_two() -> None:
    request = request_of(128, 256, num_consumer_groups=1)
    artifact = compile_request(request)
    assert artifact.metadata[FORM] == {"num_consumer_groups": 2}
    assert artifact.metadata["num_warps"] == 12 and spilled(artifact) == 0
    remarks = artifact.metadata["remarks"]
    assert isinstance(remarks, list)
    (first, *_) = remarks
    line = product.fn.__code__.co_firstlineno
    assert "bulk_kernels.py:" in first and int(first.split(":")[1]) >= line
    assert "1 group(s) of warps are not taken: ptxas serializes its products (C7511) and" in first
    assert first.endswith("taken as with num_consumer_groups=2")


@pytest.mark.parametrize("options", [{"num_consumer_groups": 2}, {"num_warps": 8}])
def test_what_fits_stays_as_it_is(options: dict[str, int]) -> None:
    artifact = compile_request(request_of(128, 256, **options))
    assert artifact.metadata[FORM] == {} and spilled(artifact) == 0


def test_what_the_assembler_refuses_runs_without_roles() -> None:
    """Two programs fit an SM with these grants, and 80 registers are fewer than wgmma needs."""
    options = {"num_consumer_groups": 2, "reg_dec_producer": 24, "reg_inc_consumer": 104}
    artifact = compile_request(request_of(128, 256, **options))
    form = artifact.metadata[FORM]
    assert isinstance(form, dict) and form["num_consumer_groups"] == 0
    assert artifact.metadata["num_warps"] == 8 and spilled(artifact) == 0
    remarks = artifact.metadata["remarks"]
    assert isinstance(remarks, list)
    (first, *_) = remarks
    assert "2 group(s) of warps are not taken: Insufficient registers (80)" in first


def test_where_every_form_spills_the_first_one_stays() -> None:
    artifact = compile_request(request_of(256, 256, num_consumer_groups=2))
    assert artifact.metadata[FORM] == {} and spilled(artifact) > 0
    assert artifact.metadata["num_warps"] == 12


def test_the_schedule_of_an_author_stays() -> None:
    ring = "ring ab tiles load#0 load#1 slots 3 tma"
    text = f"roles load regs 40 | math regs 240; {ring}; persist static"
    artifact = compile_request(request_of(128, 256, schedule=text))
    assert artifact.metadata[FORM] == {} and spilled(artifact) > 0


def test_stages_are_those_of_the_form_that_is_taken() -> None:
    request = request_of(128, 256, num_consumer_groups=1)
    artifact = compile_request(request)
    formed = formed_request(request, artifact)
    assert stage_text(formed, "ptx") == artifact.sections["ptx"].decode()
    assert stage_text(request, "ptx") != artifact.sections["ptx"].decode()


def test_explain_speaks_of_the_form_that_is_taken(capsys: pytest.CaptureFixture[str]) -> None:
    explain(request_of(128, 256, num_consumer_groups=1))
    shown = capsys.readouterr().out
    assert "1 group(s) of warps are not taken" in shown and "math x2" in shown
    assert "0 B spilled" in shown or "0 bytes spilled" in shown
