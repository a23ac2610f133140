"""Where mutants of ``controller`` break a promise only at constants at which its states are too many to compare."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...mutants.beyond import Beyond, beyond

_LOG = "elect_controller activate commit replay_record"
_FENCED = "fence_broker unfence_broker replay_metadata elect_leader"
_STARTS = "register_broker hear_registration"
_ISR = "propose_expand propose_shrink alter_partition refuse_member"
_DATA = "leader_write follower_fetch acknowledge"

_CREATED = beyond("1/2/1/3/1/0/0/0", _LOG, "hear_of_epoch", _STARTS, "unfence_broker replay_metadata create_topic")
"""Nothing is there at first, so that it takes three records until a topic is made."""
_STOPPED = beyond(
    "2/1/1/5/0/1/0/1",
    _LOG,
    _FENCED,
    "request_shutdown stop_broker alter_partition propose_expand propose_shrink",
    _DATA,
)
_SECOND_ASKED = beyond("3/1/1/4/0/1/0/0", _LOG, _FENCED, _ISR, _DATA)
"""A leader asks for a second broker while it waits for the answer about a first one."""
_NOT_ACTIVE = "propose_expand alter_partition refuse_member leader_write acknowledge"
_NEVER_ACTIVE = beyond("2/2/1/4/0/1/0/0", _LOG, "hear_of_epoch", _FENCED, _NOT_ACTIVE)
_DEPOSED = beyond("2/2/1/4/1/1/0/0", _LOG, "hear_of_epoch", _FENCED, _NOT_ACTIVE)

BEYOND: Final[Mapping[str, Beyond]] = {
    "create_topic.is_active dropped": _CREATED,
    "create_topic.none_active_since dropped": _CREATED,
    "create_topic.none_active_since bound -1": _CREATED,
    "propose_expand.nothing_proposed dropped": _SECOND_ASKED,
    "propose_shrink.nothing_proposed dropped": _SECOND_ASKED,
    "refuse_member.is_active dropped": _NEVER_ACTIVE,
    "refuse_member.none_active_since dropped": _DEPOSED,
    "refuse_member.none_active_since bound -1": _DEPOSED,
    "acknowledge.presumes_leadership dropped": _STOPPED,
}
