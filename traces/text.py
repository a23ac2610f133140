"""Counts in sentences, and text from outside as it may be shown."""

from __future__ import annotations

from collections.abc import Sequence


def counted(count: int, noun: str) -> str:
    """``1 file``, ``12,345 files``."""
    return f"{count:,} {noun}" + ("" if count == 1 else "es" if noun.endswith("ch") else "s")


def listed(names: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def brokers_named(labels: Sequence[str]) -> str:
    """``broker 1``, ``brokers 1 and 2``; labels of other forms as they are."""
    if len(labels) > 1 and all(label.startswith("broker ") for label in labels):
        return f"brokers {listed([label.removeprefix('broker ') for label in labels])}"
    return listed(labels)


def printable(text: str) -> str:
    """``text`` with every character that would steer a terminal, or be invisible, written as an escape.

    Line ends are such characters too: what comes of it is one line. Whatever was read from a file or a command line (a
    path, a cluster's id, a topic) goes through here, or through ``report.terminal.Terminal``, before a person sees it.
    """
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape", "surrogatepass").decode("ascii") for each in text
    )


def printable_lines(text: str) -> str:
    """The same of a text of several lines, which stay lines."""
    return "\n".join(printable(line) for line in text.split("\n"))
