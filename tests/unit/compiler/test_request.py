"""The compile request: exact round trip, canonical bytes, refusal of anything else."""

from __future__ import annotations

import dataclasses
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright.language as tl
from tilewright.compiler.request import CompileRequest
from tilewright.frontend.constants import (
    BuiltinRef,
    EnumMember,
    FunctionRef,
    HostFunctionRef,
    Imported,
    ModuleRef,
    NamedTupleClass,
    NamedTupleValue,
    OpRef,
    Unusable,
    decode,
    encode,
)
from tilewright.frontend.program import FunctionSource, Parameter, Specialization, TupleType
from tilewright.machine.model import MachineModel
from tilewright.support.errors import InternalError

ENUM = ModuleRef("Mode", Imported("m", "Mode", "2f"))
MEMBER = EnumMember(Imported("m", "Mode"), "FAST", 2)
PAIR = NamedTupleClass("Pair", ("first", "second"), (7,))
FUNCTION = FunctionSource(
    key="m:kernel",
    name="kernel",
    module="m",
    file="m.py",
    first_line=3,
    indent=4,
    text="    def kernel(x):\n        pass\n",
    parameters=(
        Parameter("x"),
        Parameter("n", "keyword", "i64", True, None, specialize=False),
        Parameter("rest", "varargs", "constexpr", True, (1, 2.5)),
    ),
    captures={"tl": ModuleRef("tilewright.language"), "tl.load": OpRef("load"), "W": 4},
)
REQUEST = CompileRequest(
    functions={"m:kernel": FUNCTION},
    kernel="m:kernel",
    specialization=Specialization(
        signature=(("x", "*fp32"), ("p", TupleType(("i32", "constexpr"), PAIR)), ("n", "i32")),
        constants={("p", 1): None},
        divisibility={("x",): 16, ("p", 0): 16},
    ),
    options={"num_warps": 4, "debug": False, "scale": 0.1},
    machine=MachineModel(vector_bytes=64, name="any"),
)

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.sampled_from([tl.float32, tl.int1, tl.pointer_type(tl.bfloat16, const=True)]),
    st.sampled_from([tl.PropagateNan.ALL, tl.block_type(tl.float16, (4, 8))]),
    st.sampled_from([FunctionRef("m:f"), HostFunctionRef("m:g"), OpRef("math.exp")]),
    st.sampled_from([BuiltinRef("min"), ModuleRef("m"), PAIR, Unusable("UndefinedName", "x")]),
    st.sampled_from([ENUM, MEMBER]),
    st.builds(EnumMember, st.builds(Imported, st.text(), st.text()), st.text(), st.integers()),
)
constants = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(tuple),
        st.tuples(inner, inner).map(lambda values: NamedTupleValue(PAIR, values)),
    ),
    max_leaves=6,
)


def same(a: object, b: object) -> bool:
    """Equality that tells 1 from True and 0.0 from -0.0, and takes NaN for NaN."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, float) and isinstance(b, float):
        return (a != a and b != b) or (a == b and math.copysign(1, a) == math.copysign(1, b))
    if isinstance(a, NamedTupleValue) and isinstance(b, NamedTupleValue):
        return a.cls == b.cls and same(a.values, b.values)
    return type(a) is type(b) and a == b


@given(constants)
def test_constants_round_trip_through_json(value):
    assert same(decode(json.loads(json.dumps(encode(value), allow_nan=False))), value)


def test_a_request_round_trips():
    assert CompileRequest.from_bytes(REQUEST.to_bytes()) == REQUEST


def test_equal_requests_give_equal_bytes_whatever_the_order():
    shuffled = dataclasses.replace(
        REQUEST,
        options=dict(reversed(tuple(REQUEST.options.items()))),
        functions={
            "m:kernel": dataclasses.replace(
                FUNCTION, captures=dict(reversed(tuple(FUNCTION.captures.items())))
            )
        },
    )
    assert shuffled.to_bytes() == REQUEST.to_bytes()
    assert shuffled.cache_key("v1") == REQUEST.cache_key("v1")


@pytest.mark.parametrize(
    "changed",
    [
        dataclasses.replace(REQUEST, target="nvidia"),
        dataclasses.replace(REQUEST, options={**REQUEST.options, "debug": True}),
        dataclasses.replace(REQUEST, options={**REQUEST.options, "debug": 0}),
        dataclasses.replace(REQUEST, machine=dataclasses.replace(REQUEST.machine, vector_bytes=32)),
        dataclasses.replace(REQUEST, specialization=Specialization(())),
        dataclasses.replace(
            REQUEST, functions={"m:kernel": dataclasses.replace(FUNCTION, text="def kernel(): 0")}
        ),
        dataclasses.replace(
            REQUEST, functions={"m:kernel": dataclasses.replace(FUNCTION, captures={"W": 5})}
        ),
    ],
)
def test_the_cache_key_covers_every_part(changed: CompileRequest):
    assert changed.cache_key("v1") != REQUEST.cache_key("v1")


def test_the_cache_key_covers_the_compiler():
    assert REQUEST.cache_key("v1") != REQUEST.cache_key("v2")


@given(st.binary(max_size=64))
def test_other_bytes_are_refused(data: bytes):
    with pytest.raises(InternalError):
        CompileRequest.from_bytes(data)


@given(st.integers(min_value=0), st.integers(0, 255))
def test_a_damaged_request_is_refused_or_differs(position: int, byte: int):
    data = bytearray(REQUEST.to_bytes())
    position %= len(data)
    if data[position] == byte:
        return
    data[position] = byte
    try:
        request = CompileRequest.from_bytes(bytes(data))
    except InternalError:
        return
    assert isinstance(request, CompileRequest)


@pytest.mark.parametrize("json_value", [None, 3, [], ["eval", "1"], ["tuple", 3], ["dtype", "x"]])
def test_json_that_is_no_constant_is_refused(json_value):
    with pytest.raises(InternalError):
        decode(json_value)
