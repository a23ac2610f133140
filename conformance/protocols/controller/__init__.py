"""Controllers and brokers held against KIP-631: binding, what running ones are held to, system, plan."""

from ...harness import Harness

__all__ = ["HARNESS"]

HARNESS = Harness(
    __name__,
    binding=".kafka_binding:RUNNING",
    over_impl=".adapter:ControllerAdapter",
    lockstep=".lockstep_binding:STEPPED",
    free=".system:FreeControllers",
    free_adapters={"kafka": ".kafka:KafkaControllers"},
    text="fencepost.model.protocols.controller.kafka_spec:text",
    arguments={"kip-631-safe": ".equivalent_mutants:kip_631_safe"},
    defects=".defects:DEFECTS",
    plan=".plan:PLAN",
    drives=(
        "kraft/active.py",
        "kraft/alter_partition.py",
        "kraft/broker.py",
        "kraft/configs.py",
        "kraft/gateway.py",
        "kraft/heartbeats.py",
        "kraft/lifecycle.py",
        "kraft/node.py",
        "kraft/publisher.py",
        "kraft/registrations.py",
        "kraft/sessions.py",
        "kraft/snapshots.py",
        "kraft/topics.py",
        "metadata/changes.py",
        "metadata/elections.py",
        "metadata/features.py",
        "metadata/image.py",
        "metadata/machine.py",
    ),
)
