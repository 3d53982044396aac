"""AMX as a program: its tile registers in memory and its instructions as LLVM functions.

Machine code of this model runs anywhere, so every product that is written for AMX can be run,
to the last bit, where the hardware has none. `modelled` puts the functions in the place of the
intrinsics. One difference is wanted: what was not configured ends the process.
"""

from __future__ import annotations

import re

_STATE = """
; A thread's state, kept by libgcc: the tiles, then the configuration. LLVM's linker has no TLS.
@amx.state = internal global { i64, i64, ptr, ptr } { i64 8256, i64 64, ptr null, ptr null }

define internal ptr @amx.all.tiles() {
  %state = call ptr @__emutls_get_address(ptr @amx.state)
  ret ptr %state
}
define internal ptr @amx.configuration() {
  %state = call ptr @__emutls_get_address(ptr @amx.state)
  %config = getelementptr i8, ptr %state, i64 8192
  ret ptr %config
}
define internal ptr @amx.tile(i8 %number) {
  %wide = zext i8 %number to i64
  %at = shl i64 %wide, 10
  %tiles = call ptr @amx.all.tiles()
  %tile = getelementptr i8, ptr %tiles, i64 %at
  ret ptr %tile
}
define internal i64 @amx.width(i8 %number) {
  %config = call ptr @amx.configuration()
  %wide = zext i8 %number to i64
  %twice = shl i64 %wide, 1
  %at = add i64 %twice, 16
  %place = getelementptr i8, ptr %config, i64 %at
  %bytes = load i16, ptr %place, align 1
  %palette = load i8, ptr %config
  %is_on = icmp eq i8 %palette, 1
  %is_some = icmp ne i16 %bytes, 0
  %is_right = and i1 %is_on, %is_some
  br i1 %is_right, label %go, label %stop
stop:
  call void @llvm.trap()
  unreachable
go:
  %result = zext i16 %bytes to i64
  ret i64 %result
}
define internal i64 @amx.rows(i8 %number) {
  %config = call ptr @amx.configuration()
  %wide = zext i8 %number to i64
  %at = add i64 %wide, 48
  %place = getelementptr i8, ptr %config, i64 %at
  %rows = load i8, ptr %place
  %result = zext i8 %rows to i64
  ret i64 %result
}
define internal void @amx.ldtilecfg(ptr %from) {
  %config = call ptr @amx.configuration()
  %tiles = call ptr @amx.all.tiles()
  call void @llvm.memcpy.p0.p0.i64(ptr %config, ptr %from, i64 64, i1 false)
  call void @llvm.memset.p0.i64(ptr %tiles, i8 0, i64 8192, i1 false)
  ret void
}
define internal void @amx.tilerelease() {
  %config = call ptr @amx.configuration()
  call void @llvm.memset.p0.i64(ptr %config, i8 0, i64 64, i1 false)
  ret void
}
define internal void @amx.tilezero(i8 %number) {
  %width = call i64 @amx.width(i8 %number)
  %tile = call ptr @amx.tile(i8 %number)
  call void @llvm.memset.p0.i64(ptr %tile, i8 0, i64 1024, i1 false)
  ret void
}
"""

_MOVE = """
define internal void @amx.NAME(i8 %number, ptr %base, i64 %stride) {
entry:
  %width = call i64 @amx.width(i8 %number)
  %rows = call i64 @amx.rows(i8 %number)
  %tile = call ptr @amx.tile(i8 %number)
  BEFORE
  br label %row
row:
  %r = phi i64 [ 0, %entry ], [ %r.next, %row ]
  %inside = shl i64 %r, 6
  %in.tile = getelementptr i8, ptr %tile, i64 %inside
  %outside = mul i64 %r, %stride
  %in.memory = getelementptr i8, ptr %base, i64 %outside
  call void @llvm.memcpy.p0.p0.i64(ptr TO, ptr FROM, i64 %width, i1 false)
  %r.next = add i64 %r, 1
  %more = icmp ult i64 %r.next, %rows
  br i1 %more, label %row, label %done
done:
  ret void
}
"""
_CLEAR = "call void @llvm.memset.p0.i64(ptr %tile, i8 0, i64 1024, i1 false)"

# C[m][n] += A[m][k] · B[k][n] over groups k, in the order that the manual gives.
_PRODUCT = """
define internal void @amx.NAME(i8 %c, i8 %a, i8 %b) {
entry:
  %rows = call i64 @amx.rows(i8 %c)
  %wide = call i64 @amx.width(i8 %c)
  %columns = lshr i64 %wide, 2
  %deep = call i64 @amx.width(i8 %a)
  %groups = lshr i64 %deep, 2
  %a.rows = call i64 @amx.rows(i8 %a)
  %b.rows = call i64 @amx.rows(i8 %b)
  %b.wide = call i64 @amx.width(i8 %b)
  %same.rows = icmp eq i64 %rows, %a.rows
  %same.groups = icmp eq i64 %groups, %b.rows
  %same.columns = icmp eq i64 %wide, %b.wide
  %two = and i1 %same.rows, %same.groups
  %fits = and i1 %two, %same.columns
  %at.a = call ptr @amx.tile(i8 %a)
  %at.b = call ptr @amx.tile(i8 %b)
  %at.c = call ptr @amx.tile(i8 %c)
  br i1 %fits, label %row, label %stop
stop:
  call void @llvm.trap()
  unreachable
row:
  %r = phi i64 [ 0, %entry ], [ %r.next, %row.end ]
  %r.at = shl i64 %r, 6
  %a.row = getelementptr i8, ptr %at.a, i64 %r.at
  %c.row = getelementptr i8, ptr %at.c, i64 %r.at
  br label %column
column:
  %n = phi i64 [ 0, %row ], [ %n.next, %column.end ]
  %n.at = shl i64 %n, 2
  %b.column = getelementptr i8, ptr %at.b, i64 %n.at
  %c.place = getelementptr i8, ptr %c.row, i64 %n.at
  br label %group
group:
  %g = phi i64 [ 0, %column ], [ %g.next, %group ]
  PHIS
  %a.at = shl i64 %g, 2
  %a.place = getelementptr i8, ptr %a.row, i64 %a.at
  %b.at = shl i64 %g, 6
  %b.place = getelementptr i8, ptr %b.column, i64 %b.at
  %x = load i32, ptr %a.place
  %y = load i32, ptr %b.place
  STEP
  %g.next = add i64 %g, 1
  %more.groups = icmp ult i64 %g.next, %groups
  br i1 %more.groups, label %group, label %column.end
column.end:
  LAST
  %n.next = add i64 %n, 1
  %more.columns = icmp ult i64 %n.next, %columns
  br i1 %more.columns, label %column, label %row.end
row.end:
  %r.next = add i64 %r, 1
  %more.rows = icmp ult i64 %r.next, %rows
  br i1 %more.rows, label %row, label %done
done:
  ret void
}
"""

_FLUSH = """
define internal float @amx.flush(float %x) {
  %bits = bitcast float %x to i32
  %exponent = and i32 %bits, 2139095040
  %sign = and i32 %bits, -2147483648
  %is_small = icmp eq i32 %exponent, 0
  %kept = select i1 %is_small, i32 %sign, i32 %bits
  %result = bitcast i32 %kept to float
  ret float %result
}
"""
_FLOAT_PHIS = """%even = phi float [ 0.0, %column ], [ %even.next, %group ]
  %odd = phi float [ 0.0, %column ], [ %odd.next, %group ]"""
_FLOAT_STEP = "\n  ".join(
    f"""%x.{part}.bits = {shift} %x, {by}
  %y.{part}.bits = {shift} %y, {by}
  %x.{part}.raw = bitcast i32 %x.{part}.bits to float
  %y.{part}.raw = bitcast i32 %y.{part}.bits to float
  %x.{part} = call float @amx.flush(float %x.{part}.raw)
  %y.{part} = call float @amx.flush(float %y.{part}.raw)
  %{part}.sum = call float @llvm.fma.f32(float %x.{part}, float %y.{part}, float %{part})
  %{part}.next = call float @amx.flush(float %{part}.sum)"""
    for part, shift, by in (("even", "shl i32", 16), ("odd", "and i32", -65536))
)
_FLOAT_LAST = """%both.raw = fadd float %even.next, %odd.next
  %both = call float @amx.flush(float %both.raw)
  %old.raw = load float, ptr %c.place
  %old = call float @amx.flush(float %old.raw)
  %new.raw = fadd float %old, %both
  %new = call float @amx.flush(float %new.raw)
  store float %new, ptr %c.place"""


def _byte_step(a_extend: str, b_extend: str) -> str:
    lines = ["%sum.0 = add i32 %sum, 0"]
    for part in range(4):
        for name, extend in (("x", a_extend), ("y", b_extend)):
            lines.append(f"%{name}.{part}.s = lshr i32 %{name}, {8 * part}")
            lines.append(f"%{name}.{part}.b = trunc i32 %{name}.{part}.s to i8")
            lines.append(f"%{name}.{part} = {extend} i8 %{name}.{part}.b to i32")
        lines.append(f"%p.{part} = mul i32 %x.{part}, %y.{part}")
        lines.append(f"%sum.{part + 1} = add i32 %sum.{part}, %p.{part}")
    return "\n  ".join(lines)


_BYTE_PHIS = "%sum = phi i32 [ 0, %column ], [ %sum.4, %group ]"
_BYTE_LAST = """%old = load i32, ptr %c.place
  %new = add i32 %old, %sum.4
  store i32 %new, ptr %c.place"""


def _filled(template: str, **parts: str) -> str:
    for name, text in parts.items():
        template = template.replace(name, text)
    return template


def _functions() -> str:
    load = {"BEFORE": _CLEAR, "TO": "%in.tile", "FROM": "%in.memory"}
    store = {"BEFORE": "", "TO": "%in.memory", "FROM": "%in.tile"}
    parts = [
        _STATE,
        _FLUSH,
        _filled(_MOVE, NAME="tileloadd64", **load),
        _filled(_MOVE, NAME="tileloaddt164", **load),
        _filled(_MOVE, NAME="tilestored64", **store),
        _filled(_PRODUCT, NAME="tdpbf16ps", PHIS=_FLOAT_PHIS, STEP=_FLOAT_STEP, LAST=_FLOAT_LAST),
    ]
    extend = {"s": "sext", "u": "zext"}
    for a in "su":
        for b in "su":
            step = _byte_step(extend[a], extend[b])
            name = f"tdpb{a}{b}d"
            parts.append(_filled(_PRODUCT, NAME=name, PHIS=_BYTE_PHIS, STEP=step, LAST=_BYTE_LAST))
    return "".join(parts)


_DECLARATIONS = """
declare ptr @__emutls_get_address(ptr)
declare void @llvm.trap()
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare float @llvm.fma.f32(float, float, float)
"""
_INTRINSIC = re.compile(r"@llvm\.x86\.((?:tile|tdp|ldtile)\w+)\(")


def is_tiled(text: str) -> bool:
    """Whether LLVM text uses tile registers."""
    return _INTRINSIC.search(text) is not None


_EVEN, _ODD = (", ".join(f"i32 {lane}" for lane in range(first, 32, 2)) for first in (0, 1))
_PAIR_SUMS = f"""
define internal <16 x i32> @amx.pmaddw(<32 x i16> %a, <32 x i16> %b) {{
  %x = sext <32 x i16> %a to <32 x i32>
  %y = sext <32 x i16> %b to <32 x i32>
  %products = mul <32 x i32> %x, %y
  %first = shufflevector <32 x i32> %products, <32 x i32> poison, <16 x i32> <{_EVEN}>
  %second = shufflevector <32 x i32> %products, <32 x i32> poison, <16 x i32> <{_ODD}>
  %sums = add <16 x i32> %first, %second
  ret <16 x i32> %sums
}}
"""
_PAIRS = "llvm.x86.avx512.pmaddw.d.512"


def with_pair_sums(text: str) -> str:
    """A module in which sums of products of i16 are computed where no instruction does."""
    if _PAIRS not in text:
        return text
    declared = re.compile(rf"^declare .*@{re.escape(_PAIRS)}\(.*$", re.MULTILINE)
    return declared.sub("", text).replace(f"@{_PAIRS}", "@amx.pmaddw") + _PAIR_SUMS


def modelled(text: str) -> str:
    """LLVM text with the model's functions in the place of AMX's intrinsics."""
    if not is_tiled(text):
        return text
    kept = [line for line in text.splitlines() if not _is_declaration(line)]
    body = _INTRINSIC.sub(r"@amx.\1(", "\n".join(kept))
    missing = [
        line
        for line in _DECLARATIONS.strip().splitlines()
        if line.split("@")[1].split("(")[0] + "(" not in _declared(body)
    ]
    return "\n".join([*missing, _functions(), body]) + "\n"


def _is_declaration(line: str) -> bool:
    return line.startswith("declare") and _INTRINSIC.search(line) is not None


def _declared(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if line.startswith("declare"))
