"""Arguments for those mutants of ``controller``'s ``kip-631-safe`` that nobody kills and of which z3 shows nothing."""

from __future__ import annotations

from ...mutants.arguments import Collected

kip_631_safe = Collected()

# Epochs of controllers.

kip_631_safe.same(
    "an epoch has one leader, which becomes active in it once",
    "activate.none_active_since bound +1",
)
kip_631_safe.more(
    "a node may be in an epoch that nobody leads yet: nothing is ordered of it there, and it tells nobody anything,"
    " until that epoch's leader is elected, to whom it is as one that has just heard of it",
    "hear_of_epoch.epoch_elected dropped",
    "hear_of_epoch.epoch_elected bound +1",
)
kip_631_safe.more(
    "an active controller is at its log's end, so that only one that is deposed has a record left to replay: what that"
    " makes of its state is gone when it leaves office and loads it anew",
    "replay_record.not_active dropped",
)

# Partitions and their data.

kip_631_safe.same(
    "between two registrations of a broker that was proposed by the first one there is the record that unfenced it, so"
    " that the second one is not at the next offset; and before the first one it is in the ISR",
    "alter_partition.is_eligible bound 1 -1",
)
kip_631_safe.same(
    "a broker is fenced by its registration: where that is the last record it is not eligible, whatever its epoch",
    "alter_partition.is_eligible bound 2 -1",
)
kip_631_safe.more(
    "what is acknowledged is the record of an older leader epoch then, and all of the ISR have it: it is kept as one of"
    " this epoch is; where there is none nothing is acknowledged",
    "acknowledge.written dropped",
)
kip_631_safe.other(
    "what a leader has asked for stays open over an IsrChange, and not over a fence: as long as it leads it counts whom"
    " it has asked for, so that whoever is taken in has what it acknowledged; and once another has led, it was fenced"
    " before it leads again",
    "replay_metadata.proposed' bound +1",
)

# Snapshots, one at a time.

kip_631_safe.more(
    "whoever is in the next epoch begins nothing that is ordered in the older one, so that what it says of itself stays"
    " so; and who is active next hears everybody anew",
    "heartbeat.epoch_matches bound +1",
)
kip_631_safe.more(
    "a node of an older epoch has taken what was ordered of it there, and nothing more is: what it says of itself to a"
    " deposed controller is what it would say to the one that is active",
    "heartbeat.none_active_since dropped",
    "heartbeat.none_active_since bound -1",
)
kip_631_safe.more(
    "nobody but who led the newest epoch, and has resigned, has heard of all others that they make none: what it knows"
    " is so still, it makes none itself, and who is active next hears everybody first",
    "order_snapshot.is_active dropped",
)
