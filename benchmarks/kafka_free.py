"""What a freely running event of Apache Kafka's classes costs, and which part of it is the JVM's.

By protocol: events of runs that hold, the CPU seconds of this process (the draw, the model that follows, our brokers
and controller) and those of the JVM, and events for each CPU second of both. A dozen runs warm the JVM up first. Needs
Maven or its cache::

    python benchmarks/kafka_free.py
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import psutil
from fencepost.conformance.harness import binding_of, held_to
from fencepost.conformance.kafka.process import BROKERS, CLEANERS, CONSUMER, CONTROLLERS, QUORUM, TIERED, Jvm
from fencepost.conformance.plan import constants_of
from fencepost.conformance.protocols.compaction.kafka import KafkaCompaction
from fencepost.conformance.protocols.controller.kafka import KafkaControllers
from fencepost.conformance.protocols.fencing.kafka import KafkaBrokers
from fencepost.conformance.protocols.snapshots.kafka import KafkaQuorum
from fencepost.conformance.protocols.tiering.kafka import KafkaTiering
from fencepost.conformance.protocols.truncation.kafka import KafkaConsumers
from fencepost.conformance.simulation.runner import SimulationPlan, simulate
from fencepost.conformance.simulation.transitions import Transitions
from fencepost.model.core.ground import ground

SYSTEMS: dict[str, tuple[Callable[..., Any], str, str, str, frozenset[str]]] = {
    "fencing": (KafkaBrokers, BROKERS, "kip-320-kafka-shipped", "3/3/4/9", frozenset()),
    "truncation": (
        KafkaConsumers,
        CONSUMER,
        "kip-320-kafka-shipped",
        "2/3/4/4",
        frozenset({"no_unnoticed_gap", "told_divergence"}),
    ),
    "snapshots": (KafkaQuorum, QUORUM, "kip-630-kafka-shipped", "3/0/10/10/3/0/0/1", frozenset()),
    "controller": (KafkaControllers, CONTROLLERS, "kip-631-kafka", "3/3/2", frozenset()),
    "compaction": (KafkaCompaction, CLEANERS, "kip-280-kafka", "2/12/2/2/1/6", frozenset()),
    "tiering": (KafkaTiering, TIERED, "kip-1023-kafka-shipped", "3/8/12/20", frozenset()),
}
"""By protocol: the system, its driver, variant and constants, and the promises that what is shipped does not keep."""


def _the_same(jvm: Jvm) -> Jvm:
    return jvm


def main() -> None:
    """Print a line for each protocol."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=51)
    parser.add_argument("--protocol", choices=SYSTEMS, action="append")
    asked = parser.parse_args()
    for protocol in asked.protocol or SYSTEMS:
        make, drives, variant, at, but = SYSTEMS[protocol]
        text = held_to(protocol)
        traced = text.traced(variant)
        ways = Transitions(
            ground(traced, constants_of(text, at)),
            binding_of(protocol, "kafka_free"),
            frozenset(traced.invariants) - but,
        )
        jvm = Jvm(drives=drives)
        process = psutil.Process(jvm.pid)
        system = make(variant=variant, make=partial(_the_same, jvm))
        try:
            simulate(system, [ways], SimulationPlan(runs=12, events=150, seed=asked.seed + 1))
            ours, theirs = time.process_time(), sum(process.cpu_times()[:2])
            free = simulate(system, [ways], SimulationPlan(runs=asked.runs, events=150, seed=asked.seed))
            ours, theirs = time.process_time() - ours, sum(process.cpu_times()[:2]) - theirs
        finally:
            jvm.close()
        print(
            f"{protocol:<11} {variant:<22} {free.verdict.value}: {free.met.events:,} events, {ours:.1f} s of Python and"
            f" {theirs:.1f} s of the JVM, {free.met.events / (ours + theirs):,.0f} events a CPU second"
        )


if __name__ == "__main__":
    main()
