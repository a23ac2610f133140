"""What the tests of the core share: fencing at given constants, and small protocols in files of their own."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from functools import cache
from pathlib import Path
from textwrap import dedent
from types import ModuleType

import pytest
from fencepost.model.core.errors import BadInput, BadText, ProtocolError
from fencepost.model.core.ground import System, ground
from fencepost.model.interpret.compiler import find_compiler
from fencepost.model.protocols.fencing import fencing

Fencing = Callable[..., System]

COMPILED = () if find_compiler() is None else ("compiled",)
"""The engine that needs a C compiler, where there is one."""

needs_compiler = pytest.mark.skipif(not COMPILED, reason="absent: a C compiler (CC, cc, gcc, clang, ziglang)")

CONSTANTS = ("replicas", "log_size", "max_records", "max_leader_epoch")


@cache
def _at(constants: str, variant: str, dropped: tuple[str, ...]) -> System:
    values = dict(zip(CONSTANTS, map(int, constants.split("/")), strict=True))
    return ground(fencing.traced(variant).drop(*dropped), values)


@pytest.fixture(scope="session")
def at() -> Fencing:
    """``at("3/2/2/2", "kip-101", "leader_write.log_not_full")``: a variant at constants, less the guards named."""

    def build(constants: str, variant: str = "kip-320", *dropped: str) -> System:
        return _at(constants, variant, dropped)

    return build


def small_enough(variant: str, *constants: str) -> tuple[str, ...]:
    """These constants, or smaller ones for a variant of KIP-497 or a running cluster: many times as many states."""
    if "asked_isr" in fencing.variables_of(variant):
        return ("2/1/1/1",)
    return ("2/1/1/0",) if "proposed" in fencing.variables_of(variant) else constants


TOY = """
from fencepost.model.core.algebra import EVERY, Update
from fencepost.model.core.domains import OPTIONAL_REPLICA, REPLICA, REPLICA_SET, Index, integers
from fencepost.model.core.enumeration import enumeration
from fencepost.model.core.protocol import ConstantSpec, Fair, Form, Protocol
from fencepost.model.core.terms import Sort

SLOT = Index("slot", Sort.INT, lambda c: c["slots"])
Phase = enumeration("phase", "idle", "busy")
Color = enumeration("color", "red", "green")
toy = Protocol(
    "toy",
    "a test",
    constants=(
        ConstantSpec("replicas", 2, 1, "the replicas"),
        ConstantSpec("slots", 2, 1, "the slots"),
    ),
)
toy.variable("count", "a number", integers(0, lambda c: c["slots"]))
toy.variable("item", "a number per slot", integers(0, lambda _: 9), per=(SLOT,))
toy.variable("held", "a number per replica and slot", integers(0, lambda _: 9), per=(REPLICA, SLOT))
toy.variable("owner", "a replica, or none", OPTIONAL_REPLICA, initially=-1)
toy.variable("group", "a set of replicas", REPLICA_SET, per=(REPLICA,))
toy.variable("phase", "what a replica does", Phase, per=(REPLICA,))
toy.variable("light", "a color", Color)
toy.variable("extra", "in the variant rich alone", integers(0, lambda _: 1), present=lambda rules: rules == "rich")
toy.variant("rich", "rich", "with one more variable")
toy.variant("plain", "plain", "without it")


@toy.action(replica=REPLICA, slot=SLOT)
def work(k, s, replica, slot):
    yield "free", s.held[replica, slot] == 0
    yield s.update(held={(replica, slot): 1}, owner=replica, phase={replica: Phase.busy})

"""
"""A protocol with a variable of every kind; tests go on from here."""


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., ModuleType]:
    """``toy(snippet)``: a file ``toy.py`` in the current directory, of ``TOY`` and the snippet, imported."""
    monkeypatch.chdir(tmp_path)

    def load(snippet: str = "", head: str = TOY) -> ModuleType:
        file = tmp_path / "toy.py"
        file.write_text(head + dedent(snippet), encoding="utf-8")
        spec = importlib.util.spec_from_file_location("toy_of_a_test", file)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


@pytest.fixture
def refused(toy: Callable[..., ModuleType], tmp_path: Path) -> Callable[..., str]:
    """``refused(snippet)``: what is said of such a file, in whatever variant, but for the place.

    The place must be the line that ends in ``# here``.
    """

    def told(snippet: str, head: str = TOY) -> str:
        def trace() -> None:
            module = toy(snippet, head)
            for variant in module.toy.variants or (None,):
                ground(module.toy.traced(variant), {})

        with pytest.raises(BadText) as caught:
            trace()
        error = caught.value
        lines = (tmp_path / "toy.py").read_text(encoding="utf-8").splitlines()
        marked = [number for number, line in enumerate(lines, 1) if line.endswith("# here")]
        assert isinstance(error, BadInput) and isinstance(error, ProtocolError)
        assert error.where == f"toy.py, line {marked[0]}", str(error)
        assert str(error) == f"{error.where}: {error.what}; {error.mend}" and "\n" not in str(error)
        return f"{error.what}; {error.mend}"

    return told
