------------------------------- MODULE Kip497 -------------------------------
(***************************************************************************)
(* What KIP-497's leader and controller do, over replicas that crash and   *)
(* come back. All promises are kept.                                       *)
(***************************************************************************)
EXTENDS MaximalIsr

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
