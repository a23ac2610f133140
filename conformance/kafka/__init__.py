"""Apache Kafka itself, in a JVM beside this process: its jars, and a driver of ours in Java that lets it be stepped."""
