"""Brokers and controller held against ``fencing``: binding, adapter, template, defects, arguments, plan."""

from ...harness import Harness

__all__ = ["HARNESS"]

HARNESS = Harness(
    __name__,
    binding=".binding:FENCING",
    over_impl=".adapter:FencingAdapter",
    adapters={"template": ".template:TemplateAdapter"},
    free_adapters={"template": ".template_free:TemplateFree"},
    defects=".defects:BROKER_DEFECTS",
    arguments={"kip-320": ".arguments:kip_320"},
    plan=".plan:PLAN",
)
