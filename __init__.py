"""Fencepost: a formal model and a conformance harness for Kafka-style replicated logs."""

__version__ = "0.1.0"
