"""The console that everything is printed on."""

from __future__ import annotations

import io

import pytest
from fencepost.traces.report.terminal import Terminal
from rich.table import Table


def shown(*objects: object, terminal: Terminal | None = None, **options: bool) -> str:
    out = io.StringIO()
    console = terminal or Terminal()
    console.file = out
    console.print(*objects, **options)  # type: ignore[arg-type]
    return out.getvalue()


def test_a_string_steers_nothing_and_stays_as_it_is_written() -> None:
    assert shown("a\x1b[31mb\x07 :fire: \x9b2J\u202e\nc") == "a\\x1b[31mb\\x07 :fire: \\x9b2J\\u202e\nc\n"
    table = Table("x", box=None)
    table.add_row("\x1b]0;title\x07 :smile:")
    assert r"\x1b]0;title\x07 :smile:" in shown(table)


def test_markup_of_our_own_is_read_unless_it_is_switched_off() -> None:
    assert shown("[bold]holds[/bold]") == "holds\n"
    assert shown("[bold]holds[/bold]", markup=False) == "[bold]holds[/bold]\n"


@pytest.mark.parametrize("length", [70, 500, 20_000])
def test_without_a_terminal_nothing_is_wrapped_or_cut(length: int) -> None:
    name = "x" * (length // 2) + " " + "y" * (length // 2)
    assert shown(name) == name + "\n"
    table = Table("obligation", "verdict", box=None, pad_edge=False)
    table.add_row(name, "holds")
    assert f"{name}  holds" in shown(table)


def test_on_a_terminal_lines_are_as_wide_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("FORCE_COLOR", "1")
    lines = shown("word " * 30).splitlines()
    assert len(lines) > 1 and all(len(line) <= 40 for line in lines)
