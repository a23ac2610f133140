"""The reference of the command line, from the commands' own help."""

from __future__ import annotations

import re
from typing import Final

from cyclopts import App
from fencepost.conformance.cli import app
from fencepost.conformance.kafka.cluster.__main__ import app as findings
from fencepost.traces.bundled.archive import app as archive
from fencepost.traces.kafka.record import app as record
from fencepost.traces.kafka.releases.recording import app as recording
from fencepost.traces.standalone import app as standalone

_INTRODUCTION: Final = """# Command line

`fencepost COMMAND --help` prints the same text. [Verdicts and exit codes](verdicts.md) has the exit codes, and
[How to run Fencepost in CI](../how-to/run-in-ci.md) the defaults in `pyproject.toml`. Some tasks have a module of their
own, at the end of this page.

"""
_MODULES: Final = {
    "fencepost.conformance.kafka.cluster": findings,
    "fencepost.traces.standalone": standalone,
    "fencepost.traces.kafka.record": record,
    "fencepost.traces.kafka.releases.recording": recording,
    "fencepost.traces.bundled.archive": archive,
}


def cli_page() -> str:
    """Return the page in Markdown: one section per command."""
    text = app.generate_docs()
    commands = text[text.index("\n## fencepost ") :].strip()
    modules = "\n\n".join(_section(name, module) for name, module in _MODULES.items())
    # A metavariable in angle brackets would be read as HTML.
    return _INTRODUCTION + re.sub(r"<(\w+)>", r"&lt;\1&gt;", f"{commands}\n\n{modules}\n")


def _section(module: str, app: App) -> str:
    """Return the section of a module that is a command."""
    text = re.sub(r"\A# [^\n]*\n+```console\n.*?```\n", "", app.generate_docs(), flags=re.DOTALL)
    text = re.sub(r"^## Table of Contents\n.*?(?=^\*\*|^## )", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^\*\*Commands\*\*:\n\n(?:\* .*\n)+", "", text, flags=re.MULTILINE)
    text = re.sub(rf"^## (?:python -m )?{re.escape(module)} ", "### ", text, flags=re.MULTILINE)
    return f"## python -m {module}\n\n{text.strip()}"
