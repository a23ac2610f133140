"""Adapters that are here: brokers and consumers of ``impl/``."""
