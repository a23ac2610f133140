"""The configurations of ``fencepost spec`` fit the TLA+ modules, for each variant of each protocol."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from fencepost.conformance.spec_files import module_files
from fencepost.model.core.protocol import Protocol
from fencepost.model.core.registry import REGISTRY
from fencepost.model.core.tlc_config import tlc_config
from fencepost.model.protocols.snapshots.kafka_spec import is_shipped, text

from .cfgs import module_of, whole_cfg
from .modules import SPECS, camel, read_module

PROTOCOLS = {name: each.protocol for name, each in REGISTRY.items() if each.package.startswith("fencepost.")}
VARIANTS = [(protocol, variant) for protocol in PROTOCOLS.values() for variant in protocol.variants]
VARIANTS += [(text, name) for name, each in text.variants.items() if is_shipped(each.rules)]


def misfits(cfg: str, module: str) -> set[str]:
    """Names on which a configuration and a module differ: constants, and what the module does not define."""
    read = read_module(module)
    assigned = re.findall(r"^    (\w+) = ", cfg, flags=re.MULTILINE)
    named = re.findall(r"^(?:    |SPECIFICATION )(\w+)$", cfg, flags=re.MULTILINE)
    assert len(named) >= 2
    return (set(assigned) ^ set(read.constants)) | (set(named) - set(read.definitions))


@pytest.mark.parametrize(("protocol", "variant"), VARIANTS, ids=lambda each: getattr(each, "name", each))
def test_cfg_fits_its_module(protocol: Protocol, variant: str) -> None:
    module = module_of(protocol, variant)
    cfg = whole_cfg(protocol, variant)
    assert misfits(cfg, module.name) == set()
    rules = protocol.variants[variant].rules
    checked = [name for name, each in protocol.invariants.items() if each.present(rules)]
    assert re.findall(r"^    (\w+)$", cfg, flags=re.MULTILINE) == [*module.shapes, *map(camel, checked)]
    for fairness in module.fairness:
        assert misfits(whole_cfg(protocol, variant, fairness=fairness), module.name) == set()


def test_cfg_that_lacks_a_rule_does_not_fit() -> None:
    compaction = PROTOCOLS["compaction"]
    config = tlc_config(compaction, "kip-280", compaction.check_constants({}))
    lacking = replace(config, constants={k: v for k, v in config.constants.items() if k != "Last"})
    assert misfits(config.text, "Compaction") == set()
    assert misfits(lacking.text, "Compaction") == {"Last"}
    assert misfits(replace(config, invariants=("TypeOk", "WinnerIsLost")).text, "Compaction") == {"WinnerIsLost"}


def test_each_module_is_one_of_a_variant() -> None:
    """No module is left that no variant is specified by."""
    used = {path for protocol, variant in VARIANTS for path in module_files(module_of(protocol, variant).name)}
    assert {path.name for path in used} == {path.name for path in SPECS.glob("*.tla")}


def test_two_variants_of_a_module_have_other_rules() -> None:
    """Else TLC would check one twice, and another not at all."""
    found = [(module_of(*each).name, tlc_config(*each, each[0].check_constants({})).constants) for each in VARIANTS]
    alike = [
        (one, other)
        for place, one in enumerate(VARIANTS)
        for number, other in enumerate(VARIANTS[:place])
        if found[place] == found[number]
    ]
    # An error that is never told, and a process that ends by itself, are no steps (rows F22 and F24).
    assert [names for (_, *names), _ in alike] == [["kip-630-kafka-shipped"]]
