"""Consumers held against ``truncation``: binding, adapter, defects, arguments, plan."""

from ...harness import Harness

__all__ = ["HARNESS"]

HARNESS = Harness(
    __name__,
    binding=".binding:TRUNCATION",
    over_impl=".adapter:TruncationAdapter",
    free=".system:RunningConsumer",
    free_adapters={"kafka": ".kafka:KafkaConsumers"},
    defects=".defects:CONSUMER_DEFECTS",
    arguments={"kip-320-mended": ".equivalent_mutants:kip_320_mended"},
    plan=".plan:PLAN",
    drives=(
        "consumer/consumer.py",
        "consumer/fetched.py",
        "consumer/partition.py",
        "consumer/position.py",
        "log/epochs.py",
        "log/log.py",
        "offsets/coordinator.py",
        "replica/fetch.py",
    ),
)
