"""A standalone Spark cluster, one process a call: ``python -m fencepost.traces.standalone master``, ``... worker``.

For a cluster on one machine, or to see how work runs on one before it goes to a large one. They are Spark's own master
and worker (its classes ``deploy.master.Master`` and ``deploy.worker.Worker``, from the package ``pyspark``), on the JVM
of ``jvm.py``. Whoever has a cluster needs none of this: ``--master spark://HOST:PORT``.
"""

from __future__ import annotations

import importlib.metadata
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Final

import cyclopts

from ..model.core.exit_code import ExitCode
from ..model.core.temporary_folder import TemporaryFolder
from .jvm import java_home
from .orphan_guard import OrphanGuard
from .run_app import run_module
from .spark_jvm import LOOPBACK, spark_home, start_files

MASTER: Final = "org.apache.spark.deploy.master.Master"
WORKER: Final = "org.apache.spark.deploy.worker.Worker"

_OPTIONS: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dspark.master.rest.enabled=false"
"""They only pass messages, so the JVM's second compiler is not worth its time. Jobs are not submitted by HTTP."""

_SECONDS_TO_STOP: Final = 20.0


@contextmanager
def daemon(role: str, arguments: Sequence[str], *, host: str, scratch: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Spark's ``MASTER`` or ``WORKER`` as a process, which is ended with the block.

    If this process is killed, its JVM and the executors that the JVM started are killed too.

    It tells what happens to it on standard output, a line each: where it listens, who registers. ``scratch`` is an
    existing folder for what its executors keep while they run. Raises `BadInput` without PySpark or a JVM.
    """
    home = java_home()
    with (
        start_files(home, target="SYSTEM_OUT", pattern="%m%n%ex", levels={role: "info"}) as files,
        OrphanGuard() as guard,
    ):
        process = subprocess.Popen(  # noqa: S603 - Spark's own launcher, from the installed package
            [str(spark_home() / "bin" / "spark-class"), role, "--host", host, "--webui-port", "0", *arguments],
            env=_variables(files.java_home, files.logging_option, host, scratch),
            process_group=0,
        )
        guard.watch(process.pid)
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(_SECONDS_TO_STOP)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            # An executor that outlives its JVM may still be in the group; only then is the group's number in use.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            guard.forget(process.pid)


def _variables(home: Path, logging: str, host: str, scratch: Path) -> Mapping[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    return {
        **inherited,
        "JAVA_HOME": str(home),
        "SPARK_HOME": str(spark_home()),
        "SPARK_LOCAL_IP": host,
        "SPARK_LOCAL_DIRS": str(scratch),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": f"{_OPTIONS} {logging}",
    }


app = cyclopts.App(
    name="python -m fencepost.traces.standalone",
    help="Run the master or a worker of a standalone Spark cluster, until it is interrupted.",
    version=lambda: importlib.metadata.version("fencepost"),
)


@app.command
def master(*, host: str = LOOPBACK, port: int = 7077) -> ExitCode:
    """Run a master.

    Parameters
    ----------
    host
        The address to listen on.
    port
        The port; 0 is any that is free, and the first line of output names it.
    """
    return _run(MASTER, ["--port", str(port)], host)


@app.command
def worker(
    url: Annotated[str, cyclopts.Parameter(name="MASTER")],
    /,
    *,
    host: str = LOOPBACK,
    cores: int = 1,
    memory: str = "1g",
) -> ExitCode:
    """Run a worker.

    Parameters
    ----------
    url
        The master, spark://HOST:PORT.
    host
        The address to listen on.
    cores
        How many tasks it runs at once.
    memory
        How much the JVMs of its executors may have, in Spark's notation. The Python beside them comes on top.
    """
    return _run(WORKER, ["--cores", str(cores), "--memory", memory, url], host)


def _run(role: str, arguments: list[str], host: str) -> ExitCode:
    with TemporaryFolder("fencepost-spark-") as folder:
        if role == WORKER:
            arguments = ["--work-dir", str(folder), *arguments]
        with daemon(role, arguments, host=host, scratch=folder) as process:
            # A JVM that fails ends with 1, which is no verdict.
            return ExitCode.INTERNAL_FAULT if process.wait() else ExitCode.DONE


def main() -> None:
    """Run the command line; SIGTERM ends it as an interrupt does, through every ``finally``."""
    run_module(app)


if __name__ == "__main__":
    main()
