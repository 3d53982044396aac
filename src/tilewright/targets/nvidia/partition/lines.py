"""Which kernels load rows that do not start at lines of memory, and so ask L2 for twice as many."""

from __future__ import annotations

import json

from xdsl.dialects.builtin import IntegerAttr

from tilewright.ir.types import i32
from tilewright.ops.descriptors.ir import DescriptorLoadOp
from tilewright.ops.function import FuncOp
from tilewright.runtime.launch_numbers import LaunchNumber, slots_of
from tilewright.targets.nvidia.partition.smaller_maps import maps_of
from tilewright.targets.nvidia.tensor_map import TensorMapRecipe
from tilewright.targets.nvidia.tma_ops import TensorMapOp

# By definition: what an argument that a launch found to be a multiple says.
_DIVISIBILITY = "tt.divisibility"
_UNEVEN_ELEMENTS = 16
# Source: CUDA C++ Programming Guide 13.0, "Device Memory Accesses": lines of 128 bytes.
_LINE_BYTES = 128


def crosses_lines(kernel: FuncOp) -> bool:
    """Whether all blocks that loops load by the copy engine surely have rows across lines.

    A stride of rows that is no multiple of 16 elements is none of a line; of any other one that
    is not known.
    """
    loaded = [op for op in maps_of(kernel) if _is_loaded(op)]
    return bool(loaded) and all(_is_uneven(kernel, op) for op in loaded)


def _is_loaded(op: TensorMapOp) -> bool:
    return any(isinstance(use.operation, DescriptorLoadOp) for use in op.result.uses)


def _is_uneven(kernel: FuncOp, op: TensorMapOp) -> bool:
    recipe = TensorMapRecipe.from_metadata(json.loads(op.recipe.data))
    if not recipe.strides or _UNEVEN_ELEMENTS * recipe.element_bytes > _LINE_BYTES:
        return False
    return _is_odd_argument(kernel, recipe.strides[-1])


def _is_odd_argument(kernel: FuncOp, stride: LaunchNumber) -> bool:
    """Whether a stride is an argument that is no multiple of 16.

    Strides of 64 bits are those of descriptors that a launch passes, and nobody has divided them.
    """
    if stride[0] != "slot":
        return False
    (slot,) = slots_of(stride)
    arguments = kernel.body.block.args
    if slot >= len(arguments) or arguments[slot].type != i32:
        return False
    known = kernel.argument_facts(slot).get(_DIVISIBILITY)
    return not isinstance(known, IntegerAttr) or known.value.data % _UNEVEN_ELEMENTS != 0
