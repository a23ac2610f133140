----------------------------- MODULE LeaderSees -----------------------------
(***************************************************************************)
(* The leader sees the logs and the epochs of its followers as they are,   *)
(* as in the KIP's own model: it counts those in its own epoch towards the *)
(* high watermark. No broker can do that; see LeaderIsTold.                *)
(***************************************************************************)
EXTENDS Fenced

LeaderIncHighWatermark(leader) ==
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Hw(leader) < Leo(leader)                                     \* record_above_hw
    /\ \A member \in Isr(leader) :
        /\ Follows(member, leader)
        /\ InEpochOf(member, leader)
        /\ Hw(leader) < Leo(member)                                 \* isr_acknowledges
    /\ IncHighWatermarkEffect(leader)

LeaderShrinkIsr(leader, follower) ==
    /\ leader # follower                                            \* not_leader_itself
    /\ follower \in Isr(leader)                                     \* in_isr
    /\ ~ (Follows(follower, leader)
          /\ InEpochOf(follower, leader)
          /\ Leo(leader) <= Leo(follower))                          \* not_caught_up
    /\ TrueLeader(leader)                                           \* true_leader
    /\ UpdateIsrEffect(leader, Isr(leader) \ {follower})

-----------------------------------------------------------------------------
(* The steps, for any replicas and epochs: what fairness speaks of. *)

AnyElectLeader      == \E replica \in Replicas : ControllerElectLeader(replica)
AnyFailure          == \E replica \in Replicas : ControllerShrinkIsr(replica)
AnyBecomeLeader     == \E leader \in Replicas, epoch \in Epochs : BecomeLeader(leader, epoch)
AnyWrite            == \E leader \in Replicas : LeaderWrite(leader)
AnyFetch            == \E leader, follower \in Replicas : FollowerFetch(leader, follower)
AnyIncHighWatermark == \E leader \in Replicas : LeaderIncHighWatermark(leader)
AnyShrinkIsr        == \E leader, follower \in Replicas : LeaderShrinkIsr(leader, follower)
AnyExpandIsr        == \E leader, follower \in Replicas : LeaderExpandIsr(leader, follower)

=============================================================================
