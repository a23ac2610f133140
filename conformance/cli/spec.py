"""``fencepost spec``: the TLA+ module of a protocol's variant, and the configuration that TLC checks it with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from ...model.core.errors import BadInput
from ...model.core.exit_code import ExitCode
from ...model.core.protocol import Protocol
from ...model.core.registry import REGISTRY
from ...model.core.tlc_config import TlcConfig, tlc_config
from ..harness import find_harness, plan_of
from ..plan import constants_of
from ..spec_files import module_files
from .help_groups import grouped
from .options import Whole, refuse_idle, refuse_twice, unwrapped
from .output import print_json, stdout, write_text, written


@grouped(
    Model=("protocol", "variant", "invariant", "fairness"),
    Output=("cfg", "out", "json"),
)
@unwrapped
def spec(
    protocol: str,
    *,
    variant: str | None = None,
    cfg: Annotated[bool, Parameter(negative=())] = False,
    out: Path | None = None,
    invariant: Annotated[Sequence[str], Parameter(negative=())] = (),
    fairness: str | None = None,
    json: Annotated[bool, Parameter(negative=())] = False,
    **constants: Whole,
) -> ExitCode:
    """Print the files of a variant's TLA+ module, or the configuration that TLC checks it with.

    The constants are those at which fencepost check explores the variant, unless you give others.

    Parameters
    ----------
    protocol
        Protocol: an installed one by its name (fencepost protocols).
    variant
        Variant of the protocol; the safe one by default (fencepost protocols PROTOCOL lists them).
    cfg
        Print the configuration: TLC reads it from a file MODULE.cfg.
    out
        Folder to write the module, those that it extends and MODULE.cfg to; it is made if it is not there.
    invariant
        Invariant to check (repeatable; default all).
    fairness
        Set of fairness conditions under which TLC checks the liveness properties instead of the invariants.
    json
        Print one JSON object on standard output.
    """
    refuse_twice(invariant=invariant)
    if fairness is not None:
        refuse_idle("TLC checks liveness alone under --fairness", "leave out one of the two", invariant=invariant)
    if json:
        refuse_idle("--json prints the configuration too", "leave out one of the two", cfg=cfg)
    text, name = _variant(protocol, variant)
    # An option of a constant comes as it was typed: --log-size.
    values = {constant.replace("-", "_"): value for constant, value in constants.items()}
    text.check_constants(values)
    config = tlc_config(text, name, {**_planned(text, name), **values}, invariant or None, fairness)
    paths = module_files(config.module.name)
    if out is not None:
        paths = _write(out, paths, config)
    if json:
        print_json(_answer(text, name, config, paths))
    else:
        shown = config.text.rstrip() if cfg else "\n".join(map(str, paths))
        stdout().print(shown, markup=False, highlight=False, soft_wrap=True)
    return ExitCode.DONE


def _variant(protocol: str, variant: str | None) -> tuple[Protocol, str]:
    """The spec that has the variant: the explored one, or the one that running systems are checked against."""
    explored = REGISTRY.named(protocol, "PROTOCOL").protocol
    name = variant or explored.default_variant
    harness = find_harness(explored.name) if explored.name in REGISTRY else None
    texts = [explored, *filter(None, [None if harness is None else harness.find_text()])]
    for text in texts:
        if name in text.variants:
            return text, name
    known = ", ".join(dict.fromkeys(each for text in texts for each in text.variants))
    raise BadInput(f"{explored.name} has no variant {name!r}", "--variant", f"choose one of {known}")


def _planned(text: Protocol, variant: str) -> dict[str, int]:
    """The constants at which a check explores the variant."""
    plan = plan_of(text)
    return constants_of(text, {**plan.holds, **plan.breaks}.get(variant, plan.at))


def _write(folder: Path, paths: Sequence[Path], config: TlcConfig) -> list[Path]:
    """Write the modules and the configuration to a folder, and return their paths."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"cannot write: {error.strerror}", str(folder), "name a folder that is writable") from error
    texts = {path.name: path.read_text(encoding="ascii") for path in paths}
    texts[f"{config.module.name}.cfg"] = config.text
    for name, text in texts.items():
        write_text(folder / name, text)
        written(folder / name)
    return [folder / name for name in texts]


def _answer(text: Protocol, variant: str, config: TlcConfig, paths: Sequence[Path]) -> dict[str, Any]:
    return {
        "protocol": text.name,
        "variant": variant,
        "module": config.module.name,
        "files": [str(path) for path in paths],
        "specification": config.specification,
        "constants": dict(config.constants),
        "invariants": list(config.invariants),
        "properties": list(config.properties),
        "cfg": config.text,
    }
