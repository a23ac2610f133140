"""The text of a protocol from elsewhere, in a process that may have another of its name."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fencepost.conformance.scaffold import write_new
from fencepost.model.core.errors import BadInput
from fencepost.model.core.registry import PROTOCOLS, REGISTRY
from fencepost.traces import shipping
from fencepost.traces.shipping import OtherTextError, Text, carried, digest_of, install, texts
from fencepost.traces.spark import collected, spark_session

NAME = "two_phase"
GUARD = 'yield "all_prepared"'
MODULES = (NAME, "beside_it")


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process that has not heard of the protocol."""
    monkeypatch.setattr(REGISTRY, "_loaded", {})
    monkeypatch.setattr(REGISTRY, "_places", {})
    monkeypatch.setattr(shipping, "_installed", set())
    monkeypatch.setattr(shipping._memory, "sources", {})
    for name in MODULES:
        sys.modules.pop(name, None)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A protocol in two files."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    forget(monkeypatch)
    write_new(NAME, tmp_path)
    text = (tmp_path / f"{NAME}.py").read_text()
    assert GUARD in text
    (tmp_path / "beside_it.py").write_text("WORD = 1\n")
    (tmp_path / f"{NAME}.py").write_text(text.replace("\nPhase = ", "\nimport beside_it  # noqa\n\nPhase = "))
    yield tmp_path
    for name in MODULES:
        sys.modules.pop(name, None)


def shipped(folder: Path) -> tuple[Text, ...]:
    REGISTRY.named(f"{folder / NAME}.py:{NAME}")
    found = texts()
    assert [(text.protocol, [source.module for source in text.sources]) for text in found] == [
        (NAME, ["beside_it", NAME])
    ]
    return found


def another(folder: Path, to: Path) -> None:
    """A file of the same name with a guard of another name."""
    text = (folder / f"{NAME}.py").read_text()
    to.mkdir(exist_ok=True)
    (to / f"{NAME}.py").write_text(text.replace(GUARD, 'yield "every_one_prepared"'))


def test_a_process_that_lacks_the_text_has_it_then(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    came = shipped(folder)
    forget(monkeypatch)
    install(came)
    assert digest_of(REGISTRY[NAME].protocol) == came[0].digest
    # And one that imported the same text itself is left as it is.
    forget(monkeypatch)
    own = REGISTRY.named(f"{folder / NAME}.py:{NAME}")
    install(came)
    assert REGISTRY[NAME] is own


def test_another_module_of_the_name_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An installed package, say, that the worker imported before."""
    came = shipped(folder)
    forget(monkeypatch)
    another(folder, tmp_path / "other")
    REGISTRY.named(f"{tmp_path / 'other' / NAME}.py:{NAME}")
    with pytest.raises(OtherTextError, match=rf"another module of the name '{NAME}', .*other.{NAME}\.py, which"):
        install(came)


def test_another_module_beside_it_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (text,) = shipped(folder)
    forget(monkeypatch)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "beside_it.py").write_text("WORD = 2\n")
    monkeypatch.syspath_prepend(tmp_path / "other")
    __import__("beside_it")
    with pytest.raises(OtherTextError, match="another module of the name 'beside_it'"):
        install((text,))


def test_another_protocol_of_the_name_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whatever module it is from."""
    came = shipped(folder)
    forget(monkeypatch)
    another(folder, tmp_path / "other")
    (tmp_path / "other" / f"{NAME}.py").rename(tmp_path / "other" / "elsewhere.py")
    monkeypatch.syspath_prepend(folder)
    REGISTRY.named(f"{tmp_path / 'other' / 'elsewhere'}.py:{NAME}")
    with pytest.raises(OtherTextError, match=rf"^{NAME}:{NAME}: a worker reads another protocol of the name '{NAME}'"):
        install(came)


def test_a_file_that_was_changed_after_it_was_read_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is sent is what the file holds by then; the process that sends it goes by what it read."""
    REGISTRY.named(f"{folder / NAME}.py:{NAME}")
    another(folder, folder)
    came = texts()
    forget(monkeypatch)
    with pytest.raises(OtherTextError, match="a worker reads another protocol"):
        install(came)


def test_a_file_that_is_no_protocol_any_more_is_told_by_its_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    REGISTRY.named(f"{folder / NAME}.py:{NAME}")
    (folder / f"{NAME}.py").write_text("half of a\n")
    came = texts()
    forget(monkeypatch)
    with pytest.raises(OtherTextError, match=rf"{NAME}\.py, line 1: importing it raised SyntaxError"):
        install(came)


def test_a_text_that_was_changed_between_two_tasks_is_read_anew(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = shipped(folder)
    forget(monkeypatch)
    another(folder, folder)
    second = shipped(folder)
    assert second[0].digest != first[0].digest
    forget(monkeypatch)
    for came in (first, second, first):
        monkeypatch.setattr(shipping, "_installed", set())
        install(came)
        assert digest_of(REGISTRY[NAME].protocol) == came[0].digest


def test_a_digest_is_the_same_in_each_process_and_of_each_text_another() -> None:
    said = {name: digest_of(protocol) for name, protocol in PROTOCOLS.items()}
    assert len(set(said.values())) == len(said)
    code = (
        "from fencepost.model.core.registry import PROTOCOLS\nfrom fencepost.traces.shipping import digest_of\n"
        "print({name: digest_of(PROTOCOLS[name]) for name in reversed(list(PROTOCOLS))})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": "7"}
    )
    assert eval(done.stdout) == {name: said[name] for name in said}


@pytest.mark.spark
def test_a_worker_of_another_text_is_told_in_one_line(folder: Path) -> None:
    """The file is changed between reading and sending; Spark's workers are processes of their own."""
    REGISTRY.named(f"{folder / NAME}.py:{NAME}")
    another(folder, folder)
    session = spark_session("another text", "local[1]")
    rdd = session.sparkContext.parallelize([1], 1).map(carried(abs))
    with pytest.raises(BadInput, match=rf"^{NAME}:{NAME}: a worker reads another protocol of the name"):
        collected(rdd, lambda: None)
    session.stop()
