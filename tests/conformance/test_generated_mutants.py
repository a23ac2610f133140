"""Generated mutants: what each operator makes of a text, what is left alone, what is drawn, what is passed over."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from fencepost import impl
from fencepost.conformance.executed import Executed
from fencepost.conformance.harness import find_harness
from fencepost.conformance.mutants.generated.drawing import Drawing, Mutant, candidates
from fencepost.conformance.mutants.generated.equivalent import Equivalent
from fencepost.conformance.mutants.generated.recording import lines_run
from fencepost.conformance.mutants.generated.source import drivers_of, files_driven, our_source, texts_of
from fencepost.conformance.mutants.generated.text import Edit, Text, compiled, fingerprint
from fencepost.conformance.mutants.generated.witness import ASPECTS, watched_world
from fencepost.impl.files.simulated import SimulatedFiles
from fencepost.impl.net.simulated import SimulatedNetwork
from fencepost.impl.wire.errors import ErrorCode
from fencepost.impl.wire.messages import AlterIsrResponse, Envelope, TopicPartition
from fencepost.model.core.errors import BadInput
from fencepost.model.core.registry import REGISTRY

IMPL = Path(impl.__path__[0])


def text_of(source: str) -> Text:
    return Text("log.py", dedent(source).lstrip("\n"))


def made(operator: str, body: str, head: str = "def f(self, a, b, epoch, other_epoch, offset):") -> set[str]:
    """The bodies that an operator makes of one, each as it is written."""
    lines = dedent(body).strip("\n").splitlines()
    source = "\n".join((head, *(f"    {line}" for line in lines))) + "\n"
    text = Text("log.py", source)
    found = set()
    for each in candidates(text):
        if each.operator == operator:
            changed = text.applied(each.edit)
            compiled(changed, "log.py")
            found.add("\n".join(line[4:] for line in changed.splitlines()[1:]).strip())
    return found


@pytest.mark.parametrize(
    ("operator", "before", "after"),
    [
        ("comparison", "return a < b", {"return a <= b"}),
        ("comparison", "return a >= b", {"return a > b"}),
        ("comparison", "return a == b", {"return a != b", "return a >= b", "return a <= b"}),
        ("comparison", "return a is not None", {"return a is None"}),
        ("comparison", "return a not in b", {"return a in b"}),
        ("comparison", "return (a) <= b < 3", {"return (a) < b < 3", "return (a) <= b <= 3"}),
        ("comparison", "return a == ErrorCode.NONE", {"return a != ErrorCode.NONE"}),
        ("negation", "if a < b:\n    self.x = 1", {"if not (a < b):\n    self.x = 1"}),
        ("negation", "return a if not b else 0", {"return a if b else 0"}),
        ("negation", "return {x for x in a if x}", {"return {x for x in a if True}", "return {x for x in a if not x}"}),
        ("and-or", "return a and b", {"return (a or b)", "return a", "return b"}),
        ("and-or", "return a < 1 or b", {"return ((a < 1) and b)", "return (a < 1)", "return b"}),
        ("min-max", "return min(a, b)", {"return max(a, b)"}),
        ("off-by-one", "return a + 1", {"return (a)", "return a + 2", "return a + 0"}),
        ("off-by-one", "return a[0]", {"return a[1]", "return a[(-1)]"}),
        ("off-by-one", "return a - b", {"return (a - b + 1)", "return (a - b - 1)"}),
        ("off-by-one", "a(self._end)", {"a(self._end + 1)", "a(self._end - 1)"}),
        ("swapped", "b(epoch, a, other_epoch)", {"b(other_epoch, a, epoch)"}),
        ("swapped", "b(epoch, offset)", {"b(offset, epoch)"}),
        ("left-out", "return {a, b}", {"return {b}", "return {a}"}),
        ("left-out", "return a | b", {"return (a)", "return (b)"}),
        ("left-out", "return a - {b}", {"return (a)"}),
        ("flag", "self.fenced = True", {"self.fenced = False"}),
        ("forgotten", "self.end = a", {"pass"}),
        ("forgotten", "a = 1\na = b", {"pass\na = b", "a = 1\npass"}),
        ("forgotten", "fresh = b\nreturn fresh", set()),  # without it the name has no value
        ("forgotten", "if a:\n    raise KeyError(b)\nreturn b", {"if a:\n    pass\nreturn b"}),
        ("forgotten", "if a:\n    return 1\nreturn b", {"if a:\n    pass\nreturn b"}),
        ("unsynced", "self._log.flush()\nself.x()", {"pass\nself.x()"}),
        ("not-reset", "self.members, self.proposed = a, b", {"self.proposed = b", "self.members = a"}),
        ("not-reset", "self.waiting = None", {"pass"}),
        ("stale", "self.end = a\nself.send(self.end)", {"self.send(self.end)\nself.end = a"}),
        ("stale", "fresh = a\nb(fresh)", set()),
        ("too-early", "a()\nb()", {"a()\nreturn"}),
        ("too-early", "for x in a:\n    b(x)\nreturn b", {"for x in a:\n    b(x); break\nreturn b"}),
        ("too-early", "for x in a:\n    continue\nreturn b", {"for x in a:\n    break\nreturn b"}),
    ],
)  # fmt: skip
def test_an_operator_makes_exactly_these(operator: str, before: str, after: set[str]) -> None:
    assert made(operator, before) == after


@pytest.mark.parametrize(
    "source",
    [
        "LIMIT = 3\n",
        "class A:\n    x: int = 3\n\n    def __repr__(self):\n        return str(1 + 2)\n",
        'def f():\n    """Text of 1."""\n',
        "def f(a):\n    assert a == 1, a + 1\n",
        "def f(a, retries=3) -> 'a < b':\n    x: 'a < 1'\n",
        "def f(a):\n    logger.info('at', a + 1)\n    self._log.warning(a < 1)\n    self.metrics.a(1)\n    print(1)\n",
    ],
)  # fmt: skip
def test_what_only_says_something_is_left_alone(source: str) -> None:
    assert candidates(Text("log.py", source)) == []


def test_what_is_raised_may_be_forgotten_and_its_text_is_left_alone() -> None:
    text = text_of("""
        def f(a):
            raise KeyError(f"{a + 1} is too much", 3)
        """)
    assert {each.operator for each in candidates(text)} == {"forgotten"}


def test_a_partitions_log_is_no_logger() -> None:
    assert made("forgotten", "self._log.append(a)") == {"pass"}


def test_a_change_keeps_every_other_line_where_it_was() -> None:
    text = text_of("""
        def f(a):
            if a:
                a.x = (
                    1,
                    2,
                )
                a.y()
            return a.z
        """)
    for each in candidates(text):
        changed = text.applied(each.edit)
        assert changed.count("\n") == text.source.count("\n")
        last = changed.splitlines()[-1]
        assert last == "    return a.z" or each.line == 8


@pytest.mark.parametrize("file", sorted({file for name in REGISTRY for file in files_driven(name)}))
def test_every_change_of_a_protocols_code_compiles(file: str) -> None:
    text = Text(file, (IMPL / file).read_text(encoding="utf-8"))
    found = candidates(text)
    assert len(found) > 10
    for each in found[:: 1 + len(found) // 40]:
        changed = text.applied(each.edit)
        compiled(changed, file)
        assert changed.count("\n") == text.source.count("\n")
        assert text.diff(each.edit).startswith(f"--- a/{file}\n+++ b/{file}\n@@ ")


def test_each_protocol_says_what_its_systems_run() -> None:
    for name in REGISTRY:
        harness = find_harness(name)
        assert harness is not None and harness.drives == tuple(sorted(set(harness.drives)))
        assert all((IMPL / file).is_file() for file in harness.drives)
    assert drivers_of("log/epochs.py") == ["fencing", "snapshots", "truncation"]
    assert drivers_of("quorum/metrics.py") == []


# What does the same.


def test_the_same_code_is_known_by_its_bytecode_alone() -> None:
    def of(source: str) -> object:
        return fingerprint(compiled(source, "log.py"))

    assert of("def f(a):\n    return (a)\n") == of("# said otherwise\n\ndef f(a): return a\n")
    assert of("def f():\n    return 1\n") != of("def f():\n    return True\n")
    assert of("def f():\n    return 1\n") != of("def f():\n    return 1.0\n")
    assert of("def f(a):\n    def g():\n        return a\n") != of("def f(a):\n    def g():\n        return 1\n")
    assert of("def f(a=1):\n    return a\n") != of("def f(a=2):\n    return a\n")


def test_what_compiles_to_the_same_is_passed_over_and_what_comes_again_too() -> None:
    text = text_of("""
        def f(a):
            if a:
                a.x()
                return
        """)
    drawing = Drawing([text], 0)
    drawn = list(drawing)
    assert drawing.equivalent == 1  # it ends there without the last return too
    assert drawing.repeated == 1  # to give up before the call is to forget it
    codes = {fingerprint(compiled(each.text, text.file)) for each in drawn}
    assert len(codes) == len(drawn) and text.fingerprint not in codes


# What is drawn.


def drawn(seed: int, count: int, files: tuple[str, ...] = ("replica/*.py",)) -> list[Mutant]:
    return list(islice(Drawing(texts_of(our_source(["fencing"], files)), seed), count))


def test_the_same_seed_gives_the_same_list_and_a_longer_one_begins_with_it() -> None:
    assert drawn(7, 12) == drawn(7, 12)
    assert drawn(7, 30)[:12] == drawn(7, 12)
    assert drawn(8, 12) != drawn(7, 12)
    names = [each.name for each in drawn(7, 60)]
    assert len(set(names)) == len(names)


def test_lines_are_drawn_alike_however_much_can_be_changed_in_them() -> None:
    crowded = "    return (a + 1 < b + 1) and (a - 1 < b - 1) and (a + 2 < b + 2) and min(a, b) > 3\n"
    text = Text("log.py", f"def f(a, b):\n    a.x()\n{crowded}")
    first = [next(iter(Drawing([text], seed))).lines[0] for seed in range(200)]
    assert 60 < first.count(2) < 140


def test_every_mutant_is_drawn_in_the_end() -> None:
    text = Text("log.py", "def f(a, b):\n    if a < b:\n        a.x = b\n    return a\n")
    drawing = Drawing([text], 3)
    found = len(list(drawing))
    assert found + drawing.equivalent + drawing.repeated == len(candidates(text))


def test_a_mutant_survives_its_way_to_a_worker() -> None:
    (mutant,) = drawn(1, 1)
    assert Mutant.from_json(mutant.to_json()) == mutant


def test_an_argument_is_for_the_change_and_not_for_a_line_number() -> None:
    text = Text("log.py", "def f(a, b):\n    return a < b\n")
    moved = Text("log.py", "# One line more.\ndef f(a, b):\n    return a < b\n")
    argued = Equivalent("log.py", "f", "return a < b", "return a <= b", "they are never equal")
    for each in (text, moved):
        hits = [mutant for mutant in Drawing([each], 0) if argued.is_for(mutant)]
        assert len(hits) == 1 and hits[0].words == ("return a < b", "return a <= b")


def test_a_pattern_that_fits_no_file_is_refused() -> None:
    with pytest.raises(BadInput, match=r"no file is called 'replica/nothing\.py'"):
        our_source(["fencing"], ["replica/nothing.py"])


def test_an_edit_may_touch_several_lines() -> None:
    text = Text("log.py", "def f(a):\n    a.x(\n        1,\n    )\n    a.y()\n")
    edit = Edit(text.source.index("a.x"), text.source.index("\n    a.y"), "pass")
    assert list(text.lines_of(edit)) == [2, 3, 4]
    assert text.applied(edit) == "def f(a):\n    pass\n\n\n    a.y()\n"


# What is seen of a system.


def test_what_is_written_and_what_would_survive_are_seen_apart() -> None:
    with watched_world() as world:
        files = SimulatedFiles(0)
        first = world.seen(None, {}, None)
        file = files.open("log", create=True)
        file.append(b"a record")
        written = world.seen(None, {}, None)
        file.fsync()
        synced = world.seen(None, {}, None)
        again = world.seen(None, {}, None)
    assert len({first, written, synced}) == 3 and synced == again
    at = ASPECTS.index("files")
    assert all(one[:at] == other[:at] for one, other in ((first, written), (written, synced)))
    assert SimulatedFiles(0) not in world.disks and world.disks == [files]


def test_each_aspect_is_seen_and_messages_once() -> None:
    class Telling:
        def evidence(self) -> str:
            return "more"

    with watched_world() as world:
        quiet = world.seen(None, {}, None)
        SimulatedNetwork(0).send(Envelope(0, 1, 7, AlterIsrResponse(ErrorCode.NONE, TopicPartition("t", 0))))
        sent = world.seen(None, {}, None)
        assert world.seen(None, {}, None) == quiet
        others = [world.seen("an answer", {}, None), world.seen(None, {"leo[0]": 1}, None), sent]
        others.append(world.seen(None, {}, Telling()))
    differ = [[name for name, a, b in zip(ASPECTS, quiet, seen, strict=True) if a != b] for seen in others]
    assert differ == [["answers"], ["observations"], ["messages"], ["evidence"]]


def test_lines_that_ran_are_those_of_statements(tmp_path: Path) -> None:
    path = tmp_path / "some.py"
    path.write_text(
        "def f(a):\n    b = [\n        x\n        for x in a\n    ]\n    if b:\n        return 1\n    return 2\n"
    )
    executed = Executed([path])
    namespace: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), namespace)
    with executed.watching():
        namespace["f"]([])
    ran = lines_run(executed, path)
    assert {2, 3, 4, 5, 6, 8} <= ran and 7 not in ran
