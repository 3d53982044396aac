"""The assembler run on hand-written PTX: cubins, resources, refusals, timeouts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.support.errors import InternalError
from tilewright.support.options import CompileOptions
from tilewright.targets.nvidia.assembler import assemble_ptx, assembler_flags
from tilewright.targets.nvidia.errors import AssemblerFailed, AssemblerNotFound, ResourcesExceeded
from tilewright.targets.nvidia.toolchain import Assembler, find_assembler

pytestmark = pytest.mark.ptxas

HEAD = '.version 8.0\n.target sm_90a\n.address_size 64\n.file 1 "/tmp/kernel.py"\n'
NUM_ACCUMULATORS = 64


def scale(instruction: str = "mul.rn.f32 %f2, %f1, %f1;") -> str:
    return (
        HEAD
        + f""".visible .entry scale(.param .u64 p) .reqntid 128,1,1
{{
  .reg .b64 %rd<2>;
  .reg .f32 %f<3>;
  .loc 1 12 5
  ld.param.u64 %rd1, [p];
  ld.global.f32 %f1, [%rd1];
  .loc 1 13 5
  {instruction}
  st.global.f32 [%rd1], %f2;
  ret;
}}
"""
    )


def product(bounds: str = ".reqntid 128,1,1") -> str:
    """A matrix instruction whose accumulators are touched while it is in flight."""
    names = [f"%f{i}" for i in range(NUM_ACCUMULATORS)]
    stores = "\n".join(f"  st.global.f32 [%rd1+{4 * i}], {n};" for i, n in enumerate(names))
    return (
        HEAD
        + f""".visible .entry product(.param .u64 p) {bounds}
{{
  .reg .b64 %rd<4>; .reg .f32 %f<{NUM_ACCUMULATORS}>; .reg .pred %p1;
  .loc 1 7 3
  ld.param.u64 %rd1, [p];
  mov.b64 %rd2, 1; mov.b64 %rd3, 2; setp.ne.b32 %p1, 1, 0;
  wgmma.fence.sync.aligned;
  .loc 1 9 3
  wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16
    {{{", ".join(names)}}}, %rd2, %rd3, %p1, 1, 1, 0, 0;
  wgmma.commit_group.sync.aligned;
  .loc 1 10 3
  add.rn.f32 %f1, %f1, %f2;
  wgmma.wait_group.sync.aligned 0;
{stores}
  ret;
}}
"""
    )


def test_a_kernel_becomes_a_cubin_with_its_resources() -> None:
    assembled = assemble_ptx(scale(), "sm_90a")
    assert assembled.cubin[:4] == b"\x7fELF"
    assert 0 < assembled.resources.registers < 32
    assert not assembled.resources.has_spills
    assert assembled.remarks() == ()
    assert set(assembled.sections()) == {"cubin", "ptx", "resources.json"}


def test_equal_text_gives_equal_cubins() -> None:
    assert assemble_ptx(scale(), "sm_90a").cubin == assemble_ptx(scale(), "sm_90a").cubin


def test_locations_reach_the_cubin() -> None:
    assert b".debug_line" in assemble_ptx(scale(), "sm_90a").cubin
    assert "--generate-line-info" not in assembler_flags("ret;", "sm_90a", CompileOptions())


def test_flags_of_the_user_are_passed_on() -> None:
    flags = assembler_flags("ret;", "sm_90a", CompileOptions(ptx_options="-O1 --def-load-cache=cg"))
    assert flags[-2:] == ("-O1", "--def-load-cache=cg")


def test_serialized_matrix_instructions_are_a_remark_with_a_line() -> None:
    assembled = assemble_ptx(product(), "sm_90a")
    assert [message.kind for message in assembled.messages] == ["serialized"]
    assert assembled.remarks()[0].startswith("/tmp/kernel.py:10: ptxas: ")


def test_too_few_registers_are_the_authors_error() -> None:
    with pytest.raises(ResourcesExceeded) as caught:
        assemble_ptx(product(".reqntid 128,1,1 .maxnreg 32"), "sm_90a")
    assert caught.value.span is not None and caught.value.span.line == 9


def test_too_much_shared_memory_is_the_authors_error() -> None:
    ptx = scale().replace("  .reg .b64", "  .shared .b8 big[300000];\n  .reg .b64", 1)
    with pytest.raises(ResourcesExceeded, match="too much shared data"):
        assemble_ptx(ptx, "sm_90a")


def test_a_wrong_instruction_is_our_error_and_shows_its_line() -> None:
    with pytest.raises(InternalError) as caught:
        assemble_ptx(scale("mul.foo.f32 %f2, %f1, %f1;"), "sm_90a")
    assert "mul.foo.f32" in str(caught.value)
    assert "/tmp/kernel.py:13" in str(caught.value)


def test_an_architecture_that_ptxas_does_not_know_says_that_it_is_too_old() -> None:
    with pytest.raises(AssemblerFailed, match="too old"):
        assemble_ptx(scale(), "sm_999")


def script(folder: Path, text: str) -> Path:
    path = folder / "ptxas"
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def test_an_assembler_that_hangs_is_stopped(tmp_path: Path) -> None:
    tool = Assembler(script(tmp_path, "exec tail -f /dev/null"), "0")
    with pytest.raises(AssemblerFailed, match="stopped after"):
        assemble_ptx(scale(), "sm_90a", assembler=tool, timeout_s=0.05)


def test_an_assembler_that_cannot_run_is_named(tmp_path: Path) -> None:
    tool = Assembler(tmp_path / "missing", "0")
    with pytest.raises(AssemblerFailed, match="cannot be run"):
        assemble_ptx(scale(), "sm_90a", assembler=tool)


def test_the_assembler_of_the_option_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = script(tmp_path, "echo 'Cuda compilation tools, release 99.1, V99.1.2'")
    monkeypatch.setenv("TILEWRIGHT_PTXAS", str(path))
    assert find_assembler() == Assembler(path, "99.1.2")


def test_an_option_that_names_no_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_PTXAS", "/no/such/ptxas")
    with pytest.raises(AssemblerNotFound, match="/no/such/ptxas"):
        find_assembler()


def test_no_assembler_is_an_error_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TILEWRIGHT_PTXAS", raising=False)
    monkeypatch.setattr("tilewright.targets.nvidia.toolchain._candidates", lambda name: iter(()))
    with pytest.raises(AssemblerNotFound, match="pip install nvidia-cuda-nvcc"):
        find_assembler()


def test_a_program_that_is_no_ptxas_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_PTXAS", str(script(tmp_path, "echo hello")))
    with pytest.raises(AssemblerFailed, match="does not say its version"):
        find_assembler()
