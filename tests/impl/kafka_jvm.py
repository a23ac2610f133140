"""A JVM with Apache Kafka's own classes, for tests marked ``kafka``."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fencepost.model.core.errors import BadInput
from fencepost.traces.jvm import java_binary
from fencepost.traces.kafka.maven import KafkaJars, default_cache, fetch_kafka

VERSION = "4.4.0"
"""The release that is fetched, the recorder's."""


def kafka_jars() -> KafkaJars:
    """The newest release in the cache; fetched if that is empty. Skips where neither can be had."""
    cached = sorted(default_cache().glob("*-layout*"))
    try:
        return fetch_kafka(cached[-1].name.partition("-layout")[0] if cached else VERSION, timeout=120)
    except BadInput as missing:
        pytest.skip(f"absent: Apache Kafka: {missing}")


def kafka_gateway() -> Iterator[Any]:
    """A JVM with those jars, for a fixture to yield from."""
    jars = kafka_jars()
    gateways = importlib.import_module("py4j.java_gateway")
    try:
        java: Path = java_binary()
    except BadInput as missing:
        pytest.skip(f"absent: Apache Kafka: {missing}")
    gateway = gateways.JavaGateway.launch_gateway(
        classpath=jars.classpath, java_path=str(java), die_on_exit=True, javaopts=["-Xmx128m", "-XX:+UseSerialGC"]
    )
    yield gateway
    gateway.shutdown()


def java_class(gateway: Any, *names: str) -> Any:
    """The first of the classes that this release has: some have moved between packages."""
    for name in names:
        try:
            gateway.jvm.java.lang.Class.forName(name)
        except Exception as error:  # py4j's own class, which need not be there to be imported
            if "ClassNotFound" in str(error):
                continue
            raise
        part = gateway.jvm
        for word in name.split("."):
            part = getattr(part, word)
        return part
    raise AssertionError(f"this release of Kafka has none of {names}")


def read_buffer(gateway: Any, buffer: Any) -> bytes:
    """The bytes of a ByteBuffer."""
    return bytes(gateway.jvm.org.apache.kafka.common.utils.Utils.toArray(buffer))
