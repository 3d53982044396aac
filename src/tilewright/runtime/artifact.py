"""What compilation yields: named byte sections and metadata, ready for the disk cache."""

from __future__ import annotations

import json
from collections.abc import Mapping

from tilewright.support.dataclass import dataclass

METADATA_SECTION = "metadata.json"
# What an assembler reports of a kernel, as JSON: counts by name, and `remarks`.
RESOURCES_SECTION = "resources.json"


@dataclass(frozen=True)
class Artifact:
    """A compiled kernel as data.

    `metadata` is JSON: `name`, `defined` (file and line), `constants` (what it was compiled for, in
    words), `target`, `arguments` (path and type of every runtime argument), `reads` and `writes`
    (the paths of those whose memory the kernel may read, or write), `stores` (those that it stores
    through), `remarks`, and what the target's driver needs.
    `sections` holds the binary and what goes with it.
    """

    key: str
    metadata: Mapping[str, object]
    sections: Mapping[str, bytes]

    def to_sections(self) -> dict[str, bytes]:
        """Everything as named bytes."""
        return {**self.sections, METADATA_SECTION: json.dumps(self.metadata).encode()}

    @staticmethod
    def from_sections(key: str, sections: Mapping[str, bytes]) -> Artifact | None:
        """The artifact that `to_sections` wrote; None when its metadata cannot be read."""
        try:
            metadata = json.loads(sections[METADATA_SECTION])
        except (KeyError, ValueError):
            return None
        rest = {name: data for name, data in sections.items() if name != METADATA_SECTION}
        return Artifact(key, metadata, rest)
