----------------------------- MODULE Unfenced ------------------------------
(***************************************************************************)
(* Replication as it was before KIP-320: a fetch names no leader epoch, so *)
(* nothing tells a leader that a follower is in another epoch than itself. *)
(* TruncateToHw, Kip101 and Kip279 differ from one another only in where a *)
(* new follower cuts its log.                                              *)
(***************************************************************************)
EXTENDS Fencing

\* The follower holds what the leader has before endOffset, as far as the leader can tell: by offset alone.
ReachedByOffset(leader, follower, endOffset) ==
    endOffset > 0 => endOffset <= Leo(leader) /\ endOffset <= Leo(follower)

FollowerFetch(leader, follower) ==
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Follows(follower, leader)                                    \* follows_leader
    /\ Leo(follower) < Leo(leader)                                  \* record_available
    /\ FetchEffect(leader, follower)

\* The leader's own log is looked at as the log of a member of the ISR, and not otherwise.
LeaderIncHighWatermark(leader) ==
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Hw(leader) < LogSize                                         \* record_above_hw
    /\ \A member \in Isr(leader) :
        /\ Follows(member, leader)
        /\ Hw(leader) < Leo(member)                                 \* isr_acknowledges
    /\ IncHighWatermarkEffect(leader)

LeaderShrinkIsr(leader, follower) ==
    /\ leader # follower                                            \* not_leader_itself
    /\ follower \in Isr(leader)                                     \* in_isr
    /\ ~ (Follows(follower, leader)
          /\ ReachedByOffset(leader, follower, Leo(leader)))        \* not_caught_up
    /\ TrueLeader(leader)                                           \* true_leader
    /\ UpdateIsrEffect(leader, Isr(leader) \ {follower})

LeaderExpandIsr(leader, follower) ==
    /\ follower \notin Isr(leader)                                  \* outside_isr
    /\ Follows(follower, leader)                                    \* follows_leader
    /\ ReachedByOffset(leader, follower, Hw(leader))                \* reached_high_watermark
    /\ TrueLeader(leader)                                           \* true_leader
    /\ UpdateIsrEffect(leader, Isr(leader) \union {follower})

=============================================================================
