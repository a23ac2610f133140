"""The words of the project: banned words, the length of sentences, clauses as nouns, and names of tests.

``check_prose`` takes texts by name, so that documents, docstrings and help texts share the rules.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]
MEAN_WORDS: Final = 20
"""Words of a sentence, on average over a text."""
MOST_WORDS: Final = 25
"""Words of one sentence."""
CLAUSE_SHARE: Final = 0.08
"""Share of sentences with what, who, whom or whose."""
README_WORDS: Final = 1_300
NAME_LENGTH: Final = 60
LONG_NAMES: Final = 584
"""Tests with longer names. Lower the number with each renaming; it must not rise."""
DOCSTRING_FAULTS: Final = {
    "benchmarks": 73,
    "conformance": 2385,
    "impl": 571,
    "model": 1327,
    "traces": 681,
    "tests": 1286,
}
"""Banned words and clauses as openings in the docstrings of each folder. Lower the number with each rewritten file."""
QUOTING: Final = frozenset({"specs/CLAUSES.md", "specs/DEVIATIONS.md"})
"""Pages that quote the KIPs."""

BANNED: Final[Mapping[str, str]] = {
    r"promis(?:e|es|ed|ing)": "invariant, liveness property, guarantee",
    r"stor(?:y|ies)": "counterexample, trace, run",
    r"twins?": "unsafe variant, negative control",
    r"free runs?|runs? freely|running freely": "simulation",
    r"ways?": "mode",
    r"part(?:s|ed) from|disagree(?:s|ments?)?": "divergence, diverge",
    r"in peace|calm|storms?": "quiescence, fault burst",
    r"ma(?:ke|kes|de) small(?:er)?": "shrink",
    r"h(?:o|e)lds? (?:to|against)": "check against",
    r"tells?|told|telling": "report, name",
    r"says?|said|saying": "state, report",
    r"hears?|heard": "receive, learn",
    r"ask(?:s|ed|ing)?": "query, request, run",
    r"by draw|drawn": "sampled, at random",
    r"a look|looks": "snapshot, poll",
    r"carr(?:y|ies|ied) out|hands": "execute, executor",
    r"garbled|damaged": "corrupt",
    r"probes": "negative requests",
    r"owed": "due (liveness check)",
    r"by (?:day|night)|at night": "CI, nightly",
    r"rooms?": "package, space",
    r"g(?:i|a)ve(?:s|n)? up": "stop, shut down a replica",
    r"zombies?": "stale leader, stale producer",
    r"mend(?:s|ed|ing)?": "fix",
    r"befall(?:s|en)?": "happen to",
    r"t(?:a|oo)ke?(?:s|n)? up": "adopt, start",
    r"(?:some|any|every|no)body|whoever|whatever": "the actor's name",
}
"""Words without inline code, as regular expressions, and the field's terms for them."""

OPENINGS: Final = re.compile(r"(?:What|Who|Whom|Whose|Whoever|Whatever|That which|Of)\b(?!.*\?$)")
CLAUSES: Final = re.compile(r"\b(?:what|who|whom|whose)\b", re.IGNORECASE)


def find_banned_words(text: str) -> list[tuple[str, str]]:
    """Return the banned words of a plain text, each with its replacement."""
    return [
        (found[0], instead)
        for pattern, instead in BANNED.items()
        for found in re.finditer(rf"(?<![\w-])(?:{pattern})(?![\w-])", text, re.IGNORECASE)
    ]


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a plain text; an empty line ends a sentence."""
    paragraphs = (" ".join(each.split()) for each in re.split(r"\n\s*\n", text))
    return [sentence for each in paragraphs if each for sentence in re.split(r"(?<=[.!?])\s+(?=[\"'(A-Z`*])", each)]


def count_words(sentence: str) -> int:
    """Return the number of words of a sentence."""
    return len(re.findall(r"\w[\w'./-]*", sentence))


def check_prose(texts: Mapping[str, str], *, whole: str = "") -> list[str]:
    """Return the faults of plain texts, one line each: where, what, and how to fix it.

    Banned words, long sentences and openings are faults of a text. With ``whole``, the mean length and the share of
    clauses are taken over all texts together and reported under this name, else for each text by itself.

    Args:
        texts: Plain texts by name, without code.
        whole: Name of the texts together.
    """
    faults = []
    for name, text in texts.items():
        faults += [f"{name}: {word!r} is banned; write {instead}" for word, instead in find_banned_words(text)]
        for sentence in split_sentences(text):
            if OPENINGS.match(sentence):
                faults.append(f"{name}: {sentence[:60]!r} begins with a clause; name the subject")
            if count_words(sentence) > MOST_WORDS:
                faults.append(f"{name}: {sentence[:60]!r} has {count_words(sentence)} words; split it")
    groups = {whole: list(texts.values())} if whole else {name: [text] for name, text in texts.items()}
    for name, group in groups.items():
        sentences = [sentence for text in group for sentence in split_sentences(text)]
        if not sentences:
            continue
        mean = sum(map(count_words, sentences)) / len(sentences)
        share = sum(bool(CLAUSES.search(sentence)) for sentence in sentences) / len(sentences)
        if mean > MEAN_WORDS:
            faults.append(f"{name}: {mean:.1f} words a sentence; at most {MEAN_WORDS}")
        if share > CLAUSE_SHARE and share * len(sentences) > 1:
            faults.append(
                f"{name}: {share:.0%} of the sentences have what, who, whom or whose; at most {CLAUSE_SHARE:.0%}"
            )
    return faults


def prose_of_markdown(markdown: str) -> str:
    """Return the prose of a document: without code, tables, headings, and addresses of links.

    Inline code becomes one word. Each item of a list is a paragraph.
    """
    text = re.sub(r"^```.*?^```$", "", markdown, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^(?:\||#|!\[|    ).*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"`[^`]*`", "CODE", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"^ *(?:[-*]|\d+\.) ", "\n", text, flags=re.MULTILINE)
    return re.sub(r"\*+", "", text)


def cells_of_markdown(markdown: str) -> str:
    """Return the headings and table cells of a document, without code: only their words are checked."""
    text = re.sub(r"^```.*?^```$", "", markdown, flags=re.MULTILINE | re.DOTALL)
    lines = re.findall(r"^(?:\||#).*$", text, flags=re.MULTILINE)
    return re.sub(r"\]\([^)]*\)", "]", re.sub(r"`[^`]*`", "code", "\n\n".join(lines)))


def documents() -> Iterator[Path]:
    """The Markdown documents of the repository."""
    folders = ("docs", "specs", "traces", "tests", "benchmarks", "impl", "model", "conformance")
    for path in sorted([*ROOT.glob("*.md"), *(page for folder in folders for page in (ROOT / folder).rglob("*.md"))]):
        if path.relative_to(ROOT).as_posix() not in QUOTING:
            yield path


@pytest.mark.parametrize("path", list(documents()), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_document_is_plain(path: Path) -> None:
    name, text = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
    faults = check_prose({name: prose_of_markdown(text)})
    faults += [
        f"{name}: {word!r} is banned; write {instead}" for word, instead in find_banned_words(cells_of_markdown(text))
    ]
    assert faults == [], "\n".join(faults)


def test_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= README_WORDS


def test_glossary_defines_each_term_once() -> None:
    page = (ROOT / "docs" / "reference" / "glossary.md").read_text(encoding="utf-8")
    terms = re.findall(r"^\| (?!term |---)([^|]+?) \|", page, re.MULTILINE)
    assert len(terms) > 60 and sorted(terms) == sorted(set(terms))


def long_test_names(sources: Mapping[str, str]) -> list[str]:
    """Return the tests whose names are longer than ``NAME_LENGTH``, as ``file::name``."""
    return [
        f"{file}::{node.name}"
        for file, source in sources.items()
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_") and len(node.name) > NAME_LENGTH
    ]


def test_names_of_tests_get_shorter() -> None:
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    found = long_test_names({path.name: path.read_text(encoding="utf-8") for path in files})
    assert len(found) <= LONG_NAMES, "\n".join(found)


def docstrings(source: str) -> str:
    """Return the docstrings of a Python file as plain text, without inline code."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    found = [ast.get_docstring(node) or "" for node in ast.walk(ast.parse(source)) if isinstance(node, documented)]
    return re.sub(r"``[^`]*``|`[^`]*`", "CODE", "\n\n".join(found))


def docstring_faults(text: str) -> int:
    """Return the number of banned words and of clauses as openings."""
    return len(find_banned_words(text)) + sum(bool(OPENINGS.match(each)) for each in split_sentences(text))


@pytest.mark.parametrize("folder", DOCSTRING_FAULTS)
def test_docstrings_get_plainer(folder: str) -> None:
    files = sorted((ROOT / folder).rglob("*.py"))
    counts = {path: docstring_faults(docstrings(path.read_text(encoding="utf-8"))) for path in files}
    worst = sorted(counts, key=lambda path: -counts[path])[:10]
    assert sum(counts.values()) <= DOCSTRING_FAULTS[folder], "\n".join(f"{path}: {counts[path]}" for path in worst)


def test_rules_find_planted_faults() -> None:
    plain = "The broker rejects the request. You run one command."
    assert check_prose({"page": plain}) == []
    planted = {
        "The broker is told of the election.": "'told' is banned; write report, name",
        "Whoever asks first wins.": "begins with a clause",
        "What is lost was promised.": "begins with a clause",
        " ".join(["word"] * 26) + ".": "has 26 words",
        "The file shows who led. The file shows what it read. It holds.": "67% of the sentences",
        " ".join(["word"] * 21) + ".": "21.0 words a sentence",
    }
    for text, fault in planted.items():
        assert any(fault in each for each in check_prose({"page": text})), text
    assert prose_of_markdown("# Title\n\nRun `say` [here](x.md).\n\n```\nsay\n```\n| say |\n").split() == [
        "Run",
        "CODE",
        "here.",
    ]
    assert find_banned_words(cells_of_markdown("| he said |")) == [("said", "state, report")]
    told = docstrings('def f():\n    """What is ``told`` was said."""\n')
    assert docstring_faults(told) == 2 and docstring_faults(docstrings('"""Return the offset."""')) == 0
    name = "test_" + "x" * 56
    assert long_test_names({"a.py": f"def {name}(): ...\ndef test_short(): ..."}) == [f"a.py::{name}"]
