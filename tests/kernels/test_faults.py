"""A fault inside of a kernel names the kernel, and ends the process as it always did."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

import tilewright

Run = Callable[..., "Ended"]
KERNELS = """
import ctypes, faulthandler, mmap, os, resource, signal, sys, threading, time
import numpy as np
import tilewright
import tilewright.language as tl

resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
libc = ctypes.CDLL(None)
HANDLER = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)

@tilewright.jit
def reads(x, out, shift, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + shift + i))

@tilewright.jit
def writes(out, shift, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + shift + i, 1.0)

@tilewright.jit
def writes_in_a_worker(flag, out, shift):
    if tl.program_id(0) == 0:
        while tl.atomic_add(flag, 0) == 0:
            pass
    else:
        tl.store(out + shift, 1.0)

@tilewright.jit
def follows(pointers, out):
    tl.store(out, tl.load(tl.load(pointers).to(tl.pointer_type(tl.float32))))

@tilewright.jit
def one_size_is_wrong(out, B: tl.constexpr, KIND: tl.constexpr = "far"):
    tl.store(out + (1 << 40 if B == 128 else 0) + tl.arange(0, B), 1.0)

FAR = 1 << 40
x, out = np.zeros(4096, np.float32), np.zeros(4096, np.float32)

def begin():
    reads[(4,)](x, out, 0, B=64)

def install(number, function):
    # struct sigaction: handler, 128 bytes of mask, flags: SA_SIGINFO
    action = (ctypes.c_int64 * 32)(ctypes.cast(function, ctypes.c_void_p).value)
    ctypes.c_int.from_address(ctypes.addressof(action) + 136).value = 4
    before = (ctypes.c_int64 * 32)()
    assert libc.sigaction(number, action, before) == 0
    return before
"""
# Code that no kernel of ours has, noted as one: calls without end, and a trap.
NATIVE = """
import platform
import llvmlite.binding
from tilewright.codegen.link import load_object
from tilewright.codegen.optimize import compile_module
from tilewright.runtime.artifact import Artifact
from tilewright.targets.cpu.runtime.native import native_runtime

CALLS = '''
define i64 @code(i64 %x) {
  %memory = alloca [64 x i64]
  store volatile i64 %x, ptr %memory
  %y = call i64 @code(i64 %x)
  %z = load volatile i64, ptr %memory
  %sum = add i64 %y, %z
  ret i64 %sum
}
'''
UNKNOWN = {"x86_64": "ud2", "aarch64": "udf #0"}[platform.machine()]
TRAPS = f'define i64 @code(i64 %x) {{ call void asm sideeffect "{UNKNOWN}", ""() ret i64 %x }}'

def call(text):
    llvmlite.binding.initialize_native_asmparser()
    compiled = compile_module(text, "", (), passes=()).object
    code = load_object(compiled, "code")
    metadata = {"name": "code", "defined": [__file__, 1]}
    native_runtime().faults.note(Artifact("", metadata, {"object": compiled}), code, "code")
    ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(code.address)(1)
"""
HELP = "help: run again with TILEWRIGHT_CHECKED=1, which names the source line, the index and the"
ADDRESS = r"at address 0x[0-9a-f]{16} in the kernel"


class Ended:
    """A process that has ended: by which signal or status, and what it wrote."""

    def __init__(self, process: subprocess.CompletedProcess[str], script: Path) -> None:
        self.status, self.printed, self.said = process.returncode, process.stdout, process.stderr
        self._script = script

    def names(self, kernel: str, what: str = rf"signal 11 \(SIGSEGV\) {ADDRESS}") -> bool:
        """Whether it was told in which kernel it faulted, and where that stands."""
        found = re.search(
            rf"^tilewright: {what} {kernel}\n  (.*):(\d+), in {kernel}[,\n]", self.said
        )
        if found is None or Path(found[1]) != self._script:
            return False
        return self._script.read_text().splitlines()[int(found[2]) - 1].startswith(f"def {kernel}(")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Run a script after the kernels above; what they compile to is cached from test to test."""
    folder = tmp_path_factory.mktemp("faults")
    # One file for all scripts: a kernel is cached under the place of its source.
    script = folder / "script.py"
    script.write_text(f"{KERNELS}\nexec(sys.argv[1])\n")

    def run(body: str, *options: str, **variables: str) -> Ended:
        environment = {
            **{name: text for name, text in os.environ.items() if "TILEWRIGHT" not in name},
            "PYTHONPATH": str(Path(tilewright.__file__).parents[1]),
            "TILEWRIGHT_CACHE_DIR": str(folder / "cache"),
            **variables,
        }
        command = [sys.executable, *options, str(script), textwrap.dedent(body)]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=300, check=False
        )
        return Ended(done, script)

    return run


def test_a_load_out_of_bounds_names_the_kernel_and_the_remedy(run: Run) -> None:
    ended = run("reads[(4,)](x, out, FAR, B=64)")
    assert ended.status == -signal.SIGSEGV
    assert ended.names("reads")
    assert "A load or store probably lies outside of the memory of the arguments." in ended.said
    assert HELP in ended.said
    assert ended.said.count("\n") == 4


def test_the_message_tells_which_configuration_a_tuner_tried(run: Run) -> None:
    ended = run(
        """
        configs = [tilewright.Config({"B": size}) for size in (64, 128, 256)]
        tuned = tilewright.autotune(configs=configs, key=[])(one_size_is_wrong)
        tuned[(1,)](out)
        """
    )
    assert ended.status == -signal.SIGSEGV
    assert ended.names("one_size_is_wrong")
    assert ", in one_size_is_wrong, with B=128, KIND='far'\n" in ended.said


def test_a_store_out_of_bounds_names_the_kernel(run: Run) -> None:
    ended = run("begin(); writes[(4,)](out, FAR, B=64)")
    assert ended.status == -signal.SIGSEGV
    assert ended.names("writes")


def test_a_fault_in_a_worker_names_the_kernel(run: Run) -> None:
    # The launching thread does not come past its first program.
    ended = run(
        "writes_in_a_worker[(64,)](np.zeros(1, np.int32), out, FAR)", TILEWRIGHT_NUM_THREADS="3"
    )
    assert ended.status == -signal.SIGSEGV
    assert ended.names("writes_in_a_worker")
    assert ended.said.count("tilewright: ") == 1


def test_a_fault_on_another_thread_of_python_names_the_kernel(run: Run) -> None:
    ended = run("threading.Thread(target=lambda: reads[(4,)](x, out, FAR, B=64)).start()")
    assert ended.status == -signal.SIGSEGV
    assert ended.names("reads")


def test_a_kernel_from_the_cache_is_named(run: Run) -> None:
    for number in ("1", "0"):
        ended = run(
            """
            begin()
            print(tilewright.compile_statistics().compiled, flush=True)
            reads[(4,)](x, out, FAR, B=64)
            """,
            TILEWRIGHT_ALWAYS_COMPILE=number,
        )
        assert (ended.printed, ended.status) == (f"{number}\n", -signal.SIGSEGV)
        assert ended.names("reads")


def test_a_forked_child_names_its_kernel(run: Run) -> None:
    ended = run(
        """
        begin()
        child = os.fork()
        if child == 0:
            reads[(4,)](x, out, FAR, B=64)
        print(os.WTERMSIG(os.waitpid(child, 0)[1]))
        """
    )
    assert (ended.status, ended.printed) == (0, "11\n")
    assert ended.names("reads")


def test_an_address_that_no_memory_has_is_not_told(run: Run) -> None:
    ended = run("follows[(1,)](np.array([0x1234567812345678]), out)")
    assert ended.status == -signal.SIGSEGV
    what = r"signal 11 \(SIGSEGV\), of which the processor tells no address, in the kernel"
    assert ended.names("follows", what)


def test_a_store_into_memory_for_reading_is_told_as_such(run: Run) -> None:
    ended = run(
        """
        memory = mmap.mmap(-1, 16384)
        array = np.frombuffer(memory, np.float32)
        assert libc.mprotect(ctypes.c_void_p(array.ctypes.data), 16384, mmap.PROT_READ) == 0
        writes[(4,)](array, 0, B=64)
        """
    )
    assert ended.status == -signal.SIGSEGV
    assert ended.names("writes")
    assert "The memory there may only be read" in ended.said


def test_a_file_that_became_shorter_is_told_as_such(run: Run, tmp_path: Path) -> None:
    ended = run(
        f"""
        with open({str(tmp_path / "file")!r}, "w+b") as file:
            file.write(bytes(16384))
            file.flush()
            array = np.frombuffer(mmap.mmap(file.fileno(), 16384), np.float32)
            file.truncate(0)
            writes[(4,)](array, 0, B=64)
        """
    )
    assert ended.status == -signal.SIGBUS
    assert ended.names("writes", rf"signal 7 \(SIGBUS\) {ADDRESS}")
    assert "behind the end of the file that is mapped there" in ended.said


def test_a_full_stack_is_told_as_such_where_signals_have_their_own(run: Run) -> None:
    body = f"begin()\n{NATIVE}\ncall(CALLS)"
    ended = run(body, "-X", "faulthandler")
    assert ended.status == -signal.SIGSEGV
    assert re.match(rf"tilewright: signal 11 \(SIGSEGV\) {ADDRESS} code\n", ended.said)
    assert "near the stack pointer: the stack of the thread may be full" in ended.said
    assert "help:" not in ended.said
    ended = run(body)
    assert (ended.status, ended.said) == (-signal.SIGSEGV, "")


def test_what_is_no_access_is_not_told_as_one(run: Run) -> None:
    ended = run(f"{NATIVE}\ncall(TRAPS)")
    assert ended.status == -signal.SIGILL
    assert re.match(rf"tilewright: signal 4 \(SIGILL\) {ADDRESS} code\n", ended.said)
    assert "It is no access of memory" in ended.said
    assert "help:" not in ended.said


def test_a_kernel_in_checked_mode_is_not_told_to_be_checked(run: Run) -> None:
    body = "follows[(1,)](np.array([8]), out)"
    assert HELP in run(body).said
    ended = run(body, TILEWRIGHT_CHECKED="1")
    assert ended.status == -signal.SIGSEGV
    assert ended.names("follows")
    assert "help:" not in ended.said


def test_the_variable_switches_the_message_off(run: Run) -> None:
    ended = run("reads[(4,)](x, out, FAR, B=64)", TILEWRIGHT_DISABLE_FAULT_REPORTS="1")
    assert (ended.status, ended.said) == (-signal.SIGSEGV, "")


def test_a_fault_elsewhere_is_none_of_ours(run: Run) -> None:
    ended = run("begin(); ctypes.string_at(0)")
    assert (ended.status, ended.said) == (-signal.SIGSEGV, "")


def test_a_signal_that_was_sent_ends_the_process_without_a_word(run: Run) -> None:
    for name in ("SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE"):
        ended = run(f"begin(); os.kill(os.getpid(), signal.{name}); time.sleep(60)")
        assert (ended.status, ended.said) == (-getattr(signal, name), "")


def test_a_signal_that_is_ignored_stays_so_where_it_was_sent(run: Run) -> None:
    ended = run(
        """
        signal.signal(signal.SIGSEGV, signal.SIG_IGN)
        begin()
        os.kill(os.getpid(), signal.SIGSEGV)
        print("lives", flush=True)
        reads[(4,)](x, out, FAR, B=64)
        """
    )
    assert (ended.status, ended.printed) == (-signal.SIGSEGV, "lives\n")
    assert ended.names("reads")


def test_faulthandler_that_was_there_prints_its_traceback_behind_the_message(run: Run) -> None:
    ended = run("begin(); reads[(1,)](x, out, FAR, B=64)", "-X", "faulthandler")
    assert ended.status == -signal.SIGSEGV
    assert ended.names("reads")
    _, _, traceback = ended.said.partition("and the tensor\n")
    assert traceback.startswith("Fatal Python error: Segmentation fault\n\nCurrent thread")
    assert "script.py" in traceback


def test_faulthandler_that_was_there_tells_of_a_fault_elsewhere(run: Run) -> None:
    ended = run("begin(); ctypes.string_at(0)", "-X", "faulthandler")
    assert ended.status == -signal.SIGSEGV
    assert ended.said.startswith("Fatal Python error: Segmentation fault\n")


def test_faulthandler_that_comes_later_prints_its_traceback(run: Run) -> None:
    ended = run("begin(); faulthandler.enable(); reads[(1,)](x, out, FAR, B=64)")
    assert ended.status == -signal.SIGSEGV
    assert "Fatal Python error: Segmentation fault\n\nCurrent thread" in ended.said


def test_a_handler_that_was_there_decides_how_it_ends(run: Run) -> None:
    ended = run(
        """
        def handle(number, info, machine):
            os.write(1, b"theirs %d" % number)
            os._exit(42)

        function = HANDLER(handle)
        install(signal.SIGSEGV, function)
        begin()
        reads[(1,)](x, out, FAR, B=64)
        """
    )
    assert (ended.status, ended.printed) == (42, "theirs 11")
    assert ended.names("reads")


def test_a_handler_that_repairs_the_faults_of_others_goes_on_to_do_so(run: Run) -> None:
    ended = run(
        """
        memory = mmap.mmap(-1, 4096)
        array = np.frombuffer(memory, np.uint8)
        page = ctypes.c_void_p(array.ctypes.data)
        faults = []

        def handle(number, info, machine):
            faults.append(number)
            assert libc.mprotect(page, 4096, mmap.PROT_READ | mmap.PROT_WRITE) == 0
            if len(faults) == 4:
                os._exit(42)

        function = HANDLER(handle)
        install(signal.SIGSEGV, function)
        begin()
        for _ in range(3):
            assert libc.mprotect(page, 4096, 0) == 0
            assert ctypes.string_at(page.value, 1) == bytes(1)
        print(len(faults), flush=True)
        reads[(1,)](x, out, FAR, B=64)
        """
    )
    assert (ended.status, ended.printed) == (42, "3\n")
    assert ended.names("reads")


def test_a_handler_that_comes_later_and_calls_ours_is_followed_by_the_message(run: Run) -> None:
    ended = run(
        """
        def handle(number, info, machine):
            os.write(2, b"theirs\\n")
            HANDLER(before[0])(number, info, machine)

        begin()
        function = HANDLER(handle)
        before = install(signal.SIGSEGV, function)
        reads[(1,)](x, out, FAR, B=64)
        """
    )
    assert ended.status == -signal.SIGSEGV
    first, _, ended.said = ended.said.partition("\n")
    assert first == "theirs"
    assert ended.names("reads")


def test_a_handler_of_python_runs_for_a_signal_that_was_sent(run: Run) -> None:
    # Any thread may take a signal that is sent to its process, and Python's main thread runs the
    # handler when that one has noted it: maybe not before the script's next line.
    ended = run(
        """
        taken = []
        signal.signal(signal.SIGSEGV, lambda number, frame: taken.append(number))
        begin()
        os.kill(os.getpid(), signal.SIGSEGV)
        until = time.monotonic() + 60
        while not taken and time.monotonic() < until:
            time.sleep(0.01)
        print("theirs", *taken)
        """
    )
    assert (ended.status, ended.printed, ended.said) == (0, "theirs 11\n", "")


def test_many_threads_that_fault_at_once_tell_of_one_fault(run: Run) -> None:
    ended = run(
        """
        begin()
        threads = [
            threading.Thread(target=lambda: reads[(64,)](x, out, FAR, B=64)) for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        """
    )
    assert ended.status == -signal.SIGSEGV
    assert ended.names("reads")
    assert ended.said.count("tilewright: ") == 1
