"""The quotations in ``specs/CLAUSES.md`` that were compared with the texts of the KIPs.

The project does not hold the texts. ``quotations.json`` has one hash for each compared sentence, sorted, below its KIP.
To compare again and write the file, run ``python -m fencepost.tests.specs.quotations DIRECTORY``. DIRECTORY has the
texts as ``KIP-320-*.txt`` and so on.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import unicodedata
from pathlib import Path
from typing import Final

from .clauses import ROOT

FILE: Final = Path(__file__).with_name("quotations.json")
KIPS: Final = {"R": "KIP-320", "C": "KIP-320", "Q": "KIP-630", "P": "KIP-631", "L": "KIP-280", "TS": "KIP-1023"}
COMPARISON: Final = frozenset({"P1", "P2", "P3", "P13", "P16", "P31"})
"""Rows about KIP-631 that quote a page of changes or a figure instead of the text."""
_ASCII: Final = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u2013": "-", "`": None})


def squeeze(text: str) -> str:
    """Return a text without spaces, Markdown's escapes, code marks and typographic quotation marks."""
    plain = unicodedata.normalize("NFKC", text).translate(_ASCII)
    return re.sub(r"\s+", "", re.sub(r"\\([<>|*_])", r"\1", plain))


def read_quotations(table: str) -> list[tuple[str, str, str]]:
    """Return row, KIP and sentence of each row that quotes a KIP."""
    found = []
    for line in table.splitlines():
        if match := re.match(r"\| ((R|C|Q|P|L|TS)\d+) \|", line):
            _, section, sentence = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:4]]
            other = re.match(r"KIP-\d+", section)
            found.append((match[1], other[0] if other else KIPS[match[2]], sentence))
    return found


def digest(sentence: str) -> str:
    """Return the hash of a sentence as ``quotations.json`` has it."""
    return hashlib.sha256(squeeze(sentence).encode()).hexdigest()[:16]


def compare(table: str, texts: dict[str, str]) -> tuple[dict[str, list[str]], list[str]]:
    """Compare each quotation with the text of its KIP.

    Returns:
        The hashes of the sentences that are in the texts, and the rows whose sentence is not.
    """
    squeezed = {kip: squeeze(text) for kip, text in texts.items()}
    hashes: dict[str, set[str]] = {kip: set() for kip in sorted(texts)}
    missing = []
    for row, kip, sentence in read_quotations(table):
        if squeeze(sentence) in squeezed[kip]:
            hashes[kip].add(digest(sentence))
        elif row not in COMPARISON:
            missing.append(row)
    return {kip: sorted(found) for kip, found in hashes.items()}, missing


def uncompared(table: str, hashes: dict[str, list[str]]) -> list[str]:
    """Return the rows whose sentence was not compared with the text of its KIP."""
    return [
        row
        for row, kip, sentence in read_quotations(table)
        if row not in COMPARISON and digest(sentence) not in hashes.get(kip, [])
    ]


def main(directory: Path) -> int:
    """Compare the table with the texts in a directory, write the hashes, and return 1 if a row is no quotation."""
    texts = {}
    for kip in sorted({*KIPS.values()}):
        (path,) = directory.glob(f"{kip}-*.txt")
        texts[kip] = path.read_text(encoding="utf-8")
    hashes, missing = compare((ROOT / "specs" / "CLAUSES.md").read_text(encoding="utf-8"), texts)
    for row in missing:
        print(f"{row}: the sentence is not in the text")
    FILE.write_text(json.dumps(hashes, indent=1) + "\n", encoding="utf-8")
    return int(bool(missing))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
