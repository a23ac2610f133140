"""Record a corpus: a real Apache Kafka cluster on loopback, killed and copied stage by stage.

    python -m fencepost.traces.kafka.record --out DIR [--scenario NAME] [--seed S] [--version V] [--keep-logs]

Exit codes: 0 recorded, 2 bad input (no Maven, no JVM, a directory that exists), 3 the cluster did not do in time what
the recording needs. Nothing is left under DIR unless all of it is.
"""

from __future__ import annotations

import base64
import importlib.metadata
import random
import sys
import tempfile
import textwrap
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import cyclopts

from ...model.core.errors import BadInput, FencepostError
from ...model.core.exit_code import ExitCode
from ...model.core.temporary_folder import TemporaryFolder
from ..jvm import java_binary, java_version
from ..run_app import run_module
from .capture import MANIFEST, Capture
from .client import Client
from .cluster import BROKER_IDS, CONTROLLER_ID, NODE_NAMES, Cluster, RecordingError
from .maven import ARTIFACT, fetch_kafka
from .scenario import Failover
from .scenario_compaction import Compaction
from .scenario_tiering import Tiering
from .staging import Staging

_README = """# Recorded corpus of broker data directories

Written by a real Apache Kafka {version} cluster (KRaft: three brokers and one controller, each a JVM of its own, on
loopback), and recorded by

    python -m fencepost.traces.kafka.record --out DIR{scenario} --version {version} --seed {seed}

The JVM was {jvm}.

{kept}

{stages}

{story}

{table}

To look at a stage, from this directory:

    fencepost check {example}
"""
SCENARIOS: dict[str, type[Staging]] = {each.NAME: each for each in (Failover, Compaction, Tiering)}
"""What can be recorded."""


def record(
    out: Path,
    *,
    seed: int = 1,
    version: str | None = None,
    cache: Path | None = None,
    keep_logs: bool = False,
    scenario: str = Failover.NAME,
) -> Path:
    """Record a corpus into the new directory `out`, and return it.

    `scenario` is one of `SCENARIOS`. `seed` decides payloads and the cluster's id. `version` and `cache` are those of
    `maven.fetch_kafka`. With `keep_logs`, everything that the processes printed and their whole
    data directories stay in ``OUT.run``. Raises `BadInput`, or `cluster.RecordingError` that names where those of the
    failed run are.
    """
    if scenario not in SCENARIOS:
        raise BadInput(f"{scenario!r} is no scenario", "--scenario", f"name one of {', '.join(SCENARIOS)}")
    kind = SCENARIOS[scenario]
    out = out.absolute()
    run = out.with_name(out.name + ".run")
    for taken in (out, run) if keep_logs else (out,):
        if taken.exists():
            raise BadInput("it exists already", str(taken), "name a new directory with --out, or remove that one")
    java = java_binary()
    jvm = java_version(java)
    jars = fetch_kafka(version or kind.VERSION, cache, test_jars=kind.TEST_JARS)
    _say(f"Apache Kafka {jars.version} on {jvm}; seed {seed}")
    began = time.monotonic()
    out.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryFolder(f".{out.name}-", out.parent) as home:
        (home / "corpus").mkdir()
        (home / "run").mkdir()
        capture = Capture(home / "corpus", kind.KEPT_NAMES, kind.KEPT_FOLDERS)
        try:
            with (
                Cluster(jars, java, home / "run", cluster_id(seed), kind.BROKER, kind.CONTROLLER) as cluster,
                Client(jars, java, home / "run" / "client.out") as client,
            ):
                cluster.format()
                staging = kind(cluster, client, capture, seed, _say)
                staging.run()
        except Exception as failed:
            kept = Path(tempfile.mkdtemp(prefix=f"{out.name}.failed-", dir=out.parent))
            (home / "run").rename(kept / "run")
            if isinstance(failed, FencepostError):
                raise RecordingError(f"{failed} (the nodes' output is in {kept / 'run'})") from failed
            raise
        capture.finish(
            {
                **({} if kind is Failover else {"scenario": scenario}),
                "kafka": {"artifact": ARTIFACT, "version": jars.version},
                "jvm": jvm,
                "seed": seed,
                "cluster_id": cluster.cluster_id,
                "brokers": list(BROKER_IDS),
                "controllers": [CONTROLLER_ID],
                "topics": {topic: list(replicas) for topic, replicas in kind.TOPICS.items()},
                "produced": staging.produced,
            },
            readme(capture.stages, jars.version, jvm, seed, scenario),
        )
        if keep_logs:
            (home / "run").rename(run)
        (home / "corpus").rename(out)
    _say(f"{out / MANIFEST}: {len(capture.stages)} stages in {time.monotonic() - began:.0f} s")
    return out


def readme(
    stages: Sequence[Mapping[str, Any]], version: str, jvm: str, seed: int, scenario: str = Failover.NAME
) -> str:
    """The README.md of a corpus, from the manifest's stages."""
    kind = SCENARIOS[scenario]
    listed = "\n".join(
        textwrap.fill(f"- `{stage['name']}`: {stage['what']}", 110, subsequent_indent="  ") for stage in stages
    )
    asked = "" if kind is Failover else f" --scenario {scenario}"
    nodes = NODE_NAMES.values() if kind is not Failover else [NODE_NAMES[id_] for id_ in BROKER_IDS]
    stage = kind.EXAMPLE
    return _README.format(
        version=version,
        jvm=jvm,
        seed=seed,
        scenario=asked,
        kept=kind.KEPT,
        stages=listed,
        story=kind.STORY,
        table="\n".join(kind.table(stages)),
        example=" ".join(f"{stage}/{node}" for node in nodes),
    )


def cluster_id(seed: int) -> str:
    """A cluster id as ``StorageTool random-uuid`` makes them (16 bytes in URL-safe Base64), but from `seed`."""
    made = random.Random(f"cluster-{seed}").randbytes(15)  # noqa: S311 - a name, not a secret
    return base64.urlsafe_b64encode(b"F" + made).decode().rstrip("=")  # never a leading dash


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


app = cyclopts.App(
    name="python -m fencepost.traces.kafka.record",
    help="Record the data directories of a real Apache Kafka cluster through one of several scenarios.",
    version=lambda: importlib.metadata.version("fencepost"),
)


@app.default
def command(
    *,
    out: Path,
    scenario: str = Failover.NAME,
    seed: int = 1,
    version: Annotated[str | None, cyclopts.Parameter(name="--version")] = None,
    cache: Path | None = None,
    keep_logs: bool = False,
) -> ExitCode:
    """Record a corpus.

    Parameters
    ----------
    out
        The directory to make; it must not exist.
    scenario
        failover: a clean failover and an unclean election. compacted: compacted topics, cleaned several times over a
        failover. tiered: tiered storage, and an empty follower that begins at the last tiered offset.
    seed
        Decides the payloads and the cluster's id.
    version
        The release of Apache Kafka; the newest that Maven Central has by default (tiered: 4.3.1, the newest with the
        test jar that has a remote storage manager).
    cache
        Where the jars are kept; $XDG_CACHE_HOME/fencepost/kafka by default.
    keep_logs
        Keep the nodes' output and whole data directories in OUT.run.
    """
    try:
        record(out, seed=seed, version=version, cache=cache, keep_logs=keep_logs, scenario=scenario)
    except BadInput as wrong:
        _say(str(wrong))
        return ExitCode.BAD_INPUT
    except FencepostError as failed:
        _say(str(failed))
        return ExitCode.UNKNOWN
    return ExitCode.DONE


def main() -> None:
    """Run the command line; SIGTERM ends it as an interrupt does, through every ``finally``."""
    run_module(app)


if __name__ == "__main__":
    main()
