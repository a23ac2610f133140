"""Run a scenario, `Loss` or `Formats`, on one release, and keep every stage, the nodes' logs and the facts.

    python -m fencepost.traces.kafka.releases.recording --release 3.9-kraft --out DIR

DIR gets a folder for each stage with the nodes' data directories, ``5-stopped`` with everything that the nodes leave
after an orderly shutdown, ``logs`` with a folder for each node, and ``facts.json``. A stage is there as soon as it is
over. Exit codes: 0 recorded, 2 bad input, 3 the cluster did not do in time what the scenario needs.
"""

from __future__ import annotations

import json
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import cyclopts

from ....model.core.errors import BadInput, FencepostError
from ...jvm import java_binary, java_version
from ...run_app import run_module
from ..capture import Capture
from ..client import Client
from ..cluster import BROKER_IDS, CONTROLLER_ID, Cluster, RecordingError
from ..maven import fetch_kafka
from ..record import cluster_id
from ..scenario_formats import Formats
from ..scenario_loss import Loss
from ..staging import Staging
from .archive import write_archive
from .log4j import logging_options
from .release import Release, release_named

SCENARIOS: Final[dict[str, type[Staging]]] = {each.NAME: each for each in (Loss, Formats)}
FACTS: Final = "facts.json"
STOPPED: Final = "5-stopped"

Observer = Callable[[str, Cluster], None]
"""Called after each stage with its name, while the cluster runs."""


def record_release(
    release: Release,
    out: Path,
    *,
    scenario: str = Loss.NAME,
    seed: int = 1,
    cache: Path | None = None,
    observe: Observer | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Record `release` into the new directory `out`; returns what ``facts.json`` holds.

    Raises BadInput without Maven, the release or a JVM; RecordingError, with the folder of the run in its text.
    """
    if scenario not in SCENARIOS:
        raise BadInput(f"{scenario!r} is no scenario", "--scenario", f"name one of {', '.join(SCENARIOS)}")
    kind = SCENARIOS[scenario]
    if out.exists():
        raise BadInput("it exists already", str(out), "name a new directory with --out, or remove that one")
    java = java_binary()
    jars = fetch_kafka(release.version, cache, log4j=True)
    client_jars = fetch_kafka(release.client, cache, log4j=True)
    out.mkdir(parents=True)
    home = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    capture = Capture(out, kind.KEPT_NAMES)
    try:
        options = logging_options(release, home)
        with (
            Cluster(
                jars, java, home, cluster_id(seed), kind.BROKER, options=options, deployment=release.deployment
            ) as cluster,
            Client(client_jars, java, home / "client.out") as client,
        ):
            cluster.format()

            def after(text: str) -> None:
                say(f"{release.name}: {text}")
                _copy_logs(cluster, out)
                if observe is not None:
                    observe(text.partition(":")[0], cluster)

            staging = kind(cluster, client, capture, seed, after)
            if isinstance(staging, Loss):
                staging.elects_on_request = release.elects_on_request
            staging.run()
            # Together: the last one alone would wait for a controller to hand its partitions to.
            for node_id in BROKER_IDS:
                cluster.nodes[node_id].signal(signal.SIGTERM)
            for node_id in (*BROKER_IDS, CONTROLLER_ID):
                cluster.nodes[node_id].stop(30)
            for node_id in BROKER_IDS:
                shutil.copytree(cluster.nodes[node_id].directory, out / STOPPED / cluster.nodes[node_id].name)
            _copy_logs(cluster, out)
    except FencepostError as failed:
        raise RecordingError(f"{release.name}: {failed} (the run is in {home})") from failed
    facts = {
        "release": release.name,
        "version": release.version,
        "jvm": java_version(java),
        "seed": seed,
        **staging.facts(),
        "stages": capture.stages,
        "produced": staging.produced,
    }
    (out / FACTS).write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    shutil.rmtree(home)
    return facts


def _copy_logs(cluster: Cluster, out: Path) -> None:
    for node in cluster.nodes.values():
        logs = cluster.logs(node)
        if logs.is_dir():
            shutil.copytree(logs, out / "logs" / node.name, dirs_exist_ok=True)


app = cyclopts.App(
    name="python -m fencepost.traces.kafka.releases.recording", help="Record a failover and a loss on one release."
)


@app.default
def command(*, release: str, out: Path, scenario: str = Loss.NAME, seed: int = 1, archive: Path | None = None) -> None:
    """Record one release.

    Parameters
    ----------
    release
        Row of the table of releases, such as 3.9-kraft.
    out
        New directory.
    scenario
        loss: a clean failover and an unclean election. formats: message formats 0, 1 and 2 (before 3.0).
    seed
        Random seed of the payloads.
    archive
        File to pack the stages into, as tar.gz.
    """
    record_release(
        release_named(release),
        out,
        scenario=scenario,
        seed=seed,
        say=lambda text: print(text, file=sys.stderr, flush=True),
    )
    if archive is not None:
        write_archive(out, archive)


if __name__ == "__main__":
    run_module(app)
