"""The console that everything for a person is printed on.

On a terminal, lines are wrapped at its width. Where there is none (a pipe, a file, a CI log) nothing is wrapped or
cut: whoever reads it there can search it and cut it, and could not put it together again.
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Final

from rich.console import Console

from ..text import printable_lines

if TYPE_CHECKING:
    from rich.console import HighlighterType, JustifyMethod, OverflowMethod
    from rich.style import Style
    from rich.text import Text

UNBOUNDED: Final = 1_000_000
"""The width, in columns, of what is no terminal."""

STORY_WIDTH: Final = 80

VERDICT_STYLES: Final = {"holds": "bold green", "violated": "bold red", "unknown": "bold yellow"}
"""Styles of Rich by the verdict."""


class Terminal(Console):
    """Rich's console, but that it believes nothing that it is told.

    A string never steers the terminal: its control characters come out as escapes. ``:fire:`` stays as it is written.
    ``width``: columns; by default those of the terminal, or as many as a line needs where there is none.
    """

    def __init__(
        self,
        file: IO[str] | None = None,
        *,
        stderr: bool = False,
        soft_wrap: bool = False,
        markup: bool = True,
        width: int | None = None,
        plain: bool = False,
    ) -> None:
        super().__init__(
            file=file,
            stderr=stderr,
            soft_wrap=soft_wrap,
            markup=markup,
            width=width,
            highlight=False,
            emoji=False,
            color_system=None if plain else "auto",
            force_terminal=False if plain else None,
            legacy_windows=False if plain else None,
        )
        if width is None and not self.is_terminal:
            self.width = UNBOUNDED

    @property
    def story_width(self) -> int:
        """Columns of a story: 80, for which it is laid out, on a wider terminal too; without one it is not wrapped."""
        return min(self.width, STORY_WIDTH) if self.is_terminal else self.width

    def render_str(
        self,
        text: str,
        *,
        style: str | Style = "",
        justify: JustifyMethod | None = None,
        overflow: OverflowMethod | None = None,
        emoji: bool | None = None,
        markup: bool | None = None,
        highlight: bool | None = None,
        highlighter: HighlighterType | None = None,
    ) -> Text:
        """Every string that is printed, and every one in a table, comes by here."""
        return super().render_str(
            printable_lines(text),
            style=style,
            justify=justify,
            overflow=overflow,
            emoji=emoji,
            markup=markup,
            highlight=highlight,
            highlighter=highlighter,
        )
