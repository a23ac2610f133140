------------------------------ MODULE Crashes -------------------------------
(***************************************************************************)
(* KIP-320 where replicas crash and come back. What a replica has then is  *)
(* its log (it acknowledges only what it will still hold), and a high      *)
(* watermark that it stored some time ago. What it leads or follows is     *)
(* lost. It learns that again from the request of its own epoch, which the *)
(* controller sends once more, as a follower; it leads in a newer epoch    *)
(* only.                                                                   *)
(***************************************************************************)
EXTENDS Fenced

\* Only a crash takes a replica's role away and leaves it in an epoch.
LostRoleIn(replica, epoch) ==
    /\ replicaState[replica].leader = None
    /\ Epoch(replica) = epoch

BecomeFollower(leader, follower, epoch) ==
    /\ leader # follower                                            \* not_leader_itself
    /\ Sent(epoch)                                                  \* request_sent
    /\ RequestOf(epoch).leader = leader                             \* names_leader
    /\ epoch > Epoch(follower) \/ LostRoleIn(follower, epoch)       \* epoch_newer
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Epoch(leader) = epoch                                        \* leader_epoch_matches
    /\ EndOffsetByMatch(leader, follower) <= Leo(follower)          \* truncates_backward
    /\ FollowEffect(leader, follower, epoch, EndOffsetByMatch(leader, follower))

RestartEffect(replica, stored, epoch) ==
    /\ replicaState' = [replicaState EXCEPT ![replica] =
            [hw |-> stored, leaderEpoch |-> epoch, leader |-> None, isr |-> {}]]
    /\ UNCHANGED <<nextRecordId, nextLeaderEpoch, replicaLog, quorumState, leaderAndIsrRequests>>

\* A restart that changes nothing is none.
SomethingLost(replica, stored) ==
    replicaState[replica].leader # None \/ stored < Hw(replica)

=============================================================================
