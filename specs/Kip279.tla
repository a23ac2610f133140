------------------------------- MODULE Kip279 -------------------------------
(***************************************************************************)
(* Kafka 2.0: a new follower goes back through the epochs until its log    *)
(* matches the leader's. But the leader that it asks may still be in an    *)
(* older epoch, and may yet truncate what the follower has matched: the    *)
(* question is not fenced, and nor are the fetches after it.               *)
(***************************************************************************)
EXTENDS Unfenced

BecomeFollower(leader, follower, epoch) ==
    /\ leader # follower                                            \* not_leader_itself
    /\ Sent(epoch)                                                  \* request_sent
    /\ RequestOf(epoch).leader = leader                             \* names_leader
    /\ epoch > Epoch(follower)                                      \* epoch_newer
    /\ EndOffsetByMatch(leader, follower) <= Leo(follower)          \* truncates_backward
    /\ FollowEffect(leader, follower, epoch, EndOffsetByMatch(leader, follower))

-----------------------------------------------------------------------------
(* The steps, for any replicas and epochs: what fairness speaks of. *)

AnyElectLeader      == \E replica \in Replicas : ControllerElectLeader(replica)
AnyFailure          == \E replica \in Replicas : ControllerShrinkIsr(replica)
AnyBecomeLeader     == \E leader \in Replicas, epoch \in Epochs : BecomeLeader(leader, epoch)
AnyBecomeFollower   == \E leader, follower \in Replicas, epoch \in Epochs :
                            BecomeFollower(leader, follower, epoch)
AnyWrite            == \E leader \in Replicas : LeaderWrite(leader)
AnyFetch            == \E leader, follower \in Replicas : FollowerFetch(leader, follower)
AnyIncHighWatermark == \E leader \in Replicas : LeaderIncHighWatermark(leader)
AnyShrinkIsr        == \E leader, follower \in Replicas : LeaderShrinkIsr(leader, follower)
AnyExpandIsr        == \E leader, follower \in Replicas : LeaderExpandIsr(leader, follower)

Next ==
    \/ AnyElectLeader
    \/ AnyFailure
    \/ AnyBecomeLeader
    \/ AnyBecomeFollower
    \/ AnyWrite
    \/ AnyFetch
    \/ AnyIncHighWatermark
    \/ AnyShrinkIsr
    \/ AnyExpandIsr

Spec == Init /\ [][Next]_vars

\* What the KIP's own model assumes to go on: nothing about fetches.
KipFairness ==
    /\ SF_vars(AnyIncHighWatermark)
    /\ SF_vars(AnyExpandIsr)
    /\ SF_vars(AnyWrite)
    /\ WF_vars(AnyBecomeFollower)
    /\ WF_vars(AnyBecomeLeader)

KipFairSpec == Spec /\ KipFairness

\* And with followers that go on fetching.
FairFetches == WF_vars(AnyFetch)

FairFetchSpec == Spec /\ KipFairness /\ FairFetches

=============================================================================
