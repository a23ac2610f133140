"""Which mutants are judged: a line is drawn, then an operator that has something for it, then one of its changes.

So a line counts as much as any other, however many changes there are of it. The same seed and the same files give the
same mutants in the same order, and a longer list begins with the shorter one. What compiles to the same code as the
text, or as a mutant that was drawn before, is passed over: it is equivalent, or the same mutant.
"""

from __future__ import annotations

import ast
import hashlib
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ....traces.run_report import Json
from .operators import ON_EXPRESSIONS, in_brackets, put
from .sites import functions_of
from .statements import ON_BLOCKS
from .text import Candidate, Edit, Fingerprint, Text, changed_words, compiled, fingerprint


@dataclass(frozen=True)
class Mutant:
    """One mutant. ``file``: within the folder of the source, with ``/``; ``text``: that file, changed.

    ``lines``: those of the file as it is that the change touches, from 1 on. ``diff``: the change as a unified diff.
    """

    file: str
    function: str
    operator: str
    lines: tuple[int, ...]
    diff: str
    text: str = field(repr=False)

    @property
    def name(self) -> str:
        """``replica/isr.py:93 comparison 1f0c``: the same for the same change of the same file."""
        return f"{self.file}:{self.lines[0]} {self.operator} {hashlib.sha256(self.diff.encode()).hexdigest()[:4]}"

    @property
    def words(self) -> tuple[str, str]:
        """The old text and the new one, each on one line with single spaces."""
        return changed_words(self.diff)

    def to_json(self) -> dict[str, Json]:
        """What a worker needs of it."""
        return {
            "file": self.file,
            "function": self.function,
            "operator": self.operator,
            "lines": list(self.lines),
            "diff": self.diff,
            "text": self.text,
        }

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Mutant:
        """From its JSON object, which ``to_json`` made."""
        lines = tuple(told["lines"])
        return cls(told["file"], told["function"], told["operator"], lines, told["diff"], told["text"])


def candidates(text: Text) -> list[Candidate]:
    """Every change that an operator has for a text, in the order of the text; each once."""
    found: dict[Edit, Candidate] = {}

    def take(operator: str, function: str, edits: Iterable[Edit]) -> None:
        for edit in edits:
            line = text.line_at(edit.start)
            found[edit] = Candidate(line, operator, edit.start, edit.end, edit.new, function)

    for function in functions_of(text.tree):
        for owner, block in function.blocks:
            for name, on_block in ON_BLOCKS.items():
                take(name, function.name, on_block(text, function, owner, block))
        for expression, parent in function.expressions:
            for name, on_expression in ON_EXPRESSIONS.items():
                take(name, function.name, on_expression(text, expression, parent))
        for condition in function.filters:
            take("negation", function.name, _filtered(text, condition))
    return sorted(found.values())


def _filtered(text: Text, condition: ast.expr) -> Iterator[Edit]:
    """The condition of a comprehension, forgotten or turned round."""
    yield put(condition, text, "True")
    yield put(condition, text, f"not {in_brackets(text, condition)}")


@dataclass
class Drawing:
    """The drawing of mutants of some texts. ``equivalent`` and ``repeated`` count what was passed over so far."""

    texts: Sequence[Text]
    seed: int
    equivalent: int = 0
    repeated: int = 0

    def __post_init__(self) -> None:
        self._by_file = {text.file: text for text in self.texts}
        self.places: dict[tuple[str, int], dict[str, list[Candidate]]] = {}
        """By file and line, then by operator: what is still to be drawn."""
        for text in sorted(self.texts, key=lambda each: each.file):
            for each in candidates(text):
                self.places.setdefault((text.file, each.line), {}).setdefault(each.operator, []).append(each)
        self.lines = len(self.places)

    def __iter__(self) -> Iterator[Mutant]:
        chance = random.Random(f"mutants {self.seed}")  # noqa: S311 - repeatable on purpose
        left = sorted(self.places)
        seen: dict[str, set[Fingerprint]] = {file: {text.fingerprint} for file, text in self._by_file.items()}
        while left:
            place = chance.choice(left)
            operators = self.places[place]
            operator = chance.choice(sorted(operators))
            among = operators[operator]
            drawn = among.pop(chance.randrange(len(among)))
            _forget(self.places, left, place, operator)
            mutant = self._made(self._by_file[place[0]], drawn, seen[place[0]])
            if mutant is not None:
                yield mutant

    def _made(self, text: Text, drawn: Candidate, seen: set[Fingerprint]) -> Mutant | None:
        """The mutant, unless its code is nothing new. What does not compile is none."""
        changed = text.applied(drawn.edit)
        try:
            code = fingerprint(compiled(changed, text.file))
        except SyntaxError:
            return None
        if code == text.fingerprint:
            self.equivalent += 1
            return None
        if code in seen:
            self.repeated += 1
            return None
        seen.add(code)
        lines = tuple(text.lines_of(drawn.edit))
        return Mutant(text.file, drawn.function, drawn.operator, lines, text.diff(drawn.edit), changed)


def _forget(
    places: Mapping[tuple[str, int], dict[str, list[Candidate]]],
    left: list[tuple[str, int]],
    place: tuple[str, int],
    operator: str,
) -> None:
    """What has nothing more to give is drawn no more."""
    if not places[place][operator]:
        del places[place][operator]
    if not places[place]:
        left.remove(place)
