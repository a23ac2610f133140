"""What a Spark session needs where the work is done by other processes: a master, an address, and this package.

A worker of a cluster has Python, PySpark and the libraries, but not this package: it gets a zip of it, the one that
runs here, which comes before any that it may have.
"""

from __future__ import annotations

import os
import re
import socket
import sys
import time
import zipfile
from collections.abc import Iterator, Mapping
from importlib.metadata import distribution
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ..model.core.errors import BadInput
from .spark_jvm import LOOPBACK

if TYPE_CHECKING:
    from pyspark import SparkContext

EXECUTOR_MEMORY: Final = "512m"
"""Heap of a worker's JVM, in Spark's notation. It moves paths and findings; events are in the Python beside it."""

CONNECT_SECONDS: Final = 10.0
"""How long a master may take to accept a connection."""

EXECUTOR_SECONDS: Final = 90.0
"""How long a cluster may take, after Spark's own wait, until its first executor is there."""

_LOCAL: Final = re.compile(r"local(\[(\*|[1-9][0-9]{0,3})(,\s*[0-9]+)?\])?")
_STANDALONE: Final = re.compile(r"spark://([^/,\s:]+:[0-9]{1,5}(?:,[^/,\s:]+:[0-9]{1,5})*)")
_MEND: Final = "name local[N], local[*] or spark://HOST:PORT"


def is_local(master: str) -> bool:
    """Whether tasks run on this machine alone, in the driver's JVM. Raises `BadInput` for what is no master."""
    if _LOCAL.fullmatch(master):
        return True
    if _STANDALONE.fullmatch(master):
        return False
    raise BadInput("no master that this runs on", f"--master {master}", _MEND)


def driver_address(master: str) -> str:
    """The address of this machine by which a master's workers reach it: loopback if the master is here too.

    Of several standalone masters one is active at a time: the first that answers is asked. Raises `BadInput` where none
    accepts a connection: Spark would try for minutes, and then say little.
    """
    found = _STANDALONE.fullmatch(master)
    if found is None:
        return LOOPBACK
    refused = ""
    for place in found[1].split(","):
        host, _, port = place.rpartition(":")
        try:
            with socket.create_connection((host, int(port)), timeout=CONNECT_SECONDS) as connected:
                return str(connected.getsockname()[0])
        except (OSError, OverflowError) as error:
            refused = getattr(error, "strerror", None) or str(error) or type(error).__name__
    raise BadInput(
        f"no master answers there ({refused})",
        master,
        "start one (python -m fencepost.traces.standalone master), or leave --master out",
    )


CLUSTER_SETTINGS: Final[Mapping[str, str]] = {
    "spark.executor.memory": EXECUTOR_MEMORY,
    # What the JVM's second compiler gains in work this short is less than what it costs.
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
"""Settings of a session on a cluster, besides those that any session has."""


def worker_python() -> str:
    """The interpreter that a cluster's workers run: ``PYSPARK_PYTHON``, else the path of this one."""
    return os.environ.get("PYSPARK_PYTHON") or sys.executable


def ship_package(context: SparkContext) -> Path:
    """Send the package to the workers of a session; returns the zip, which goes when the session stops."""
    from pyspark import SparkFiles

    folder = Path(SparkFiles.getRootDirectory()) / "package"
    folder.mkdir()
    path = folder / f"{root_package().name}.zip"
    write_package(path)
    before = list(sys.path)
    context.addPyFile(str(path))
    # It is for the workers: this process has the package.
    sys.path[:] = before
    return path


class RootPackage:
    """The installed package as files. ``name`` is what it is imported as, whatever its folder is called."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.folder = folder

    def files(self) -> Iterator[Path]:
        """Its own modules and all files of its packages, relative to its folder, in order of their names.

        A checkout holds other folders too (tests, benchmarks): they have no ``__init__.py`` and stay here.
        """
        rooms = sorted(path.parent for path in self.folder.glob("*/__init__.py"))
        yield from sorted(path.relative_to(self.folder) for path in self.folder.glob("*.py"))
        for room in rooms:
            for path in sorted(room.rglob("*")):
                name = path.relative_to(self.folder)
                hidden = any(part.startswith(".") or part == "__pycache__" for part in name.parts)
                if path.is_file() and not hidden:
                    yield name


def root_package() -> RootPackage:
    """The package that this module belongs to."""
    name = __name__.partition(".")[0]
    file = sys.modules[name].__file__
    assert file is not None, "the package has an __init__.py"
    return RootPackage(name, Path(file).parent)


def write_package(path: Path) -> None:
    """Write the installed package as a zip to import from, package data and all; alike files give alike bytes.

    What registers its protocols, the entry points, is in the zip too.
    """
    package = root_package()
    metadata = distribution(package.name)
    # Of a checkout that is installed to be edited, an egg-info may be found first.
    described = metadata.read_text("METADATA") or metadata.read_text("PKG-INFO") or ""
    texts = {"METADATA": described, "entry_points.txt": metadata.read_text("entry_points.txt") or ""}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for name in package.files():
            out.writestr(_entry(f"{package.name}/{name.as_posix()}"), (package.folder / name).read_bytes())
        for each, text in texts.items():
            out.writestr(_entry(f"{package.name}-{metadata.version}.dist-info/{each}"), text)


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    return entry


def wait_for_executors(context: SparkContext, master: str) -> None:
    """Wait for a cluster's first executor. Raises `BadInput` where none comes: Spark itself would wait for ever."""
    java: Any = context._jsc  # the only way: PySpark has no call for it
    deadline = time.monotonic() + EXECUTOR_SECONDS
    # The driver counts as one.
    while java.sc().getExecutorMemoryStatus().size() < 2:
        if time.monotonic() > deadline:
            memory = context.getConf().get("spark.executor.memory")
            raise BadInput(
                f"no worker gives an executor of {memory} within {EXECUTOR_SECONDS:.0f} seconds",
                master,
                "start workers, or wait until those there are free",
            )
        time.sleep(0.2)
