"""The classes that a driver runs on: a release of Apache Kafka, and the driver's own, compiled when first asked for.

Kafka's jars are those that ``traces/kafka/maven.py`` keeps. The driver's source is part of the package; Eclipse's
compiler (``org.eclipse.jdt:ecj``, one jar from Maven Central) compiles it on whichever JVM there is, so that a JRE is
enough. What was compiled is kept beside Kafka's jars, by release, compiler and source.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Final

from ...model.core.errors import BadInput
from ...traces.jvm import java_binary
from ...traces.kafka.maven import KafkaJars, default_cache, fetch_jar, fetch_kafka

RELEASE: Final = "4.4.0"
"""The release that is driven unless another one is named."""

COMPILER: Final = "org.eclipse.jdt:ecj:3.46.0"

_SUMS: Final = "checksums.json"
"""SHA-256 of the compiler, and of the jars of the releases that the driver was tried on: file by file."""
_FLAGS: Final = ("-source", "17", "-target", "17", "-nowarn", "-encoding", "UTF-8")


@dataclass(frozen=True)
class Classes:
    """What a JVM needs for the driver: its version of Kafka, and the class path."""

    release: str
    classpath: str


def classes(release: str = RELEASE, cache: Path | None = None) -> Classes:
    """The driver over a release of Kafka; fetched and compiled where they are not in the cache yet.

    Raises BadInput where Maven or a JVM is out of reach, where a jar is not what it was when the driver was tried on
    it, and where the driver does not compile against a release.
    """
    cache = default_cache() if cache is None else cache
    jars = fetch_kafka(release, cache)
    sums: dict[str, dict[str, str]] = json.loads(_own(_SUMS))
    for name, wanted in sums.get(release, {}).items():
        _check(jars.directory / name, wanted)
    source = {name: _own(name) for name in _names()}
    digest = hashlib.sha256(json.dumps([COMPILER, _FLAGS, source]).encode()).hexdigest()[:16]
    home = cache / f"driver-{release}-{digest}"
    if not home.is_dir():
        compiler = fetch_jar(COMPILER, cache)
        _check(compiler, sums["compiler"][compiler.name])
        _compile(compiler, jars, source, home)
    return Classes(release, os.pathsep.join((str(home), jars.classpath)))


def _names() -> list[str]:
    folder = resources.files(__package__) / "driver"
    return sorted(each.name for each in folder.iterdir() if each.name.endswith(".java"))


def _own(name: str) -> str:
    return (resources.files(__package__) / "driver" / name).read_text(encoding="utf-8")


def _check(jar: Path, wanted: str) -> None:
    try:
        found = hashlib.sha256(jar.read_bytes()).hexdigest()
    except OSError as failed:
        raise BadInput(
            f"cannot be read ({failed.strerror})", str(jar), f"remove {jar.parent}, and try again"
        ) from failed
    if found != wanted:
        raise BadInput(f"its SHA-256 is {found}, not {wanted}", str(jar), f"remove {jar.parent}, and try again")


def _compile(compiler: Path, jars: KafkaJars, source: dict[str, str], home: Path) -> None:
    """Compile, and put what comes of it in its place by a rename: another run may have done so meanwhile."""
    scratch = Path(tempfile.mkdtemp(prefix=".driver-", dir=home.parent))
    try:
        for name, text in source.items():
            (scratch / name).write_text(text, encoding="utf-8")
        there = os.pathsep.join(str(jar) for jar in sorted(jars.directory.glob("*.jar")))
        done = subprocess.run(  # noqa: S603 - the JVM that was found, and our own source
            [str(java_binary()), "-jar", str(compiler), *_FLAGS, "-cp", there, "-d", str(scratch / "classes")]
            + [str(scratch / name) for name in source],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        if done.returncode:
            lines = [line for line in (done.stderr + done.stdout).splitlines() if "ERROR" in line]
            first = (
                lines[0].split("ERROR in ", 1)[1].replace(str(scratch) + os.sep, "") if lines else "the compiler failed"
            )
            raise BadInput(
                f"the driver does not compile against it: {first}",
                f"Apache Kafka {jars.version}",
                f"name a release that it was tried on: {RELEASE}",
            )
        if not home.is_dir():
            (scratch / "classes").rename(home)
    except subprocess.TimeoutExpired as late:
        raise BadInput("the driver was not compiled in 300 s", str(compiler), "try again") from late
    except OSError:
        if not home.is_dir():
            raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
