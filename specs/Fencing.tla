------------------------------ MODULE Fencing ------------------------------
(***************************************************************************)
(* One partition of a Kafka topic, replicated as KIP-320 describes it:     *)
(* the state, the rules in which variants differ, the steps that all have, *)
(* and the invariants.                                                     *)
(*                                                                         *)
(* Followers adds how a replica takes up a request as a follower, and how  *)
(* it restarts, where an exchange between two nodes is one step. Kip320    *)
(* has the variants in which a leader sees its followers' logs, from       *)
(* truncation to the high watermark up to KIP-320 itself. In Kip320Brokers *)
(* and Kip497 a leader knows what its followers' fetches told it. Running  *)
(* has what one node does at once, for Kip320Cluster and KafkaBrokers.     *)
(*                                                                         *)
(* The state is that of the model that the KIP refers to                   *)
(* (github.com/hachikuji/kafka-specification), up to renaming: equal       *)
(* constants give an equal number of distinct states. DEVIATIONS.md lists  *)
(* where we knowingly differ.                                              *)
(*                                                                         *)
(* Reading rule, which a test enforces: in an action every conjunct is     *)
(* either a guard, and then its line ends with the guard's name in the     *)
(* Python protocol, or an effect, and then it has a primed variable, is    *)
(* UNCHANGED, or is an operator whose name ends in "Effect". Offsets start *)
(* at 0; the record at offset o is element o + 1 of a TLA+ sequence.       *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
    Replicas,       \* the replicas of the partition, a set of naturals
    LogSize,        \* how many records a log can hold
    MaxRecords,     \* how many records producers write in all
    MaxLeaderEpoch, \* the largest leader epoch that the controller gives out
    Truncation,     \* where a new follower cuts its log, see EndOffset
    Fenced,         \* whether leader and follower compare their leader epochs (KIP-320)
    Validated,      \* whether a fetch names the epoch of the record before it
    AfterRestart    \* what a replica does that comes back from a crash; "none": no replica crashes

None    == -1       \* "no leader"; Kafka's LeaderAndIsr says -1 as well
NoEpoch == -1       \* the epoch of a replica that has heard of no leader yet

ASSUME ConstantsOk ==
    /\ IsFiniteSet(Replicas) /\ Replicas # {} /\ None \notin Replicas
    /\ LogSize \in Nat /\ MaxRecords \in Nat /\ MaxLeaderEpoch \in Nat
    /\ Truncation \in {"high-watermark", "epoch-end", "first-mismatch", "on-fetch"}
    /\ Fenced \in BOOLEAN /\ Validated \in BOOLEAN
    /\ AfterRestart \in {"none", "same-epoch", "resumes", "forgets"}

VARIABLES
    nextRecordId,           \* the id of the next record that a producer writes
    nextLeaderEpoch,        \* the next leader epoch that the controller gives out
    replicaLog,             \* per replica: its log, a sequence of records
    replicaState,           \* per replica: high watermark, and leader, epoch and ISR as it knows them
    quorumState,            \* leader, epoch and ISR as ZooKeeper or the metadata quorum has them
    leaderAndIsrRequests    \* every LeaderAndIsr request ever sent; any may arrive late, twice or never

vars == <<nextRecordId, nextLeaderEpoch, replicaLog, replicaState, quorumState, leaderAndIsrRequests>>

-----------------------------------------------------------------------------
(* The shape of the state. *)

Offsets     == 0 .. LogSize - 1
EndOffsets  == 0 .. LogSize
Epochs      == 0 .. MaxLeaderEpoch
Records     == [id : 0 .. MaxRecords - 1, epoch : Epochs]
LeaderOpt   == Replicas \union {None}
EpochOpt    == Epochs \union {NoEpoch}
LeaderAndIsr == [leaderEpoch : EpochOpt, leader : LeaderOpt, isr : SUBSET Replicas]
ReplicaState == [hw : EndOffsets, leaderEpoch : EpochOpt, leader : LeaderOpt, isr : SUBSET Replicas]

TypeOk ==
    /\ nextRecordId \in 0 .. MaxRecords
    /\ nextLeaderEpoch \in 0 .. MaxLeaderEpoch + 1
    /\ DOMAIN replicaLog = Replicas
    /\ \A replica \in Replicas :
        /\ Len(replicaLog[replica]) \in EndOffsets
        /\ \A i \in 1 .. Len(replicaLog[replica]) : replicaLog[replica][i] \in Records
    /\ replicaState \in [Replicas -> ReplicaState]
    /\ quorumState \in LeaderAndIsr
    /\ leaderAndIsrRequests \subseteq LeaderAndIsr

Init ==
    /\ nextRecordId = 0
    /\ nextLeaderEpoch = 0
    /\ replicaLog = [replica \in Replicas |-> <<>>]
    /\ replicaState = [replica \in Replicas |->
                            [hw |-> 0, leaderEpoch |-> NoEpoch, leader |-> None, isr |-> {}]]
    /\ quorumState = [leaderEpoch |-> NoEpoch, leader |-> None, isr |-> Replicas]
    /\ leaderAndIsrRequests = {}

-----------------------------------------------------------------------------
(* Words for the rules. *)

Min(a, b) == IF a < b THEN a ELSE b
LeastOf(set) == CHOOSE x \in set : \A y \in set : x <= y
GreatestOf(set) == CHOOSE x \in set : \A y \in set : x >= y

Leo(replica) == Len(replicaLog[replica])
Hw(replica) == replicaState[replica].hw
Epoch(replica) == replicaState[replica].leaderEpoch
Isr(replica) == replicaState[replica].isr
RecordAt(replica, offset) == replicaLog[replica][offset + 1]
OffsetsOf(replica) == 0 .. Leo(replica) - 1

\* Both logs hold the same record at this offset. Records are unique by their ids.
SameRecord(one, other, offset) ==
    /\ offset < Leo(one)
    /\ offset < Leo(other)
    /\ RecordAt(one, offset) = RecordAt(other, offset)

\* Just below endOffset both logs have a record of the same epoch.
SameEpochBefore(leader, follower, endOffset) ==
    endOffset > 0 =>
        /\ endOffset <= Leo(leader)
        /\ endOffset <= Leo(follower)
        /\ RecordAt(leader, endOffset - 1).epoch = RecordAt(follower, endOffset - 1).epoch

\* What a replica believes of itself, and what it follows. Neither need be true any more.
PresumesLeadership(replica) == replicaState[replica].leader = replica
Follows(follower, leader) == replicaState[follower].leader = leader
InEpochOf(follower, leader) == Epoch(follower) = Epoch(leader)

\* The leader that the quorum knows, in the epoch that the quorum knows: what a write to the quorum is
\* fenced by.
TrueLeader(leader) ==
    /\ quorumState.leader = leader
    /\ PresumesLeadership(leader)
    /\ Epoch(leader) = quorumState.leaderEpoch

\* An epoch stands for its LeaderAndIsr request: the controller sends one request for each epoch.
Sent(epoch) == \E request \in leaderAndIsrRequests : request.leaderEpoch = epoch
RequestOf(epoch) == CHOOSE request \in leaderAndIsrRequests : request.leaderEpoch = epoch

-----------------------------------------------------------------------------
(* The controller. Whatever it decides, it gives the decision a new leader  *)
(* epoch, writes it to the quorum and sends it to the replicas.             *)

ControllerUpdateEffect(newLeader, newIsr) ==
    LET decision == [leaderEpoch |-> nextLeaderEpoch, leader |-> newLeader, isr |-> newIsr]
    IN  /\ quorumState' = decision
        /\ leaderAndIsrRequests' = leaderAndIsrRequests \union {decision}
        /\ nextLeaderEpoch' = nextLeaderEpoch + 1
        /\ UNCHANGED <<nextRecordId, replicaLog, replicaState>>

\* A clean election: any member of the ISR, at any time.
ControllerElectLeader(newLeader) ==
    /\ newLeader \in quorumState.isr                                \* in_quorum_isr
    /\ quorumState.leader # newLeader                               \* not_leader_yet
    /\ nextLeaderEpoch <= MaxLeaderEpoch                            \* epoch_available
    /\ ControllerUpdateEffect(newLeader, quorumState.isr)

\* A broker failed or shuts down, or so the controller thinks: the broker may go on as a zombie. The last
\* member stays in the ISR of a partition that loses its leader.
ControllerShrinkIsr(replica) ==
    /\ replica \in quorumState.isr \union {quorumState.leader}      \* leads_or_in_isr
    /\ nextLeaderEpoch <= MaxLeaderEpoch                            \* epoch_available
    /\ IF quorumState.leader = replica
       THEN ControllerUpdateEffect(None, IF quorumState.isr = {replica}
                                         THEN quorumState.isr
                                         ELSE quorumState.isr \ {replica})
       ELSE ControllerUpdateEffect(quorumState.leader, quorumState.isr \ {replica})

-----------------------------------------------------------------------------
(* What replicas do alike in every variant. *)

\* The replica leaves its log and its high watermark as they are. The latter is often behind the last
\* leader's.
BecomeLeader(leader, epoch) ==
    /\ Sent(epoch)                                                  \* request_sent
    /\ RequestOf(epoch).leader = leader                             \* names_leader
    /\ epoch > Epoch(leader)                                        \* epoch_newer
    /\ replicaState' = [replicaState EXCEPT ![leader] =
            [hw |-> @.hw, leaderEpoch |-> epoch, leader |-> leader, isr |-> RequestOf(epoch).isr]]
    /\ UNCHANGED <<nextRecordId, nextLeaderEpoch, replicaLog, quorumState, leaderAndIsrRequests>>

\* A presumed leader takes writes even when it has long been deposed: fencing has to make them harmless.
LeaderWrite(leader) ==
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ nextRecordId < MaxRecords                                    \* record_available
    /\ Leo(leader) < LogSize                                        \* log_not_full
    /\ replicaLog' = [replicaLog EXCEPT
            ![leader] = Append(@, [id |-> nextRecordId, epoch |-> Epoch(leader)])]
    /\ nextRecordId' = nextRecordId + 1
    /\ UNCHANGED <<nextLeaderEpoch, replicaState, quorumState, leaderAndIsrRequests>>

-----------------------------------------------------------------------------
(* Effects that the modules share. *)

\* Take up the request of this epoch as a follower, cutting the log to newEndOffset records.
FollowEffect(leader, follower, epoch, newEndOffset) ==
    /\ replicaLog' = [replicaLog EXCEPT ![follower] = SubSeq(@, 1, newEndOffset)]
    /\ replicaState' = [replicaState EXCEPT ![follower] =
            [hw |-> Min(newEndOffset, @.hw), leaderEpoch |-> epoch, leader |-> leader,
             isr |-> RequestOf(epoch).isr]]
    /\ UNCHANGED <<nextRecordId, nextLeaderEpoch, quorumState, leaderAndIsrRequests>>

\* Copy the leader's record at the follower's LEO, and learn the high watermark from the same response.
FetchEffect(leader, follower) ==
    /\ replicaLog' = [replicaLog EXCEPT ![follower] = Append(@, RecordAt(leader, Leo(follower)))]
    /\ replicaState' = [replicaState EXCEPT ![follower].hw = Min(Hw(leader), Leo(follower) + 1)]
    /\ UNCHANGED <<nextRecordId, nextLeaderEpoch, quorumState, leaderAndIsrRequests>>

\* KIP-320: a fetch names the leader epoch that the follower is in, and its leader answers in no other epoch. The first
\* try, and Apache Kafka, compare the epochs of the record before the fetch.
FollowerFetch(leader, follower) ==
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Follows(follower, leader)                                    \* follows_leader
    /\ Fenced => InEpochOf(follower, leader)                        \* epoch_not_fenced
    /\ Validated => SameEpochBefore(leader, follower, Leo(follower)) \* previous_epoch_matches
    /\ Leo(follower) < Leo(leader)                                  \* record_available
    /\ FetchEffect(leader, follower)

IncHighWatermarkEffect(leader) ==
    /\ replicaState' = [replicaState EXCEPT ![leader].hw = @ + 1]
    /\ UNCHANGED <<nextRecordId, nextLeaderEpoch, replicaLog, quorumState, leaderAndIsrRequests>>

\* Quorum and leader change together: the write to the quorum is a compare-and-set that TrueLeader stands
\* for, and its answer is not modelled as a step of its own.
UpdateIsrEffect(leader, newIsr) ==
    /\ quorumState' = [quorumState EXCEPT !.isr = newIsr]
    /\ replicaState' = [replicaState EXCEPT ![leader].isr = newIsr]
    /\ UNCHANGED <<nextRecordId, nextLeaderEpoch, replicaLog, leaderAndIsrRequests>>

-----------------------------------------------------------------------------
(* Where a new follower's log is to end. *)

\* KIP-101: ask the leader where the epoch of the follower's last record ends, that is, for the first
\* offset of any larger epoch. The leader cannot say when it has no such offset, and the follower then
\* falls back on its high watermark.
EndOffsetByLastEpoch(leader, follower) ==
    LET lastEpoch == RecordAt(follower, Leo(follower) - 1).epoch
        larger    == {o \in OffsetsOf(leader) : RecordAt(leader, o).epoch > lastEpoch}
    IN  IF Leo(follower) = 0 THEN 0
        ELSE IF Leo(leader) = 0 THEN Hw(follower)
        ELSE IF RecordAt(leader, Leo(leader) - 1).epoch = lastEpoch THEN Leo(leader)
        ELSE IF larger = {} THEN Hw(follower)
        ELSE LeastOf(larger)

\* KIP-279: go back from the end until a record is the leader's as well.
EndOffsetByMatch(leader, follower) ==
    LET matching == {o \in OffsetsOf(follower) : SameRecord(leader, follower, o)}
    IN  IF matching = {} THEN 0 ELSE GreatestOf(matching) + 1

\* By the rule of each time. Before KIP-101 it is the follower's own high watermark, which trails the leader's. In the
\* first try of KIP-320 a fetch truncates, once the leader says that the logs diverge.
EndOffset(leader, follower) ==
    CASE Truncation = "high-watermark" -> Hw(follower)
      [] Truncation = "epoch-end"      -> EndOffsetByLastEpoch(leader, follower)
      [] Truncation = "first-mismatch" -> EndOffsetByMatch(leader, follower)
      [] Truncation = "on-fetch"       -> Leo(follower)

-----------------------------------------------------------------------------
(* A high watermark that has come as far as the leader's own epoch: below  *)
(* it lies all that earlier leaders can have committed. Used where the ISR *)
(* may grow, from the first try on.                                        *)

HwReachedEpoch(leader) ==
    Hw(leader) # Leo(leader) =>
        /\ Hw(leader) < Leo(leader)
        /\ RecordAt(leader, Hw(leader)).epoch = Epoch(leader)

-----------------------------------------------------------------------------
(* The invariants. *)

\* What a presumed leader calls committed is in the log of every member of the ISR that it knows.
WeakIsr ==
    \A leader \in Replicas :
        PresumesLeadership(leader) =>
            \A member \in Isr(leader), offset \in 0 .. Hw(leader) - 1 : SameRecord(leader, member, offset)

\* And of every member of the ISR that the next leader is chosen from. This is what keeps committed
\* records.
StrongIsr ==
    \A leader \in Replicas :
        PresumesLeadership(leader) =>
            \A member \in quorumState.isr, offset \in 0 .. Hw(leader) - 1 : SameRecord(leader, member, offset)

\* While there is a leader, it is a member of its ISR.
LeaderInIsr == quorumState.leader # None => quorumState.leader \in quorumState.isr

\* Epochs run out, so every run has a last election: if that gives the partition a leader, then in the end
\* the leader takes it up.
FinalLeaderAdoptsEpoch ==
    []<>(quorumState.leader = None \/ \E leader \in Replicas : TrueLeader(leader))

\* A record that stays at the final leader is in the end below its high watermark.
FinalLeaderCommitsRecord ==
    \A leader \in Replicas, offset \in Offsets :
        LET stays == quorumState.leader = leader /\ offset < Leo(leader)
        IN  stays ~> (~ stays \/ offset < Hw(leader))

=============================================================================
