"""Both engines on every variant of fencing at many constants: ``python benchmarks/agree.py``.

For each variant and set of constants (replicas/log size/records/leader epoch) both engines explore to the end (only
``type_ok`` checked) and up to the first violation (all invariants), and must agree on verdict, distinct states, depth,
transitions by action and witnesses. Prints a line each, with the reference's seconds; exits 1 where they differ.
"""

from __future__ import annotations

import sys
from itertools import product

from fencepost.model.core.ground import ground
from fencepost.model.explore import Exploration, Query, explore
from fencepost.model.protocols.fencing import fencing

SETS = (
    *product((1, 2), (1, 2), (1, 2), (0, 1, 2)),
    (2, 2, 2, 3),
    (2, 2, 3, 2),
    (2, 3, 3, 2),
    (2, 3, 3, 3),
    (3, 1, 1, 1),
    (3, 1, 1, 2),
    (3, 1, 2, 2),
    (3, 2, 2, 1),
    (3, 2, 2, 2),
    (4, 1, 1, 1),
)
TOO_LARGE_WITH_RESTARTS = {(2, 3, 3, 3), (3, 1, 1, 2), (3, 1, 2, 2), (3, 2, 2, 1), (3, 2, 2, 2), (4, 1, 1, 1)}
"""Where replicas crash too, these take minutes, and gigabytes in the reference engine."""


def told(found: Exploration) -> tuple[object, ...]:
    """What the engines must agree on."""
    path = None if found.path is None else len(found.path)
    return found.verdict, found.violated, path, found.distinct, found.depth, found.transitions, found.witnesses


def main() -> int:
    """Compare and print."""
    differ = 0
    for variant, constants in product(fencing.variants, SETS):
        if fencing.variants[variant].restarts and constants in TOO_LARGE_WITH_RESTARTS:
            continue
        system = ground(fencing.traced(variant), dict(zip(fencing.constants, constants, strict=True)))
        for invariants in (("type_ok",), ()):
            query = Query.of(system, invariants)
            reference, batch = explore(query, "reference"), explore(query, "batch")
            same = told(reference) == told(batch)
            differ += not same
            print(
                f"{'same' if same else 'DIFFER':6} {variant:18} {'/'.join(map(str, constants))} "
                f"{batch.distinct:>9,} states, depth {batch.depth:>2}, {batch.violated or 'holds'}; "
                f"reference {reference.seconds:.1f} s",
                flush=True,
            )
    print(f"{differ} differences")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
