"""``fencepost protocols``: which protocols there are, and what each of them has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from cyclopts import Parameter
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ...model.core.exit_code import ExitCode
from ...model.core.registry import REGISTRY
from ..describe import described, ways_of
from .options import unwrapped
from .output import print_json, stdout


@unwrapped
def protocols(
    protocol: str | None = None,
    *,
    json: Annotated[bool, Parameter(negative=())] = False,
) -> ExitCode:
    """List the installed protocols; for one protocol, list everything that has a name.

    Parameters
    ----------
    protocol
        Protocol to list in full: its name, file.py:name or module:name.
    json
        Print one JSON object on standard output.
    """
    if protocol is not None:
        one = described(REGISTRY.named(protocol))
        if json:
            print_json(one)
        else:
            _print_one(one, stdout())
        return ExitCode.DONE
    found = [described(each) for each in REGISTRY.values()]
    if json:
        print_json({"protocols": found})
    else:
        _print_all(found, stdout())
    return ExitCode.DONE


def _table(*columns: str) -> Table:
    table = Table(*columns, box=box.SIMPLE_HEAD, pad_edge=False)
    for column in table.columns:
        column.overflow = "fold"
    return table


def _print_all(found: Sequence[dict[str, Any]], out: Console) -> None:
    table = _table("protocol", "from", "safe variant", "others", "constants", "has")
    for each in found:
        safe = next(variant["name"] for variant in each["variants"] if variant["safe"])
        has = [word for word, there in _parts(each) if there]
        table.add_row(
            Text(each["protocol"], style="bold"),
            Text(each["source"]),
            Text(safe),
            str(len(each["variants"]) - 1),
            Text(", ".join(constant["name"] for constant in each["constants"])),
            Text(", ".join(has)),
        )
    out.print(table)
    out.print("fencepost protocols NAME tells all of one.", markup=False)


def _parts(each: dict[str, Any]) -> list[tuple[str, bool]]:
    return [
        ("proof", each["proof"] is not None),
        ("liveness", bool(each["liveness"])),
        ("binding", each["binding"]),
        ("defects", each["defects"] > 0),
    ]


def _print_one(one: dict[str, Any], out: Console) -> None:
    def line(text: str = "") -> None:
        out.print(text, markup=False, soft_wrap=True)

    line(f"{one['protocol']}: {one['source']}")
    for title, rows in _sections(one):
        if rows:
            line()
            line(title)
            width = max(len(name) for name, _ in rows)
            for name, says in rows:
                line(f"  {name:{width}}  {says}".rstrip())
    lacks = [word for word, there in _parts(one) if not there]
    if lacks:
        line()
        line(f"it has no {', no '.join(lacks)}")
    own = {way for name, ways in ways_of(one).items() if name != "model" for way in ways}
    if own == {"free"}:
        line("its systems run freely, and in no lockstep: it has no adapter")


def _sections(one: dict[str, Any]) -> list[tuple[str, list[tuple[str, str]]]]:
    held_to = one["held_to"]
    return [
        *_text(one),
        ("witnesses", [(each["name"], each["says"]) for each in one["witnesses"]]),
        ("liveness", [(each["name"], each["says"]) for each in one["liveness"]]),
        ("fairness", [(each["name"], each["says"]) for each in one["fairness"]]),
        (
            "systems (--impl), and how they are driven (--way)",
            [(name, ", ".join(how)) for name, how in ways_of(one).items()],
        ),
        ("faults (--fault)", [(name, "") for name in one["faults"]]),
        *((f"what systems are held to: {title}", rows) for title, rows in (_text(held_to) if held_to else ())),
    ]


def _text(one: dict[str, Any]) -> list[tuple[str, list[tuple[str, str]]]]:
    return [
        ("variants", [(v["name"], v["says"] + (" (the default)" if v["safe"] else "")) for v in one["variants"]]),
        (
            "constants",
            [
                (
                    "--" + c["name"].replace("_", "-"),
                    f"{c['says']} ({_range(c)}, by default {c['default']})",
                )
                for c in one["constants"]
            ],
        ),
        (
            "cells",
            [("".join([v["name"], *(f"[{index}]" for index in v["per"])]), v["says"]) for v in one["variables"]],
        ),
        ("actions", [row for action in one["actions"] for row in _action(action)]),
        ("invariants", [(each["name"], each["says"]) for each in one["invariants"]]),
    ]


def _range(constant: dict[str, Any]) -> str:
    least = constant["minimum"]
    return f"{least} to {constant['maximum']}" if "maximum" in constant else f"at least {least}"


def _action(action: dict[str, Any]) -> list[tuple[str, str]]:
    params = ", ".join(f"{name}: {index}" if name != index else name for name, index in action["parameters"].items())
    only = "" if action["variants"] == "all" else f" (only in {', '.join(action['variants'])})"
    rows = [(f"{action['name']}({params})", action["says"] + only)]
    rows += [(f"  .{name}", guard) for name, guard in action["guards"].items()]
    return rows
