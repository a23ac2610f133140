-------------------------- MODULE Kip320StaleAcks ---------------------------
(***************************************************************************)
(* A leader that is elected again, and did not hear of the leader between, *)
(* goes by what it was told in its former epoch. But its followers may     *)
(* have truncated since.                                                   *)
(***************************************************************************)
EXTENDS LeaderIsTold

AnyBecomeLeader == \E leader \in Replicas, epoch \in Epochs :
                       BecomeLeader(leader, epoch) /\ UNCHANGED remoteLeo

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

=============================================================================
