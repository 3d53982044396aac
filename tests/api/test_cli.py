"""The command line, in this process where possible and as a child where it must be."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import tilewright
from tilewright.compiler.reproducer import Reproducer
from tilewright.compiler.request import CompileRequest
from tilewright.runtime.cache import open_default
from tilewright.tools.collect import requests_of
from tilewright.tools.main import tool

ROOT = Path(tilewright.__file__).resolve().parents[1]
KERNEL = """
import numpy as np
import tilewright
import tilewright.language as tl

@tilewright.jit
def scale(x_ptr, out_ptr, n, factor, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * factor, mask=mask)

@tilewright.jit
def spread(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + tl.load(x_ptr + offsets).to(tl.int32)))

def main():
    x = np.zeros(100, np.float32)
    out = np.empty_like(x)
    scale[(1,)](x, out, 100, 2.0, BLOCK=128)
    spread[(1,)](x, out, BLOCK=64)
    print("finished")
"""
BROKEN = """
import numpy as np
import tilewright
import tilewright.language as tl

@tilewright.jit
def bad(x_ptr):
    tl.static_assert(1 > 2, "never")

bad[(1,)](np.zeros(4))
"""


@pytest.fixture(autouse=True)
def cache_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "kernels.py"
    path.write_text(KERNEL)
    return path


def call(*arguments: object, code: int = 0) -> Result:
    result = CliRunner().invoke(tool, [str(a) for a in arguments], prog_name="tilewright")
    assert result.exit_code == code, result.output
    return result


TYPES = ["x_ptr=*fp32:16", "out_ptr=*fp32", "n=i32", "factor=fp32"]
ARGUMENTS = [word for type_ in TYPES for word in ("--arg", type_)]


def test_ir_runs_main_and_prints_each_kernel_as_it_was_specialised(file: Path) -> None:
    result = call("ir", file)
    assert "// scale(x_ptr: *fp32:16, out_ptr: *fp32:16, n: i32, factor: fp32, BLOCK=128)" in (
        result.stdout
    )
    assert '"tt.load"' in result.stdout and "spread" in result.stdout
    assert "finished" not in result.stdout and "finished" in result.stderr


def test_ir_of_one_kernel_by_name(file: Path) -> None:
    for arguments in ((f"{file}:spread",), (file, "--kernel", "spread")):
        assert "// scale" not in call("ir", *arguments).stdout


def test_ir_for_described_arguments_runs_nothing(file: Path) -> None:
    result = call("ir", f"{file}:scale", *ARGUMENTS, "--arg", "BLOCK=64", "--stage", "llir")
    assert "finished" not in result.stderr
    assert "define" in result.stdout and "BLOCK=64" in result.stdout


@pytest.mark.parametrize("stage", ["source", "frontend", "schedule", "llir", "asm"])
def test_every_stage_is_printed(file: Path, stage: str) -> None:
    marks = {"source": "def scale", "schedule": "cpu.nest", "llir": "define", "asm": ".text"}
    assert marks.get(stage, "tt.func") in call("ir", f"{file}:scale", "--stage", stage).stdout


def test_diff_shows_what_a_stage_changes(file: Path) -> None:
    shown = call("ir", f"{file}:scale", "--diff", "schedule").stdout
    assert "+++ schedule" in shown
    assert any(line.startswith("-") and "tt.load" in line for line in shown.splitlines())
    assert any(line.startswith("+") and "cpu.load" in line for line in shown.splitlines())


CPU_PASSES = ("frontend", "merge-duplicates", "ttir", "emit-nests", "place-buffers", "nests")
GPU_PASSES = ("decide-products", "plan", "assign-layouts", "t1", "copy-async", "place-shared",
              "insert-shared-barriers", "t2")  # fmt: skip


@pytest.mark.parametrize("name", CPU_PASSES)
def test_every_pass_for_a_cpu_can_be_shown_and_compared(file: Path, name: str) -> None:
    assert "tt.func" in call("ir", f"{file}:scale", "--stage", name).stdout
    shown = call("ir", f"{file}:scale", "--diff", name).stdout
    assert f"+++ {name}" in shown or f"{name} changes nothing" in shown


@pytest.mark.parametrize("name", GPU_PASSES)
def test_every_pass_for_a_gpu_can_be_shown_and_compared(file: Path, name: str) -> None:
    target = ("--target", "sm_90a")
    assert "tt.func" in call("ir", f"{file}:scale", *target, "--stage", name).stdout
    shown = call("ir", f"{file}:scale", *target, "--diff", name).stdout
    assert f"+++ {name}" in shown or f"{name} changes nothing" in shown


def test_a_diff_shows_lines_that_a_pass_changes_and_no_renumbered_ones(file: Path) -> None:
    shown = call("ir", f"{file}:scale", "--target", "sm_90a", "--diff", "place-shared").stdout
    changed = [line for line in shown.splitlines() if line[:1] in "+-" and line[:3] not in "+++---"]
    assert len(changed) == 2 and all("}) " in line for line in changed)
    assert "shared_bytes" in changed[1]


def test_locations_are_printed_on_request(file: Path) -> None:
    assert "kernels.py" not in call("ir", f"{file}:scale").stdout
    assert "kernels.py" in call("ir", f"{file}:scale", "--locations").stdout


def test_list_names_the_stages_in_order(file: Path) -> None:
    names = call("ir", file, "--list").stdout.split()
    assert names[:2] == ["source", "frontend"] and names[-3:] == ["place-buffers", "llir", "asm"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--stage", "foo"], "error[InvalidOption]: there is no stage or pass `foo`"),
        (["--kernel", "gone"], "launches no kernel 'gone' (but scale, spread)"),
        (["--arg", "n=i32"], "has scale, spread"),
        (["--kernel", "scale", "--arg", "m=i32"], "scale() has no parameter `m`"),
        (["--kernel", "scale", "--arg", "n=i32"], "needs a type or value for `x_ptr`"),
        (["--kernel", "scale", "--arg", "n"], "is not of the form name=type"),
    ],
)
def test_wrong_requests_end_with_a_message_and_code_1(
    file: Path, arguments: list[str], message: str
) -> None:
    result = call("ir", file, *arguments, code=1)
    assert message in result.stderr
    assert "Traceback" not in result.output


def test_a_kernel_that_does_not_compile_shows_its_error(tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text(BROKEN)
    result = call("ir", path, code=1)
    assert "error[StaticAssertionFailed]" in result.stderr
    assert "broken.py:8" in result.stderr
    assert "Traceback" not in result.output


def test_a_file_without_launches_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "empty.py"
    path.write_text("x = 1\n")
    result = call("explain", path, code=1)
    assert "launches no kernel" in result.stderr and "--arg" in result.stderr


def test_explain_names_lines_vectors_and_slow_accesses(file: Path) -> None:
    shown = call("explain", file).stdout
    assert "nest 1: 128 elements · vectors of" in shown
    assert "kernels.py:10  tl.store(out_ptr + offsets, tl.load(x_ptr + offsets" in shown
    assert "contiguous" in shown and "gather" in shown
    assert "arena" in shown


PARTS = """
import os
import numpy as np
import tilewright
import tilewright.language as tl

@tilewright.jit
def unrolled(x_ptr, BLOCK: tl.constexpr):
    for i in tl.static_range(4):
        offsets = i * BLOCK + tl.arange(0, BLOCK)
        total = tl.sum(tl.load(x_ptr + offsets))
        tl.device_print("total", total)
        tl.store(x_ptr + offsets, total)

def one_part():
    print("said by python")
    os.system("echo said by a child")
    unrolled[(1,)](np.ones(64, np.float32), BLOCK=16)

def needs(more):
    pass

unrolled[(1,)](np.ones(32, np.float32), BLOCK=8)
if __name__ == "__main__":
    unrolled[(1,)](np.ones(128, np.float32), BLOCK=32)
"""


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    path = tmp_path / "parts.py"
    path.write_text(PARTS)
    return path


def test_a_function_is_called_in_place_of_running_the_file(parts: Path) -> None:
    shown = call("ir", parts, "--function", "one_part").stdout
    assert "BLOCK=16" in shown
    assert "BLOCK=8)" not in shown and "BLOCK=32" not in shown
    assert "BLOCK=32" in call("ir", parts).stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--function", "needs"], "`needs` of"),
        (["--function", "gone"], "takes none: one_part"),
        (["--function", "one_part", "--arg", "x_ptr=*fp32"], "does not go with --arg"),
    ],
)
def test_a_function_that_cannot_be_called_is_named(
    parts: Path, arguments: list[str], message: str
) -> None:
    assert message in call("ir", parts, *arguments, code=1).stderr


def test_what_a_file_its_kernels_and_its_children_print_is_kept_apart(parts: Path) -> None:
    done = command("ir", parts, "--function", "one_part")
    for said in ("said by python", "said by a child", "total: 16"):
        assert said not in done.stdout
        assert said in done.stderr
    assert done.stdout.startswith("// unrolled(") and "parts.py runs" in done.stderr


def test_equal_nests_are_explained_once(parts: Path) -> None:
    shown = call("explain", parts, "--function", "one_part").stdout
    (numbers,) = [line for line in shown.splitlines() if "tt.reduce" in line]
    assert numbers.startswith("  nests 1") and ", each: 16 elements" in numbers
    assert shown.count("16 elements") < 4


PRODUCTS = """
import numpy as np
import tilewright
import tilewright.language as tl

@tilewright.jit
def product(a, b, c, M: tl.constexpr, SIZE: tl.constexpr):
    m, i = tl.arange(0, M), tl.arange(0, SIZE)
    x = tl.load(a + m[:, None] * SIZE + i[None, :])
    y = tl.load(b + i[:, None] * SIZE + i[None, :])
    tl.store(c + m[:, None] * SIZE + i[None, :], tl.dot(x, y))

for rows, dtype, out in ((4, np.int8, np.int32), (64, np.float64, np.float64)):
    a, b = np.ones((rows, 64), dtype), np.ones((64, 64), dtype)
    product[(1,)](a, b, np.zeros((rows, 64), out), M=rows, SIZE=64)
"""


def test_explain_says_which_unit_multiplies_and_why_not_amx(tmp_path: Path) -> None:
    path = tmp_path / "products.py"
    path.write_text(PRODUCTS)
    lines = call("explain", path).stdout.splitlines()
    few, wide = (index for index, line in enumerate(lines) if line.startswith("  product "))
    assert lines[few].startswith("  product 4x64x64 of i8: ") and "packs A and B" in lines[few]
    assert "tl.dot(x, y)" in lines[few + 2]
    reasons = ("no AMX", "for 4 rows, packing B costs more")
    assert any(reason in lines[few + 3] for reason in reasons)
    assert lines[wide].startswith("  product 64x64x64 of f64: ") and "nothing" in lines[wide]
    assert lines[wide + 3] == "    not on AMX: AMX multiplies bf16, f16 and bytes, not f64"
    assert " · packs nothing · 524288 operations" in lines[wide] and " columns · " in lines[wide]
    assert lines[wide + 4].startswith("    reads A and B in place")
    assert "reads" not in lines[few + 4]


LOOP = """
import numpy as np
import tilewright
import tilewright.language as tl

@tilewright.jit
def attend(q, k, out, turns, N: tl.constexpr):
    i = tl.arange(0, N)
    places = i[:, None] * N + i[None, :]
    x, total = tl.load(q + places), tl.zeros((N,), tl.float32)
    for turn in range(turns):
        scores = tl.dot(x, tl.trans(tl.load(k + turn * N * N + places)))
        total += tl.sum(tl.exp(scores), axis=1)
    tl.store(out + i, total)

x = np.ones((64, 64), np.float32)
attend[(1,)](x, np.ones((3, 64, 64), np.float32), np.zeros(64, np.float32), 3, N=64)
"""


def test_explain_estimates_shares_of_the_time(tmp_path: Path) -> None:
    path = tmp_path / "loop.py"
    path.write_text(LOOP)
    shown = call("explain", path).stdout
    tables = re.split(r"  .* takes about .* cycles by estimate:\n", shown.split("\n  nest 1")[0])
    assert len(tables) == 3
    for table in tables[1:]:
        assert sum(int(part) for part in re.findall(r"^ +(\d+) %  ", table, re.MULTILINE)) == 100
    (product,) = re.findall(r"^ +(\d+) %  product 64x64x64  ", tables[2], re.MULTILINE)
    assert int(product) > 50
    step = f"about {product} % of a step of the loop at loop.py:11 with its packing · bound by "
    assert step in shown


def test_a_loop_of_constant_length_counts_in_the_time_of_a_program(tmp_path: Path) -> None:
    path = tmp_path / "loop.py"
    path.write_text(LOOP.replace("range(turns)", "range(12)"))
    shown = call("explain", path).stdout
    assert "  a program takes about " in shown and "unknown length" not in shown
    assert re.search(r"\d+ %  product 64x64x64, 12 times  .* loop.py:12  scores = tl.dot", shown)
    assert re.search(r"about \d+ % of a program with its packing, in 12 runs · bound by ", shown)


def test_measure_says_what_each_part_took(tmp_path: Path) -> None:
    path = tmp_path / "loop.py"
    path.write_text(LOOP)
    shown = call("explain", "--measure", path).stdout
    heading, table = shown.split("\n  nest 1")[0].split("measured  estimated")
    assert re.search(r"  a program took .* cycles, on average of 1 program:", heading)
    *rows, elsewhere = table.splitlines()[1:]
    percents = [re.findall(r"(\d+) %  ", row) for row in rows]
    assert sum(int(taken) for taken, _ in percents) + int(elsewhere.split()[0]) == 100
    assert sum(int(estimated) for _, estimated in percents) == 100
    assert "elsewhere" in elsewhere
    assert any("product 64x64x64, 3 times" in row and "loop.py:12" in row for row in rows)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--target", "sm_90a"], "counts cycles of this machine's CPU, not of sm_90a"),
        (["--arg", "turns=i32"], "goes with a file that is run"),
    ],
)
def test_measure_refuses_what_does_not_run_here(
    tmp_path: Path, arguments: list[str], message: str
) -> None:
    path = tmp_path / "loop.py"
    path.write_text(LOOP)
    assert message in call("explain", "--measure", path, *arguments, code=1).stderr


SUM = """
import numpy as np
from examples.matmul import matmul

matmul(np.ones((64, 64), np.float32), np.ones((64, 64), np.float32))
"""


def test_explain_says_that_the_last_step_stores_the_result(tmp_path: Path) -> None:
    path = tmp_path / "sum.py"
    path.write_text(SUM)
    assert call("explain", path).stdout.count("the last step stores the result") == 1


def test_compile_writes_every_stage_and_the_object(file: Path, tmp_path: Path) -> None:
    call("compile", f"{file}:scale", "-o", tmp_path / "out", *ARGUMENTS, "--arg", "BLOCK=64")
    (directory,) = (tmp_path / "out").iterdir()
    names = {path.name.split("-", 1)[-1] for path in directory.iterdir()}
    assert {"frontend.mlir", "llir.ll", "asm.s", "scale.o", "metadata.json"} <= names
    kept = CompileRequest.from_bytes((directory / "request.json").read_bytes())
    assert kept.name == "scale"


def test_cache_lists_verifies_and_clears(file: Path, cache_dir: Path) -> None:
    call("ir", f"{file}:scale")
    listed = call("cache", "ls").stdout
    assert "kernel scale" in listed and "just now" in listed
    assert " 0 damaged" in call("cache", "verify").stdout
    assert "removed" in call("cache", "clear", "--yes").stdout
    assert open_default().entries() == []
    assert "0 entries" in call("cache", "ls").stdout


def test_cache_clear_asks_first(file: Path) -> None:
    call("ir", f"{file}:scale")
    result = CliRunner().invoke(tool, ["cache", "clear"], input="n\n")
    assert result.exit_code == 1
    assert open_default().entries()


def test_cache_verify_finds_damage(file: Path, cache_dir: Path) -> None:
    call("ir", f"{file}:scale")
    path = next(iter(cache_dir.glob("*.tile")))
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    assert f"damaged: {path.stem}" in call("cache", "verify", code=1).stdout


def test_env_names_versions_machine_and_every_variable() -> None:
    shown = call("env").stdout
    for name in ("xdsl", "llvmlite", "features", "TILEWRIGHT_CACHE_DIR", "TILEWRIGHT_TIME_PASSES"):
        assert name in shown


def test_env_works_where_a_variable_is_invalid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_NUM_THREADS", "zero")
    assert "invalid: set it" in call("env").stdout


def test_replay_runs_a_reproducer_again(file: Path, tmp_path: Path) -> None:
    (request,) = requests_of(file, "scale", [*TYPES, "BLOCK=64"]).requests
    path = tmp_path / "scale.reproducer"
    path.write_bytes(Reproducer(request, "frontend", "it broke", {"xdsl": "0.1"}).to_bytes())
    shown = call("replay", path).stdout
    assert "failed   after stage `frontend`: it broke" in shown
    assert "xdsl was 0.1" in shown
    assert "now      it compiles: object" in shown


def test_replay_refuses_another_file(file: Path) -> None:
    assert "error[InternalError]: this file is no reproducer" in call("replay", file, code=1).stderr


def test_version_is_printed() -> None:
    assert tilewright.__version__ in call("--version").stdout


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    """The command as a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "tilewright", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


SCRIPT = """
import subprocess, sys
import numpy as np
import triton
import triton.language as tl
from triton.language.extra import libdevice

@triton.autotune([triton.Config({"BLOCK": 128}, num_warps=8)], key=["n"])
@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.jit
def double(x_ptr, out_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    offsets = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    count = triton.cdiv(n, BLOCK) + triton.next_power_of_2(BLOCK) - BLOCK
    x = tl.math.abs(tl.load(x_ptr + offsets, mask=mask)) + libdevice.abs(0.0)
    tl.store(out_ptr + offsets, x * 2 + count * 0, mask=mask)

x = np.ones(300, np.float32)
out = np.empty_like(x)
double[lambda meta: (triton.cdiv(300, meta["BLOCK"]),)](x, out, 300)
triton.testing.assert_close(out, 2 * x)
# Before the child writes: what Python buffers for a pipe would come after it.
print(sys.argv[1:], triton.__file__.count("_alias"), flush=True)
child = "import triton, triton.language as tl; print('child', tl.float32, triton.__version__)"
subprocess.run([sys.executable, "-c", child], check=True)
sys.exit(7)
"""


def test_run_serves_triton_to_a_script_and_its_children(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    done = command("run", path, "--flag", "-m", "x")
    assert done.stdout.splitlines()[-2:] == [
        "['--flag', '-m', 'x'] 1",
        "child fp32 3.9.0",
    ], done.stderr
    assert done.returncode == 7


def test_run_takes_a_module() -> None:
    done = command("run", "-m", "json.tool", "--help")
    assert done.returncode == 0 and "usage" in done.stdout


def test_run_refuses_a_script_that_is_not_there() -> None:
    done = command("run", "nothing.py")
    assert done.returncode == 2 and "there is no file nothing.py" in done.stderr


MODULE = """
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = () -> ()}> ({
    %a = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %b = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %c = "arith.addi"(%a, %b) : (i32, i32) -> i32
    "tt.assert"(%c) <{message = "never"}> : (i32) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
"""


def test_passes_run_on_a_module_of_text(tmp_path: Path) -> None:
    path = tmp_path / "module.mlir"
    path.write_text(MODULE)
    assert call("passes", path, "merge-duplicates").stdout.count("arith.constant") == 1
    path.write_text(MODULE.replace('"(%a, %b)', '"(%a, %z)'))
    found = call("passes", path, "merge-duplicates", code=1).stderr
    assert "MalformedText" in found and "module.mlir:6, col" in found
    path.write_bytes(b"\xff\xfe")
    assert "byte 0 is not UTF-8" in call("passes", path, "merge-duplicates", code=1).stderr


@pytest.mark.parametrize("command", ["ir", "explain", "compile", "simulate"])
def test_a_module_of_text_is_no_python_file(command: str, tmp_path: Path) -> None:
    path = tmp_path / "module.mlir"
    path.write_text(MODULE)
    found = call(command, path, code=1).stderr
    assert "this command takes a Python file" in found and "tilewright passes" in found
