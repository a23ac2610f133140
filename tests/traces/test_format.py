"""The trace format: its schema, reading, writing, and every kind of bad input by file and line."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fencepost.model.core.errors import BadInput
from fencepost.traces.format import Trace, TraceEvent, TraceHeader, json_line, trace_schema
from fencepost.traces.read import MAX_LINE, MAX_PROBLEMS, TraceReader, read_trace, scan_trace
from fencepost.traces.record import record
from fencepost.traces.write import write_events, write_trace
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

Model = Any
Walk = Any

HEADER = {
    "format": "fencepost-trace",
    "version": 1,
    "protocol": "fencing",
    "variant": "kip-320",
    "constants": {"replicas": 2, "log_size": 2, "max_records": 2, "max_leader_epoch": 2},
    "complete": True,
}
EVENTS: list[dict[str, Any]] = [
    {"step": 1, "action": "controller_elect_leader", "params": {"new_leader": 0}, "observed": {"quorum_leader": 0}},
    {"step": 2, "action": "become_leader", "params": {"leader": 0, "epoch": 0}, "observed": {"isr[0]": [0, 1]}},
    {"step": 4, "action": "leader_write", "params": {"leader": None}, "observed": {"record_id[0][0]": 0}},
    {"step": 9, "observed": {"leader[1]": None, "hw[0]": 0}, "source": {"file": "broker-0"}},
]


def definition(name: str) -> Draft202012Validator:
    return Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": trace_schema()["$defs"]})


def lines_of(header: dict[str, Any] | None = None, events: list[Any] | None = None) -> list[bytes]:
    items = [header or HEADER, *(EVENTS if events is None else events)]
    return [json.dumps(item).encode() + b"\n" for item in items]


def changed(number: int, **fields: Any) -> list[bytes]:
    """The sample with fields of one line changed (0: the header); a field set to ``...`` is taken away."""
    items = [dict(HEADER), *(dict(each) for each in EVENTS)]
    items[number] |= fields
    for name, value in fields.items():
        if value is ...:
            del items[number][name]
    return [json.dumps(item).encode() + b"\n" for item in items]


def replaced(number: int, line: bytes) -> list[bytes]:
    found = lines_of()
    found[number] = line
    return found


def scan_lines(lines: list[bytes]) -> tuple[TraceReader, list[TraceEvent]]:
    reader = TraceReader(io.BytesIO(b"".join(lines)), "t.jsonl")
    return reader, list(reader)


def test_reads_the_reason_of_a_partial_trace() -> None:
    reader, events = scan_lines(changed(0, partial="the log of node 2 ends early"))
    assert reader.problems == [] and reader.header is not None and len(events) == len(EVENTS)
    assert reader.header.partial == "the log of node 2 ends early"
    definition("header").validate(reader.header.to_json())
    assert scan_lines(lines_of())[0].header == TraceHeader("fencing", "kip-320", HEADER["constants"], True)


@pytest.mark.parametrize("partial", ["", True, None, 3])
def test_rejects_a_partial_trace_without_a_reason(partial: object) -> None:
    reader, _ = scan_lines(changed(0, partial=partial))
    assert [each.mend for each in reader.problems] == ["give the reason, or leave it out"]
    assert not definition("header").is_valid(HEADER | {"partial": partial})


def test_the_schema_is_a_schema() -> None:
    Draft202012Validator.check_schema(trace_schema())
    assert trace_schema()["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_the_sample_is_right_by_schema_and_reader() -> None:
    assert definition("header").is_valid(HEADER)
    assert all(definition("event").is_valid(event) for event in EVENTS)
    reader, events = scan_lines(lines_of())
    assert reader.problems == []
    assert reader.header is not None
    assert reader.header.complete
    assert [event.line for event in events] == [2, 3, 4, 5]
    assert events[1].observed == {"isr[0]": (0, 1)}
    assert events[2].call == "leader_write(leader=?)"
    assert events[3].action is None


@settings(deadline=None)
@given(st.lists(st.integers(0, 1000), max_size=25), st.data())
def test_a_trace_survives_the_file(model: Model, walk: Walk, choices: list[int], data: st.DataObject) -> None:
    stepper = model()
    names = data.draw(st.sets(st.sampled_from(list(stepper.layout.by_variable))))
    source = {"seed": 7, "why": "naïve \u2028 \ud800 text", "deep": [{"a": None}]}
    trace = record(stepper.system, walk(stepper, choices), variables=names, source=source)
    lines = [json_line(trace.header), *(json_line(event) for event in trace.events)]
    reader, events = scan_lines([line.encode() for line in lines])
    assert reader.problems == []
    assert reader.header is not None
    assert Trace(reader.header, tuple(events)) == trace
    header, *rest = (json.loads(line) for line in lines)
    definition("header").validate(header)
    for each in rest:
        definition("event").validate(each)


BAD: list[tuple[str, list[bytes], int, str, bool]] = [
    # what is wrong; the file; the line that is named; words of the message; whether the schema can see it
    ("no header", lines_of()[1:], 1, "the header is missing", True),
    ("other format", changed(0, format="jepsen"), 1, 'the format is "jepsen"', True),
    ("no version", changed(0, version=...), 1, "version is missing", True),
    ("version 2", changed(0, version=2), 1, "version is 2", True),
    ("version true", changed(0, version=True), 1, "version is true", False),
    ("no protocol", changed(0, protocol=...), 1, "protocol of the header is missing", True),
    ("unknown protocol", changed(0, protocol="paxos"), 1, 'unknown protocol "paxos"', False),
    ("unknown variant", changed(0, variant="kip-999"), 1, 'no variant "kip-999"', False),
    ("no constants", changed(0, constants=...), 1, "constants of the header are missing", True),
    ("constants as list", changed(0, constants=[3]), 1, "constants of the header are [3]", True),
    (
        "unknown constant",
        changed(0, constants={**HEADER["constants"], "brokers": 1}),  # type: ignore[dict-item]
        1,
        'no constant "brokers"',
        False,
    ),
    (
        "missing constant",
        changed(0, constants={"replicas": 2, "log_size": 2, "max_records": 2}),
        1,
        "the constant max_leader_epoch is missing",
        False,
    ),
    (
        "constant out of range",
        changed(0, constants={**HEADER["constants"], "log_size": 0}),  # type: ignore[dict-item]
        1,
        "the constant log_size is 0",
        False,
    ),
    (
        "constant as text",
        changed(0, constants={**HEADER["constants"], "log_size": "2"}),  # type: ignore[dict-item]
        1,
        'the constant "log_size" is "2"',
        True,
    ),
    ("complete as text", changed(0, complete="yes"), 1, 'complete of the header is "yes"', True),
    ("header field unknown", changed(0, varient="kip-320"), 1, 'the header has a field "varient"', True),
    ("no step", changed(2, step=...), 3, "the step number is missing", True),
    ("step as text", changed(2, step="2"), 3, 'the step number is "2"', True),
    ("step as bool", changed(2, step=True), 3, "the step number is true", True),
    ("negative step", changed(1, step=-1), 2, "the step number is -1", True),
    ("step repeated", changed(2, step=1), 3, "step 1 comes after step 1 of line 2", False),
    ("step back", changed(4, step=3), 5, "step 3 comes after step 4 of line 4", False),
    ("unknown action", changed(2, action="become_king"), 3, 'no action "become_king"', False),
    ("action of another variant", changed(2, action="follower_truncate"), 3, 'no action "follower_truncate"', False),
    ("action as number", changed(2, action=7), 3, "the action is 7", True),
    ("missing parameter", changed(2, params={"leader": 0}), 3, "become_leader lacks its parameter epoch", False),
    ("extra parameter", changed(1, params={"new_leader": 0, "x": 1}), 2, 'no parameter "x"', False),
    (
        "parameter as text",
        changed(1, params={"new_leader": "0"}),
        2,
        'new_leader of controller_elect_leader is "0"; give an integer from 0 to 1, or null',
        True,
    ),
    ("parameter as bool", changed(1, params={"new_leader": False}), 2, 'the parameter "new_leader" is false', True),
    ("parameter out of range", changed(1, params={"new_leader": 2}), 2, "new_leader of controller_elect", False),
    ("params as list", changed(1, params=[0]), 2, "params are [0]", True),
    ("params with no action", changed(4, params={"leader": 0}), 5, "there are params but no action", True),
    ("unknown variable", changed(2, observed={"epoch": 1}), 3, 'no variable for the cell "epoch"', False),
    ("unknown cell", changed(2, observed={"leo[2]": 1}), 3, 'no cell "leo[2]"', False),
    ("cell without index", changed(2, observed={"leo": 1}), 3, 'no cell "leo"', False),
    ("cell as text", changed(2, observed={"leo[0]": "1"}), 3, 'leo[0] is observed as "1"', True),
    ("cell as bool", changed(2, observed={"leo[0]": True}), 3, "leo[0] is observed as true", True),
    ("cell as float", changed(2, observed={"leo[0]": 1.5}), 3, "leo[0] is observed as 1.5", True),
    ("cell out of domain", changed(2, observed={"leo[0]": 3}), 3, "leo[0] is observed as 3", False),
    ("number for a set", changed(2, observed={"isr[0]": 1}), 3, "isr[0] is observed as 1", False),
    ("set not sorted", changed(2, observed={"isr[0]": [1, 0]}), 3, "isr[0] is observed as [1, 0]", False),
    ("set with a double", changed(2, observed={"isr[0]": [1, 1]}), 3, "isr[0] is observed as [1, 1]", True),
    ("set of a stranger", changed(2, observed={"isr[0]": [0, 2]}), 3, "isr[0] is observed as [0, 2]", False),
    ("null for an offset", changed(2, observed={"leo[0]": None}), 3, "leo[0] is observed as null", False),
    ("-1 for no leader", changed(2, observed={"leader[0]": -1}), 3, "leader[0] is observed as -1", False),
    ("observed as list", changed(2, observed=["leo[0]"]), 3, 'observed is ["leo[0]"]', True),
    ("event field unknown", changed(2, observd={}), 3, 'the event has a field "observd"', True),
    ("source as text", changed(2, source="b0"), 3, 'source of the event is "b0"', True),
    ("not JSON", replaced(2, b'{"step": 2,,}\n'), 3, "not JSON", False),
    ("two objects", replaced(2, b'{"step": 2} {"step": 3}\n'), 3, "not JSON: Extra data", False),
    ("not an object", replaced(2, b"[1, 2]\n"), 3, "the line holds [1, 2]", True),
    ("null", replaced(2, b"null\n"), 3, "the line holds null", True),
    ("NaN", replaced(2, b'{"step": 2, "observed": {"hw[0]": NaN}}\n'), 3, "NaN is no JSON number", False),
    ("key twice", replaced(2, b'{"step": 2, "step": 3}\n'), 3, 'the key "step" stands twice', False),
    ("not UTF-8", replaced(2, b'{"step": 2, "action": "\xff"}\n'), 3, "byte 23 of the line is not UTF-8", False),
    ("byte order mark", replaced(0, b"\xef\xbb\xbf" + lines_of()[0]), 1, "not JSON: Unexpected UTF-8 BOM", False),
    ("cut off", [*lines_of()[:4], lines_of()[4][:20]], 5, "the file ends in the middle of this line", False),
    ("nested too deep", replaced(2, b'{"step": ' + b"[" * 200_000 + b"\n"), 3, "nested too deeply", False),
    ("endless number", replaced(2, b'{"step": ' + b"9" * 10_000 + b"}\n"), 3, "too many digits", False),
    ("huge line", replaced(2, b'{"step": "' + b"x" * (3 * MAX_LINE) + b'"}\n'), 3, "the line is longer than", False),
    ("empty file", [], 1, "the file is empty", False),
    ("blank file", [b"\n", b"  \n"], 2, "the header is missing", False),
]


@pytest.mark.parametrize(("lines", "line", "words", "by_schema"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_bad_input_is_one_line_that_names_the_place(
    tmp_path: Path, lines: list[bytes], line: int, words: str, by_schema: bool
) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"".join(lines))
    scan = scan_trace(path)
    assert len(scan.problems) == 1, [str(problem) for problem in scan.problems]
    told = str(scan.problems[0])
    assert told.startswith(f"{path}, line {line}")
    assert words in told
    assert told.isprintable()
    assert len(told) < len(str(path)) + 500
    with pytest.raises(BadInput, match="line") as caught:
        read_trace(path)
    assert str(caught.value) == told
    if by_schema:
        kind = "header" if line == 1 else "event"
        assert not definition(kind).is_valid(json.loads(lines[line - 1]))
    if line > 1 and len(lines) > 2:
        assert scan.header is not None
        good = [number for number in range(2, 6) if number != line]
        assert [event.line for event in scan.events] == good, "what could be read is still there"


def test_all_problems_of_a_file_are_found_in_one_pass(tmp_path: Path) -> None:
    lines = changed(0, variant="kip-1", protocol="fencing")
    lines[2] = b"garbage\n"
    lines[3] = b'{"step": "x", "action": 3, "params": 4}\n'
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"".join(lines))
    scan = scan_trace(path)
    places = [problem.where.removeprefix(f"{path}, ") for problem in scan.problems]
    assert places == ["line 1", "line 3, column 1", "line 4", "line 4", "line 4"]
    assert [event.step for event in scan.events] == [1, 9]


def test_a_file_of_garbage_gives_a_bounded_report(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"garbage\n" * 1000)
    problems = scan_trace(path).problems
    assert len(problems) == MAX_PROBLEMS + 1
    assert "950 more problems" in str(problems[-1])


@pytest.mark.parametrize("make", [lambda p: p / "absent.jsonl", lambda p: p, lambda p: p / "a\0b"])
def test_a_file_that_cannot_be_opened(tmp_path: Path, make: Callable[[Path], Path]) -> None:
    with pytest.raises(BadInput, match="cannot be read") as caught:
        scan_trace(make(tmp_path))
    assert str(caught.value).isprintable()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 5) | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
NAMES = st.sampled_from(
    ["leo[0]", "leo[1]", "isr[1]", "leader[0]", "quorum_isr", "record_id[0][1]", "x", "leo[ 0]", ""]
)
EVENT = st.fixed_dictionaries(
    {"step": st.integers(0, 9) | JSON},
    optional={
        "action": st.sampled_from(["leader_write", "follower_fetch", "x", None]) | JSON,
        "params": st.dictionaries(st.sampled_from(["leader", "follower"]), st.integers(0, 2) | JSON) | JSON,
        "observed": st.dictionaries(NAMES, st.lists(st.integers(-1, 2)) | JSON) | JSON,
        "source": JSON,
        "extra": JSON,
    },
)


@settings(deadline=None)
@given(EVENT)
def test_what_the_reader_accepts_the_schema_accepts(event: dict[str, Any]) -> None:
    reader, events = scan_lines(lines_of(events=[event]))
    assert bool(events) is not bool(reader.problems)
    if events:
        definition("event").validate(event)
    elif not definition("event").is_valid(event):
        assert reader.problems


@settings(deadline=None)
@given(st.lists(st.binary(max_size=40) | st.sampled_from(lines_of()), max_size=8))
def test_any_bytes_are_read_without_a_crash(lines: list[bytes]) -> None:
    reader, events = scan_lines(lines)
    assert reader.problems or reader.header
    assert all(str(problem).isprintable() for problem in reader.finish())
    assert all(event.line is not None for event in events)


def test_a_writer_that_fails_leaves_the_old_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text("old")
    header = TraceHeader("fencing", "kip-320", {"replicas": 2})

    def events() -> Any:
        yield TraceEvent(1)
        assert path.read_text() == "old", "nothing shows under the final name before the end"
        raise RuntimeError("the recorder died")

    with pytest.raises(RuntimeError):
        write_events(path, header, events())
    assert path.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["t.jsonl"]


def test_a_writer_replaces_the_file_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text("old")
    trace = Trace(TraceHeader("fencing", "kip-320", HEADER["constants"]), (TraceEvent(3), TraceEvent(5)))  # type: ignore[arg-type]
    write_trace(path, trace)
    assert read_trace(path) == trace
    assert [each.name for each in tmp_path.iterdir()] == ["t.jsonl"]


def test_a_writer_refuses_steps_out_of_order_and_places_that_are_not_there(tmp_path: Path) -> None:
    header = TraceHeader("fencing", "kip-320", {"replicas": 2})
    with pytest.raises(ValueError, match="step 1 after step 1"):
        write_events(tmp_path / "t", header, [TraceEvent(1), TraceEvent(1)])
    with pytest.raises(BadInput, match="cannot be written"):
        write_events(tmp_path / "no" / "t", header, [])
    with pytest.raises(BadInput, match="cannot be written"):
        write_events(tmp_path, header, [])
    assert list(tmp_path.iterdir()) == []
