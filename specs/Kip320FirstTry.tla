--------------------------- MODULE Kip320FirstTry ---------------------------
(***************************************************************************)
(* The draft of KIP-320 that its section "Rejected Alternatives" tells of: *)
(* a fetch names the epoch of the record before it, not the current one. A *)
(* new follower starts to fetch at once and truncates when the leader says *)
(* that the logs diverge. The leader cannot tell that a follower is still  *)
(* in an older epoch, and that is not enough to commit on.                 *)
(***************************************************************************)
EXTENDS Fencing

\* What a leader answers LOG_TRUNCATION to.
Diverges(leader, follower) ==
    ~ SameEpochBefore(leader, follower, Leo(follower))

BecomeFollower(leader, follower, epoch) ==
    /\ leader # follower                                            \* not_leader_itself
    /\ Sent(epoch)                                                  \* request_sent
    /\ RequestOf(epoch).leader = leader                             \* names_leader
    /\ epoch > Epoch(follower)                                      \* epoch_newer
    /\ FollowEffect(leader, follower, epoch, Leo(follower))

FollowerFetch(leader, follower) ==
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Follows(follower, leader)                                    \* follows_leader
    /\ SameEpochBefore(leader, follower, Leo(follower))             \* previous_epoch_matches
    /\ Leo(follower) < Leo(leader)                                  \* record_available
    /\ FetchEffect(leader, follower)

FollowerTruncate(leader, follower) ==
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Follows(follower, leader)                                    \* follows_leader
    /\ Diverges(leader, follower)                                   \* diverges
    /\ LET newEndOffset == EndOffsetByMatch(leader, follower)
       IN  /\ replicaLog' = [replicaLog EXCEPT ![follower] = SubSeq(@, 1, newEndOffset)]
           /\ replicaState' = [replicaState EXCEPT ![follower].hw = Min(newEndOffset, @)]
    /\ UNCHANGED <<nextRecordId, nextLeaderEpoch, quorumState, leaderAndIsrRequests>>

LeaderIncHighWatermark(leader) ==
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Hw(leader) < Leo(leader)                                     \* record_above_hw
    /\ \A member \in Isr(leader) :
        /\ Follows(member, leader)
        /\ SameEpochBefore(leader, member, Hw(leader) + 1)          \* isr_acknowledges
    /\ IncHighWatermarkEffect(leader)

LeaderShrinkIsr(leader, follower) ==
    /\ leader # follower                                            \* not_leader_itself
    /\ follower \in Isr(leader)                                     \* in_isr
    /\ ~ (Follows(follower, leader)
          /\ SameEpochBefore(leader, follower, Leo(leader)))        \* not_caught_up
    /\ TrueLeader(leader)                                           \* true_leader
    /\ UpdateIsrEffect(leader, Isr(leader) \ {follower})

LeaderExpandIsr(leader, follower) ==
    /\ follower \notin Isr(leader)                                  \* outside_isr
    /\ Follows(follower, leader)                                    \* follows_leader
    /\ SameEpochBefore(leader, follower, Hw(leader))                \* reached_high_watermark
    /\ HwReachedEpoch(leader)                                       \* hw_reached_epoch
    /\ TrueLeader(leader)                                           \* true_leader
    /\ UpdateIsrEffect(leader, Isr(leader) \union {follower})

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
AnyTruncate         == \E leader, follower \in Replicas : FollowerTruncate(leader, follower)

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
    \/ AnyTruncate

Spec == Init /\ [][Next]_vars

\* What the KIP's own model assumes to go on: nothing about fetches.
KipFairness ==
    /\ SF_vars(AnyIncHighWatermark)
    \* The KIP's model names here the unfenced LeaderExpandIsr, which is no step of this variant.
    /\ SF_vars(AnyExpandIsr)
    /\ SF_vars(AnyWrite)
    /\ WF_vars(AnyBecomeFollower)
    /\ WF_vars(AnyBecomeLeader)

KipFairSpec == Spec /\ KipFairness

\* And with followers that go on fetching, and truncating where a fetch is refused.
FairFetches == WF_vars(AnyFetch) /\ WF_vars(AnyTruncate)

FairFetchSpec == Spec /\ KipFairness /\ FairFetches

=============================================================================
