------------------------------- MODULE Kip320 -------------------------------
(***************************************************************************)
(* KIP-320 as the KIP's own model has it: a replica takes up a request as  *)
(* a follower when the leader is in the request's epoch, and truncates its *)
(* log to what the leader's log confirms. Nobody crashes.                  *)
(***************************************************************************)
EXTENDS LeaderSees

BecomeFollower(leader, follower, epoch) ==
    /\ leader # follower                                            \* not_leader_itself
    /\ Sent(epoch)                                                  \* request_sent
    /\ RequestOf(epoch).leader = leader                             \* names_leader
    /\ epoch > Epoch(follower)                                      \* epoch_newer
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Epoch(leader) = epoch                                        \* leader_epoch_matches
    /\ EndOffsetByMatch(leader, follower) <= Leo(follower)          \* truncates_backward
    /\ FollowEffect(leader, follower, epoch, EndOffsetByMatch(leader, follower))

AnyBecomeFollower == \E leader, follower \in Replicas, epoch \in Epochs :
                          BecomeFollower(leader, follower, epoch)

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

\* The least that FinalLeaderCommits needs: without any one of the four it fails.
LeastFairness ==
    /\ WF_vars(AnyBecomeLeader)
    /\ WF_vars(AnyBecomeFollower)
    /\ WF_vars(AnyFetch)
    /\ WF_vars(AnyIncHighWatermark)

LeastFairSpec == Spec /\ LeastFairness

=============================================================================
