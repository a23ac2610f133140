-------------------------- MODULE ValidatesByEpoch --------------------------
(***************************************************************************)
(* A validation that compares both: where the position's epoch ends in the *)
(* leader's log, and which epoch is found there. A smaller one is a        *)
(* truncation.                                                             *)
(***************************************************************************)
EXTENDS ValidatingClient

Truncated(leader) ==
    \/ KnowsNothing(leader)
    \/ EndFound(leader) < consumer.position
    \/ EpochFound(leader) # consumer.lastEpoch

CompleteValidation(leader) ==
    /\ AwaitsValidation                                             \* awaits_validation
    /\ InEpochOf(leader)                                            \* same_epoch
    /\ Leads(leader)                                                \* leads
    /\ ~ Truncated(leader)                                          \* not_truncated
    /\ consumer' = [consumer EXCEPT !.validating = 0]
    /\ answer' = NoAnswer
    /\ UNCHANGED <<brokers, metadata, pending, commits>>

FindTruncation(leader) ==
    /\ AwaitsValidation                                             \* awaits_validation
    /\ InEpochOf(leader)                                            \* same_epoch
    /\ Leads(leader)                                                \* leads
    /\ Truncated(leader)                                            \* truncated
    /\ DivergedEffect(leader)

=============================================================================
