---------------------------- MODULE Kip497Eager -----------------------------
(***************************************************************************)
(* A leader whose high watermark waits for the members that it knows       *)
(* alone, and not for whom it has proposed: the controller may have let    *)
(* one in that lacks a record which this leader counts as committed.       *)
(***************************************************************************)
EXTENDS AlterIsr

LeaderIncHighWatermark(leader) ==
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Hw(leader) < Leo(leader)                                     \* record_above_hw
    /\ AcknowledgedBy(leader, Isr(leader))                          \* isr_acknowledges
    /\ IncHighWatermarkEffect(leader)

AnyIncHighWatermark == \E leader \in Replicas :
                           LeaderIncHighWatermark(leader) /\ UNCHANGED remoteLeo /\ SameIsrsEffect

Next ==
    \/ AnyElectLeader
    \/ AnyFailure
    \/ AnyBecomeLeader
    \/ AnyBecomeFollower
    \/ AnyWrite
    \/ AnyFetch
    \/ AnyAcknowledge
    \/ AnyIncHighWatermark
    \/ AnyProposeShrink
    \/ AnyProposeExpand
    \/ AnyAlterIsr
    \/ AnyTakeIsr
    \/ AnyRestart

Spec == AlterInit /\ [][Next]_alterVars

\* What the KIP-320 model assumes to go on: nothing about fetches, nor about the ISR here.
KipFairness ==
    /\ SF_alterVars(AnyIncHighWatermark)
    /\ SF_alterVars(AnyWrite)
    /\ WF_alterVars(AnyBecomeFollower)
    /\ WF_alterVars(AnyBecomeLeader)

\* And with followers that go on fetching.
FairFetches == WF_alterVars(AnyFetch) /\ WF_alterVars(AnyAcknowledge)

=============================================================================
