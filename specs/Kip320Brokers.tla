--------------------------- MODULE Kip320Brokers ----------------------------
(***************************************************************************)
(* What brokers do: a leader that takes up a newer epoch knows nothing of  *)
(* its followers' logs, even where it led before. All promises are kept.   *)
(***************************************************************************)
EXTENDS LeaderIsTold

AnyBecomeLeader == \E leader \in Replicas, epoch \in Epochs :
                       BecomeLeader(leader, epoch) /\ ForgottenEffect(leader)

Next ==
    \/ AnyElectLeader
    \/ AnyFailure
    \/ AnyBecomeLeader
    \/ AnyBecomeFollower
    \/ AnyWrite
    \/ AnyFetch
    \/ AnyAcknowledge
    \/ AnyIncHighWatermark
    \/ AnyShrinkIsr
    \/ AnyExpandIsr
    \/ AnyRestart

Spec == ToldInit /\ [][Next]_toldVars

\* What the KIP's own model assumes to go on: nothing about fetches.
KipFairness ==
    /\ SF_toldVars(AnyIncHighWatermark)
    /\ SF_toldVars(AnyExpandIsr)
    /\ SF_toldVars(AnyWrite)
    /\ WF_toldVars(AnyBecomeFollower)
    /\ WF_toldVars(AnyBecomeLeader)

\* And with followers that go on fetching.
FairFetches == WF_toldVars(AnyFetch) /\ WF_toldVars(AnyAcknowledge)

FairFetchSpec == Spec /\ KipFairness /\ FairFetches

=============================================================================
