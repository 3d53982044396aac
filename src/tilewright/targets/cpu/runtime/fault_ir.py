"""How a fault inside of a kernel names the kernel before it ends the process, as LLVM text.

A load far outside of its array raises SIGSEGV, which ends the process without a word. So a handler
of ours goes before the one that is there: where the instruction that faulted lies in the code of a
kernel, it writes one message to standard error. Then, in any case, the handler that was there has
its turn with the same signal, or the signal's default: the process ends as it would have.

The handler runs in the middle of anything: it takes no lock and no memory, and calls nothing but
system calls. What it reads is a list of kernels that Python only ever adds to (`faults.py`); the
entry of code that is unloaded is empty until another kernel takes it. A launch does nothing for it.

Linux on x86-64 and ARM tell where they were when the signal came. Elsewhere there is no handler.
"""

from __future__ import annotations

from collections.abc import Mapping
from string import Template

from tilewright.codegen.launch_calls import field_offsets
from tilewright.support.dataclass import dataclass

# SIGILL, SIGBUS, SIGFPE, SIGSEGV: what an instruction can raise. Source: signal(7).
FAULT_SIGNALS = (4, 7, 8, 11)
# An entry of the list: which code, and whose. `bytes` is 0 where no code is.
ENTRY_FIELDS: dict[str, int] = {
    "next": 0,
    "start": 8,
    "bytes": 16,
    "name": 24,
    "name_bytes": 32,
    "help_bytes": 40,
}
# By definition: the bytes of these fields.
ENTRY_BYTES = 48
# By definition: what is kept of a signal's action, 152 bytes of it by sigaction(2).
ACTION_BYTES = 256
# Chosen, not measured: an address so near the stack pointer is taken for one of the stack.
_STACK_NEARNESS_BYTES = 65536

HELP = (
    "  help: run again with TILEWRIGHT_CHECKED=1, which names the source line, the index and the"
    " tensor\n"
)
_DIGITS = "0000000000000000"
_AT = f" at address 0x{_DIGITS} in the kernel "
_DEFECT = "  It is no access of memory, but likely a defect of Tilewright: please report it.\n"


@dataclass(frozen=True)
class Case:
    """What is said of a fault: no more than signal, code, address and stack pointer show.

    The kernel's name and place stand between `head` and `tail`; `is_checkable`: HELP comes last.
    """

    head: str
    tail: str
    is_checkable: bool = True


# In the order of the numbers that @case_of gives.
CASES = (
    Case(
        f"tilewright: signal 11 (SIGSEGV){_AT}",
        "  A load or store probably lies outside of the memory of the arguments.\n",
    ),
    Case(
        f"tilewright: signal 11 (SIGSEGV){_AT}",
        "  The memory there may only be read, or lies outside of the memory of the arguments.\n",
    ),
    Case(
        "tilewright: signal 11 (SIGSEGV), of which the processor tells no address, in the kernel ",
        "  A load or store probably lies far outside of the arguments, or is not aligned.\n",
    ),
    Case(
        f"tilewright: signal 11 (SIGSEGV){_AT}",
        "  The address is near the stack pointer: the stack of the thread may be full.\n",
        is_checkable=False,
    ),
    Case(
        f"tilewright: signal 7 (SIGBUS){_AT}",
        "  The address is not aligned, or lies behind the end of the file that is mapped there.\n",
    ),
    Case(f"tilewright: signal 4 (SIGILL){_AT}", _DEFECT, is_checkable=False),
    Case(f"tilewright: signal 8 (SIGFPE){_AT}", _DEFECT, is_checkable=False),
)

# Source: Linux, ucontext.h and sigcontext.h of each architecture: where the registers are.
_MACHINE: Mapping[str, Mapping[str, int]] = {
    "x86_64": {"pc": 168, "stack": 160},
    "aarch64": {"pc": 440, "stack": 432},
}
# Source: Linux, unistd.h of each architecture: system call numbers.
_CALLS: Mapping[str, Mapping[str, int]] = {
    "x86_64": {"writev": 20, "getpid": 39, "rt_tgsigqueueinfo": 297},
    "aarch64": {"writev": 66, "getpid": 172, "rt_tgsigqueueinfo": 240},
}

_TEXT = r"""
@fault_entries = global ptr null
; Of each signal by its number, what is done without us, as sigaction writes it.
@fault_actions = global [16 x [$action_bytes x i8]] zeroinitializer, align 8
@fault.unshown = internal global [16 x i8] zeroinitializer  ; for the digits of no address
@fault.told = internal global i32 0   ; 1: a thread is writing the message; 2: it has

; The kernel whose code holds an address; null where it is not ours.
define internal ptr @kernel_at(i64 %pc) {
entry:
  %first = load atomic ptr, ptr @fault_entries acquire, align 8
  br label %look
look:
  %kernel = phi ptr [%first, %entry], [%next, %differs]
  %end = icmp eq ptr %kernel, null
  br i1 %end, label %return, label %compare
compare:
  %start = call i64 @load_i64(ptr %kernel, i64 $entry_start)
  %bytes = call i64 @load_i64(ptr %kernel, i64 $entry_bytes)
  %offset = sub i64 %pc, %start
  %inside = icmp ult i64 %offset, %bytes
  br i1 %inside, label %return, label %differs
differs:
  %next = call ptr @load_ptr(ptr %kernel, i64 $entry_next)
  br label %look
return:
  ret ptr %kernel
}

define internal i64 @case_of(i32 %signal, i32 %code, i64 %address, i64 %stack) {
  %is.denied = icmp eq i32 %code, 2  ; SEGV_ACCERR
  %c0 = select i1 %is.denied, i64 1, i64 0
  %lowest = sub i64 %stack, $nearness
  %above = sub i64 %address, %lowest
  %is.near = icmp ult i64 %above, $twice_nearness
  %c1 = select i1 %is.near, i64 3, i64 %c0
  %is.untold = icmp eq i32 %code, 128  ; SI_KERNEL
  %c2 = select i1 %is.untold, i64 2, i64 %c1
  %is.bus = icmp eq i32 %signal, 7
  %c3 = select i1 %is.bus, i64 4, i64 %c2
  %is.ill = icmp eq i32 %signal, 4
  %c4 = select i1 %is.ill, i64 5, i64 %c3
  %is.fpe = icmp eq i32 %signal, 8
  %c5 = select i1 %is.fpe, i64 6, i64 %c4
  ret i64 %c5
}

; Write a number in 16 hexadecimal digits.
define internal void @write_number(ptr %to, i64 %number) {
entry:
  br label %next
next:
  %i = phi i64 [0, %entry], [%i.next, %next]
  %left = phi i64 [%number, %entry], [%left.next, %next]
  %digit = and i64 %left, 15
  %is.letter = icmp ugt i64 %digit, 9
  %base = select i1 %is.letter, i64 87, i64 48  ; 'a' - 10 and '0'
  %wide = add i64 %base, %digit
  %byte = trunc i64 %wide to i8
  %place = sub i64 15, %i
  %at = getelementptr i8, ptr %to, i64 %place
  store i8 %byte, ptr %at
  %left.next = lshr i64 %left, 4
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, 16
  br i1 %more, label %next, label %done
done:
  ret void
}

; Write four pieces as one. A head is written into: it is its first use, and the last.
define internal void @write_message(ptr %kernel, i64 %number, i64 %address) {
  %pieces = alloca [4 x {ptr, i64}]
  %case = getelementptr [$num_cases x [6 x i64]], ptr @fault.cases, i64 0, i64 %number
  %digits = call ptr @load_ptr(ptr %case, i64 32)
  call void @write_number(ptr %digits, i64 %address)
  %head = load {ptr, i64}, ptr %case
  store {ptr, i64} %head, ptr %pieces
  %name.from = getelementptr i8, ptr %kernel, i64 $entry_name
  %name = load {ptr, i64}, ptr %name.from
  %name.at = getelementptr i8, ptr %pieces, i64 16
  store {ptr, i64} %name, ptr %name.at
  %tail.from = getelementptr i8, ptr %case, i64 16
  %tail = load {ptr, i64}, ptr %tail.from
  %tail.at = getelementptr i8, ptr %pieces, i64 32
  store {ptr, i64} %tail, ptr %tail.at
  %help.mask = call i64 @load_i64(ptr %case, i64 40)
  %help.bytes = call i64 @load_i64(ptr %kernel, i64 $entry_help_bytes)
  %bytes = and i64 %help.bytes, %help.mask
  call void @store_ptr(ptr %pieces, i64 48, ptr @fault.help)
  call void @store_i64(ptr %pieces, i64 56, i64 %bytes)
  call i64 (i64, ...) @syscall(i64 $writev, i32 2, ptr %pieces, i64 4)
  ret void
}

; Tell of the first fault of the process. Another thread that faults meanwhile waits a second at the
; most: it would end the process before the message is out.
define internal void @tell_of_fault(ptr %kernel, i64 %number, i64 %address) {
entry:
  %first = cmpxchg ptr @fault.told, i32 0, i32 1 seq_cst seq_cst
  %is.first = extractvalue {i32, i1} %first, 1
  br i1 %is.first, label %tell, label %wait
tell:
  call void @write_message(ptr %kernel, i64 %number, i64 %address)
  store atomic i32 2, ptr @fault.told seq_cst, align 4
  call void @wake_word(ptr @fault.told, i32 -1)
  ret void
wait:
  %i = phi i32 [0, %entry], [%i.next, %sleep]
  %state = load atomic i32, ptr @fault.told seq_cst, align 4
  %is.writing = icmp eq i32 %state, 1
  %is.patient = icmp ult i32 %i, 20
  %goes.on = and i1 %is.writing, %is.patient
  br i1 %goes.on, label %sleep, label %done
sleep:
  call void @wait_word_briefly(ptr @fault.told, i32 1)
  %i.next = add i32 %i, 1
  br label %wait
done:
  ret void
}

; Do what is done without us. Where that is the signal's default, it is put back: the instruction
; faults again when the handler returns. A signal that somebody sent does not come again by itself.
define internal void @hand_on_fault(i32 %signal, i32 %code, ptr %info, ptr %machine) {
entry:
  %index = zext i32 %signal to i64
  %action = getelementptr [$action_bytes x i8], ptr @fault_actions, i64 %index
  %handler = load ptr, ptr %action
  %number = ptrtoint ptr %handler to i64
  %is.special = icmp ule i64 %number, 1  ; SIG_DFL, SIG_IGN
  br i1 %is.special, label %special, label %call
call:
  call void %handler(i32 %signal, ptr %info, ptr %machine)
  ret void
special:
  %was.sent = icmp sle i32 %code, 0
  %is.ignored = icmp eq i64 %number, 1
  %is.nothing = and i1 %was.sent, %is.ignored
  br i1 %is.nothing, label %done, label %restore
restore:
  call i32 @sigaction(i32 %signal, ptr %action, ptr null)
  ; BUS_MCEERR_AO: memory is broken that no instruction has asked for.
  %is.bus = icmp eq i32 %signal, 7
  %is.optional = icmp eq i32 %code, 5
  %comes.once = and i1 %is.bus, %is.optional
  %again = or i1 %was.sent, %comes.once
  br i1 %again, label %send, label %done
send:
  %process = call i64 (i64, ...) @syscall(i64 $getpid)
  %thread = call i32 @current_thread()
  call i64 (i64, ...) @syscall(i64 $rt_tgsigqueueinfo, i64 %process, i32 %thread, i32 %signal,
                               ptr %info)
  br label %done
done:
  ret void
}

define void @on_fault(i32 %signal, ptr %info, ptr %machine) {
entry:
  %code = call i32 @load_i32(ptr %info, i64 8)
  %by.instruction = icmp sgt i32 %code, 0
  br i1 %by.instruction, label %look, label %hand.on
look:
  %pc = call i64 @load_i64(ptr %machine, i64 $machine_pc)
  %kernel = call ptr @kernel_at(i64 %pc)
  %is.foreign = icmp eq ptr %kernel, null
  br i1 %is.foreign, label %hand.on, label %tell
tell:
  %address = call i64 @load_i64(ptr %info, i64 16)
  %stack = call i64 @load_i64(ptr %machine, i64 $machine_stack)
  %number = call i64 @case_of(i32 %signal, i32 %code, i64 %address, i64 %stack)
  call void @tell_of_fault(ptr %kernel, i64 %number, i64 %address)
  br label %hand.on
hand.on:
  call void @hand_on_fault(i32 %signal, i32 %code, ptr %info, ptr %machine)
  ret void
}
"""

FAULT_SYMBOLS = ("on_fault", "fault_entries", "fault_actions")


def handles_faults(architecture: str, is_linux: bool) -> bool:
    """Whether there is a handler for a machine."""
    return is_linux and architecture in _MACHINE


def fault_text(architecture: str) -> str:
    """The LLVM text of the handler for `architecture`, for the module of the pool."""
    body = Template(_TEXT).substitute(
        field_offsets(entry=ENTRY_FIELDS, machine=_MACHINE[architecture]),
        **_CALLS[architecture],
        action_bytes=ACTION_BYTES,
        num_cases=len(CASES),
        nearness=_STACK_NEARNESS_BYTES,
        twice_nearness=2 * _STACK_NEARNESS_BYTES,
    )
    rows = ", ".join(map(_row, range(len(CASES)), CASES))
    table = f"@fault.cases = internal global [{len(CASES)} x {_ROW}] [{rows}]\n"
    return "".join((_constant("help", HELP), *map(_texts, range(len(CASES)), CASES), table, body))


# Head and its length, tail and its length, where the digits go, and the mask of the help's length.
_ROW = "{ptr, i64, ptr, i64, ptr, i64}"


def _row(number: int, case: Case) -> str:
    head, at = f"@fault.head.{number}", case.head.find(_DIGITS)
    digits = "@fault.unshown" if at < 0 else f"getelementptr (i8, ptr {head}, i64 {at})"
    return (
        f"{_ROW} {{ptr {head}, i64 {len(case.head)}, ptr @fault.tail.{number}, "
        f"i64 {len(case.tail)}, ptr {digits}, i64 {-int(case.is_checkable)}}}"
    )


def _texts(number: int, case: Case) -> str:
    return _constant(f"head.{number}", case.head) + _constant(f"tail.{number}", case.tail)


def _constant(name: str, text: str) -> str:
    shown = text.replace("\n", "\\0a")
    return f'@fault.{name} = internal global [{len(text)} x i8] c"{shown}"\n'
