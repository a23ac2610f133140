"""Record a corpus: a real Apache Kafka cluster on loopback, killed and copied stage by stage.

    python -m fencepost.traces.kafka.record --out DIR [--seed S] [--version V] [--keep-logs]

Exit codes: 0 recorded, 2 bad input (no Maven, no JVM, a directory that exists), 3 the cluster did not do in time what
the recording needs. Nothing is left under DIR unless all of it is.
"""

from __future__ import annotations

import base64
import importlib.metadata
import random
import signal
import sys
import tempfile
import textwrap
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import cyclopts

from ...model.core.errors import BadInput, FencepostError
from ..jvm import java_binary, java_version
from .capture import MANIFEST, Capture
from .client import Client
from .cluster import BROKER_IDS, CONTROLLER_ID, NODE_NAMES, Cluster, RecordingError
from .maven import ARTIFACT, fetch_kafka
from .scenario import TOPICS, Scenario

_README = """# Recorded corpus of broker data directories

Written by a real Apache Kafka {version} cluster (KRaft: three brokers and one controller, each a JVM of its own, on
loopback), and recorded by

    python -m fencepost.traces.kafka.record --out DIR --version {version} --seed {seed}

The JVM was {jvm}.

Each stage holds the data directories of all nodes at one instant: every process was stopped with SIGSTOP while they
were copied. Index files, producer state snapshots, the cleaner's checkpoint and lock files are left out; what is here
is byte for byte what Kafka wrote. `corpus.json` says for each stage how each node stood and what its logs
held, which records were produced, and each file's size and SHA-256. A run with the same seed produces the same
records; the ids and times that Kafka makes up itself differ.

{stages}

Three topics, one partition each, on brokers 1, 2 and 3, with `min.insync.replicas=1`: `orders` goes through the clean
failover, `payments` through the unclean election, and `mixed-compression` has every codec, null keys and values,
headers, a committed and an aborted transaction, several segments, and a log start offset inside a batch. The leader
epoch of each record, from offset 0 on, and the checkpointed high watermark:

{table}

To look at a stage, from this directory:

    fencepost check 3-clean-failover/broker-1 3-clean-failover/broker-2 3-clean-failover/broker-3
"""


def record(
    out: Path,
    *,
    seed: int = 1,
    version: str | None = None,
    cache: Path | None = None,
    keep_logs: bool = False,
) -> Path:
    """Record a corpus into the new directory `out`, and return it.

    `seed` decides payloads and the cluster's id. `version` and `cache` are those of `maven.fetch_kafka`. With
    `keep_logs`, everything that the processes printed and their whole data directories stay in ``OUT.run``.
    Raises `BadInput`, or `cluster.RecordingError` that names where those of the failed run are.
    """
    out = out.absolute()
    run = out.with_name(out.name + ".run")
    for taken in (out, run) if keep_logs else (out,):
        if taken.exists():
            raise BadInput("it exists already", str(taken), "name a new directory with --out, or remove that one")
    java = java_binary()
    jvm = java_version(java)
    jars = fetch_kafka(version, cache)
    _say(f"Apache Kafka {jars.version} on {jvm}; seed {seed}")
    began = time.monotonic()
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{out.name}-", dir=out.parent) as scratch:
        home = Path(scratch)
        (home / "corpus").mkdir()
        (home / "run").mkdir()
        capture = Capture(home / "corpus")
        try:
            with (
                Cluster(jars, java, home / "run", cluster_id(seed)) as cluster,
                Client(jars, java, home / "run" / "client.out") as client,
            ):
                cluster.format()
                scenario = Scenario(cluster, client, capture, seed, _say)
                scenario.run()
        except Exception as failed:
            kept = Path(tempfile.mkdtemp(prefix=f"{out.name}.failed-", dir=out.parent))
            (home / "run").rename(kept / "run")
            if isinstance(failed, FencepostError):
                raise RecordingError(f"{failed} (the nodes' output is in {kept / 'run'})") from failed
            raise
        capture.finish(
            {
                "kafka": {"artifact": ARTIFACT, "version": jars.version},
                "jvm": jvm,
                "seed": seed,
                "cluster_id": cluster.cluster_id,
                "brokers": list(BROKER_IDS),
                "controllers": [CONTROLLER_ID],
                "topics": {topic: list(replicas) for topic, replicas in TOPICS.items()},
                "produced": scenario.produced,
            },
            readme(capture.stages, jars.version, jvm, seed),
        )
        if keep_logs:
            (home / "run").rename(run)
        (home / "corpus").rename(out)
    _say(f"{out / MANIFEST}: {len(capture.stages)} stages in {time.monotonic() - began:.0f} s")
    return out


def readme(stages: Sequence[Mapping[str, Any]], version: str, jvm: str, seed: int) -> str:
    """The README.md of a corpus, from the manifest's stages."""
    rows = ["| stage | topic | broker-1 | broker-2 | broker-3 |", "|---|---|---|---|---|"]
    for stage in stages:
        for partition in ("orders-0", "payments-0"):
            cells = []
            for id_ in BROKER_IDS:
                node = stage["nodes"][NODE_NAMES[id_]]
                epochs = [str(epoch) for epoch, first, end in node["logs"][partition] for _ in range(first, end)]
                dead = " (dead)" if node["process"] == "killed" else ""
                cells.append(f"{' '.join(epochs)}, HW {node['high_watermarks'][partition]}{dead}")
            rows.append(f"| {stage['name']} | {partition.removesuffix('-0')} | {' | '.join(cells)} |")
    listed = "\n".join(
        textwrap.fill(f"- `{stage['name']}`: {stage['what']}", 110, subsequent_indent="  ") for stage in stages
    )
    return _README.format(version=version, jvm=jvm, seed=seed, stages=listed, table="\n".join(rows))


def cluster_id(seed: int) -> str:
    """A cluster id as ``StorageTool random-uuid`` makes them (16 bytes in URL-safe Base64), but from `seed`."""
    made = random.Random(f"cluster-{seed}").randbytes(15)  # noqa: S311 - a name, not a secret
    return base64.urlsafe_b64encode(b"F" + made).decode().rstrip("=")  # never a leading dash


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


app = cyclopts.App(
    name="python -m fencepost.traces.kafka.record",
    help="Record the data directories of a real Apache Kafka cluster through a clean failover and an unclean election.",
    version=lambda: importlib.metadata.version("fencepost"),
)


@app.default
def command(
    *,
    out: Path,
    seed: int = 1,
    version: Annotated[str | None, cyclopts.Parameter(name="--version")] = None,
    cache: Path | None = None,
    keep_logs: bool = False,
) -> int:
    """Record a corpus.

    Parameters
    ----------
    out
        The directory to make; it must not exist.
    seed
        Decides the payloads and the cluster's id.
    version
        The release of Apache Kafka; the newest that Maven Central has by default.
    cache
        Where the jars are kept; $XDG_CACHE_HOME/fencepost/kafka by default.
    keep_logs
        Keep the nodes' output and whole data directories in OUT.run.
    """
    try:
        record(out, seed=seed, version=version, cache=cache, keep_logs=keep_logs)
    except BadInput as wrong:
        _say(str(wrong))
        return 2
    except FencepostError as failed:
        _say(str(failed))
        return 3
    return 0


def main() -> None:
    """Run the command line; SIGTERM ends it as an interrupt does, through every ``finally``."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(app())


if __name__ == "__main__":
    main()
