"""Kafka brokers' data directories: read (``broker``), held against the protocol (``checks``), recorded (``record``)."""
