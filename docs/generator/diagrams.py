"""The diagrams that are kept in docs/images. `python docs/generator/diagrams.py` writes them again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from fencepost.conformance.harness import held_to
from fencepost.model.core.registry import REGISTRY
from svg import SOFT, Drawing

_ROOT: Final = Path(__file__).parents[2]
IMAGES: Final = _ROOT / "docs" / "images"


def pipeline() -> str:
    """Draw how a spec is read by every command."""
    drawing = Drawing("One spec and its readers")
    drawing.box(30, 20, 260, 52, ["spec", "actions, guards, invariants: model/protocols"], "yellow")
    drawing.box(400, 20, 170, 52, ["terms", "traced once per variant"], "yellow")
    drawing.arrow([(290, 46), (398, 46)])
    readers = [
        ("explore", "every state", "counterexample", "blue"),
        ("prove", "Z3, all constants", "proof", "blue"),
        ("mutants", "each guard, bound", "missing invariant", "blue"),
        ("conform", "simulated system", "minimal divergence", "green"),
        ("replay, mine", "traces, corpora", "minimal bug", "green"),
        ("check", "brokers' files", "lost record", "green"),
    ]
    for number, (name, reads, result, fill) in enumerate(readers):
        x = 20 + number * 138
        drawing.box(x, 140, 126, 52, [name, reads], fill)
        drawing.arrow([(485, 72), (485, 106), (x + 63, 106), (x + 63, 138)])
        drawing.arrow([(x + 63, 192), (x + 63, 226)])
        drawing.text(x + 63, 243, result, size=12)
    drawing.text(20, 278, "blue: checks the model", anchor="start", size=12, colour=SOFT)
    drawing.text(
        434,
        278,
        "green: checks a system, its traces or its files against the model",
        anchor="start",
        size=12,
        colour=SOFT,
    )
    return drawing.render(850, 292)


def layers() -> str:
    """Draw the packages, each above those that it imports, as .importlinter has them."""
    contract = re.search(
        r"type = layers\nlayers =\n((?: +\S+\n)+)", (_ROOT / ".importlinter").read_text(encoding="utf-8")
    )
    assert contract is not None, "the contract of the layers"
    about = {
        "conformance": ("commands, simulation, lockstep, checks, mutants", "green"),
        "traces": ("trace format, replay, corpora, mining, brokers' files, reports", "blue"),
        "model": ("language, engines, explorer, prover, protocols", "yellow"),
    }
    drawing = Drawing("Packages: each imports only from those below it")
    names = [line.split(".")[1] for line in contract[1].split()]
    for number, name in enumerate(names):
        y = 20 + number * 86
        drawing.box(20, y, 470, 54, [f"{name}/", about[name][0]], about[name][1])
        if number:
            drawing.arrow([(255, y - 32), (255, y - 2)])
    bottom = 20 + (len(names) - 1) * 86
    drawing.box(560, bottom, 230, 54, ["impl/", "system under test"], "red")
    drawing.arrow([(490, 47), (675, 47), (675, bottom - 2)])
    drawing.text(583, 40, "tests", size=12, colour=SOFT)
    drawing.box(20, bottom + 80, 470, 44, ["specs/", "TLA+ modules, clauses, deviations: no code"], "plain")
    drawing.box(560, bottom + 80, 230, 44, ["tests/, benchmarks/", "import all of them"], "plain")
    return drawing.render(812, bottom + 144)


def simulation_loop() -> str:
    """Draw one event of a simulation."""
    drawing = Drawing("The simulation loop")
    drawing.box(20, 30, 190, 60, ["scheduler", "seed, weights, fault rates"], "yellow")
    drawing.box(320, 30, 190, 60, ["system", "executes one event"], "green")
    drawing.box(620, 30, 190, 60, ["tracker", "model states that explain it"], "blue")
    drawing.arrow([(210, 60), (318, 60)])
    drawing.text(264, 52, "event", size=12)
    drawing.arrow([(510, 60), (618, 60)])
    drawing.text(564, 52, "observation", size=12)
    drawing.arrow([(665, 90), (665, 124), (115, 124), (115, 92)])
    drawing.text(290, 117, "a state explains it: next event", size=12)
    drawing.box(320, 160, 190, 56, ["checks", "crash image, files, timers"], "blue", 13)
    drawing.arrow([(415, 90), (415, 158)])
    drawing.box(620, 160, 190, 56, ["divergence", "no state explains it"], "red")
    drawing.arrow([(750, 90), (750, 158)])
    drawing.arrow([(510, 188), (618, 188)])
    drawing.text(564, 180, "fails", size=12)
    drawing.box(620, 250, 190, 44, ["shrink", "minimal run, schedule file"], "plain")
    drawing.arrow([(715, 216), (715, 248)])
    return drawing.render(830, 312)


# From the explored variant down to the systems that are checked against the last two.
_LADDER: Final = {
    "fencing": ("kip-320", "kip-320-brokers", "kip-320-cluster", "kip-320-kafka"),
    "truncation": ("kip-320-mended", "", "kip-320-client", "kip-320-kafka"),
    "snapshots": ("kip-630-safe", "kip-630-nodes", "kip-630-quorum", "kip-630-kafka"),
    "controller": ("kip-631-safe", "", "kip-631-cluster", "kip-631-kafka"),
    "compaction": ("kip-280-safe", "empty-batch", "kip-280-brokers", "kip-280-kafka"),
    "tiering": ("kip-1023-safe", "", "kip-1023-brokers", "kip-1023-kafka"),
}
# The pairs that a test compares: each step of the first is a run of the second, but for differences that it states.
_COMPARED: Final = {
    ("kip-320-cluster", "kip-320-brokers"),
    ("kip-631-cluster", "kip-631-safe"),
    ("kip-280-brokers", "empty-batch"),
    ("kip-1023-brokers", "kip-1023-safe"),
}


def refinement_ladder() -> str:
    """Draw which variants lie between the explored model of a protocol and the systems that are tested."""
    drawing = Drawing("From the explored model to the tested systems")
    rows = ("explored, proved", "steps of nodes", "running systems", "Apache Kafka", "tested")
    left, width, step, height = 166.0, 128.0, 140.0, 74.0
    for row, name in enumerate(rows):
        drawing.text(16, 76 + row * height, name, anchor="start", bold=True)
    for column, (protocol, variants) in enumerate(_LADDER.items()):
        x, known = left + column * step, {*REGISTRY[protocol].protocol.variants, *held_to(protocol).variants}
        drawing.text(x + width / 2, 28, protocol, bold=True)
        above = 0
        for row, variant in enumerate(variants):
            if not variant:
                continue
            assert variant in known, variant
            y, middle = 50 + row * height, x + width / 2
            if row < 3:
                drawing.box(x, y, width, 40, [variant], "blue" if row else "yellow", 12)
            else:
                drawing.box(x + 22, y, width - 22, 40, [variant], "red", 12)
            if 0 < row < 3:
                top = 50 + above * height + 42
                if (variant, variants[above]) in _COMPARED:
                    drawing.arrow([(middle, y), (middle, top)])
                else:
                    drawing.line(middle, y, middle, top - 2, dashed=True)
                above = row
        y = 50 + 4 * height
        drawing.box(x, y, 58, 40, ["impl/"], "green", 12)
        drawing.box(x + 66, y, 62, 40, ["Kafka"], "green", 12)
        drawing.arrow([(x + 10, y), (x + 10, y - 2 * height + 42)])
        drawing.arrow([(x + 97, y), (x + 97, y - height + 42)])
    bottom = 50 + 5 * height
    drawing.text(
        16,
        bottom,
        "Arrow: tests check that each step below is a run of the variant above. Dotted: not compared.",
        anchor="start",
        size=12,
        colour=SOFT,
    )
    return drawing.render(left + len(_LADDER) * step, bottom + 18)


# What each step of the counterexample is between nodes: sender, receiver and label. {} are parameters.
_MESSAGES: Final[Mapping[str, tuple[str, str, str]]] = {
    "controller_elect_leader": ("controller", "controller", "elects {new_leader}"),
    "become_leader": ("controller", "{leader}", "leads epoch {epoch}"),
    "leader_write": ("{leader}", "{leader}", "appends r"),
    "hear_of_leader": ("controller", "{replica}", "epoch {epoch}"),
    "follower_fetch": ("{leader}", "{follower}", "fetch response: r"),
    "follower_acknowledge": ("{follower}", "{leader}", "fetch at offset 1: it has r"),
    "truncate_partly": ("{leader}", "{follower}", "fetch response: truncate to {end}"),
    "controller_fail_over": ("controller", "controller", "{failed} shuts down; elects {new_leader}"),
    "leader_inc_high_watermark": ("{leader}", "{leader}", "high watermark 1: r is committed"),
}


def k11() -> str:
    """Draw the message chart of finding K11, from the counterexample on its page."""
    page = (_ROOT / "docs" / "findings" / "k11.md").read_text(encoding="utf-8")
    story = re.search(r"^\$ fencepost explore .*?^BROKEN: (\w+) at step \d+$", page, re.MULTILINE | re.DOTALL)
    assert story is not None, "the counterexample of K11"
    lanes = {"controller": 110.0, "1": 320.0, "2": 530.0, "3": 740.0}
    drawing = Drawing("K11: a leader counts a record that its follower has truncated")
    steps = re.findall(r"^ +(\d+)  (\w+)\((.*)\)$", story[0], re.MULTILINE)
    bottom = 70 + len(steps) * 34
    for lane, x in lanes.items():
        drawing.box(
            x - 70,
            14,
            140,
            32,
            [lane if lane == "controller" else f"broker {lane}"],
            "yellow" if lane == "controller" else "blue",
        )
        drawing.line(x, 46, x, bottom + 8, dashed=True)
    for row, (number, action, params) in enumerate(steps):
        y = 78 + row * 34
        # Replica 0 of the model is broker 1.
        values = {
            name: str(int(value) + 1) if name not in ("epoch", "end") else value
            for name, _, value in (each.partition("=") for each in params.split(", "))
        }
        sender, receiver, label = (part.format(**values) for part in _MESSAGES[action])
        drawing.text(20, y + 4, number, anchor="start", size=12, colour=SOFT)
        if sender == receiver:
            x = lanes[sender]
            if sender == "controller":
                label = re.sub(r"(\d)", r"broker \1", label)
            drawing.raw(f'<circle cx="{x:g}" cy="{y:g}" r="4" fill="{SOFT}"/>')
            left = sender == "3"
            drawing.text(x + (-10 if left else 10), y + 4, label, anchor="end" if left else "start", size=12)
        else:
            start, end = lanes[sender], lanes[receiver]
            drawing.arrow([(start, y), (end, y)])
            drawing.text((start + end) / 2, y - 5, label, size=12)
    drawing.box(20, bottom + 14, 800, 34, [f"{story[1]} is broken: broker 3 is in the ISR and does not have r"], "red")
    return drawing.render(840, bottom + 62)


DIAGRAMS: Final = {
    "pipeline.svg": pipeline,
    "layers.svg": layers,
    "simulation-loop.svg": simulation_loop,
    "refinement-ladder.svg": refinement_ladder,
    "k11.svg": k11,
}


if __name__ == "__main__":
    for name, draw in DIAGRAMS.items():
        (IMAGES / name).write_text(draw(), encoding="utf-8")
        print(f"docs/images/{name}")
