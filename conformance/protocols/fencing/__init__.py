"""Brokers and controller held against ``fencing``: binding, adapter, template, defects, arguments, plan."""

from ...harness import Harness

__all__ = ["HARNESS"]

HARNESS = Harness(
    __name__,
    binding=".binding:FENCING",
    over_impl=".adapter:FencingAdapter",
    free=".system:RunningCluster",
    adapters={"template": ".template:TemplateAdapter"},
    free_adapters={
        "template": ".template_simulation:TemplateFree",
        "kafka": ".kafka:KafkaBrokers",
        "kafka-cluster": ".kafka_processes:KafkaProcesses",
    },
    defects=".defects:BROKER_DEFECTS",
    arguments={"kip-320": ".equivalent_mutants:kip_320"},
    plan=".plan:PLAN",
    drives=(
        "log/directory.py",
        "log/epochs.py",
        "log/log.py",
        "log/recovery.py",
        "log/topic_id.py",
        "replica/broker.py",
        "replica/deletions.py",
        "replica/fetch.py",
        "replica/follower.py",
        "replica/isr.py",
        "replica/leader.py",
        "replica/partition.py",
        "replica/producers.py",
        "replica/progress.py",
        "replica/purgatory.py",
        "zk_controller/controller.py",
        "zk_controller/outbox.py",
        "zk_controller/partition.py",
        "zk_controller/store.py",
    ),
)
