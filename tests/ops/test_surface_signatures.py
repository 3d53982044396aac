"""The signatures of the published language: names, order and defaults of parameters.

A row is a function of Triton 3.9 with its parameters as programs may pass them. Ours may have
more parameters, behind those or by keyword.
"""

from __future__ import annotations

import inspect

import pytest

import tilewright.language as tl

PUBLISHED = """
abs: x
add: x y sanitize_overflow=True
aggregate_replace: instance **changes
arange: start end
argmax: input axis tie_break_left=True keep_dims=False
argmin: input axis tie_break_left=True keep_dims=False
associative_scan: input axis combine_fn reverse=False
assume: cond
atomic_add: pointer val mask=None sem=None scope=None
atomic_and: pointer val mask=None sem=None scope=None
atomic_cas: pointer cmp val sem=None scope=None
atomic_load: pointer mask=None sem=None scope=None
atomic_max: pointer val mask=None sem=None scope=None
atomic_min: pointer val mask=None sem=None scope=None
atomic_or: pointer val mask=None sem=None scope=None
atomic_poll: pointer expected_value sem=None scope=None timeout_ns=None
atomic_store: pointer val mask=None sem=None scope=None
atomic_xchg: pointer val mask=None sem=None scope=None
atomic_xor: pointer val mask=None sem=None scope=None
bitonic_merge: x dim=None descending=0
broadcast: input other
broadcast_to: input *shape
cast: input dtype fp_downcast_rounding=None bitcast=False
cat: input other can_reorder=False dim=0
cdiv: x div
ceil: x
clamp: x min max propagate_nan=NONE
cos: x
cumprod: input axis=0 reverse=False dtype=None
cumsum: input axis=0 reverse=False dtype=None
debug_barrier:
device_assert: cond msg='' mask=None
device_print: prefix *args hex=False
div_rn: x y
dot: input other acc=None input_precision=None allow_tf32=None max_num_imprecise_acc=None
    out_dtype=None
dot_scaled: lhs lhs_scale lhs_format rhs rhs_scale rhs_format acc=None fast_math=False
    lhs_k_pack=True rhs_k_pack=True out_dtype=fp32
erf: x
exp: x
exp2: x
expand_dims: input axis
expect_zero: x mask
fdiv: x y ieee_rounding=False approx=False
flip: x dim=None
floor: x
fma: x y z
full: shape value dtype
gather: src index axis
histogram: input num_bins mask=None
inline_asm_elementwise: asm constraints args dtype is_pure pack
interleave: a b
join: a b
load: pointer mask=None other=None * cache_modifier='' eviction_policy='' volatile=False
load_tensor_descriptor: desc offsets
log: x
log2: x
make_block_ptr: base shape strides offsets block_shape order
make_tensor_descriptor: base shape strides block_shape padding_option=zero
map_elementwise: scalar_fn *args pack=1
max: input axis=None return_indices=False return_indices_tie_break_left=True keep_dims=False
max_constancy: input values
max_contiguous: input values
maximum: x y propagate_nan=NONE
min: input axis=None return_indices=False return_indices_tie_break_left=True keep_dims=False
minimum: x y propagate_nan=NONE
mul: x y sanitize_overflow=True
multiple_of: input values
num_programs: axis
pair_uniform_to_normal: u1 u2
permute: input *dims
philox: seed c0 c1 c2 c3 n_rounds=10
philox_impl: c0 c1 c2 c3 k0 k1 n_rounds=10
program_id: axis
rand: seed offset n_rounds=10
rand4x: seed offsets n_rounds=10
randint: seed offset n_rounds=10
randint4x: seed offset n_rounds=10
randn: seed offset n_rounds=10
randn4x: seed offset n_rounds=10
ravel: x can_reorder=False
reduce: input axis combine_fn keep_dims=False
reduce_or: input axis keep_dims=False
reshape: input *shape can_reorder=False
rsqrt: x
sigmoid: x
sin: x
softmax: x dim=None * keep_dims=None ieee_rounding=False
sort: x dim=None descending=0
split: a
sqrt: x
sqrt_rn: x
squeeze: x dim
static_assert: cond msg=''
static_print: *values sep end file=None flush=False
store: pointer value mask=None * cache_modifier='' eviction_policy=''
store_tensor_descriptor: desc offsets value
sub: x y sanitize_overflow=True
sum: input axis=None keep_dims=False dtype=None
swizzle2d: i j size_i size_j size_g
to_tensor: x
topk: x k dim=None descending=True
trans: input *dims
uint_to_uniform_float: x
umulhi: x y
unsqueeze: x dim
view: input *shape
where: condition x y
xor_sum: input axis=None keep_dims=False
zeros: shape dtype
zeros_like: input
"""
ROWS = PUBLISHED.replace("\n    ", " ").strip().splitlines()
SIGNATURES = {name: words for name, _, words in (row.partition(":") for row in ROWS)}
# A flag by its number, a dtype that is the same as leaving the argument out, a member of an enum.
_EQUAL_DEFAULTS = {"0": "False", "fp32": "None", "NONE": "PropagateNan.NONE"}


def parameters(name: str) -> list[inspect.Parameter]:
    """Our parameters of a function."""
    return list(inspect.signature(getattr(tl, name)).parameters.values())


def split(row: str) -> tuple[list[str], list[str]]:
    """The parameters that may be given by position, and those by keyword only."""
    words = row.split()
    if "*" not in words:
        return words, []
    at = words.index("*")
    return words[:at], words[at + 1 :]


@pytest.mark.parametrize("name", SIGNATURES)
def test_published_parameters_have_their_names_and_order(name: str) -> None:
    positional, keywords = split(SIGNATURES[name])
    ours = [p.name for p in parameters(name)]
    published = [word.lstrip("*").partition("=")[0] for word in positional]
    assert [n for n in ours if n in published] == published
    assert {word.partition("=")[0] for word in keywords} <= set(ours)
    # What Triton 3.8 took in between stays in between.
    added = set(ours[: len(published)]) - set(published)
    assert added <= {"boundary_check", "padding_option"}


@pytest.mark.parametrize("name", SIGNATURES)
def test_published_defaults_are_ours(name: str) -> None:
    ours = {p.name: p.default for p in parameters(name)}
    for word in SIGNATURES[name].split():
        parameter, has_default, default = word.lstrip("*").partition("=")
        if not has_default:
            assert parameter in ("", *ours)
            continue
        shown = str(ours[parameter]) or "''"
        assert shown in (default, _EQUAL_DEFAULTS.get(default)), parameter
