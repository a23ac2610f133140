--------------------------- MODULE Kip320Brokers ----------------------------
(***************************************************************************)
(* A leader counts what its followers' fetches told it, as brokers do.     *)
(*                                                                         *)
(* With RemoteLeo = "of-epoch" a leader that takes up a newer epoch knows  *)
(* nothing of its followers' logs, even where it led before. All           *)
(* invariants hold. With "of-any-epoch" a leader that is elected again,    *)
(* and did not hear of the leader between, goes by what it was told in its *)
(* former epoch. But its followers may have truncated since.               *)
(***************************************************************************)
EXTENDS RemoteLeos

CONSTANTS
    RemoteLeo   \* what a leader keeps of its followers' fetches

ASSUME RemoteLeo \in {"of-epoch", "of-any-epoch"}

LeadsEffect(leader) == IF RemoteLeo = "of-epoch" THEN ForgottenEffect(leader) ELSE UNCHANGED remoteLeo

LeaderIncHighWatermark(leader) ==
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Hw(leader) < Leo(leader)                                     \* record_above_hw
    /\ \A member \in Isr(leader) :
            Hw(leader) < KnownLeo(leader, member)                   \* isr_acknowledges
    /\ IncHighWatermarkEffect(leader)

LeaderShrinkIsr(leader, follower) ==
    /\ leader # follower                                            \* not_leader_itself
    /\ follower \in Isr(leader)                                     \* in_isr
    /\ remoteLeo[leader][follower] < Leo(leader)                    \* not_caught_up
    /\ TrueLeader(leader)                                           \* true_leader
    /\ UpdateIsrEffect(leader, Isr(leader) \ {follower})

-----------------------------------------------------------------------------
(* The steps. *)

AnyElectLeader      == \E replica \in Replicas : ControllerElectLeader(replica) /\ UNCHANGED remoteLeo
AnyFailure          == \E replica \in Replicas : ControllerShrinkIsr(replica) /\ UNCHANGED remoteLeo
AnyBecomeLeader     == \E leader \in Replicas, epoch \in Epochs :
                           BecomeLeader(leader, epoch) /\ LeadsEffect(leader)
AnyBecomeFollower   == \E leader, follower \in Replicas, epoch \in Epochs :
                           BecomeFollower(leader, follower, epoch) /\ ForgottenEffect(follower)
AnyWrite            == \E leader \in Replicas : LeaderWrite(leader) /\ UNCHANGED remoteLeo
AnyFetch            == \E leader, follower \in Replicas :
                           FollowerFetch(leader, follower) /\ ToldEffect(leader, follower)
AnyAcknowledge      == \E leader, follower \in Replicas : FollowerAcknowledge(leader, follower)
AnyIncHighWatermark == \E leader \in Replicas : LeaderIncHighWatermark(leader) /\ UNCHANGED remoteLeo
AnyShrinkIsr        == \E leader, follower \in Replicas :
                           LeaderShrinkIsr(leader, follower) /\ UNCHANGED remoteLeo
AnyExpandIsr        == \E leader, follower \in Replicas :
                           LeaderExpandIsr(leader, follower) /\ UNCHANGED remoteLeo
AnyRestart          == \E replica \in Crashing, stored \in EndOffsets :
                           Restart(replica, stored) /\ ForgottenEffect(replica)

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
