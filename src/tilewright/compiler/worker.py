"""Compiling in a child process: where LLVM may die, hang or eat memory, the caller lives on.

The child is `python -m tilewright.compiler.worker`. Its stdin is one line of JSON (cache key
and memory limit) followed by the request; its stdout is one container (`runtime/container.py`)
with the sections of the artifact, or with an error of the catalogue. Nothing is pickled.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import astuple
from functools import partial
from pathlib import Path

from tilewright.compiler.compile import StageResult
from tilewright.compiler.instruments import compile_watched, reproducer_directory
from tilewright.compiler.reproducer import ReproducerStore, reproducer_hint
from tilewright.compiler.request import CompileRequest
from tilewright.runtime.artifact import Artifact
from tilewright.runtime.container import DamagedContainer, pack, unpack
from tilewright.support import errors
from tilewright.support.errors import InternalError, TilewrightError
from tilewright.support.source import Span

try:
    import resource
except ImportError:  # Windows
    resource = None

RequestObserver = Callable[[CompileRequest, str, StageResult], None]
DEFAULT_TIMEOUT_S = 60.0
DEFAULT_MEMORY_BYTES = 4 << 30
_FRAME_KEY = hashlib.sha256(b"tilewright worker").digest()
_ERROR = "error.json"
_STDERR_BYTES = 2000
_KILL_GRACE_S = 5.0
_MODULE = "tilewright.compiler.worker"
# `python -m` of a module of this very package, wherever it was imported from.
START = """
import runpy, sys
root, module = sys.argv[1:3]
del sys.argv[1:3]
if root not in sys.path:
    sys.path.insert(0, root)
runpy.run_module(module, run_name="__main__")
"""


def compile_in_worker(
    request: CompileRequest,
    key: str = "",
    timeout_s: float = DEFAULT_TIMEOUT_S,
    memory_bytes: int = DEFAULT_MEMORY_BYTES,
    keeps_reproducer: bool = True,
) -> Artifact:
    """Compile a request in a child process of its own session.

    `keeps_reproducer` False leaves no file behind, whatever happens.

    Raises: what the compiler raised, from the catalogue; `InternalError` when the child dies
    (with its signal or exit status), exceeds `timeout_s` or `memory_bytes`, or answers with
    anything but an artifact.
    """
    message = make_message(request, key, memory_bytes, keeps_reproducer)
    try:
        output = run_worker(message, timeout_s, request.name)
    except InternalError as error:
        if keeps_reproducer:
            name_reproducer(error, request)
        raise
    return read_answer(output, request.name, key)


def read_answer(output: bytes, name: str, key: str) -> Artifact:
    """The artifact in an answer of `serve`.

    Raises: the error in the answer; `InternalError` for what is no answer.
    """
    try:
        sections = unpack(_FRAME_KEY, output)
    except DamagedContainer as error:
        raise InternalError(f"the compiler's worker gave no answer for {name}()") from error
    if _ERROR in sections:
        raise decode_error(sections[_ERROR])
    artifact = Artifact.from_sections(key, sections)
    if artifact is None:
        raise InternalError(f"the compiler's worker gave no metadata for {name}()")
    return artifact


def name_reproducer(error: InternalError, request: CompileRequest) -> None:
    """Let the error of a dead worker name what it left behind."""
    for path in ReproducerStore(reproducer_directory()).adopt_orphans():
        if path.name.startswith(f"{request.name}-"):
            error.hint = reproducer_hint(path)


def run_worker(message: bytes, timeout_s: float, name: str) -> bytes:
    """What a worker writes for a message. Raises: `InternalError` when it dies or hangs."""
    child = subprocess.Popen(
        start_command(_MODULE),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        output, written = child.communicate(message, timeout_s)
    except subprocess.TimeoutExpired:
        raise InternalError(f"compiling {name}() took longer than {timeout_s:g} s") from None
    finally:
        _end(child)
    if child.returncode != 0:
        raise InternalError(
            f"the compiler died on {name}() with {describe_exit(child.returncode)}{_tail(written)}"
        )
    return output


def start_command(module: str) -> list[str]:
    """The command that runs a module of this package in a new interpreter."""
    return [sys.executable, "-c", START, str(Path(__file__).resolve().parents[2]), module]


def describe_exit(code: int) -> str:
    """An exit status in words.

    *Example*

    >>> describe_exit(-11)
    'signal 11 (SIGSEGV)'
    """
    if code >= 0:
        return f"exit status {code}"
    with suppress(ValueError):
        return f"signal {-code} ({signal.Signals(-code).name})"
    return f"signal {-code}"


def _tail(written: bytes) -> str:
    text = written[-_STDERR_BYTES:].decode(errors="replace").strip()
    return f"\n{text}" if text else ""


def _end(child: subprocess.Popen[bytes]) -> None:
    """Kill the child with everything that it started, and reap it."""
    if child.poll() is None:
        with suppress(ProcessLookupError, PermissionError):
            _kill_group(child)
        child.communicate(timeout=_KILL_GRACE_S)
    for stream in (child.stdin, child.stdout, child.stderr):
        if stream is not None:
            stream.close()


def _kill_group(child: subprocess.Popen[bytes]) -> None:
    if hasattr(os, "killpg"):
        os.killpg(child.pid, signal.SIGKILL)
    else:
        child.kill()


def encode_error(error: TilewrightError) -> bytes:
    """An error of the catalogue as JSON."""
    document = {
        "code": error.code,
        "summary": error.summary,
        "hint": error.hint,
        "types": error.types,
        "span": None if error.span is None else astuple(error.span),
        "chain": [astuple(span) for span in error.chain],
        "source": error.source,
    }
    return json.dumps(document).encode()


def decode_error(data: bytes) -> TilewrightError:
    """The error that `encode_error` wrote; an `InternalError` for a name not in the catalogue."""
    document = json.loads(data)
    cls = getattr(errors, document["code"], InternalError)
    span = document["span"]
    return cls(
        document["summary"],
        hint=document["hint"],
        types=document["types"],
        span=None if span is None else Span(*span),
        chain=tuple(Span(*fields) for fields in document["chain"]),
        source=document["source"],
    )


def limit_memory(limit_bytes: int) -> None:
    """Let this process not grow beyond its present size by more than `limit_bytes`."""
    if resource is None or limit_bytes <= 0:
        return
    used_bytes = 0
    with suppress(OSError, ValueError), open("/proc/self/statm", "rb") as file:
        used_bytes = int(file.read().split()[0]) * resource.getpagesize()
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = used_bytes + limit_bytes
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_AS, (allowed, hard))


def make_message(
    request: CompileRequest,
    key: str,
    memory_bytes: int = DEFAULT_MEMORY_BYTES,
    keeps_reproducer: bool = True,
) -> bytes:
    """What `serve` takes."""
    settings = {
        "key": key,
        "memory_bytes": memory_bytes,
        "keeps_reproducer": keeps_reproducer,
        "paths": search_paths(request),
    }
    return json.dumps(settings).encode() + b"\n" + request.to_bytes()


def search_paths(request: CompileRequest) -> list[str]:
    """Where a process that compiles a request finds the extensions that this one found."""
    return [entry for entry in sys.path if entry] if request.extensions else []


def serve(message: bytes, observe: RequestObserver | None = None) -> bytes:
    """The answer to one message, as a container; `observe` sees the request and each stage."""
    head, _, body = message.partition(b"\n")
    settings = json.loads(head)
    limit_memory(int(settings["memory_bytes"]))
    sys.path.extend(entry for entry in settings.get("paths", ()) if entry not in sys.path)
    try:
        request = CompileRequest.from_bytes(body)
        watch = None if observe is None else partial(observe, request)
        artifact = compile_watched(
            request, settings["key"], bool(settings["keeps_reproducer"]), watch
        )
    except TilewrightError as error:
        return pack(_FRAME_KEY, {_ERROR: encode_error(error)})
    except MemoryError:
        error = InternalError("the compiler ran out of the memory that the worker may use")
        return pack(_FRAME_KEY, {_ERROR: encode_error(error)})
    return pack(_FRAME_KEY, artifact.to_sections())


def main() -> None:
    """Answer the one message on stdin."""
    # What a library prints must not get into the answer.
    answer = os.dup(1)
    os.dup2(2, 1)
    data = serve(sys.stdin.buffer.read())
    with os.fdopen(answer, "wb") as out:
        out.write(data)


if __name__ == "__main__":
    main()
