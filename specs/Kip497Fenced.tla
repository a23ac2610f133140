---------------------------- MODULE Kip497Fenced ----------------------------
(***************************************************************************)
(* A leader that goes back to the ISR that it knows when it is answered    *)
(* that the controller is in a newer leader epoch. The controller may have *)
(* taken the proposal up before, and made the new member leader.           *)
(***************************************************************************)
EXTENDS MaximalIsr

LeaderForgetProposal(leader) ==
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Proposed(leader) # {}                                        \* proposal_open
    /\ Epoch(leader) < quorumState.leaderEpoch                      \* fenced
    /\ ForgetEffect(leader)

AnyForgetProposal == \E leader \in Replicas : LeaderForgetProposal(leader)

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
    \/ AnyForgetProposal
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
