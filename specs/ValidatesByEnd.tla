--------------------------- MODULE ValidatesByEnd ---------------------------
(***************************************************************************)
(* A validation that compares where the position's epoch ends in the       *)
(* leader's log, and nothing else, as Apache Kafka's does: where a smaller *)
(* epoch is found instead, the position passes for a good one (H1).        *)
(***************************************************************************)
EXTENDS ValidatingClient

Truncated(leader) ==
    \/ KnowsNothing(leader)
    \/ EndFound(leader) < consumer.position

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
