"""The reference of the command line, from the commands' own help."""

from __future__ import annotations

import re

from fencepost.conformance.cli import app

_INTRODUCTION = """# Command line

`fencepost COMMAND --help` prints the same text. [Verdicts and exit codes](verdicts.md) has the exit codes, and
[How to run Fencepost in CI](../how-to/run-in-ci.md) the defaults in `pyproject.toml`.

"""


def cli_page() -> str:
    """Return the page in Markdown: one section per command."""
    text = app.generate_docs()
    commands = text[text.index("\n## fencepost ") :]
    # A metavariable in angle brackets would be read as HTML.
    return _INTRODUCTION + re.sub(r"<(\w+)>", r"&lt;\1&gt;", commands.lstrip())
