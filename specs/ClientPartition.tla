--------------------------- MODULE ClientPartition ---------------------------
(***************************************************************************)
(* What a running consumer reads from, and what it is promised: a          *)
(* partition's replicas, and the coordinator that keeps its commits.       *)
(*                                                                         *)
(* Which records a partition keeps is the business of Fencing. Here a      *)
(* replica that is not told to lead may lose what it likes from the end of *)
(* its log, any replica by a crash, and what is old goes by retention; a   *)
(* leader's high watermark rises when it likes. A commit that was not      *)
(* acknowledged may be stored all the same, and a coordinator that starts  *)
(* finds it in its log, or not.                                            *)
(*                                                                         *)
(* What there is of the consumer is said by the modules that extend this   *)
(* one: Kip320Client of one that has each fetch checked, ValidatingClient  *)
(* of one as Apache Kafka's. The reading rule of Fencing holds in all of   *)
(* them: every conjunct of an action is a guard whose line ends with its   *)
(* name, or an effect.                                                     *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
    Replicas,       \* the replicas of the partition, a set of naturals
    LogSize,        \* how many records a log can hold
    MaxRecords,     \* how many records producers write in all
    MaxLeaderEpoch  \* the largest leader epoch that the controller gives out

None     == -1      \* no leader
NoEpoch  == -1      \* no epoch: before the first election, and in a fetch that is not to be checked
NoOffset == -1      \* nothing committed, nothing reported

\* What became of the consumer's last fetch.
Fetching           == "fetching"
UnknownLeaderEpoch == "unknown_leader_epoch"
LogTruncation      == "log_truncation"
OffsetOutOfRange   == "offset_out_of_range"
DivergenceFound    == "divergence_found"
Outcome == {Fetching, UnknownLeaderEpoch, LogTruncation, OffsetOutOfRange, DivergenceFound}

ASSUME ConstantsOk ==
    /\ IsFiniteSet(Replicas) /\ Replicas # {} /\ None \notin Replicas
    /\ LogSize \in Nat /\ MaxRecords \in Nat /\ MaxLeaderEpoch \in Nat

VARIABLES
    nextRecordId,   \* the id of the next record that a producer writes
    elections,      \* the elections so far: that of epoch e is element e + 1
    replicaLog,     \* per replica: where its log begins and ends, and the record at each offset
    replicaState,   \* per replica: high watermark, leader epoch, and whether it leads, and knows it
    metadata,       \* the leader, and its epoch, by the consumer's metadata
    consumer,       \* its position, if any, and what it read up to there without a break
    pending,        \* which new position it asks for, and, of Kip320Client, what it waits for and what has arrived
    answer,         \* what its last request was answered, and the divergence that the application was told of
    committed,      \* the committed position
    acknowledged,   \* the commit that was acknowledged last
    refused,        \* a commit that was not acknowledged and may be stored
    foundAgain      \* 1 where what is committed was never acknowledged, and found in the log

brokers == <<nextRecordId, elections, replicaLog, replicaState>>
reader  == <<metadata, consumer, pending, answer>>
commits == <<committed, acknowledged, refused, foundAgain>>
vars    == <<brokers, reader, commits>>

-----------------------------------------------------------------------------
(* The shape of the state. *)

Offsets    == 0 .. LogSize - 1
EndOffsets == 0 .. LogSize
Ids        == 0 .. MaxRecords - 1
Epochs     == 0 .. MaxLeaderEpoch
EpochOpt   == Epochs \union {NoEpoch}
OffsetOpt  == EndOffsets \union {NoOffset}

\* Which new position a consumer asks for.
Asking == {"nothing", "committed", "beginning", "end"}

Records  == [id : Ids, epoch : Epochs]
NoRecord == [id |-> -1, epoch |-> NoEpoch]
NoAnswer == [outcome |-> Fetching, answeredEpoch |-> NoEpoch, reported |-> NoOffset, reportedEpoch |-> NoEpoch,
             told |-> NoOffset]
NoCommit == [offset |-> NoOffset, epoch |-> NoEpoch, seen |-> NoEpoch]
Position == [offset : OffsetOpt, epoch : EpochOpt, seen : EpochOpt]

\* The records from one offset up to another; nothing elsewhere.
Part(records, start, end) == [o \in Offsets |-> IF start <= o /\ o < end THEN records[o] ELSE NoRecord]
IsPart(records, start, end) ==
    /\ DOMAIN records = Offsets
    /\ \A o \in Offsets : IF start <= o /\ o < end THEN records[o] \in Records ELSE records[o] = NoRecord

PartitionOk ==
    /\ nextRecordId \in 0 .. MaxRecords
    /\ Len(elections) \in 0 .. MaxLeaderEpoch + 1
    /\ \A i \in 1 .. Len(elections) : elections[i] \in [leader : Replicas \union {None}, unclean : {0, 1}]
    /\ DOMAIN replicaLog = Replicas
    /\ \A replica \in Replicas :
        /\ replicaLog[replica].start \in EndOffsets /\ replicaLog[replica].end \in EndOffsets
        /\ IsPart(replicaLog[replica].records, replicaLog[replica].start, replicaLog[replica].end)
    /\ replicaState \in [Replicas -> [hw : EndOffsets, leaderEpoch : EpochOpt, leading : {0, 1}]]
    /\ answer \in [outcome : Outcome, answeredEpoch : EpochOpt, reported : OffsetOpt,
                   reportedEpoch : EpochOpt, told : OffsetOpt]
    /\ committed \in Position /\ acknowledged \in Position /\ refused \in Position
    /\ foundAgain \in {0, 1}

Nowhere == [o \in Offsets |-> NoRecord]

PartitionInit ==
    /\ nextRecordId = 0
    /\ elections = <<>>
    /\ replicaLog = [replica \in Replicas |-> [start |-> 0, end |-> 0, records |-> Nowhere]]
    /\ replicaState = [replica \in Replicas |-> [hw |-> 0, leaderEpoch |-> NoEpoch, leading |-> 0]]
    /\ answer = NoAnswer
    /\ committed = NoCommit
    /\ acknowledged = NoCommit
    /\ refused = NoCommit
    /\ foundAgain = 0

-----------------------------------------------------------------------------
(* Words for the rules. *)

Min(a, b) == IF a < b THEN a ELSE b
Max(a, b) == IF a < b THEN b ELSE a
LeastOf(set) == CHOOSE x \in set : \A y \in set : x <= y

QuorumLeaderEpoch == Len(elections) - 1
Elected(epoch) == epoch \in 0 .. QuorumLeaderEpoch
EpochLeader(epoch) == IF Elected(epoch) THEN elections[epoch + 1].leader ELSE None

Start(replica) == replicaLog[replica].start
Leo(replica) == replicaLog[replica].end
Hw(replica) == replicaState[replica].hw
Epoch(replica) == replicaState[replica].leaderEpoch
Leads(replica) == replicaState[replica].leading = 1
RecordAt(replica, offset) == IF offset \in Offsets THEN replicaLog[replica].records[offset] ELSE NoRecord
EpochAt(replica, offset) == RecordAt(replica, offset).epoch
InLog(replica, offset) == Start(replica) <= offset /\ offset < Leo(replica)

\* The replica's log from one offset up to another.
CutEffect(replica, start, end) ==
    replicaLog' = [replicaLog EXCEPT ![replica] =
            [start |-> start, end |-> end, records |-> Part(@.records, start, end)]]

\* The replica's log with a record at its end.
AppendEffect(replica, record) ==
    replicaLog' = [replicaLog EXCEPT ![replica] =
            [start |-> @.start, end |-> @.end + 1, records |-> [@.records EXCEPT ![Leo(replica)] = record]]]

-----------------------------------------------------------------------------
(* The brokers. *)

ElectEffect(newLeader, unclean) ==
    /\ elections' = Append(elections, [leader |-> newLeader, unclean |-> unclean])
    /\ UNCHANGED <<nextRecordId, replicaLog, replicaState, reader, commits>>

ElectMember(newLeader) ==
    /\ QuorumLeaderEpoch < MaxLeaderEpoch                           \* epoch_available
    /\ ElectEffect(newLeader, 0)

ElectOutsider(newLeader) ==
    /\ QuorumLeaderEpoch < MaxLeaderEpoch                           \* epoch_available
    /\ ElectEffect(newLeader, 1)

ElectNobody ==
    /\ QuorumLeaderEpoch < MaxLeaderEpoch                           \* epoch_available
    /\ ElectEffect(None, 0)

TakeUp(replica, epoch) ==
    /\ Elected(epoch)                                               \* epoch_started
    /\ EpochLeader(epoch) # None                                    \* leader_elected
    /\ Epoch(replica) < epoch                                       \* epoch_newer
    /\ replicaState' = [replicaState EXCEPT ![replica] =
            [hw |-> 0, leaderEpoch |-> epoch, leading |-> IF EpochLeader(epoch) = replica THEN 1 ELSE 0]]
    /\ UNCHANGED <<nextRecordId, elections, replicaLog, reader, commits>>

LeaderAppend(leader) ==
    /\ Leads(leader)                                                \* leads
    /\ nextRecordId < MaxRecords                                    \* record_available
    /\ Leo(leader) < LogSize                                        \* log_not_full
    /\ AppendEffect(leader, [id |-> nextRecordId, epoch |-> Epoch(leader)])
    /\ nextRecordId' = nextRecordId + 1
    /\ UNCHANGED <<elections, replicaState, reader, commits>>

\* Its log agrees with the leader's up to its end, as far as both reach back.
FollowerCopy(follower, leader) ==
    /\ Leads(leader)                                                \* leads
    /\ ~ Leads(follower)                                            \* follows
    /\ Epoch(follower) = Epoch(leader)                              \* same_epoch
    /\ InLog(leader, Leo(follower))                                 \* record_there
    /\ Start(follower) <= Leo(follower) - 1 /\ Start(leader) <= Leo(follower) - 1 =>
            RecordAt(follower, Leo(follower) - 1).id = RecordAt(leader, Leo(follower) - 1).id  \* logs_agree
    /\ AppendEffect(follower, RecordAt(leader, Leo(follower)))
    /\ UNCHANGED <<nextRecordId, elections, replicaState, reader, commits>>

TruncateLog(replica, end) ==
    /\ ~ Leads(replica)                                             \* follows
    /\ end < Leo(replica)                                           \* shorter
    /\ CutEffect(replica, Min(Start(replica), end), end)
    /\ UNCHANGED <<nextRecordId, elections, replicaState, reader, commits>>

BeginLogAt(replica, start) ==
    /\ ~ Leads(replica)                                             \* follows
    /\ CutEffect(replica, start, start)
    /\ UNCHANGED <<nextRecordId, elections, replicaState, reader, commits>>

DeleteRecords(replica, offset) ==
    /\ Start(replica) < offset                                      \* above_log_start
    /\ offset <= IF Leads(replica) THEN Hw(replica) ELSE Leo(replica)       \* committed
    /\ CutEffect(replica, offset, Leo(replica))
    /\ UNCHANGED <<nextRecordId, elections, replicaState, reader, commits>>

RaiseHighWatermark(leader, offset) ==
    /\ Leads(leader)                                                \* leads
    /\ Hw(leader) < offset                                          \* higher
    /\ offset <= Leo(leader)                                        \* in_log
    /\ replicaState' = [replicaState EXCEPT ![leader].hw = offset]
    /\ UNCHANGED <<nextRecordId, elections, replicaLog, reader, commits>>

\* It leads nothing until it is told to in a newer epoch.
ReplicaRestarts(replica, end) ==
    /\ end <= Leo(replica)                                          \* no_longer
    /\ CutEffect(replica, Start(replica), Max(end, Start(replica)))
    /\ replicaState' = [replicaState EXCEPT ![replica].hw = 0, ![replica].leading = 0]
    /\ UNCHANGED <<nextRecordId, elections, reader, commits>>

-----------------------------------------------------------------------------
(* What a leader says of a position. *)

\* Where the leader's cache has the next larger epoch begin: its own begins at its LEO while it wrote nothing.
LargerEpochStart(leader, epoch) ==
    LET larger == {o \in Offsets : EpochAt(leader, o) > epoch}
    IN  IF larger = {} THEN Leo(leader) ELSE LeastOf(larger)

InRange(leader) == Start(leader) <= consumer.position /\ consumer.position <= Leo(leader)

\* The leader that answered knows the consumer's epoch.
Exact == answer.reportedEpoch = consumer.lastEpoch

-----------------------------------------------------------------------------
(* Commits. *)

HasPosition == consumer.placed = 1 /\ pending.asking = "nothing"

StoreEffect(now) ==
    /\ committed' = now
    /\ acknowledged' = now
    /\ refused' = NoCommit
    /\ foundAgain' = 0
    /\ UNCHANGED <<brokers, reader>>

\* The coordinator cannot tell whether it is in its log.
RefuseEffect(now) ==
    /\ refused' = now
    /\ UNCHANGED <<brokers, reader, committed, acknowledged, foundAgain>>

FindCommit ==
    /\ refused.offset # NoOffset                                    \* was_refused
    /\ committed' = refused
    /\ refused' = NoCommit
    /\ foundAgain' = IF refused = acknowledged THEN 0 ELSE 1
    /\ UNCHANGED <<brokers, reader, acknowledged>>

MissCommit ==
    /\ refused.offset # NoOffset                                    \* was_refused
    /\ refused' = NoCommit
    /\ UNCHANGED <<brokers, reader, committed, acknowledged, foundAgain>>

-----------------------------------------------------------------------------

PartitionNext ==
    \/ \E replica \in Replicas : ElectMember(replica)
    \/ \E replica \in Replicas : ElectOutsider(replica)
    \/ ElectNobody
    \/ \E replica \in Replicas, epoch \in Epochs : TakeUp(replica, epoch)
    \/ \E replica \in Replicas : LeaderAppend(replica)
    \/ \E follower, leader \in Replicas : FollowerCopy(follower, leader)
    \/ \E replica \in Replicas, end \in EndOffsets : TruncateLog(replica, end)
    \/ \E replica \in Replicas, start \in EndOffsets : BeginLogAt(replica, start)
    \/ \E replica \in Replicas, offset \in EndOffsets : DeleteRecords(replica, offset)
    \/ \E replica \in Replicas, offset \in EndOffsets : RaiseHighWatermark(replica, offset)
    \/ \E replica \in Replicas, end \in EndOffsets : ReplicaRestarts(replica, end)
    \/ FindCommit
    \/ MissCommit

-----------------------------------------------------------------------------
(* The promises. *)

SameRecord(one, other, offset) ==
    InLog(one, offset) /\ InLog(other, offset) /\ RecordAt(one, offset).id = RecordAt(other, offset).id

\* As far as both reach back.
KeptLogsMatch ==
    \A one, other \in Replicas, end \in Offsets : SameRecord(one, other, end) =>
        \A o \in Max(Start(one), Start(other)) .. end - 1 : SameRecord(one, other, o)

IsConsumed(offset) == consumer.consumedFrom <= offset /\ offset < consumer.position
WasWritten(record) == record.id \in 0 .. nextRecordId - 1 /\ record.epoch # NoEpoch

ReadIsIn(replica, offset) ==
    IsConsumed(offset) /\ InLog(replica, offset) /\ RecordAt(replica, offset).id = consumer.consumed[offset].id

\* Every log that holds the record read last holds all that was read before it without a notice, as far as it
\* reaches back.
NoUnnoticedGap ==
    \A replica \in Replicas :
        ReadIsIn(replica, consumer.position - 1) =>
            \A o \in Offsets : IsConsumed(o) /\ Start(replica) <= o => ReadIsIn(replica, o)

NamesWhatItRead ==
    consumer.consumedFrom < consumer.position =>
        consumer.lastEpoch = consumer.consumed[consumer.position - 1].epoch

\* The leader that answered has only appended since, and deleted what is old.
StillLeads(leader) ==
    /\ leader = EpochLeader(answer.answeredEpoch)
    /\ Epoch(leader) = answer.answeredEpoch
    /\ Leads(leader)

UnknownEpochIsStale == answer.outcome = UnknownLeaderEpoch => answer.answeredEpoch < QuorumLeaderEpoch

\* Or one that the coordinator found again in its log.
AcknowledgedCommitIsKept == committed = acknowledged \/ (foundAgain = 1 /\ committed.offset # NoOffset)

=============================================================================
