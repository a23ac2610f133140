---------------------------- MODULE KafkaBrokers ----------------------------
(***************************************************************************)
(* Brokers as Apache Kafka has them with KRaft, after the K rows of        *)
(* DEVIATIONS.md: a role is taken up at once, of whichever record of the   *)
(* metadata log is the last that a broker has replayed; a fetch tells      *)
(* where the logs part, and one that does so acknowledges nothing; the     *)
(* follower that is let into the ISR has reached the start of the leader's *)
(* epoch. Processes crash, and disks keep what was written.                *)
(***************************************************************************)
EXTENDS Running

\* Where nobody leads, it follows nobody. Back from a crash it hears of its epoch's leader again.
HearOfLeader(replica, epoch) ==
    /\ Sent(epoch)                                                  \* request_sent
    /\ RequestOf(epoch).leader # replica                            \* names_another
    /\ \/ epoch > Epoch(replica)
       \/ epoch = Epoch(replica) /\ replicaState[replica].leader = None  \* epoch_newer
    /\ replicaState' = [replicaState EXCEPT ![replica] =
            [hw |-> @.hw, leaderEpoch |-> epoch, leader |-> RequestOf(epoch).leader, isr |-> {}]]
    /\ UNCHANGED <<nextRecordId, nextLeaderEpoch, replicaLog, quorumState, leaderAndIsrRequests>>

TruncatePartly(leader, follower, end) ==
    /\ leader # follower                                            \* not_leader_itself
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Follows(follower, leader)                                    \* follows_leader
    /\ InEpochOf(follower, leader)                                  \* leader_epoch_matches
    /\ end < Leo(follower)                                          \* truncates_backward
    /\ EndOffsetByMatch(leader, follower) <= end                    \* keeps_what_matches
    /\ replicaLog' = [replicaLog EXCEPT ![follower] = SubSeq(@, 1, end)]
    /\ replicaState' = [replicaState EXCEPT ![follower].hw = Min(end, @)]
    /\ UNCHANGED <<nextRecordId, nextLeaderEpoch, quorumState, leaderAndIsrRequests>>

Restart(replica, stored) ==
    /\ stored <= Hw(replica)                                        \* stored_high_watermark
    /\ replicaState[replica].leader # None \/ stored < Hw(replica)  \* something_lost
    /\ replicaState' = [replicaState EXCEPT ![replica] =
            [hw |-> stored, leaderEpoch |-> @.leaderEpoch, leader |-> None, isr |-> {}]]
    /\ UNCHANGED <<nextRecordId, nextLeaderEpoch, replicaLog, quorumState, leaderAndIsrRequests>>

-----------------------------------------------------------------------------
(* Records and the high watermark. *)

FollowerFetch(leader, follower) ==
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Follows(follower, leader)                                    \* follows_leader
    /\ InEpochOf(follower, leader)                                  \* epoch_not_fenced
    /\ SameEpochBefore(leader, follower, Leo(follower))             \* previous_epoch_matches
    /\ Leo(follower) < Leo(leader)                                  \* record_available
    /\ FetchEffect(leader, follower)

\* The fetch itself; its response is a FollowerFetch, or a FollowerHearHighWatermark where it brings no record.
FollowerAcknowledge(leader, follower) ==
    /\ leader # follower                                            \* not_leader_itself
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Follows(follower, leader)                                    \* follows_leader
    /\ InEpochOf(follower, leader)                                  \* epoch_not_fenced
    /\ SameEpochBefore(leader, follower, Leo(follower))             \* previous_epoch_matches
    /\ remoteLeo[leader][follower] # Leo(follower)                  \* something_new
    /\ remoteLeo' = [remoteLeo EXCEPT ![leader][follower] = Leo(follower)]
    /\ UNCHANGED vars

\* The end of a member's log, as far as the leader knows.
KnownEnd(leader, member) == IF member = leader THEN Leo(leader) ELSE remoteLeo[leader][member]

LeaderIncHighWatermark(leader) ==
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Hw(leader) < Leo(leader)                                     \* record_above_hw
    /\ \A member \in maximalIsr[leader] :
            Hw(leader) < KnownEnd(leader, member)                   \* isr_acknowledges
    /\ IncHighWatermarkEffect(leader)

-----------------------------------------------------------------------------
(* The ISR, at its leader. *)

\* Where the leader's epoch began in its log: its end where it has written nothing yet.
EpochStart(leader) ==
    LeastOf({Leo(leader)} \union {offset \in OffsetsOf(leader) : RecordAt(leader, offset).epoch = Epoch(leader)})

\* The high watermark may be behind the start of the leader's epoch (K5).
LeaderAskExpand(leader, follower) ==
    /\ leader # follower                                            \* not_leader_itself
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ follower \notin Isr(leader)                                  \* outside_isr
    /\ follower \notin askedIsr[leader]                             \* not_asked_yet
    /\ Hw(leader) <= remoteLeo[leader][follower]                    \* reached_high_watermark
    /\ EpochStart(leader) <= remoteLeo[leader][follower]            \* reached_epoch_start
    /\ AskExpandEffect(leader, follower)

-----------------------------------------------------------------------------
(* What a leader still knows of its followers' logs when it takes up a     *)
(* newer epoch; one that did not lead knows nothing.                       *)

AskedAnewEffect(leader, isr) ==
    /\ maximalIsr' = [maximalIsr EXCEPT ![leader] = isr]
    /\ askedIsr' = [askedIsr EXCEPT ![leader] = isr]

\* What it was told, unless somebody else has led in between.
KeepsInOfficeEffect(leader, epoch) ==
    /\ AskedAnewEffect(leader, RequestOf(epoch).isr)
    /\ remoteLeo' = IF \E request \in leaderAndIsrRequests :
                          /\ Epoch(leader) < request.leaderEpoch
                          /\ request.leaderEpoch < epoch
                          /\ request.leader \notin {None, leader}
                    THEN [remoteLeo EXCEPT ![leader] = [follower \in Replicas |-> NotTold]]
                    ELSE remoteLeo

\* What it was told, whoever has led in between (K11).
KeepsAllEffect(leader, epoch) ==
    /\ AskedAnewEffect(leader, RequestOf(epoch).isr)
    /\ UNCHANGED remoteLeo

=============================================================================
