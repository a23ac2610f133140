------------------------------- MODULE Fenced -------------------------------
(***************************************************************************)
(* KIP-320: a fetch names the leader epoch that the follower is in, and so *)
(* does the question that a new follower asks before it truncates. The     *)
(* leader answers neither in any other epoch than its own, counts only     *)
(* followers in its own epoch towards the high watermark, and admits to    *)
(* the ISR only when its high watermark has reached its own epoch.         *)
(*                                                                         *)
(* Kip320 adds how a replica becomes a follower where nobody crashes, and  *)
(* Restarts where replicas crash and come back.                            *)
(***************************************************************************)
EXTENDS Fencing

FollowerFetch(leader, follower) ==
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Follows(follower, leader)                                    \* follows_leader
    /\ InEpochOf(follower, leader)                                  \* epoch_not_fenced
    /\ Leo(follower) < Leo(leader)                                  \* record_available
    /\ FetchEffect(leader, follower)

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

LeaderExpandIsr(leader, follower) ==
    /\ follower \notin Isr(leader)                                  \* outside_isr
    /\ Follows(follower, leader)                                    \* follows_leader
    /\ InEpochOf(follower, leader)                                  \* epoch_not_fenced
    /\ Hw(leader) <= Leo(follower)                                  \* reached_high_watermark
    /\ HwReachedEpoch(leader)                                       \* hw_reached_epoch
    /\ TrueLeader(leader)                                           \* true_leader
    /\ UpdateIsrEffect(leader, Isr(leader) \union {follower})

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
