"""The page of the tests that the quick tier leaves out, from the marks in the tests."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).parents[2]
_INTRODUCTION: Final = """# Tests of the nightly tier

`tox` runs the quick tier, and `tox -e nightly` runs every test. This page lists the tests that only the nightly tier
runs, and those of which the quick tier runs a fixed sample. [Contributing](../contributing.md) describes both tiers.
"""


def tiers_page() -> str:
    """Return the page in Markdown: a table per mark, with a row per file."""
    nightly, sampled = [], []
    for path in sorted((_ROOT / "tests").rglob("test_*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        summary = (ast.get_docstring(tree) or "").split("\n\n")[0].replace("\n", " ").replace("|", "\\|")
        marks = list(_marks(tree))
        seconds = [value for mark, value in marks if mark == "nightly"]
        name = path.relative_to(_ROOT / "tests").as_posix()
        if seconds:
            nightly.append(f"| `{name}` | {len(seconds)} | {sum(seconds) or '-'} | {summary} |")
        if cases := [value for mark, value in marks if mark == "sampled"]:
            sampled.append(f"| `{name}` | {len(cases)} | {', '.join(map(str, cases))} | {summary} |")
    parts = [
        _INTRODUCTION,
        "## Left out of the quick tier\n\n| file | tests or cases | seconds | subject |\n|---|---|---|---|",
        *nightly,
        "\n## Sampled in the quick tier\n\n| file | tests | cases in the quick tier | subject |\n|---|---|---|---|",
        *sampled,
    ]
    return "\n".join(parts) + "\n"


def _marks(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield each use of the marks nightly and sampled, with its number."""
    called = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _is_mark(node.func):
            called.add(node.func)
            values = (*node.args, *(word.value for word in node.keywords))
            numbers = [each.value for each in values if isinstance(each, ast.Constant) and isinstance(each.value, int)]
            yield node.func.attr, numbers[0] if numbers else 0
        elif isinstance(node, ast.Attribute) and _is_mark(node) and node not in called:
            yield node.attr, 0


def _is_mark(node: ast.Attribute) -> bool:
    return node.attr in ("nightly", "sampled") and isinstance(node.value, ast.Attribute) and node.value.attr == "mark"
