"""Wrong extensions: what their authors, and the authors of kernels, read."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.plugins.goldens import Golden
from tilewright.language.extensions import PARTS
from tilewright.targets.target import TARGETS

INIT = """import tilewright

extras = tilewright.extension({name!r}, {parts})


@extras.function
def doubled(x):
    '''Twice x.'''


@extras.function
def halved(x):
    '''Half of x.'''
"""
OPS = """from xdsl.irdl import irdl_op_definition, operand_def, result_def, traits_def
from xdsl.traits import Pure

from tilewright.ir.op import TileOp
from tilewright.ops.surface import surface


@irdl_op_definition
class DoubledOp(TileOp):
    name = "{name}.doubled"
    src = operand_def()
    result = result_def()
    traits = traits_def(Pure())

    def reference(self, src):
        return src + src


@surface(module={name!r})
def doubled(b, x):
    return b.tensor(DoubledOp, [x], x.type)
"""
KERNEL = """import numpy as np
import tilewright
import tilewright.language as tl
import {name}


@tilewright.jit
def kernel(x):
    at = tl.arange(0, 16)
    tl.store(x + at, {name}.doubled(tl.load(x + at)))


x = np.ones(16, np.float32)
{launch}
"""
RULE = """from {name}.ops import DoubledOp
from tilewright.{module} import {table}


@{table}.register(DoubledOp)
def rule(*arguments): ...
"""
CPU = "kernel[(1,)](x)"
SIMULATED = "kernel.simulate[(1,)](x)"


@dataclass
class Case:
    """A package with one thing wrong: texts that differ from the right ones, and the launch."""

    launch: str = CPU
    parts: str = 'ops=".ops"'
    ops: tuple[tuple[str, str], ...] = ()
    more: dict[str, str] = field(default_factory=dict)

    def files(self, name: str) -> dict[str, str]:
        """The files of the package and the program by their paths."""
        ops = OPS.format(name=name)
        for old, new in self.ops:
            assert old in ops
            ops = ops.replace(old, new.replace("NAME", name))
        texts = {file: text.replace("NAME", name) for file, text in self.more.items()}
        return {
            f"{name}/__init__.py": INIT.format(name=name, parts=self.parts),
            f"{name}/ops.py": ops,
            **{f"{name}/{file}": text for file, text in texts.items()},
            f"run_{name}.py": KERNEL.format(name=name, launch=self.launch.replace("NAME", name)),
        }


def rule(module: str, table: str) -> str:
    return RULE.format(name="NAME", module=module, table=table)


ANCHORS = rule("schedule.layout.anchors", "ANCHORS")
STEPS = rule("targets.cpu.forms", "STEPS")
REFUSAL = """from NAME.ops import DoubledOp
from tilewright.targets.cpu.coverage import CPU_COVERAGE

CPU_COVERAGE.unsupported(DoubledOp, "doubled(): only GPUs double", "add x to itself")
"""
CASES = {
    "op_without_a_form_on_the_cpu": Case(),
    "op_without_a_layout": Case(SIMULATED),
    "op_without_a_rule_for_threads": Case(
        SIMULATED, 'ops=".ops", nvidia=".gpu"', more={"gpu.py": ANCHORS}
    ),
    "elementwise_op_without_a_rule": Case(
        ops=(("import TileOp", "import ElementwiseOp"), ("(TileOp)", "(ElementwiseOp)"))
    ),
    "op_without_a_reference": Case(
        "kernel.interpret[(1,)](x)", ops=(("def reference", "def meaning"),)
    ),
    "op_without_effects": Case(ops=(("    traits = traits_def(Pure())\n", ""),)),
    "op_that_a_target_refuses": Case(parts='ops=".ops", cpu=".cpu"', more={"cpu.py": REFUSAL}),
    "rule_registered_twice": Case(
        parts='ops=".ops", cpu=".cpu"',
        more={"cpu.py": STEPS + STEPS.partition("\n\n")[2].replace("def rule", "\n\ndef second")},
    ),
    "op_refused_twice": Case(
        parts='ops=".ops", cpu=".cpu"', more={"cpu.py": REFUSAL + REFUSAL.partition("\n\n")[2]}
    ),
    "function_declared_twice": Case(
        ops=(
            (
                "    return b.tensor(DoubledOp, [x], x.type)\n",
                "    return x\n\n\n"
                '@surface("doubled", module="NAME")\ndef again(b, x):\n    return x\n',
            ),
        )
    ),
    "method_that_tiles_have": Case(
        ops=(("@surface(module", '@surface("sum", member=True, module'),)
    ),
    "op_under_a_taken_name": Case(
        ops=(('name = "op_under_a_taken_name.doubled"', 'name = "tt.load"'),)
    ),
    "part_that_is_unknown": Case(parts='ops=".ops", gpu=".gpu"'),
    "part_that_is_missing": Case(parts='ops=".ops", cpu=".cpu"'),
    "function_that_nobody_implements": Case(ops=(("def doubled", "def twice"),)),
    "function_on_the_host": Case("NAME.doubled(1.0)"),
}
RUNNER = """
import json, runpy, sys, traceback
from tilewright.language.stubs import EXTENSIONS
from tilewright.support.errors import TilewrightError

messages = {}
for name in sys.argv[1:]:
    try:
        runpy.run_path(f"run_{name}.py")
        messages[name] = "it ran"
    except TilewrightError as error:
        messages[name] = str(error)
    except Exception:
        messages[name] = traceback.format_exc()
    EXTENSIONS.clear()
print(json.dumps(messages))
"""


@pytest.fixture(scope="module")
def messages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each case says, all run in one process of their own."""
    folder = tmp_path_factory.mktemp("extensions")
    for name, case in CASES.items():
        for file, text in case.files(name).items():
            (folder / file).parent.mkdir(exist_ok=True)
            (folder / file).write_text(text, encoding="utf-8")
    (folder / "runner.py").write_text(RUNNER, encoding="utf-8")
    paths = os.pathsep.join(entry for entry in sys.path if entry)
    done = subprocess.run(
        [sys.executable, "runner.py", *CASES],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths, "TILEWRIGHT_CACHE_DIR": str(folder / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    source = str(Path(__file__).parents[2] / "src")
    told = done.stdout.splitlines()[-1].replace(str(folder), "…").replace(source, "…")
    # Lines of our own sources move.
    found: dict[str, str] = json.loads(re.sub(r"(…/tilewright/[\w/]+\.py):\d+", r"\1:…", told))
    return found


@pytest.mark.parametrize("name", CASES)
def test_message(name: str, messages: dict[str, str], golden: Golden) -> None:
    golden(f"golden/extension_{name}", messages[name])


def test_an_extension_has_a_part_for_each_target() -> None:
    assert ("ops", "rules", *TARGETS) == PARTS
