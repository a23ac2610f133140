"""The action diagram of a protocol: which variables each action reads in its guards, and which it writes."""

from __future__ import annotations

from fencepost.model.core.protocol import Protocol
from fencepost.model.core.terms import variables_in
from svg import LINE, SOFT, Drawing

_ROW, _COLUMN, _CHARACTER = 22, 24, 7.3


def action_diagram(protocol: Protocol) -> str:
    """Return the diagram of the safe variant as SVG."""
    traced = protocol.traced()
    variables = list(traced.variables)
    reads = {action.name: set().union(*(variables_in(term) for _, term in action.guards)) for action in traced.actions}
    writes = {
        action.name: {variable for left, _ in action.writes for variable in variables_in(left)}
        for action in traced.actions
    }
    # Of `role[s.leader] := x` the cell's own variable is written, and those of its index are read.
    for action in traced.actions:
        own = {str(left).partition("[")[0] for left, _ in action.writes}
        reads[action.name] |= writes[action.name] - own
        writes[action.name] = own
    drawing = Drawing(f"Actions and variables of {protocol.name}")
    left = 30 + _CHARACTER * max(len(action.name) for action in traced.actions)
    top = 24 + _CHARACTER * 0.82 * max(map(len, variables))
    for number, variable in enumerate(variables):
        x = left + number * _COLUMN + _COLUMN / 2
        drawing.text(x + 4, top - 8, variable, anchor="start", size=12, mono=True, rotate=-60)
        drawing.line(x, top, x, top + len(traced.actions) * _ROW, dashed=True)
    for row, action in enumerate(traced.actions):
        y = top + row * _ROW + _ROW / 2
        drawing.text(left - 10, y + 4, action.name, anchor="end", size=12, mono=True)
        drawing.line(left, y, left + len(variables) * _COLUMN, y, dashed=True)
        for number, variable in enumerate(variables):
            x = left + number * _COLUMN + _COLUMN / 2
            if variable in writes[action.name]:
                drawing.raw(f'<rect x="{x - 6:g}" y="{y - 6:g}" width="12" height="12" rx="2" fill="#2f6fbd"/>')
            if variable in reads[action.name]:
                inside = variable in writes[action.name]
                drawing.raw(
                    f'<circle cx="{x:g}" cy="{y:g}" r="{3 if inside else 5}" fill="#ffffff" '
                    f'stroke="{"#ffffff" if inside else SOFT}" stroke-width="2"/>'
                )
    bottom = top + len(traced.actions) * _ROW + 30
    drawing.raw(f'<circle cx="{left:g}" cy="{bottom - 10:g}" r="5" fill="#fff" stroke="{SOFT}" stroke-width="2"/>')
    drawing.text(left + 12, bottom - 6, "a guard reads it", anchor="start", size=12)
    drawing.raw(
        f'<rect x="{left + 124:g}" y="{bottom - 16:g}" width="12" height="12" rx="2" fill="#2f6fbd" stroke="{LINE}"/>'
    )
    drawing.text(left + 142, bottom - 6, "the action writes it", anchor="start", size=12)
    drawing.raw(f'<rect x="{left + 274:g}" y="{bottom - 16:g}" width="12" height="12" rx="2" fill="#2f6fbd"/>')
    drawing.raw(f'<circle cx="{left + 280:g}" cy="{bottom - 10:g}" r="3" fill="#fff"/>')
    drawing.text(left + 292, bottom - 6, "both", anchor="start", size=12)
    width = max(left + len(variables) * _COLUMN + top * 0.6, left + 340)
    return drawing.render(width, bottom + 12)
