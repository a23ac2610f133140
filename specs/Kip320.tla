------------------------------- MODULE Kip320 -------------------------------
(***************************************************************************)
(* The leader sees the logs and the epochs of its followers as they are,   *)
(* as in the KIP's own model. No broker can do that; see Kip320Brokers.    *)
(*                                                                         *)
(* Before KIP-320 nothing tells a leader that a follower is in another     *)
(* epoch than itself. Its variants differ in Truncation:                   *)
(*   "high-watermark"  Kafka before 0.11. A new follower may drop records  *)
(*           that are committed, and a new leader then loses them for good *)
(*   "epoch-end"  KIP-101. One question to the leader is not enough after  *)
(*           two fast elections: the leader may never have heard of the    *)
(*           follower's last epoch, and then logs diverge                  *)
(*   "first-mismatch"  KIP-279. The logs match, but the question is not    *)
(*           fenced, and nor are the fetches after it                      *)
(*   "on-fetch", and Validated  the draft of KIP-320 in its section        *)
(*           "Rejected Alternatives". The leader cannot tell that a        *)
(*           follower is still in an older epoch, and what it can tell is  *)
(*           not enough to commit on                                       *)
(* KIP-320 is "first-mismatch", and Fenced. With crashes it differs in     *)
(* AfterRestart:                                                           *)
(*   "same-epoch"  a replica stores its leader epoch before it acts in it. *)
(*           All invariants hold. But nothing obliges the controller to    *)
(*           elect anew when the leader is back, so in the end nothing     *)
(*           need be committed                                             *)
(*   "resumes"  a restarted leader goes on leading in its own epoch, with  *)
(*           the ISR of now. Its high watermark may have fallen below what *)
(*           it committed in this epoch, and then HwReachedEpoch says      *)
(*           nothing of what a follower must have to join the ISR          *)
(*   "forgets"  a replica does not store its leader epoch                  *)
(***************************************************************************)
EXTENDS Followers

\* The member follows the leader and has what the leader has before endOffset, as far as the leader can tell.
FollowsUpTo(leader, member, endOffset) ==
    /\ Follows(member, leader)
    /\ Fenced => InEpochOf(member, leader)
    /\ IF Validated THEN SameEpochBefore(leader, member, endOffset) ELSE endOffset <= Leo(member)

\* Before KIP-320 the leader's own log is looked at as the log of a member of the ISR, and not otherwise.
LeaderIncHighWatermark(leader) ==
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Hw(leader) < IF Fenced \/ Validated THEN Leo(leader) ELSE LogSize  \* record_above_hw
    /\ \A member \in Isr(leader) :
            FollowsUpTo(leader, member, Hw(leader) + 1)             \* isr_acknowledges
    /\ IncHighWatermarkEffect(leader)

LeaderShrinkIsr(leader, follower) ==
    /\ leader # follower                                            \* not_leader_itself
    /\ follower \in Isr(leader)                                     \* in_isr
    /\ ~ FollowsUpTo(leader, follower, Leo(leader))                 \* not_caught_up
    /\ TrueLeader(leader)                                           \* true_leader
    /\ UpdateIsrEffect(leader, Isr(leader) \ {follower})

\* What a leader answers LOG_TRUNCATION to.
Diverges(leader, follower) ==
    ~ SameEpochBefore(leader, follower, Leo(follower))

FollowerTruncate(leader, follower) ==
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Follows(follower, leader)                                    \* follows_leader
    /\ Diverges(leader, follower)                                   \* diverges
    /\ LET newEndOffset == EndOffsetByMatch(leader, follower)
       IN  /\ replicaLog' = [replicaLog EXCEPT ![follower] = SubSeq(@, 1, newEndOffset)]
           /\ replicaState' = [replicaState EXCEPT ![follower].hw = Min(newEndOffset, @)]
    /\ UNCHANGED <<nextRecordId, nextLeaderEpoch, quorumState, leaderAndIsrRequests>>

ResumeLeadership(leader) ==
    /\ replicaState[leader].leader = None                           \* lost_role
    /\ quorumState.leader = leader                                  \* quorum_has_it_lead
    /\ Epoch(leader) = quorumState.leaderEpoch                      \* epoch_is_quorums
    /\ replicaState' = [replicaState EXCEPT ![leader].leader = leader, ![leader].isr = quorumState.isr]
    /\ UNCHANGED <<nextRecordId, nextLeaderEpoch, replicaLog, quorumState, leaderAndIsrRequests>>

-----------------------------------------------------------------------------
(* The steps, for any replicas and epochs: what fairness speaks of. *)

Truncating == IF Truncation = "on-fetch" THEN Replicas ELSE {}
Resuming   == IF AfterRestart = "resumes" THEN Replicas ELSE {}

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
AnyTruncate         == \E leader, follower \in Truncating : FollowerTruncate(leader, follower)
AnyRestart          == \E replica \in Crashing, stored \in EndOffsets : Restart(replica, stored)
AnyResume           == \E leader \in Resuming : ResumeLeadership(leader)

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
    \/ AnyRestart
    \/ AnyResume

Spec == Init /\ [][Next]_vars

\* What the KIP's own model assumes to go on: nothing about fetches. For the first try it names the unfenced
\* LeaderExpandIsr, which is no step of that variant.
KipFairness ==
    /\ SF_vars(AnyIncHighWatermark)
    /\ SF_vars(AnyExpandIsr)
    /\ SF_vars(AnyWrite)
    /\ WF_vars(AnyBecomeFollower)
    /\ WF_vars(AnyBecomeLeader)

KipFairSpec == Spec /\ KipFairness

\* And with followers that go on fetching, and truncating where a fetch is refused.
FairFetches == WF_vars(AnyFetch) /\ WF_vars(AnyTruncate)

FairFetchSpec == Spec /\ KipFairness /\ FairFetches

\* The least that FinalLeaderCommits needs: without any one of the four it fails.
LeastFairness ==
    /\ WF_vars(AnyBecomeLeader)
    /\ WF_vars(AnyBecomeFollower)
    /\ WF_vars(AnyFetch)
    /\ WF_vars(AnyIncHighWatermark)

LeastFairSpec == Spec /\ LeastFairness

=============================================================================
