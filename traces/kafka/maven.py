"""Fetch Apache Kafka's jars with Maven into a cache of our own.

Maven decides what the newest release is and which jars it needs; the cache holds one directory per release, put
there by a rename, so that an interrupted download is never taken for a whole one.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ...model.core.caches import cache_folder
from ...model.core.errors import BadInput
from ...model.core.temporary_folder import TemporaryFolder

if TYPE_CHECKING:
    from collections.abc import Sequence

#: The artifact that brings a broker, a controller and ``kafka.tools.StorageTool``.
ARTIFACT = "org.apache.kafka:kafka_2.13"

#: Test jars that a recording may ask for, each with the SHA-256 that Maven Central's has, by release.
TEST_JARS: dict[str, dict[str, str]] = {
    "kafka-storage": {"4.3.1": "f3236936854c13815ffaa7f35a3f2d6861c125616cba5395b538b8680dded886"},
}

# Changed when the set of jars changes, so that an old cache is not taken for a new one.
_LAYOUT = "1"
# KRaft's dynamic quorums (KIP-853) and StorageTool's --standalone came with 3.9; the search for the newest starts here.
_OLDEST = "4.0.0"
_PRE_RELEASES = ".*-.*"  # Kafka's release candidates are named like 4.0.0-rc1
# Plugins by version, so that tomorrow's release of one does not decide what is fetched, or how.
_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
_COPY_ONE = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"
_UPDATE = "org.codehaus.mojo:versions-maven-plugin:2.18.0:update-properties"
_OFFLINE = re.compile(
    r"UnknownHostException|Unknown host|Connection refused|Connect timed out|Network is unreachable"
    r"|Could not transfer artifact|offline mode|Temporary failure in name resolution",
    re.IGNORECASE,
)

# kafka-tools-api is left out: it holds the interfaces of the console tools, no broker uses it, and Maven Central
# lacks it for 4.4.0. The slf4j binding is our choice: some releases bring none, the old ones log4j 1.2, whose place
# reload4j takes under the same class names.
_POM = """<?xml version="1.0" encoding="UTF-8"?>
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>fencepost</groupId>
  <artifactId>kafka-under-recording</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <properties><kafka.version>{version}</kafka.version></properties>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka_{scala}</artifactId>
      <version>${{kafka.version}}</version>
      <exclusions>
        <exclusion><groupId>org.apache.kafka</groupId><artifactId>kafka-tools-api</artifactId></exclusion>
        <exclusion><groupId>log4j</groupId><artifactId>log4j</artifactId></exclusion>
        <exclusion><groupId>org.slf4j</groupId><artifactId>slf4j-log4j12</artifactId></exclusion>
      </exclusions>
    </dependency>{bindings}{tests}
  </dependencies>
</project>
"""

_BINDING = """
    <dependency>
      <groupId>{0}</groupId><artifactId>{1}</artifactId><version>{2}</version>
    </dependency>"""
_SIMPLE = (("org.slf4j", "slf4j-simple", "1.7.36"),)
# The log4j of each distribution. Kafka's classes before 4.0 use some of log4j 1.2, and reload4j has its class names.
_LOG4J_1 = (("org.slf4j", "slf4j-reload4j", "1.7.36"), ("ch.qos.reload4j", "reload4j", "1.2.25"))
_LOG4J_2 = (
    ("org.apache.logging.log4j", "log4j-core", "2.24.3"),
    ("org.apache.logging.log4j", "log4j-slf4j-impl", "2.24.3"),
)

# Kafka before 1.0 encodes the cluster's id with a class that the JDK has lost since Java 11.
_XML_BIND = (("javax.xml.bind", "jaxb-api", "2.3.1"),)

# A test jar's own dependencies are those of its main jar and of frameworks for tests.
_TEST_JAR = """
    <dependency>
      <groupId>org.apache.kafka</groupId><artifactId>{artifact}</artifactId><version>${{kafka.version}}</version>
      <classifier>test</classifier>
      <exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>
    </dependency>"""


@dataclass(frozen=True)
class KafkaJars:
    """One release of Apache Kafka on this machine: its version and the directory of its jars."""

    version: str
    directory: Path

    @property
    def classpath(self) -> str:
        """What ``java -cp`` takes; the JVM itself expands the star."""
        return f"{self.directory}{os.sep}*"


def default_cache() -> Path:
    """``$XDG_CACHE_HOME/fencepost/kafka``, or ``~/.cache/fencepost/kafka`` (XDG Base Directory Specification)."""
    folder = cache_folder("kafka")
    if folder is None:
        raise BadInput("this user has no home folder", "the cache of Kafka's jars", "set HOME or XDG_CACHE_HOME")
    return folder


def newest_release(timeout: float = 120.0) -> str:
    """The newest release of Kafka that Maven sees, pre-releases left out, by ``versions:update-properties``.

    `timeout` is in seconds. Raises `BadInput` when Maven is missing, offline or too slow.
    """
    with TemporaryFolder("fencepost-pom-") as scratch:
        pom = scratch / "pom.xml"
        pom.write_text(_pom(_OLDEST), encoding="utf-8")
        _maven(
            scratch,
            [_UPDATE, "-DgenerateBackupPoms=false", "-DincludeProperties=kafka.version",
             f"-Dmaven.version.ignore={_PRE_RELEASES}"],
            "look up Kafka's newest release",
            timeout,
        )  # fmt: skip
        found = re.search(r"<kafka\.version>([^<]+)</kafka\.version>", pom.read_text(encoding="utf-8"))
    if found is None:
        raise BadInput("Maven left no version in the pom", ARTIFACT, "name one with --version")
    return found.group(1)


def is_version(text: str) -> bool:
    """Whether it is written as Kafka's releases are: ``4.4.0``, ``4.0.0-rc1``."""
    return re.fullmatch(r"[0-9]+(\.[0-9]+){1,3}(-[A-Za-z0-9]+)?", text) is not None


def is_older(version: str, other: str) -> bool:
    """Whether one release comes before another, by their numbers: 0.11.0.3 before 2.4.1."""
    return _numbers(version) < _numbers(other)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.partition("-")[0].split("."))


def _pom(version: str, *, log4j: bool = False, tests: str = "") -> str:
    bindings: tuple[tuple[str, str, str], ...] = (
        _SIMPLE if not log4j else _LOG4J_1 if is_older(version, "4.0.0") else _LOG4J_2
    )
    if is_older(version, "1.0.0"):
        bindings += _XML_BIND
    scala = "2.12" if is_older(version, "2.4.0") else "2.13"
    return _POM.format(
        version=version, scala=scala, bindings="".join(_BINDING.format(*each) for each in bindings), tests=tests
    )


def fetch_kafka(
    version: str | None = None,
    cache: Path | None = None,
    timeout: float = 600.0,
    test_jars: Sequence[str] = (),
    *,
    log4j: bool = False,
) -> KafkaJars:
    """The jars of Kafka `version` (default: the newest release), from `cache` or fetched into it by Maven.

    A cached release is used with no network; only the look-up of the newest needs one. `timeout` is in seconds, for
    each run of Maven. `test_jars` (of `TEST_JARS`) come with them, and are what they were when their checksums were
    noted; Maven itself holds every jar to the repository's checksum. With `log4j` the release logs through the log4j of
    its distribution, else through slf4j-simple.

    Raises `BadInput` when the version has no such form, when no checksum of a test jar of it is known, or when Maven is
    missing, offline, too slow or does not find the release.
    """
    if version is not None and not is_version(version):
        raise BadInput(f"{version!r} is not a version of Kafka", "--version", "write it as in 4.4.0")
    cache = default_cache() if cache is None else cache
    version = newest_release(timeout) if version is None else version
    for artifact in test_jars:
        if version not in TEST_JARS[artifact]:
            raise BadInput(
                f"no checksum of {artifact}:{version}:test is known",
                "--version",
                f"name {' or '.join(sorted(TEST_JARS[artifact]))}",
            )
    home = cache / "-".join((version, f"layout{_LAYOUT}", *(("log4j",) if log4j else ()), *test_jars))
    jars = KafkaJars(version, home)
    if home.is_dir():
        return jars
    try:
        cache.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=".incoming-", dir=cache))
    except OSError as failed:
        raise BadInput(
            f"cannot write there ({failed.strerror})", str(cache), "name a writable directory with --cache"
        ) from failed
    try:
        tests = "".join(_TEST_JAR.format(artifact=artifact) for artifact in test_jars)
        (scratch / "pom.xml").write_text(_pom(version, log4j=log4j, tests=tests), encoding="utf-8")
        _maven(
            scratch,
            [_COPY, "-DincludeScope=runtime", f"-DoutputDirectory={scratch / 'lib'}"],
            f"fetch {ARTIFACT}:{version}",
            timeout,
        )
        for artifact in test_jars:
            _require_checksum(scratch / "lib" / f"{artifact}-{version}-test.jar", TEST_JARS[artifact][version])
        if not home.is_dir():
            (scratch / "lib").rename(home)
    except OSError:
        if not home.is_dir():  # somebody else's run may have put it there first, which is as good
            raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return jars


def _require_checksum(jar: Path, expected: str) -> None:
    found = hashlib.sha256(jar.read_bytes()).hexdigest()
    if found != expected:
        raise BadInput(f"its SHA-256 is {found}, not {expected}", jar.name, "see where Maven takes its jars from")


def fetch_jar(coordinates: str, cache: Path | None = None, timeout: float = 300.0) -> Path:
    """One jar by its coordinates (``group:artifact:version``), from `cache` or fetched into it by Maven.

    `timeout` is in seconds. Raises `BadInput` when Maven is missing, offline, too slow or does not find it.
    """
    _, artifact, version = coordinates.split(":")
    cache = default_cache() if cache is None else cache
    jar = cache / f"{artifact}-{version}.jar"
    if jar.is_file():
        return jar
    try:
        cache.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=".incoming-", dir=cache))
    except OSError as failed:
        raise BadInput(
            f"cannot write there ({failed.strerror})", str(cache), "name a writable directory by XDG_CACHE_HOME"
        ) from failed
    try:
        (scratch / "pom.xml").write_text(_pom(_OLDEST), encoding="utf-8")
        _maven(
            scratch,
            [_COPY_ONE, f"-Dartifact={coordinates}", f"-DoutputDirectory={scratch / 'lib'}"],
            f"fetch {coordinates}",
            timeout,
        )
        (scratch / "lib" / jar.name).rename(jar)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return jar


def _maven(directory: str | Path, goals: Sequence[str], purpose: str, timeout: float) -> None:
    """Run Maven in `directory`. Raises `BadInput` that says what it could not do."""
    program = shutil.which("mvn")
    if program is None:
        raise BadInput(f"no mvn on PATH to {purpose}", "Maven", "install Maven (Debian: apt-get install maven)")
    command = [
        program,
        "--batch-mode",
        "--no-transfer-progress",
        "--strict-checksums",
        "-f",
        str(Path(directory) / "pom.xml"),
        *goals,
    ]
    mend = "see that this machine reaches Maven Central, or name a release in the cache with --version"
    try:
        done = subprocess.run(  # noqa: S603 - fixed goals, and a version that was checked
            command, capture_output=True, text=True, timeout=timeout, check=False, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired as late:
        raise BadInput(f"could not {purpose} in {timeout:g} s", "Maven", mend) from late
    if done.returncode == 0:
        return
    errors = [line.removeprefix("[ERROR] ") for line in done.stdout.splitlines() if line.startswith("[ERROR] ")]
    reason = errors[0].removesuffix(" -> [Help 1]") if errors else f"exit code {done.returncode}"
    reason = reason[max(0, reason.rfind("Could not ")) :]  # Maven goes from the goal down to the cause
    what = "offline, " if _OFFLINE.search(done.stdout) else ""
    raise BadInput(f"{what}could not {purpose}: {reason}", "Maven", mend)
