"""Real clusters of many Kafka releases: a table, a scenario that loses committed records, and its expected truth."""
