"""The classes that a driver runs on: a release of Apache Kafka, and the driver's own, compiled when first asked for.

Kafka's jars are those that ``traces/kafka/maven.py`` keeps. The driver's source is part of the package; Eclipse's
compiler (``org.eclipse.jdt:ecj``, one jar from Maven Central) compiles it on whichever JVM there is, so that a JRE is
enough. What was compiled is kept beside Kafka's jars, by release, compiler and source; where something new is compiled,
what nobody has used for a month is removed.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Final

from ...model.core.errors import BadInput
from ...model.core.temporary_folder import TemporaryFolder
from ...traces.jvm import java_binary
from ...traces.kafka.maven import KafkaJars, default_cache, fetch_jar, fetch_kafka

RELEASE: Final = "4.4.0"
"""The release that is driven unless another one is named."""

BROKERS: Final = "Driver"
QUORUM: Final = "QuorumDriver"
CONSUMER: Final = "ReaderDriver"
CONTROLLERS: Final = "ControllerDriver"
CLEANERS: Final = "CleanerDriver"
TIERED: Final = "TieredDriver"
REPLAYS: Final = "ReplayDriver"
"""What a process drives: the class that reads its commands."""

TRIED: Final = {RELEASE: (BROKERS, QUORUM, CONSUMER, CONTROLLERS, CLEANERS, TIERED), "4.3.1": (CONSUMER,)}
"""By release, the drivers that were tried on it: others do not compile against it."""
_DRIVES: Final = {
    BROKERS: "brokers",
    QUORUM: "a quorum's nodes",
    CONSUMER: "a consumer",
    CONTROLLERS: "controllers",
    CLEANERS: "cleaners",
    TIERED: "brokers with tiered storage",
    REPLAYS: "a replay of metadata logs",
}

COMPILER: Final = "org.eclipse.jdt:ecj:3.46.0"

_SUMS: Final = "checksums.json"
"""SHA-256 of the compiler, and of the jars of the releases that the driver was tried on: file by file."""
_MOVED: Final = "moved.json"
"""By release, which classes of Kafka's have another package there than in the drivers' source."""
_KEPT: Final = re.compile(r"\.?driver-\S+")
"""Folders of ours in the cache: what was compiled, and what a process has left that ended while it compiled."""
UNUSED_SECONDS: Final = 30 * 24 * 3600
"""After so long a driver that nobody has used is removed, when another one is compiled."""
_FLAGS: Final = ("-source", "17", "-target", "17", "-nowarn", "-encoding", "UTF-8")


@dataclass(frozen=True)
class Classes:
    """What a JVM needs for the driver: its version of Kafka, and the class path."""

    release: str
    classpath: str


def classes(release: str = RELEASE, cache: Path | None = None, drives: str = BROKERS) -> Classes:
    """A driver over a release of Kafka; fetched and compiled where they are not in the cache yet.

    Raises BadInput where Maven or a JVM is out of reach, where a jar is not what it was when the driver was tried on
    it, and where the driver does not compile against a release.
    """
    cache = default_cache() if cache is None else cache
    try:
        return _classes(release, cache, drives)
    except OSError as failed:
        # The caller starts a system under test, and would take this for a fault of the system.
        raise BadInput(
            f"cannot be written: {failed.strerror}",
            str(cache),
            "make room there, or name another one by XDG_CACHE_HOME",
        ) from failed


def _classes(release: str, cache: Path, drives: str) -> Classes:
    jars = fetch_kafka(release, cache)
    sums: dict[str, dict[str, str]] = json.loads(_own(_SUMS))
    for name, wanted in sums.get(release, {}).items():
        _check(jars.directory / name, wanted)
    source = {name: _own(name) for name in _names()}
    for here, there in json.loads(_own(_MOVED)).get(release, {}).items():
        source = {name: text.replace(f"import {here};", f"import {there};") for name, text in source.items()}
    # What was tried on it is compiled at once; of what was not, that alone which is asked for.
    mains = TRIED[release] if drives in TRIED.get(release, ()) else (drives,)
    digest = hashlib.sha256(json.dumps([COMPILER, _FLAGS, mains, source]).encode()).hexdigest()[:16]
    home = cache / f"driver-{release}-{digest}"
    if not _used(home):
        compiler = fetch_jar(COMPILER, cache)
        _check(compiler, sums["compiler"][compiler.name])
        _compile(compiler, jars, source, mains, home)
        remove_unused(cache, home)
    return Classes(release, os.pathsep.join((str(home), jars.classpath)))


def _used(home: Path) -> bool:
    """Whether it is there; its time is then that of its last use, by which others know whether to keep it."""
    with suppress(PermissionError):
        try:
            os.utime(home)
        except FileNotFoundError:
            return False
    return home.is_dir()


def remove_unused(cache: Path, home: Path, seconds: float = UNUSED_SECONDS) -> list[str]:
    """Remove the drivers, but for `home`, that nobody has used for so long; gives their names.

    Other processes may do the same, or begin to use one, at any moment. So a folder is first given a name of this
    call's alone, which one process can do; one that was used just before that is given its own name back. What cannot
    be removed stays: it is in nobody's way.
    """
    removed = []
    for each in _unused(cache, home, time.time() - seconds):
        with (
            suppress(OSError),
            TemporaryFolder(".driver-", cache) as own,
        ):
            taken = each.rename(own / each.name)
            if taken.stat().st_mtime > time.time() - seconds and not each.exists():
                taken.rename(each)
            else:
                removed.append(each.name)
    return removed


def _unused(cache: Path, home: Path, before: float) -> Iterator[Path]:
    with suppress(OSError):
        for each in sorted(cache.iterdir()):
            with suppress(OSError):
                ours = _KEPT.fullmatch(each.name) and each.is_dir() and not each.is_symlink()
                if ours and each != home and each.stat().st_mtime < before:
                    yield each


def _names() -> list[str]:
    folder = resources.files(__package__) / "driver"
    return sorted(each.name for each in folder.iterdir() if each.name.endswith(".java"))


def _package(text: str) -> Path:
    """The folder of a source file, by its package."""
    found = re.search(r"^package ([\w.]+);", text, re.M)
    assert found is not None
    return Path(*found[1].split("."))


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


def _compile(compiler: Path, jars: KafkaJars, source: dict[str, str], mains: Sequence[str], home: Path) -> None:
    """Compile, and put what comes of it in its place by a rename: another run may have done so meanwhile."""
    scratch = Path(tempfile.mkdtemp(prefix=".driver-", dir=home.parent))
    try:
        places = {name: scratch / "source" / _package(text) / name for name, text in source.items()}
        for name, place in places.items():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(source[name], encoding="utf-8")
        there = os.pathsep.join(str(jar) for jar in sorted(jars.directory.glob("*.jar")))
        begin = [str(places[f"{main}.java"]) for main in mains]
        where = ("-cp", there, "-sourcepath", str(scratch / "source"), "-d", str(scratch / "classes"))
        done = subprocess.run(  # noqa: S603 - the JVM that was found, and our own source
            [str(java_binary()), "-jar", str(compiler), *_FLAGS, *where, *begin],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        if done.returncode:
            lines = [line for line in (done.stderr + done.stdout).splitlines() if "ERROR" in line]
            first = Path(lines[0].split("ERROR in ", 1)[1]).name if lines else "the compiler failed"
            what = " and ".join(_DRIVES[main] for main in mains)
            tried = [release for release, all_ in TRIED.items() if set(mains) <= set(all_)]
            raise BadInput(
                f"the driver of {what} does not compile against it: {first}",
                f"Apache Kafka {jars.version}",
                f"name a release that it was tried on: {', '.join(tried)}",
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
