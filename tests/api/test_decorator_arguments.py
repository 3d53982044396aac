"""What `autotune`, `Config` and `heuristics` are given of another kind is refused by name."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tilewright import Config
from tilewright.support.errors import InvalidOption


@tilewright.jit
def fill(out, value, BLOCK: tl.constexpr = 16):
    tl.store(out + tl.arange(0, BLOCK), value)


CONFIGS = [Config({"BLOCK": 16}), Config({"BLOCK": 32})]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Config(64), "Config(): `kwargs` is no dictionary of names, but 64"),
        (lambda: Config({1: 64}), "Config(): `kwargs` is no dictionary of names, but {1: 64}"),
        (lambda: Config({}, pre_hook=3), "Config(): `pre_hook` is an object of type int"),
        (lambda: tilewright.autotune(3, ["value"])(fill), "`configs` is an object of type int"),
        (
            lambda: tilewright.autotune([{"BLOCK": 16}], ["value"])(fill),
            "`configs` holds an object of type dict",
        ),
        (lambda: tilewright.autotune(CONFIGS, 3)(fill), "`key` is an object of type int"),
        (lambda: tilewright.autotune(CONFIGS, [3])(fill), "`key` holds an object of type int"),
        (
            lambda: tilewright.autotune(CONFIGS, [], reset_to_zero=3)(fill),
            "`reset_to_zero` is an object of type int",
        ),
        (
            lambda: tilewright.autotune(CONFIGS, [], restore_value=[3])(fill),
            "`restore_value` holds an object of type int",
        ),
        (
            lambda: tilewright.autotune(CONFIGS, [], post_hook="f")(fill),
            "`post_hook` is an object of type str",
        ),
        (
            lambda: tilewright.autotune(CONFIGS, [], do_bench=3)(fill),
            "`do_bench` is an object of type int",
        ),
        (
            lambda: tilewright.autotune(CONFIGS, [], prune_configs_by=3)(fill),
            "`prune_configs_by` is no dictionary of names, but 3",
        ),
        (
            lambda: tilewright.heuristics(3)(fill),
            "heuristics(): `values` is no dictionary of names, but 3",
        ),
        (lambda: tilewright.heuristics({"BLOCK": 16})(fill), "`BLOCK` is an object of type int"),
        (lambda: Config({}, num_warps=[4]), "Config(): `num_warps` is [4]"),
        (lambda: Config({}, num_stages=2.5), "Config(): `num_stages` is 2.5"),
        (lambda: Config({}, maxnreg="many"), "Config(): `maxnreg` is 'many'"),
        (lambda: tilewright.autotune(CONFIGS, [], rep="x")(fill), "`rep` is 'x'"),
        (lambda: tilewright.autotune(CONFIGS, [], warmup=-1)(fill), "`warmup` is -1"),
        (lambda: tilewright.jit(do_not_specialize=3)(fill.fn), "`do_not_specialize` is 3"),
        (lambda: tilewright.jit(do_not_specialize="value")(fill.fn), "is 'value'"),
        (lambda: tilewright.jit(do_not_specialize=[1.5])(fill.fn), "is [1.5]"),
        (
            lambda: tilewright.jit(do_not_specialize_on_alignment=3)(fill.fn),
            "jit(): `do_not_specialize_on_alignment` is 3",
        ),
    ],
)
def test_an_argument_of_another_kind_is_named(make: Callable[[], object], words: str) -> None:
    with pytest.raises(InvalidOption) as raised:
        make()
    assert words in str(raised.value)
    assert raised.value.hint


def test_no_key_is_none() -> None:
    assert tilewright.autotune(CONFIGS, None)(fill).keys == []


def test_a_letter_is_a_list_of_one_name() -> None:
    assert tilewright.jit(do_not_specialize="n")(fill.fn).do_not_specialize == ("n",)


def test_integers_of_numpy_are_options() -> None:
    out = np.zeros(16, np.float32)
    fill[(1,)](out, 3.0, num_warps=np.int64(8), num_stages=np.int32(2))
    assert (out == 3.0).all()
    warps = Config({"BLOCK": 16}, num_warps=np.int64(8))
    tilewright.autotune([warps], [])(fill)[(1,)](out, 4.0)
    assert (out == 4.0).all()
