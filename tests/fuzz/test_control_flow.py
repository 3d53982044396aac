"""Random control flow: kernels on the interpreter against the same text run by Python.

Programs have four int32 variables, nested `if`, `for`, `while`, `static_range`, `break`,
`continue` and `return` anywhere. All operations agree between Python and int32 once results
wrap (no division: constants would follow Python and tiles C).
"""

from __future__ import annotations

import ast
import random
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tilewright
from tests.fuzz.loading import module_at

NUM_PROGRAMS = 12
INPUTS = ([5, -3, 7], [0, 1, 2], [-4, 100, 3])
LANES = 16
KERNEL = """

@tilewright.jit
def kernel(x, out):
    tl.store(out, function(tl.load(x), tl.load(x + 1), tl.load(x + 2), 3))


@tilewright.jit
def mapped(x, out):
    i = tl.arange(0, 16)
    a, b, c = tl.load(x + i), tl.load(x + 16 + i), tl.load(x + 32 + i)
    tl.store(out + i, tl.map_elementwise(function, a, b, c, 3))
"""


class Writer:
    """Writes one random function of a, b, c, d."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._num_names = 0

    def program(self) -> str:
        """A module with the function and a kernel that calls it."""
        body = self._block(list("abcd"), depth=0, in_loop=False)
        head = "import tilewright\nimport tilewright.language as tl\n\n\n@tilewright.jit\n"
        lines = ["def function(a, b, c, d):", *body, "    return a + b * 3 + c * 5 + d * 7"]
        return head + "\n".join(lines) + "\n" + KERNEL

    def _value(self, names: list[str], depth: int = 0) -> str:
        if depth > 2 or self._random.random() < 0.4:
            return self._random.choice([*names, str(self._random.randint(-3, 5))])
        left, right = (self._value(names, depth + 1) for _ in range(2))
        operator = self._random.choice("+-*")
        return (
            f"(({left} {operator} {right}) & 1023)"
            if operator == "*"
            else f"({left} {operator} {right})"
        )

    def _test(self, names: list[str]) -> str:
        operator = self._random.choice(["<", ">", "==", "!=", "<=", ">="])
        test = f"{self._value(names)} {operator} {self._value(names)}"
        if self._random.random() < 0.2:
            test = f"({test}) {self._random.choice(['and', 'or'])} ({self._test(names)})"
        return f"not ({test})" if self._random.random() < 0.1 else test

    def _block(self, names: list[str], depth: int, in_loop: bool) -> list[str]:
        lines: list[str] = []
        for _ in range(self._random.randint(1, 4)):
            kind = self._random.random() * (0.45 if depth > 3 else 1)
            if kind < 0.45:
                lines += self._assignment(names)
            elif kind < 0.70:
                lines += self._branch(names, depth, in_loop)
            elif kind < 0.88:
                lines += self._loop(names, depth)
            elif kind < 0.93 and in_loop:
                return [*_indented(lines), f"    {self._random.choice(['break', 'continue'])}"]
            elif kind < 0.97:
                return [*_indented(lines), f"    return {self._value(names)}"]
            else:
                value, other = self._value(names), self._value(names)
                lines.append(f"c = {value} if {self._test(names)} else {other}")
        return _indented(lines)

    def _assignment(self, names: list[str]) -> list[str]:
        first, second = self._random.sample("abcd", 2)
        forms = (
            f"{first} = {self._value(names)}",
            f"{first} += {self._value(names)}",
            f"{first}, {second} = {self._value(names)}, {self._value(names)}",
        )
        return [self._random.choice(forms)]

    def _branch(self, names: list[str], depth: int, in_loop: bool) -> list[str]:
        lines = [f"if {self._test(names)}:", *self._block(names, depth + 1, in_loop)]
        if self._random.random() < 0.3:
            lines += [f"elif {self._test(names)}:", *self._block(names, depth + 1, in_loop)]
        if self._random.random() < 0.5:
            lines += ["else:", *self._block(names, depth + 1, in_loop)]
        return lines

    def _loop(self, names: list[str], depth: int) -> list[str]:
        self._num_names += 1
        name = f"n{self._num_names}"
        body = self._block([*names, name], depth + 1, in_loop=True)
        ranges = ("range(4)", "range(a & 3)", "range(3, -2, -1)", "tl.static_range(3)")
        tests = (f"{name} < 4", f"{name} < 4 and ({self._test(names)})", "True")
        if self._random.random() < 0.6:
            return [f"for {name} in {self._random.choice(ranges)}:", *body]
        step = [f"    {name} += 1", f"    if {name} > 3:", "        break"]
        return [f"{name} = 0", f"while {self._random.choice(tests)}:", *step, *body]


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines or ["pass"]]


def wrap(value: int) -> int:
    """`value` as int32."""
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


class Wrapping(ast.NodeTransformer):
    """Makes every arithmetic result wrap like int32."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        return ast.Call(ast.Name("wrap", ast.Load()), [node], [])

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        assert isinstance(node.target, ast.Name)
        current = ast.Name(node.target.id, ast.Load())
        return ast.Assign([node.target], self.visit_BinOp(ast.BinOp(current, node.op, node.value)))


def in_python(text: str, values: list[int]) -> int:
    """The result of the program's function, run by Python."""
    tree = ast.parse(text)
    function = next(node for node in tree.body if isinstance(node, ast.FunctionDef))
    function.decorator_list = []
    module = ast.fix_missing_locations(Wrapping().visit(ast.Module([function], [])))
    namespace: dict[str, Any] = {"wrap": wrap, "tl": SimpleNamespace(static_range=range)}
    exec(compile(module, "program", "exec"), namespace)
    return namespace["function"](*values, 3)


def in_a_kernel(module: ModuleType, values: list[int]) -> int:
    """The result of the program's kernel, run by the interpreter."""
    kernel: tilewright.JITFunction = module.kernel
    out = np.zeros(1, np.int32)
    kernel.interpret[(1,)](np.array(values, np.int32), out)
    return int(out[0])


@pytest.mark.parametrize("number", range(NUM_PROGRAMS))
def test_control_flow_means_what_it_means_in_python(
    number: int, tmp_path: Path, request: pytest.FixtureRequest
):
    seed = number + NUM_PROGRAMS * request.config.getoption("--seed")
    text = Writer(seed).program()
    path = tmp_path / f"program{seed}.py"
    path.write_text(text)
    module = module_at(path)
    for values in INPUTS:
        assert in_a_kernel(module, values) == in_python(text, values), f"{values}\n{text}"
    require_lanes_agree(module, text, seed)


def require_lanes_agree(module: ModuleType, text: str, seed: int) -> None:
    """The function mapped over tiles gives each element what Python gives it."""
    values = np.random.default_rng(seed).integers(-20, 20, (3, LANES), dtype=np.int32)
    expected = [in_python(text, [int(v) for v in column]) for column in values.T]
    interpreted, compiled = np.zeros(LANES, np.int32), np.zeros(LANES, np.int32)
    module.mapped.interpret[(1,)](values, interpreted)
    assert interpreted.tolist() == expected, f"{values}\n{text}"
    module.mapped[(1,)](values, compiled)
    assert compiled.tolist() == expected, f"{values}\n{text}"
