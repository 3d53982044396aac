"""What ptxas prints, read as data; no ptxas is run."""

from __future__ import annotations

from tilewright.targets.nvidia.ptxas_messages import (
    Resources,
    parse_messages,
    parse_resources,
    source_position,
)

PTX = """.version 8.8
.target sm_90a
.file 1 "/home/user/kernel.py"
.file 2 "/home/user/library.py"
.visible .entry scale(.param .u64 p)
{
\t.loc 1 12 5
\tmul.foo.f32 %f1, %f2, %f3;
\t.loc 2 40 9
\tret;
}
"""

REPORT = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'scale' for 'sm_90a'
ptxas info    : Function properties for helper
    16 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Function properties for scale
    40 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 168 registers, used 2 barriers, 40 bytes cumulative stack size, 1024 bytes smem
ptxas info    : Compile time = 3.076 ms
"""


def test_registers_spills_and_shared_memory_are_read() -> None:
    assert parse_resources(REPORT)["scale"] == Resources(168, 40, 8, 12, 1024, 2)


def test_a_function_that_was_not_inlined_has_its_own_frame() -> None:
    assert parse_resources(REPORT)["helper"] == Resources(stack_bytes=16)


def test_counts_are_no_messages() -> None:
    assert parse_messages(REPORT, PTX) == ()


def test_an_error_is_mapped_to_the_line_of_the_kernel() -> None:
    output = "ptxas /tmp/x/kernel.ptx, line 8; error   : Unknown modifier '.foo'\n"
    (message,) = parse_messages(output, PTX)
    assert (message.kind, message.text) == ("error", "Unknown modifier '.foo'")
    assert (message.file, message.line) == ("/home/user/kernel.py", 12)
    assert message.remark() == "/home/user/kernel.py:12: ptxas: Unknown modifier '.foo'"


def test_the_last_location_before_the_line_counts() -> None:
    assert source_position(PTX, 10) == ("/home/user/library.py", 40)
    assert source_position(PTX, 7) == ("/home/user/kernel.py", 12)


def test_a_line_before_every_location_has_no_position() -> None:
    assert source_position(PTX, 5) == ("", 0)
    assert source_position("", 3) == ("", 0)


def test_serialized_matrix_instructions_are_recognised() -> None:
    output = (
        "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are "
        "serialized due to insufficient register resources in the function 'scale'\n"
    )
    (message,) = parse_messages(output, PTX)
    assert (message.kind, message.code) == ("serialized", "C7510")
    assert "in the function" not in message.text


def test_a_line_in_the_text_is_mapped_too() -> None:
    output = "ptxas info    : (C7517) warpgroup.wait is injected in around line 8 by compiler\n"
    (message,) = parse_messages(output, PTX)
    assert (message.line, message.text) == (12, "warpgroup.wait is injected by compiler")


def test_an_added_fence_is_only_a_note() -> None:
    output = "ptxas info    : (C7519) warpgroup.arrive is injected in around line 8 by compiler\n"
    assert [message.kind for message in parse_messages(output, PTX)] == ["note"]


def test_ignored_setmaxnreg_is_recognised() -> None:
    output = "ptxas warning : (C7508) setmaxnreg ignored to maintain minimum register requirement\n"
    assert [message.kind for message in parse_messages(output, PTX)] == ["setmaxnreg"]


def test_too_much_shared_memory_is_recognised() -> None:
    output = "ptxas error   : Entry function 'k' uses too much shared data (0x493e0 bytes)\n"
    assert [message.kind for message in parse_messages(output, PTX)] == ["resources"]
