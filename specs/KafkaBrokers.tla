---------------------------- MODULE KafkaBrokers ----------------------------
(***************************************************************************)
(* Brokers as Apache Kafka has them with KRaft, after the K rows of        *)
(* DEVIATIONS.md: a role is taken up at once, of whichever record of the   *)
(* metadata log is the last that a broker has replayed; a fetch tells      *)
(* where the logs part, and one that does so acknowledges nothing; the     *)
(* follower that is let into the ISR has reached the start of the leader's *)
(* epoch. Processes crash, and disks keep what was written.                *)
(*                                                                         *)
(* The variants differ in three rules:                                     *)
(*   RemoteLeo = "of-office"  a leader keeps what its followers' fetches   *)
(*           told it in another epoch, unless another replica has led in   *)
(*           between                                                       *)
(*           "of-any-epoch"  it keeps that whoever has led in between,     *)
(*           though its followers may have truncated since (K11)           *)
(*   Forgets = TRUE  a leader that replays the record of an ISR that it    *)
(*           knows already, by the controller's answer, forgets which      *)
(*           members it has proposed since (K12). The controller may have  *)
(*           taken that up                                                 *)
(*   Fences  = TRUE  the controller takes a failed follower out of the ISR *)
(*           in the leader epoch that there is, unasked, by a record of a  *)
(*           new partition epoch (K14). Several ISRs of one leader epoch   *)
(*           may be on their way to its leader: the epoch's request has    *)
(*           the one of which it hears next, if it has not heard of it,    *)
(*           and laterIsr those of later fencings, in their order          *)
(* Apache Kafka 4.4 has all three faults. Without K11 and K12 all          *)
(* invariants hold.                                                        *)
(***************************************************************************)
EXTENDS Running

CONSTANTS
    RemoteLeo,      \* what a leader keeps of its followers' fetches
    Forgets,        \* whether a leader that replays its ISR forgets what it has proposed
    Fences          \* whether the controller fences followers in the same leader epoch

ASSUME
    /\ RemoteLeo \in {"of-office", "of-any-epoch"}
    /\ Forgets \in BOOLEAN /\ Fences \in BOOLEAN

VARIABLES
    ahead,          \* per leader: 1 if it knows its ISR by an answer alone, else 0; -1 if it does not lead, or Forgets not
    laterIsr        \* per leader epoch: the ISRs of which its leader has not heard, a sequence

kafkaVars == <<runningVars, ahead, laterIsr>>

ReplayOk ==
    /\ ahead \in [Replicas -> {-1, 0, 1}]
    /\ \A replica \in Replicas : ahead[replica] = -1 <=> ~ (Forgets /\ PresumesLeadership(replica))

FencesOk ==
    /\ DOMAIN laterIsr = Epochs
    /\ \A epoch \in Epochs :
        /\ Len(laterIsr[epoch]) < IF Fences THEN Cardinality(Replicas) ELSE 1
        /\ \A i \in 1 .. Len(laterIsr[epoch]) : laterIsr[epoch][i] \in SUBSET Replicas

KafkaInit ==
    /\ RunningInit
    /\ ahead = [replica \in Replicas |-> -1]
    /\ laterIsr = [epoch \in Epochs |-> <<>>]

-----------------------------------------------------------------------------
(* Roles. *)

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
(* The records of an ISR that a leader replays. *)

NotAheadEffect(replica) == ahead' = [ahead EXCEPT ![replica] = -1]

\* It has replayed the record of the ISR that it knows.
ReplayedEffect(leader) == ahead' = [ahead EXCEPT ![leader] = IF Forgets THEN 0 ELSE -1]

AheadEffect(leader) ==
    ahead' = [ahead EXCEPT ![leader] = IF Forgets /\ Isr(leader) # RequestOf(Epoch(leader)).isr THEN 1 ELSE @]

AskedAnewEffect(leader, isr) ==
    /\ maximalIsr' = [maximalIsr EXCEPT ![leader] = isr]
    /\ askedIsr' = [askedIsr EXCEPT ![leader] = isr]

LeaderReplayIsr(leader) ==
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ ahead[leader] = 1                                            \* not_replayed
    /\ AskedAnewEffect(leader, Isr(leader))
    /\ ReplayedEffect(leader)
    /\ UNCHANGED <<vars, remoteLeo>>

ControllerFenceFollower(replica) ==
    /\ quorumState.leader # None                                    \* is_led
    /\ replica # quorumState.leader                                 \* not_leader_itself
    /\ replica \in quorumState.isr                                  \* in_quorum_isr
    /\ quorumState' = [quorumState EXCEPT !.isr = @ \ {replica}]
    /\ laterIsr' = [laterIsr EXCEPT ![quorumState.leaderEpoch] = Append(@, quorumState.isr \ {replica})]
    /\ UNCHANGED <<nextRecordId, nextLeaderEpoch, replicaLog, replicaState, leaderAndIsrRequests>>

\* The places are counted from 0. With the record of a fencing come those of all that was before it.
LeaderLearnLaterIsr(leader, place) ==
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ place < Len(laterIsr[Epoch(leader)])                         \* was_fenced
    /\ replicaState' = [replicaState EXCEPT ![leader].isr = laterIsr[Epoch(leader)][place + 1]]
    /\ AskedAnewEffect(leader, laterIsr[Epoch(leader)][place + 1])
    /\ leaderAndIsrRequests' = {IF request.leaderEpoch = Epoch(leader)
                                THEN [request EXCEPT !.isr = laterIsr[Epoch(leader)][place + 1]]
                                ELSE request : request \in leaderAndIsrRequests}
    /\ laterIsr' = [laterIsr EXCEPT ![Epoch(leader)] = SubSeq(@, place + 2, Len(@))]
    /\ UNCHANGED <<nextRecordId, nextLeaderEpoch, replicaLog, quorumState, remoteLeo>>

Places == 0 .. Cardinality(Replicas) - 1

-----------------------------------------------------------------------------
(* What a leader still knows of its followers' logs when it takes up a     *)
(* newer epoch; one that did not lead knows nothing.                       *)

AnotherLedBefore(leader, epoch) ==
    \E request \in leaderAndIsrRequests :
        /\ Epoch(leader) < request.leaderEpoch
        /\ request.leaderEpoch < epoch
        /\ request.leader \notin {None, leader}

KeepsEffect(leader, epoch) ==
    /\ AskedAnewEffect(leader, RequestOf(epoch).isr)
    /\ remoteLeo' = IF RemoteLeo = "of-office" /\ AnotherLedBefore(leader, epoch)
                    THEN [remoteLeo EXCEPT ![leader] = [follower \in Replicas |-> NotTold]]
                    ELSE remoteLeo

-----------------------------------------------------------------------------
(* The steps, for any replicas, epochs and offsets. *)

sideVars == <<ahead, laterIsr>>

AnyElectLeader      == \E replica \in Replicas :
                           ControllerElectLeader(replica) /\ UNCHANGED <<leaderVars, clientVars, sideVars>>
AnyFailure          == \E replica \in Replicas :
                           ControllerShrinkIsr(replica) /\ UNCHANGED <<leaderVars, clientVars, sideVars>>
AnyFailOver         == \E failed, newLeader \in Replicas :
                           ControllerFailOver(failed, newLeader) /\ UNCHANGED <<leaderVars, clientVars, sideVars>>
AnyGrantIsr         == \E leader \in Replicas :
                           ControllerGrantIsr(leader) /\ UNCHANGED <<leaderVars, clientVars, sideVars>>
AnyBecomeLeader     == \E leader \in Replicas, epoch \in Epochs :
                           BecomeLeader(leader, epoch) /\ KeepsEffect(leader, epoch) /\ ReplayedEffect(leader)
                           /\ UNCHANGED <<clientVars, laterIsr>>
AnyHearOfLeader     == \E replica \in Replicas, epoch \in Epochs :
                           HearOfLeader(replica, epoch) /\ NoRoleEffect(replica) /\ NotAheadEffect(replica)
                           /\ UNCHANGED <<clientVars, laterIsr>>
AnyTruncatePartly   == \E leader, follower \in Replicas, end \in EndOffsets :
                           TruncatePartly(leader, follower, end) /\ UNCHANGED <<leaderVars, clientVars, sideVars>>
AnyRestart          == \E replica \in Replicas, stored \in EndOffsets :
                           Restart(replica, stored) /\ NoRoleEffect(replica) /\ NotAheadEffect(replica)
                           /\ UNCHANGED <<clientVars, laterIsr>>
AnyWrite            == \E leader \in Replicas :
                           LeaderWrite(leader) /\ UNCHANGED <<leaderVars, clientVars, sideVars>>
AnyFetch            == \E leader, follower \in Replicas :
                           FollowerFetch(leader, follower) /\ UNCHANGED <<leaderVars, clientVars, sideVars>>
AnyAcknowledge      == \E leader, follower \in Replicas :
                           FollowerAcknowledge(leader, follower)
                           /\ UNCHANGED <<maximalIsr, askedIsr, clientVars, sideVars>>
AnyHearHighWatermark == \E leader, follower \in Replicas :
                           FollowerHearHighWatermark(leader, follower)
                           /\ UNCHANGED <<leaderVars, clientVars, sideVars>>
AnyIncHighWatermark == \E leader \in Replicas :
                           LeaderIncHighWatermark(leader) /\ UNCHANGED <<leaderVars, clientVars, sideVars>>
AnyAskShrink        == \E leader, follower \in Replicas :
                           LeaderAskShrink(leader, follower) /\ UNCHANGED <<clientVars, sideVars>>
AnyAskExpand        == \E leader, follower \in Replicas :
                           LeaderAskExpand(leader, follower) /\ UNCHANGED <<clientVars, sideVars>>
AnyAskAgain         == \E leader \in Replicas : LeaderAskAgain(leader) /\ UNCHANGED <<clientVars, sideVars>>
AnyLearnIsr         == \E leader \in Replicas :
                           LeaderLearnIsr(leader) /\ AheadEffect(leader) /\ UNCHANGED <<clientVars, laterIsr>>
AnyProducerHears    == \E leader \in Replicas, offset \in Offsets :
                           ProducerHears(leader, offset) /\ UNCHANGED <<leaderVars, sideVars>>
AnyConsumerReads    == \E leader \in Replicas, offset \in Offsets :
                           ConsumerReads(leader, offset) /\ UNCHANGED <<leaderVars, sideVars>>
AnyReplayIsr        == \E leader \in IF Forgets THEN Replicas ELSE {} :
                           LeaderReplayIsr(leader) /\ UNCHANGED <<clientVars, laterIsr>>
AnyFenceFollower    == \E replica \in IF Fences THEN Replicas ELSE {} :
                           ControllerFenceFollower(replica) /\ UNCHANGED <<leaderVars, clientVars, ahead>>
AnyLearnLaterIsr    == \E leader \in IF Fences THEN Replicas ELSE {}, place \in Places :
                           LeaderLearnLaterIsr(leader, place) /\ ReplayedEffect(leader)
                           /\ UNCHANGED clientVars

Next ==
    \/ AnyElectLeader
    \/ AnyFailure
    \/ AnyFailOver
    \/ AnyGrantIsr
    \/ AnyBecomeLeader
    \/ AnyHearOfLeader
    \/ AnyTruncatePartly
    \/ AnyRestart
    \/ AnyWrite
    \/ AnyFetch
    \/ AnyAcknowledge
    \/ AnyHearHighWatermark
    \/ AnyIncHighWatermark
    \/ AnyAskShrink
    \/ AnyAskExpand
    \/ AnyAskAgain
    \/ AnyLearnIsr
    \/ AnyReplayIsr
    \/ AnyProducerHears
    \/ AnyConsumerReads
    \/ AnyFenceFollower
    \/ AnyLearnLaterIsr

Spec == KafkaInit /\ [][Next]_kafkaVars

\* What the KIP's own model assumes to go on, as far as there are such steps: nothing about fetches.
KipFairness ==
    /\ SF_kafkaVars(AnyIncHighWatermark)
    /\ SF_kafkaVars(AnyWrite)
    /\ WF_kafkaVars(AnyBecomeLeader)

\* And with followers that go on fetching.
FairFetches == WF_kafkaVars(AnyFetch) /\ WF_kafkaVars(AnyAcknowledge)

=============================================================================
