"""A Spark session for work on many traces: on this machine or a cluster, quiet, and on the one JVM of ``jvm.py``.

PySpark takes a second to import: it is imported by the call that needs it, and by nothing else in the package. So
nothing that does not ask for a session starts a JVM.
"""

from __future__ import annotations

import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ..model.core.errors import BadInput
from .jvm import java_home, java_version
from .spark_cluster import (
    CLUSTER_SETTINGS,
    driver_address,
    is_local,
    ship_package,
    wait_for_executors,
    worker_python,
)
from .spark_jvm import environment, pyspark_module, spark_home, start_files
from .spark_processes import end_processes, mark

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import SparkSession

T = TypeVar("T")

POLL_SECONDS: Final = 0.5
"""How often whoever waits for a job is told how far it is."""

_SETTINGS: Final[Mapping[str, str]] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.catalogImplementation": "in-memory",
    # Times do not depend on where the machine stands.
    "spark.sql.session.timeZone": "UTC",
}
"""Spark's own settings, see its configuration page ("Spark Configuration", 4.x)."""

_OTHER_TEXT: Final = re.compile(r"OtherTextError: (?P<where>.*?): (?P<what>.*); (?P<mend>[^;\n]*)")

_JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"

_LEVELS: Final[Mapping[str, str]] = {
    # Spark's own for a shell is WARN, unless it is given here (Spark's trait Logging).
    "org.apache.spark.api.python.PythonGatewayServer": "error",
    # What ends a task, a job or a stream is raised in Python as well, in one line.
    "org.apache.spark.executor": "off",
    "org.apache.spark.scheduler": "off",
    "org.apache.spark.sql.execution.streaming": "off",
}


def spark_session(
    app_name: str,
    master: str = "local[2]",
    *,
    driver_memory: str = "1g",
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """Start Spark in this process, or return the session that is active in it, whatever that one was started with.

    ``master``: ``local[N]`` runs N tasks at once; ``spark://HOST:PORT`` is a standalone cluster, whose workers are sent
    this package. ``driver_memory``: the JVM's heap, in Spark's notation; with a local master it is all that there is.
    ``settings``: Spark settings besides the ones above, or in their place. The JVM is that of `java_home`, Spark is the
    installed package's own, and its Python workers run this interpreter: an environment that names others
    (``SPARK_HOME``, ``PYSPARK_SUBMIT_ARGS``, ...) is not heeded, so nothing is fetched that it may ask for. Only a
    cluster's workers, which may be other machines, run the interpreter of ``PYSPARK_PYTHON``, where that is set. Stop
    the session with its ``stop()``.

    Raises `BadInput` without PySpark, without a JVM, when Spark does not start on it, for a master that is none or does
    not answer, and for a cluster with no worker that has room.
    """
    sql = pyspark_module("pyspark.sql")
    local = is_local(master)
    active: SparkSession | None = sql.SparkSession.getActiveSession()
    if active is not None:
        return active
    home = java_home()
    address = driver_address(master)
    # On loopback nothing listens to the network: not the driver, not a block manager, and there is no web page.
    listening = {"spark.driver.host": address, "spark.driver.bindAddress": address}
    chosen = {**_SETTINGS, **listening, "spark.driver.memory": driver_memory}
    chosen |= {**({} if local else CLUSTER_SETTINGS), **(settings or {})}
    with start_files(home, levels=_LEVELS) as files:
        chosen[_JAVA_OPTIONS] = f"{files.logging_option} {chosen.get(_JAVA_OPTIONS, '')}".strip()
        builder = sql.SparkSession.builder.appName(app_name).master(master)
        for name, value in chosen.items():
            builder = builder.config(name, value)
        variables = _variables(files.java_home, address, sys.executable if local else worker_python())
        with environment(variables), _interrupts_kept():
            try:
                session: SparkSession = builder.getOrCreate()
            except pyspark_module("pyspark.errors").PySparkRuntimeError as failed:
                raise BadInput(
                    f"Spark did not start on {java_version(home / 'bin' / 'java')}",
                    str(home),
                    "see what it wrote above; Spark 4 needs Java 17 or newer",
                ) from failed
            except (pyspark_module("py4j.protocol").Py4JError, OSError) as failed:
                raise BadInput(
                    "Spark's driver started and gave up", master, "see what it wrote above, and what the master says"
                ) from failed
            except (KeyboardInterrupt, SystemExit):
                # The files that it would go on with are gone in a moment.
                end_processes()
                raise
    if not local:
        try:
            wait_for_executors(session.sparkContext, master)
            ship_package(session.sparkContext)
        except BaseException:
            session.stop()
            raise
    return session


@contextmanager
def _interrupts_kept() -> Iterator[None]:
    """Keep who handles SIGINT: PySpark puts itself there, and asks the JVM to cancel jobs, which waits for the JVM."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def collected(rdd: RDD[T], on_poll: Callable[[], None]) -> list[T]:
    """The elements, in their order; ``on_poll`` is called now and then until they are there, by another thread.

    Raises `BadInput` where Spark gives the job up, as it does when its workers end again and again, or its master. What
    Python code in a task raised is no such thing, and is raised with its stack trace; but a worker that has another
    text of the protocol (``shipping.OtherTextError``) is bad input too.
    """
    over = threading.Event()

    def poll() -> None:
        while not over.wait(POLL_SECONDS):
            on_poll()

    poller = threading.Thread(target=poll, daemon=True)
    poller.start()
    try:
        results: list[T] = rdd.collect()
        return results
    except pyspark_module("pyspark.errors").PythonException as raised:
        other = _OTHER_TEXT.search(str(raised))
        if other is None:
            raise
        raise BadInput(other["what"], other["where"], other["mend"]) from raised
    except (pyspark_module("py4j.protocol").Py4JError, OSError) as failed:
        # Of a JVM that has ended, its socket tells.
        said = _said(failed)
        if "PythonException" in said:
            raise
        raise BadInput(
            f"Spark gave the job up: {said.splitlines()[0]}",
            f"--master {rdd.context.master}",
            "see that its processes have memory and are left alive, and start again",
        ) from failed
    finally:
        over.set()
        poller.join()


def _said(failed: Any) -> str:
    """What Spark said; of a JVM that has ended, what Py4J says."""
    java = getattr(failed, "java_exception", None)
    try:
        return str(failed if java is None else java.toString())
    except (pyspark_module("py4j.protocol").Py4JError, OSError):
        return str(failed)


def _variables(home: Path, address: str, python: str) -> dict[str, str | None]:
    """What the launcher and the new context read from the environment."""
    return {
        "JAVA_HOME": str(home),
        "SPARK_HOME": str(spark_home()),
        "SPARK_LOCAL_IP": address,
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYSPARK_SUBMIT_ARGS": "pyspark-shell",
        "SPARK_CONF_DIR": None,
        "PYSPARK_GATEWAY_PORT": None,
        "SPARK_REMOTE": None,
        **mark(),
    }
