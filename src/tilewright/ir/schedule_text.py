"""Reads the text of a schedule; `str` of a `Schedule` writes it.

    clause  = roles | ring | loop | turns | epilogue | persist | mask
    roles   = "roles" role ("|" role)*         role = NAME [load|math] [xN] [warps N] [regs N]
                                                      [split m|n|tiles]
    ring    = "ring" NAME "tiles" anchor+ "slots" N [tma|cp_async|store] [release wait|late]
                                                      [shares RING]
    loop    = "loop" anchor (anchor [ROLE]@STAGE.CLUSTER)* ["order" step*]
    step    = anchor | wait(anchor) | release(RING)
    turns   = "turns" [ROLE] "lock" anchor "pass" issued|done|next
    anchor  = KIND#N | KIND:HINT | rest
    epilogue = "epilogue" direct | tma [columns N] [buffers N]
    persist = "persist" static                 mask = "mask" always|branch

Clauses are separated by `;` or by new lines, or by the next clause's name; `|` repeats a clause.
An `order` behind a loop belongs to it, whatever separates them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from tilewright.ir import schedule as ir
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import MalformedSchedule
from tilewright.support.source import Span

_CLAUSES = ("roles", "ring", "loop", "order", "turns", "epilogue", "persist", "mask", "cluster")
_PLACED = (*(kind for kind in ir.ANCHOR_KINDS if kind != "for"), "rest")
_TOKEN = re.compile(r"[;|\n]|[^\s;|]+")
_NAME = re.compile(r"[A-Za-z_]\w*")
_ANCHOR = re.compile(r"(?P<kind>\w+)(?:#(?P<index>\d{1,6})|:(?P<hint>[\w.$]+))")
_PLACE = re.compile(r"(?P<role>\w*)@(?P<stage>\d{1,3})\.(?P<cluster>\d{1,3})")
_STEP = re.compile(r"(?P<action>wait|release)\((?P<subject>[^()]*)\)")
_MAX_NUMBER = 1 << 20
_CLUSTERS = tuple(map(str, ir.CLUSTERS))


def parse_schedule(text: str, span: Span | None = None) -> ir.Schedule:
    """The schedule that a text says; `span` is where the author wrote it.

    *Raises*: MalformedSchedule with the word at fault, its line and column, and what fits there.
    """
    return _Reader(text, span).schedule()


@dataclass(frozen=True)
class _Token:
    text: str
    line: int
    column: int


def _tokens(text: str) -> list[_Token]:
    tokens = []
    line, line_start = 1, 0
    for match in _TOKEN.finditer(text):
        tokens.append(_Token(match[0], line, match.start() - line_start + 1))
        if match[0] == "\n":
            line, line_start = line + 1, match.end()
    return [*tokens, _Token("", line, len(text) - line_start + 1)]


class _Reader:
    """Takes one word after the other; every `read` method leaves behind what it has read."""

    def __init__(self, text: str, span: Span | None) -> None:
        self.text, self.span = text, span
        self.tokens, self.at = _tokens(text), 0
        self.roles: list[ir.Role] = []
        self.channels: list[ir.Channel] = []
        self.loops: list[ir.LoopSchedule] = []
        self.once: dict[str, object] = {}
        # Names of roles and rings may be read before what they name.
        self.used_roles: list[_Token] = []
        self.used_rings: list[_Token] = []

    @property
    def token(self) -> _Token:
        """The next word, '' at the end."""
        return self.tokens[self.at]

    def schedule(self) -> ir.Schedule:
        """Read all of it."""
        while self._skip_separators():
            self._clause(self._one_of(_CLAUSES, "a clause"))
        self._check_names()
        epilogue, turns = self.once.get("epilogue", ir.Epilogue()), self.once.get("turns")
        assert isinstance(epilogue, ir.Epilogue)
        assert turns is None or isinstance(turns, ir.Turns)
        return ir.Schedule(
            tuple(self.roles),
            tuple(self.channels),
            tuple(self.loops),
            turns,
            epilogue,
            str(self.once.get("persist", "")),
            str(self.once.get("mask", "always")),
            int(str(self.once.get("cluster", 1))),
        )

    def _clause(self, keyword: _Token) -> None:
        if keyword.text == "roles":
            self._repeated(self._role)
        elif keyword.text == "ring":
            self._repeated(self._ring)
        elif keyword.text == "loop":
            self._repeated(self._loop)
        elif keyword.text == "order":
            self._order(keyword)
        else:
            self._single(keyword)

    def _repeated(self, read: Callable[[], None]) -> None:
        """Items between `|`; the name of a clause behind one starts that clause."""
        read()
        while self.token.text == "|" and self.tokens[self.at + 1].text not in _CLAUSES:
            self.at += 1
            read()

    def _single(self, keyword: _Token) -> None:
        if keyword.text in self.once:
            raise self._error(keyword, f"`{keyword.text}` is said twice", "say it once")
        readers: dict[str, Callable[[], object]] = {
            "turns": self._turns,
            "epilogue": self._epilogue,
            "persist": lambda: self._one_of(ir.PERSISTENCE[1:], "a persistence").text,
            "mask": lambda: self._one_of(ir.MASKS, "a mask").text,
            "cluster": lambda: self._one_of(_CLUSTERS, "a number of programs").text,
        }
        self.once[keyword.text] = readers[keyword.text]()

    def _role(self) -> None:
        name = self._name("a role", [role.name for role in self.roles])
        default = name.text if name.text in ir.ROLE_KINDS else "math"
        kind = self._optional(ir.ROLE_KINDS) or default
        replicas, warps, registers, split = 1, 4, 0, ""
        while self._is_field():
            field = self.token
            if re.fullmatch(r"x\d{1,2}", field.text):
                self.at += 1
                replicas = self._in_range(field, int(field.text[1:]), 1, 8, "replicas")
                continue
            self._one_of(("warps", "regs", "split"), "a field of a role")
            if field.text == "split":
                split = self._one_of(ir.SPLITS[1:], "a split").text
            elif field.text == "warps":
                warps = self._power(self._number("warps", 1, 32))
            else:
                registers = self._register_count()
        self.roles.append(ir.Role(name.text, kind, warps, replicas, registers, split))

    def _register_count(self) -> int:
        token = self.token
        count = self._number("registers", 24, 248)
        if count % 8:
            hint = f"say {count // 8 * 8} or {min(count // 8 * 8 + 8, 248)}"
            raise self._error(token, f"{count} registers are no multiple of 8", hint)
        return count

    def _power(self, number: int) -> int:
        if number & (number - 1):
            token = self.tokens[self.at - 1]
            raise self._error(token, f"{number} warps are no power of 2", "say 1, 2, 4 or 8")
        return number

    def _ring(self) -> None:
        name = self._name("a ring", [channel.name for channel in self.channels])
        self._one_of(("tiles",), "what fills the ring")
        tiles: list[ir.Anchor] = []
        while self._is_field() and self.token.text != "slots":
            token = self.token
            anchor = self._anchor(("load",))
            if anchor in tiles or any(anchor in channel.tiles for channel in self.channels):
                raise self._error(token, f"`{anchor}` fills two slots", "name it in one ring, once")
            tiles.append(anchor)
        if not tiles:
            raise self._error(self.token, f"nothing fills ring `{name.text}`", "say `tiles load#0`")
        self._one_of(("slots",), "the number of slots")
        slots = self._number("slots", 1, 64)
        medium = self._optional(ir.MEDIA) or "tma"
        release = "wait"
        if self._optional(("release",)):
            release = self._one_of(ir.RELEASES, "a release").text
        shares = self._owner() if self._optional(("shares",)) else ""
        self.channels.append(ir.Channel(name.text, tuple(tiles), slots, medium, release, shares))

    def _owner(self) -> str:
        """The ring whose memory another one lies in: one before it that has memory of its own."""
        owners = [channel.name for channel in self.channels if not channel.shares]
        if self.token.text not in owners:
            reason = f"{_shown(self.token)} is no ring before this one with memory of its own"
            hint = (
                f"it is {', '.join(f'`{name}`' for name in owners)}" if owners else "leave it out"
            )
            raise self._error(self.token, reason, hint)
        self.at += 1
        return self.tokens[self.at - 1].text

    def _loop(self) -> None:
        token = self.token
        loop = self._anchor(("for",))
        if any(other.loop == loop for other in self.loops):
            raise self._error(token, f"`{loop}` has two schedules", "write its places in one")
        places: dict[ir.Anchor, ir.Place] = {}
        while self._is_field():
            token = self.token
            anchor = self._anchor(_PLACED)
            if anchor in places:
                raise self._error(token, f"`{anchor}` has two places", "leave one of them out")
            places[anchor] = self._place(anchor)
        self.loops.append(ir.LoopSchedule(loop, tuple(places.items())))

    def _place(self, anchor: ir.Anchor) -> ir.Place:
        token = self.token
        match = _PLACE.fullmatch(token.text)
        if match is None:
            hint = f"write `{anchor} @0.1` for stage 0, cluster 1"
            raise self._error(token, f"{_shown(token)} is no place of `{anchor}`", hint)
        self.at += 1
        if match["role"]:
            self.used_roles.append(_Token(match["role"], token.line, token.column))
        return ir.Place(int(match["stage"]), int(match["cluster"]), match["role"])

    def _order(self, keyword: _Token) -> None:
        if not self.loops or self.loops[-1].order:
            reason = "a loop has two orders" if self.loops else "an order stands before its loop"
            raise self._error(keyword, reason, "write `loop for#0 …` and behind it one `order …`")
        steps: list[ir.Step] = []
        while self._is_field():
            token = self.token
            step = self._step()
            if step in steps:
                raise self._error(token, f"`{step}` comes twice", "leave one of them out")
            steps.append(step)
        if not steps:
            raise self._error(self.token, "the order is empty", "leave `order` out")
        last = self.loops[-1]
        self.loops[-1] = ir.LoopSchedule(last.loop, last.places, tuple(steps))

    def _step(self) -> ir.Step:
        token = self.token
        match = _STEP.fullmatch(token.text)
        if match is None:
            return ir.Step("run", self._anchor(_PLACED, "a step of the order"))
        start = token.column + match.start("subject")
        subject = _Token(match["subject"], token.line, start)
        self.at += 1
        if match["action"] == "wait":
            return ir.Step("wait", self._read_anchor(subject, ("dot",), "a product to wait for"))
        self.used_rings.append(subject)
        return ir.Step("release", subject.text)

    def _turns(self) -> ir.Turns:
        role = "math"
        if self.token.text != "lock":
            named = self._name("a role", [])
            role = named.text
            self.used_roles.append(named)
        self._one_of(("lock",), "what the turn is about")
        lock = self._anchor(("dot",))
        self._one_of(("pass",), "when the turn is passed")
        return ir.Turns(role, lock, self._one_of(ir.PASSES, "when the turn is passed").text)

    def _epilogue(self) -> ir.Epilogue:
        kind = self._one_of(ir.EPILOGUES, "an epilogue").text
        columns, buffers = 64, 2
        while kind == "tma" and self._is_field():
            field = self._one_of(("columns", "buffers"), "a field of an epilogue")
            if field.text == "columns":
                columns = self._number("columns", 8, 256)
            else:
                buffers = self._number("buffers", 1, 16)
        return ir.Epilogue(kind, columns, buffers)

    def _anchor(self, kinds: Sequence[str], what: str = "") -> ir.Anchor:
        token = self.token
        anchor = self._read_anchor(token, kinds, what)
        self.at += 1
        return anchor

    def _read_anchor(self, token: _Token, kinds: Sequence[str], what: str) -> ir.Anchor:
        if token.text == "rest" and "rest" in kinds:
            return ir.REST
        match = _ANCHOR.fullmatch(token.text)
        if match is None or match["kind"] not in kinds:
            examples = ", ".join(_example(kind) for kind in kinds)
            what = what or "an anchor that fits here"
            raise self._error(token, f"{_shown(token)} is no {_bare(what)}", f"it is {examples}")
        index = -1 if match["index"] is None else int(match["index"])
        return ir.Anchor(match["kind"], index, match["hint"] or "")

    def _name(self, what: str, taken: Sequence[str]) -> _Token:
        token = self.token
        if _NAME.fullmatch(token.text) is None or token.text in _CLAUSES:
            hint = "a name is letters, digits and `_`, and no name of a clause"
            raise self._error(token, f"{_shown(token)} is no name of {what}", hint)
        if token.text in taken:
            plural = f"{_bare(what)}s"
            raise self._error(token, f"two {plural} are called `{token.text}`", "rename one")
        self.at += 1
        return token

    def _number(self, what: str, low: int, high: int) -> int:
        token = self.token
        if not token.text.isascii() or not token.text.isdigit():
            hint = f"write a number of {what} from {low} to {high}"
            raise self._error(token, f"{_shown(token)} is no number of {what}", hint)
        self.at += 1
        return self._in_range(token, min(int(token.text[:9]), _MAX_NUMBER), low, high, what)

    def _in_range(self, token: _Token, number: int, low: int, high: int, what: str) -> int:
        if not low <= number <= high:
            hint = f"{what} are {low} to {high}"
            raise self._error(token, f"{_shown(token)} is no number of {what}", hint)
        return number

    def _optional(self, words: Sequence[str]) -> str:
        if self.token.text not in words:
            return ""
        self.at += 1
        return self.tokens[self.at - 1].text

    def _one_of(self, words: Sequence[str], what: str) -> _Token:
        token = self.token
        if token.text not in words or not token.text:
            hint = f"it is {', '.join(f'`{word}`' for word in words)}"
            raise self._error(token, f"{_shown(token)} is not {what}", hint)
        self.at += 1
        return token

    def _is_field(self) -> bool:
        """Whether the clause goes on."""
        return self.token.text not in ("", "|", ";", "\n", *_CLAUSES)

    def _skip_separators(self) -> bool:
        """Go to the next clause; False at the end."""
        while self.token.text in ("|", ";", "\n"):
            self.at += 1
        return bool(self.token.text)

    def _check_names(self) -> None:
        roles = [role.name for role in self.roles] or ["math"]
        for token in self.used_roles:
            if token.text not in roles:
                hint = f"the roles are {', '.join(roles)}"
                raise self._error(token, f"there is no role `{token.text}`", hint)
        rings = [channel.name for channel in self.channels]
        for token in self.used_rings:
            if token.text not in rings:
                hint = f"the rings are {', '.join(rings)}" if rings else "add `ring …`"
                raise self._error(token, f"there is no ring `{token.text}`", hint)

    def _error(self, token: _Token, reason: str, hint: str) -> MalformedSchedule:
        where = f"line {token.line}, column {token.column}"
        if self.span is not None:
            summary = f"the schedule `{' '.join(self.text.split())}`: {reason} ({where})"
            return MalformedSchedule(summary, hint=hint, span=self.span)
        end = token.column + max(len(token.text.strip()), 1)
        place = Span("<schedule>", token.line, token.column, end)
        line = self.text.split("\n")[token.line - 1]
        return MalformedSchedule(f"schedule: {reason}", hint=hint, span=place, source=line)


def _shown(token: _Token) -> str:
    if token.text in ("", "\n", ";"):
        return "the end of the clause"
    return f"`{token.text}`"


def _bare(what: str) -> str:
    """A noun without its article."""
    return what.removeprefix("an ").removeprefix("a ")


def _example(kind: str) -> str:
    if kind == "rest":
        return "`rest`"
    return "`op:name`" if kind == "op" else f"`{kind}#0`"
