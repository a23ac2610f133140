"""Fetching Kafka's jars: what the cache answers alone, and what is said when Maven cannot help."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from fencepost.model.core.errors import BadInput
from fencepost.traces.kafka.maven import default_cache, fetch_kafka, newest_release

needs_maven = pytest.mark.skipif(shutil.which("mvn") is None, reason="absent: mvn is not on PATH")

# Nothing listens at port 1 of loopback, and an empty local repository has no plugin to fall back on.
UNREACHABLE = "-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=1 -Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=1"


def one_line(error: BadInput) -> str:
    assert "\n" not in str(error)
    return str(error)


@pytest.mark.parametrize("version", ["", "4", "latest", "4.4.0;rm", "../4.4.0", "4.4.0</version>"])
def test_a_version_that_is_none_is_refused_before_anything_runs(tmp_path: Path, version: str) -> None:
    with pytest.raises(BadInput, match=r"is not a version of Kafka; write it as in 4\.4\.0"):
        fetch_kafka(version, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_no_maven(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for call in (newest_release, lambda: fetch_kafka("4.4.0", tmp_path / "cache")):
        with pytest.raises(BadInput, match="no mvn on PATH") as caught:
            call()
        assert "apt-get install maven" in one_line(caught.value)
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_cached_release_needs_no_maven(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    (tmp_path / "4.4.0-layout1").mkdir()
    jars = fetch_kafka("4.4.0", tmp_path)
    assert (jars.version, jars.classpath) == ("4.4.0", f"{tmp_path}/4.4.0-layout1/*")


def test_a_test_jar_that_is_another_is_not_put_into_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A Maven of ours writes one byte where the jar should be."""
    maven = tmp_path / "bin" / "mvn"
    maven.parent.mkdir()
    maven.write_text(
        "#!/bin/sh\nfor each; do case $each in -DoutputDirectory=*) at=${each#*=};; esac; done\n"
        'mkdir -p "$at" && printf x >"$at/kafka-storage-4.3.1-test.jar"\n'
    )
    maven.chmod(0o755)
    monkeypatch.setenv("PATH", f"{maven.parent}:/usr/bin:/bin")
    with pytest.raises(BadInput, match=r"kafka-storage-4\.3\.1-test\.jar: its SHA-256 is 2d711642") as caught:
        fetch_kafka("4.3.1", tmp_path / "cache", test_jars=("kafka-storage",))
    assert "see where Maven takes its jars from" in one_line(caught.value)
    assert list((tmp_path / "cache").iterdir()) == []


@needs_maven
def test_offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MAVEN_OPTS", f"{UNREACHABLE} -Dmaven.repo.local={tmp_path / 'repository'}")
    with pytest.raises(BadInput, match=r"offline, could not fetch org\.apache\.kafka:kafka_2\.13:4\.4\.0") as caught:
        fetch_kafka("4.4.0", tmp_path / "cache")
    assert "see that this machine reaches Maven Central" in one_line(caught.value)
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_cache_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="name a writable directory with --cache"):
        fetch_kafka("4.4.0", tmp_path / "file" / "cache")


def test_the_cache_follows_xdg(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache() == tmp_path / "fencepost" / "kafka"
    # The specification: a relative path there is invalid and ignored.
    for value in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", value)
        assert default_cache() == Path.home() / ".cache" / "fencepost" / "kafka"
