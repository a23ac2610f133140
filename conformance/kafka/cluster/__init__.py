"""Apache Kafka as real processes whose messages are held: a proxy before each node, and what it makes repeatable."""
