------------------------------- MODULE Fenced -------------------------------
(***************************************************************************)
(* KIP-320: a fetch names the leader epoch that the follower is in, and so *)
(* does the question that a new follower asks before it truncates. The     *)
(* leader answers neither in any other epoch than its own, and admits to   *)
(* the ISR only when its high watermark has reached its own epoch.         *)
(*                                                                         *)
(* LeaderSees and LeaderIsTold add what it counts towards the high         *)
(* watermark, and Crashes how a replica becomes a follower where replicas  *)
(* crash and come back.                                                    *)
(***************************************************************************)
EXTENDS Fencing

FollowerFetch(leader, follower) ==
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Follows(follower, leader)                                    \* follows_leader
    /\ InEpochOf(follower, leader)                                  \* epoch_not_fenced
    /\ Leo(follower) < Leo(leader)                                  \* record_available
    /\ FetchEffect(leader, follower)

LeaderExpandIsr(leader, follower) ==
    /\ follower \notin Isr(leader)                                  \* outside_isr
    /\ Follows(follower, leader)                                    \* follows_leader
    /\ InEpochOf(follower, leader)                                  \* epoch_not_fenced
    /\ Hw(leader) <= Leo(follower)                                  \* reached_high_watermark
    /\ HwReachedEpoch(leader)                                       \* hw_reached_epoch
    /\ TrueLeader(leader)                                           \* true_leader
    /\ UpdateIsrEffect(leader, Isr(leader) \union {follower})

=============================================================================
