----------------------------- MODULE Followers ------------------------------
(***************************************************************************)
(* How a replica takes up a request as a follower, how it joins the ISR,   *)
(* and how it comes back from a crash. An exchange between two nodes is    *)
(* one step.                                                               *)
(*                                                                         *)
(* KIP-320: a new follower asks a leader in the request's own epoch before *)
(* it truncates, and the leader admits to the ISR only when its high       *)
(* watermark has reached its own epoch. Before, no epoch is compared.      *)
(*                                                                         *)
(* After a crash a replica has its log (it acknowledges only what it will  *)
(* still hold), and a high watermark that it stored some time ago. It has  *)
(* lost what it leads or follows, and learns that again from the request   *)
(* of its own epoch, which the controller sends once more, as a follower;  *)
(* it leads in a newer epoch only.                                         *)
(***************************************************************************)
EXTENDS Fencing

\* Only a crash takes a replica's role away and leaves it in an epoch.
LostRoleIn(replica, epoch) ==
    /\ replicaState[replica].leader = None
    /\ Epoch(replica) = epoch

BecomeFollower(leader, follower, epoch) ==
    /\ leader # follower                                            \* not_leader_itself
    /\ Sent(epoch)                                                  \* request_sent
    /\ RequestOf(epoch).leader = leader                             \* names_leader
    /\ epoch > Epoch(follower) \/ LostRoleIn(follower, epoch)       \* epoch_newer
    /\ Fenced => PresumesLeadership(leader)                         \* presumes_leadership
    /\ Fenced => Epoch(leader) = epoch                              \* leader_epoch_matches
    /\ Truncation # "on-fetch" => EndOffset(leader, follower) <= Leo(follower) \* truncates_backward
    /\ FollowEffect(leader, follower, epoch, EndOffset(leader, follower))

\* The follower has what the leader has before its high watermark, as far as the leader can tell. Before KIP-320 that
\* is by the offset alone, which the leader's own log need not reach.
ReachedHighWatermark(leader, follower) ==
    IF Validated
    THEN SameEpochBefore(leader, follower, Hw(leader))
    ELSE Hw(leader) <= Leo(follower) /\ (~ Fenced => Hw(leader) <= Leo(leader))

LeaderExpandIsr(leader, follower) ==
    /\ follower \notin Isr(leader)                                  \* outside_isr
    /\ Follows(follower, leader)                                    \* follows_leader
    /\ Fenced => InEpochOf(follower, leader)                        \* epoch_not_fenced
    /\ ReachedHighWatermark(leader, follower)                       \* reached_high_watermark
    /\ Fenced \/ Validated => HwReachedEpoch(leader)                \* hw_reached_epoch
    /\ TrueLeader(leader)                                           \* true_leader
    /\ UpdateIsrEffect(leader, Isr(leader) \union {follower})

-----------------------------------------------------------------------------
(* Crashes. *)

\* The replicas that crash.
Crashing == IF AfterRestart = "none" THEN {} ELSE Replicas

\* A replica that has not stored its leader epoch comes back in none, and any request that was ever sent is a new one to
\* it. It may lead again in an epoch that is long over, with the ISR of then. A restart that changes nothing is none.
Restart(replica, stored) ==
    /\ stored <= Hw(replica)                                        \* stored_high_watermark
    /\ replicaState[replica].leader # None \/ stored < Hw(replica)  \* something_lost
    /\ replicaState' = [replicaState EXCEPT ![replica] =
            [hw |-> stored, leaderEpoch |-> IF AfterRestart = "forgets" THEN NoEpoch ELSE @.leaderEpoch,
             leader |-> None, isr |-> {}]]
    /\ UNCHANGED <<nextRecordId, nextLeaderEpoch, replicaLog, quorumState, leaderAndIsrRequests>>

=============================================================================
