"""Small parts of SVG drawings. All text is plain, and nothing is loaded from elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import Final

FONT: Final = "ui-sans-serif, system-ui, sans-serif"
MONO: Final = "ui-monospace, monospace"
INK: Final = "#1f2a37"
SOFT: Final = "#5b6776"
LINE: Final = "#8a97a8"
FILLS: Final = {"plain": "#f3f6fa", "blue": "#dbe9fb", "green": "#dff3e4", "red": "#fbe0e0", "yellow": "#fbf2d3"}


@dataclass
class Drawing:
    """Lines of an SVG file under construction."""

    title: str
    parts: list[str] = field(default_factory=list)

    def box(
        self, x: float, y: float, width: float, height: float, lines: list[str], fill: str = "plain", size: int = 13
    ) -> None:
        """Draw a rounded box; the first line is bold, the others are smaller."""
        self.parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6" fill="{FILLS[fill]}" '
            f'stroke="{LINE}"/>'
        )
        top = y + height / 2 - (len(lines) - 1) * 8 + 5
        for number, line in enumerate(lines):
            self.text(x + width / 2, top + number * 16, line, bold=number == 0, size=size if number == 0 else size - 2)

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        anchor: str = "middle",
        bold: bool = False,
        size: int = 13,
        colour: str = INK,
        mono: bool = False,
        rotate: int | None = None,
    ) -> None:
        """Draw a line of text; `anchor` is start, middle or end."""
        style = ' font-weight="600"' if bold else ""
        family = f' font-family="{MONO}"' if mono else ""
        turn = f' transform="rotate({rotate} {x:g} {y:g})"' if rotate is not None else ""
        self.parts.append(
            f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" font-size="{size}" fill="{colour}"{style}{family}{turn}>'
            f"{escape(text)}</text>"
        )

    def arrow(self, points: list[tuple[float, float]], *, dashed: bool = False, colour: str = SOFT) -> None:
        """Draw a line through points, with an arrow head at its end."""
        path = "M" + " L".join(f"{x:g} {y:g}" for x, y in points)
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self.parts.append(
            f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.4"{dash} marker-end="url(#head)"/>'
        )

    def line(self, x1: float, y1: float, x2: float, y2: float, *, dashed: bool = False) -> None:
        """Draw a plain line."""
        dash = ' stroke-dasharray="3 4"' if dashed else ""
        self.parts.append(f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{LINE}"{dash}/>')

    def raw(self, part: str) -> None:
        """Add an element as it is written."""
        self.parts.append(part)

    def render(self, width: float, height: float) -> str:
        """Return the SVG file, on a white ground so that it reads on dark pages."""
        size = f'viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}"'
        head = 'id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"'
        tip = f'<path d="M0 0 L8 4 L0 8 z" fill="{SOFT}"/>'
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" font-family="{FONT}">',
                f"<title>{escape(self.title)}</title>",
                f"<defs><marker {head}>{tip}</marker></defs>",
                f'<rect width="{width:g}" height="{height:g}" rx="8" fill="#ffffff"/>',
                *self.parts,
                "</svg>",
                "",
            ]
        )
