"""The documents: their commands can be typed, their code runs, and their output is the commands' output."""

from __future__ import annotations

import importlib
import re
import shlex
import shutil
from html import unescape
from pathlib import Path

import pytest
from cyclopts import App, CycloptsError
from fencepost.conformance.cli import app, main
from fencepost.model.core.registry import REGISTRY
from fencepost.traces.kafka.negotiation import EPOCH_ENDS, FETCH, LATEST, METADATA, QUORUM
from fencepost.traces.kafka.releases.release import releases
from fencepost.traces.kafka.releases.support import support_table
from fencepost.traces.kafka.server_log.lines import LOGGERS
from fencepost.traces.kafka.server_log.quorum_lines import QUORUM_LOGGERS
from fencepost.traces.read import read_trace
from fencepost.traces.replay import replay
from fencepost.traces.standalone import app as standalone
from fencepost.traces.timeline.checkers import CHECKERS, check_timeline
from fencepost.traces.timeline.sources import read_sources
from fencepost.traces.timeline.timeline import Timeline

from .conftest import Fencepost

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


def text(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text(page), re.MULTILINE | re.DOTALL)


def commands(page: Path) -> list[str]:
    """The commands after a prompt, continued lines joined."""
    found = re.findall(r"^ *\$ ((?:.*\\\n)*.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return [each.replace("\\\n", " ") for each in found]


def parse(command: str) -> None:
    """Parse a command line, and execute nothing."""
    words = shlex.split(command.partition(" && ")[0])
    chosen: App | None = None
    if words[0] == "fencepost":
        chosen, words = app, words[1:]
    elif words[:3] == ["python", "-m", "fencepost.traces.standalone"]:
        chosen, words = standalone, words[3:]
    if chosen is not None:
        chosen.parse_args(words, exit_on_error=False, print_error=False)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_of_a_page_can_be_typed(page: Path) -> None:
    for command in commands(page):
        parse(command)


def test_links_of_the_readme_exist() -> None:
    """The site's build checks the links of all other pages."""
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(targets) > 20 and [each for each in targets if not (ROOT / each).exists()] == []


def test_wrong_commands_are_noticed() -> None:
    found = [command for page in PAGES for command in commands(page)]
    assert sum(command.startswith("fencepost ") for command in found) >= 40
    assert sum("traces.standalone" in command for command in found) >= 3
    for command in ("fencepost mine", "fencepost mine corpus --mastre local[2]", "fencepost dig corpus"):
        with pytest.raises(CycloptsError):
            parse(command)


OTHER_OPTIONS = {
    "benchmarks": {"--disk", "--ignore-prose", "--part", "--repeat", "--sample", "--seeds"},
    "findings": {"--control", "--keep"},
    "kafka-dump-log, kubectl": {"--cluster-metadata-decoder", "--prefix", "--print-data-log"},
    "the page's own protocol": {"--max-epoch"},
    "tests": {"--dist", "--nightly", "--random-seed", "--shard", "--strict"},
}
"""Options of other programs, by program."""


def test_options_of_the_pages_exist() -> None:
    known = set(re.findall(r"--[a-z][a-z-]+", app.generate_docs() + standalone.generate_docs()))
    known |= {f"--{name.replace('_', '-')}" for each in REGISTRY for name in REGISTRY[each].protocol.constants}
    known = known.union(*OTHER_OPTIONS.values())
    unknown = {
        (page.name, option)
        for page in (*PAGES, ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md")
        for option in re.findall(
            r"(?<![\w-])--[a-z][a-z-]+",
            re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL),
        )
        if option not in known
    }
    assert unknown == set() and "--mastre" not in known


def shown(page: Path, beginning: str) -> tuple[list[str], list[str]]:
    """The words of a page's command, continued lines joined, and the lines that follow it."""
    (found,) = re.findall(
        rf"^\$ fencepost ({re.escape(beginning)}(?:.*\\\n)*.*)\n((?:[^$`\n].*\n)*)",
        page.read_text(encoding="utf-8"),
        re.M,
    )
    return shlex.split(found[0].replace("\\\n", " ")), found[1].splitlines()


@pytest.mark.parametrize("beginning", ["explore fencing --variant kip-320 --replicas 2", "prove fencing"])
def test_readme_shows_output_of_its_command(beginning: str, fencepost: Fencepost) -> None:
    """Dots stand for the rest, and seconds are not compared."""
    command, lines = shown(ROOT / "README.md", beginning)
    printed = fencepost(*command).out.splitlines()
    for line in lines:
        start, _, rest = re.sub(r", [\d.]+ s$", ", ...", line).partition("...")
        numbers = re.findall(r'"\w+": [^,}]+', rest)
        assert any(each.startswith(start) and all(number in each for number in numbers) for each in printed), line


def test_check_tutorial_runs_and_its_picture_is_up_to_date(
    fencepost: Fencepost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = [fencepost(*shlex.split(each)[1:]) for each in commands(DOCS / "tutorials" / "check-a-cluster.md")]
    assert [each.code for each in done] == [0, 0, 1]
    picture = (DOCS / "images" / "check.svg").read_text(encoding="utf-8")
    pictured = "".join(unescape(re.sub(r"<[^>]*>", " ", picture)).split())
    unpictured = [word for word in done[-1].out.split() if "".join(word.split("kafka/failover/")) not in pictured]
    assert unpictured == [], "run python docs/generator/screenshots.py"


# The counterexamples of docs/findings.
COUNTEREXAMPLES = {
    page: re.findall(
        r"^\$ fencepost (explore (?:.*\\\n)*.*)\n((?: +\d+  .*\n)+BROKEN: .*)$",
        text(f"findings/{page}.md"),
        re.MULTILINE,
    )
    for page in ("k11", "k12", "tk1", "tk4", "h1")
}
STEP = re.compile(r" +[1-9]\d*  \w+\(|BROKEN: ")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("page", COUNTEREXAMPLES)
def test_counterexample_of_a_finding_is_printed(
    page: str, fencepost: Fencepost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the engine of the page: another engine may report another shortest counterexample."""
    monkeypatch.chdir(tmp_path)
    ((command, steps),) = COUNTEREXAMPLES[page]
    done = fencepost(*shlex.split(command.replace("\\\n", " ")))
    assert done.code == 1
    assert [line for line in done.out.splitlines() if STEP.match(line)] == steps.splitlines()


# The language's page is one protocol, and its table of mistakes has the errors.
LEASE = "\n\n".join(blocks("reference/language.md", "python"))
MISTAKES = re.findall(
    r"^\| `(.+?)` \| `(.+?)` \|$", text("reference/language.md").partition("## Mistakes")[2], re.MULTILINE
)


@pytest.fixture
def lease(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder without other protocols."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(REGISTRY, "_loaded", {})
    monkeypatch.setattr(REGISTRY, "_places", {})


def explore_lease(protocol: str, *options: str) -> int:
    Path("lease_of_the_page.py").write_text(protocol, encoding="utf-8")
    REGISTRY._loaded.clear()
    return main(["explore", "lease_of_the_page.py:lease", *options])


@pytest.mark.usefixtures("lease")
def test_language_protocol_holds_and_its_unsafe_variant_breaks(capsys: pytest.CaptureFixture[str]) -> None:
    assert explore_lease(LEASE, "--liveness") == 0
    out = capsys.readouterr().out
    assert "lease fenced (replicas 2, max_epoch 2): holds" in out
    assert "request_is_granted under fair-grants: holds" in out
    assert "sometimes two_epochs_wrote: 0" not in out
    assert explore_lease(LEASE, "--variant", "trusting") == 1
    assert "violated: newest_epoch_wrote_last" in capsys.readouterr().out


@pytest.mark.usefixtures("lease")
def test_language_mistakes_have_the_errors_of_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert len(MISTAKES) >= 16
    for guard, error in MISTAKES:
        protocol = LEASE + (
            "\n\n@lease.action(client=REPLICA)\ndef mistaken(k, s, client):\n"
            f'    yield "requested", {guard}\n    yield s.update(epoch=0)\n'
        )
        line = 1 + protocol[: protocol.rindex('yield "requested"')].count("\n")
        assert explore_lease(protocol) == 2, guard
        err = capsys.readouterr().err
        assert err.startswith(f"fencepost: lease_of_the_page.py, line {line}: {error}"), (guard, err)


# The Parquet file of the guide is ingested and mined; a wrong value in any column is found.
PARQUET = "how-to/ingest-parquet.md"


def test_parquet_of_the_guide_is_ingested_and_mined(
    fencepost: Fencepost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (code,) = blocks(PARQUET, "python")
    monkeypatch.chdir(tmp_path)
    exec(compile(code, PARQUET, "exec"), {})
    ingest, mine = commands(DOCS / PARQUET)
    done = fencepost(*shlex.split(ingest)[1:])
    assert done.code == 0 and "1 trace with 3 events in 1 file, " in done.out
    done = fencepost(*shlex.split(mine)[1:])
    assert done.code == 0 and done.out.splitlines()[0] in blocks(PARQUET, "console")[0]
    for right, wrong in (
        ('"leo[1]": [0, 0, 1]', '"leo[1]": [0, 0, 2]'),
        ('"quorum_isr": [0b11, 0b11, None]', '"quorum_isr": [0b01, 0b11, None]'),
        ('"leader[1]": [None, 1, 1]', '"leader[1]": [None, -1, 1]'),
        ('"p1": [None, 0, None]', '"p1": [None, 1, None]'),
    ):
        assert right in code
        exec(compile(code.replace(right, wrong), PARQUET, "exec"), {})
        shutil.rmtree("own")
        assert fencepost(*shlex.split(ingest)[1:]).code == 0
        assert fencepost(*shlex.split(mine)[1:]).code == 1, wrong


def test_trace_of_the_reference_replays(tmp_path: Path) -> None:
    (example,) = blocks("reference/trace-format.md", "json")
    path = tmp_path / "example.jsonl"
    for trace, verdict in ((example, "holds"), (example.replace('"hw[0]": 0', '"hw[0]": 1'), "violated")):
        path.write_text(trace, encoding="utf-8")
        assert replay(read_trace(path)).verdict.value == verdict


def test_releases_page_has_the_support_matrix() -> None:
    page = text("reference/releases.md")
    assert support_table() in page
    assert support_table().count("\n") == len(releases()) + 2 == 16
    for api in (METADATA, EPOCH_ENDS, LATEST, FETCH, QUORUM):
        assert f"| {api.name} | {api.versions[0]} to {api.versions[-1]} | {api.since} |" in page
    known = {api.observation for api in (EPOCH_ENDS, LATEST, FETCH)}
    assert all(f" | {observation} |" in page for observation in known)
    assert {each for release in releases() for each in release.record_lacks} <= known


def test_server_log_guide_has_the_loggers() -> None:
    page = text("how-to/read-server-logs.md")
    for name, level in (*LOGGERS.items(), *QUORUM_LOGGERS.items()):
        assert re.search(rf"name: {re.escape(name)}\n +level: {level}\n", page), name


def test_client_history_is_violated_on_the_lines_of_the_page(tmp_path: Path) -> None:
    (example,) = blocks("how-to/timeline-from-logs.md", "json")
    path = tmp_path / "history.jsonl"
    path.write_text(example, encoding="utf-8")
    (found,) = check_timeline(Timeline.of(read_sources([path]).observations)).contradictions
    assert (found.check, found.verdict) == ("acknowledged_record_skipped", "violated")
    assert {each.line for each in found.evidence} == {3, 6}


def test_timeline_page_has_a_row_for_each_check() -> None:
    page = text("how-to/timeline-from-logs.md")
    assert [each.name for each in CHECKERS if f"| `{each.name}` |" not in page] == []


def test_committed_diagrams_are_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DOCS / "generator"))
    diagrams = importlib.import_module("diagrams")
    for name, draw in diagrams.DIAGRAMS.items():
        drawn = (DOCS / "images" / name).read_text(encoding="utf-8")
        assert drawn == draw(), f"docs/images/{name}: run python docs/generator/diagrams.py"


def test_pages_show_small_pictures_from_here_alone() -> None:
    for path in sorted((DOCS / "images").iterdir()):
        assert 0 < path.stat().st_size < 200_000, path.name
        if path.suffix == ".svg":
            picture = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
            assert not re.search(r"https?:|@import|url\((?!#)", picture), path.name


def test_command_page_has_every_command_and_option(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DOCS / "generator"))
    page = importlib.import_module("cli_page").cli_page()
    sections = re.findall(r"^#{2,3} (.*)$", page, re.MULTILINE)
    assert {"fencepost explore", "fencepost check", "python -m fencepost.traces.standalone", "master", "worker"} <= set(
        sections
    )
    assert len(sections) == len(set(sections)) and "Table of Contents" not in sections
    for option in ("--max-states", "--way", "--until-idle", "--control", "--cores"):
        assert f"`{option}" in page, option


def test_protocol_page_has_every_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DOCS / "generator"))
    protocol_page = importlib.import_module("protocol_page").protocol_page
    action_diagram = importlib.import_module("action_diagram").action_diagram
    protocol = REGISTRY["fencing"].protocol
    page, traced = protocol_page(REGISTRY["fencing"]), protocol.traced()
    names = [*protocol.constants, *protocol.variants, *protocol.liveness, *traced.variables, *traced.invariants]
    names += [guard for action in traced.actions for guard, _ in action.guards]
    assert [name for name in names if f"`{name}`" not in page] == []
    assert "| `kip-320` | none | 737,794 | 26 |" in page and "| `kip-320` | none | 260 |" in page
    diagram = action_diagram(protocol)
    assert all(f">{name}</text>" in diagram for name in (*traced.variables, *(each.name for each in traced.actions)))
