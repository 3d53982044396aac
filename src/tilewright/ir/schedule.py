"""The schedule of a kernel as one object: roles, rings, and the stage and cluster of each op.

A schedule names anchors only (products, loads, stores, loops); every other op gets its place from
them. `str` writes one, `tilewright.ir.schedule_text.parse_schedule` reads it:

    roles load regs 40 | math x2 regs 232 split m
    ring ab tiles load#0 load#1 slots 4 tma release wait
    loop for#0 dot#0 @0.0
    epilogue tma columns 64 buffers 2
    persist static
    cluster 2

Iteration j of an op of stage s runs in body j + s of the pipelined loop, and within a body ops
run by cluster, then as the order says.
"""

from __future__ import annotations

from dataclasses import field

from tilewright.support.dataclass import dataclass

ANCHOR_KINDS = ("dot", "load", "store", "for", "cvt", "reduce", "op")
"""What an anchor names: `op` is any op, and is named by its hint."""
ROLE_KINDS = ("load", "math")
SPLITS = ("", "m", "n", "tiles")
"""What replicas of a role share: nothing, rows, columns, or each takes whole tiles."""
MEDIA = ("tma", "cp_async", "store")
RELEASES = ("wait", "late")
PASSES = ("issued", "done", "next")
EPILOGUES = ("tma", "direct")
PERSISTENCE = ("", "static")
CLUSTERS = (1, 2)
"""How many programs load blocks for each other."""
MASKS = ("always", "branch")


@dataclass(frozen=True)
class Anchor:
    """An op that a schedule names: `dot#1`, the second product in text order, or `load:k`.

    Exactly one of `index` (from 0) and `hint`, the name of the op's result, is given; `REST` has
    neither and stands for all ops that are not named.
    """

    kind: str
    index: int = -1
    hint: str = ""

    def __str__(self) -> str:
        if self.index >= 0:
            return f"{self.kind}#{self.index}"
        return f"{self.kind}:{self.hint}" if self.hint else self.kind


REST = Anchor("rest")


@dataclass(frozen=True)
class Role:
    """Warps that run one body: `replicas` groups of `warps`.

    `registers` of a thread, 0 leaves them as they are; `split` says what replicas share.
    """

    name: str
    kind: str
    warps: int = 4
    replicas: int = 1
    registers: int = 0
    split: str = ""

    def __str__(self) -> str:
        parts = [self.name] + [self.kind] * (self.kind != self.name)
        parts += [f"x{self.replicas}"] * (self.replicas != 1)
        parts += [f"warps {self.warps}"] * (self.warps != 4)
        parts += [f"regs {self.registers}"] * bool(self.registers)
        return " ".join(parts + [f"split {self.split}"] * bool(self.split))


@dataclass(frozen=True)
class Channel:
    """A ring of `slots` that the loads `tiles` fill together.

    `medium` is who moves the bytes; `release` says whether a slot is given back when its reader
    is done, or `late`, one iteration after. With `shares` its slots lie in the memory of the ring
    of that name, whose slots are not in use while these are.
    """

    name: str
    tiles: tuple[Anchor, ...]
    slots: int
    medium: str = "tma"
    release: str = "wait"
    shares: str = ""

    def __str__(self) -> str:
        tiles = " ".join(map(str, self.tiles))
        text = f"{self.name} tiles {tiles} slots {self.slots} {self.medium} release {self.release}"
        return f"{text} shares {self.shares}" if self.shares else text


@dataclass(frozen=True)
class Place:
    """Where an op runs: its stage, its cluster, and its role ('' where it follows from others)."""

    stage: int = 0
    cluster: int = 0
    role: str = ""

    def __str__(self) -> str:
        return f"{self.role}@{self.stage}.{self.cluster}"


@dataclass(frozen=True)
class Step:
    """One entry of the order within a loop's body.

    `run` an anchor, `wait` until an anchor's product is done, or `release` the ring `subject`.
    """

    action: str
    subject: Anchor | str

    def __str__(self) -> str:
        return str(self.subject) if self.action == "run" else f"{self.action}({self.subject})"


@dataclass(frozen=True)
class LoopSchedule:
    """The places of a loop's anchors, and in which order a body runs them ('()': as written)."""

    loop: Anchor
    places: tuple[tuple[Anchor, Place], ...] = ()
    order: tuple[Step, ...] = ()

    @property
    def num_stages(self) -> int:
        """The iterations that are under way at once."""
        return 1 + max((place.stage for _, place in self.places), default=0)

    def __str__(self) -> str:
        parts = ["loop", str(self.loop)]
        for anchor, place in self.places:
            parts += [str(anchor), str(place)]
        parts += ["order", *map(str, self.order)] if self.order else []
        return " ".join(parts)


@dataclass(frozen=True)
class Turns:
    """Replicas take turns at `lock`: the next may issue when its turn is passed."""

    role: str
    lock: Anchor
    pass_at: str = "done"

    def __str__(self) -> str:
        return f"turns {self.role} lock {self.lock} pass {self.pass_at}"


@dataclass(frozen=True)
class Epilogue:
    """How results leave: by the copy engine in chunks of `columns` over `buffers`, or directly."""

    kind: str = "direct"
    columns: int = 64
    buffers: int = 2

    def __str__(self) -> str:
        if self.kind == "direct":
            return "epilogue direct"
        return f"epilogue {self.kind} columns {self.columns} buffers {self.buffers}"


@dataclass(frozen=True)
class Schedule:
    """The schedule of a kernel; see the module. `reasons` say why it is this one."""

    roles: tuple[Role, ...] = ()
    channels: tuple[Channel, ...] = ()
    loops: tuple[LoopSchedule, ...] = ()
    turns: Turns | None = None
    epilogue: Epilogue = Epilogue()
    persist: str = ""
    mask: str = "always"
    cluster: int = 1
    reasons: tuple[str, ...] = field(default=(), compare=False)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is asked for: one role, each loop as written."""
        return self == Schedule()

    def loop_of(self, anchor: Anchor) -> LoopSchedule | None:
        """The schedule of a loop; None where it runs as written."""
        return next((loop for loop in self.loops if loop.loop == anchor), None)

    def rings_of(self, anchor: Anchor) -> tuple[Channel, ...]:
        """The rings that loads of a loop fill."""
        loop = self.loop_of(anchor)
        placed = () if loop is None else tuple(place for place, _ in loop.places)
        return tuple(channel for channel in self.channels if channel.tiles[0] in placed)

    def slots_of(self, anchor: Anchor) -> int:
        """The slots of the rings that loads of a loop fill; 1 where it runs as written."""
        return max((channel.slots for channel in self.rings_of(anchor)), default=1)

    def channel_of(self, anchor: Anchor) -> Channel | None:
        """The ring that a load fills; None where it fills none."""
        return next((c for c in self.channels if anchor in c.tiles), None)

    def __str__(self) -> str:
        return "; ".join(self.clauses())

    def clauses(self) -> tuple[str, ...]:
        """The clauses of the text, one a line where it is shown."""
        clauses = [f"roles {' | '.join(map(str, self.roles))}"] if self.roles else []
        clauses += [f"ring {channel}" for channel in self.channels]
        clauses += [str(loop) for loop in self.loops]
        clauses += [str(self.turns)] if self.turns else []
        clauses += [str(self.epilogue)] if self.epilogue != Epilogue() else []
        clauses += [f"persist {self.persist}"] if self.persist else []
        clauses += [f"mask {self.mask}"] if self.mask != "always" else []
        return (*clauses, *([f"cluster {self.cluster}"] if self.cluster != 1 else []))
