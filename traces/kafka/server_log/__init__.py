"""What Apache Kafka's nodes print of a partition, as traces: read, looked at in a few offsets, put in order."""
