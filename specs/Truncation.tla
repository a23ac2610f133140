----------------------------- MODULE Truncation -----------------------------
(***************************************************************************)
(* One partition under clean and unclean elections, and one consumer of    *)
(* it, with the truncation detection of KIP-320 ("Consumer Handling").     *)
(*                                                                         *)
(* The replicas are those of Fencing, less what that module is about: a    *)
(* leader counts a record as committed when it likes, as if its ISR were   *)
(* itself; an election is clean when the new leader holds every record     *)
(* below its predecessor's high watermark (StrongIsr promises that of      *)
(* every member of the ISR), and unclean otherwise.                        *)
(*                                                                         *)
(* The variants differ in three constants, their rules:                    *)
(*   Check = "never"         no epoch in the fetch (before KIP-320)        *)
(*           "larger-epoch"  a larger epoch begins below the fetch offset  *)
(*           "known-epoch"   the same, or the leader lacks the epoch       *)
(*           "clean-leader"  the same, but never by a leader that was      *)
(*                           elected uncleanly                             *)
(*   Reset = "nearest"       go on from the divergence                     *)
(*           "earliest", "latest"  the policies before KIP-320             *)
(*   Seen  = TRUE            a leader older than the one that served the   *)
(*                           position answers nothing                      *)
(* KIP-320 as written is "larger-epoch", "nearest", FALSE. It breaks three *)
(* promises (DEVIATIONS.md); with "known-epoch" and TRUE they hold.        *)
(*                                                                         *)
(* The reading rule of Fencing holds here: every conjunct of an action is  *)
(* a guard whose line ends with its name, or an effect.                    *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
    Replicas,       \* the replicas of the partition, a set of naturals
    LogSize,        \* how many records a log can hold
    MaxRecords,     \* how many records producers write in all
    MaxLeaderEpoch, \* the largest leader epoch that the controller gives out
    Check,          \* when a leader returns LOG_TRUNCATION
    Reset,          \* where a consumer goes on from after that
    Seen            \* whether a position has the epoch of the leader that served it

None     == -1      \* no leader
NoEpoch  == -1      \* no epoch: before the first election, and in a fetch that is not to be checked
NoOffset == -1      \* nothing committed, nothing reported

\* What became of the consumer's last fetch.
Fetching           == "fetching"
UnknownLeaderEpoch == "unknown_leader_epoch"
LogTruncation      == "log_truncation"
OffsetOutOfRange   == "offset_out_of_range"
DivergenceFound    == "divergence_found"     \* with the reset policy "none": LogTruncationException
Outcome == {Fetching, UnknownLeaderEpoch, LogTruncation, OffsetOutOfRange, DivergenceFound}

ASSUME ConstantsOk ==
    /\ IsFiniteSet(Replicas) /\ Replicas # {} /\ None \notin Replicas
    /\ LogSize \in Nat /\ MaxRecords \in Nat /\ MaxLeaderEpoch \in Nat
    /\ Check \in {"never", "larger-epoch", "known-epoch", "clean-leader"}
    /\ Reset \in {"nearest", "earliest", "latest"}
    /\ Seen \in BOOLEAN

VARIABLES
    nextRecordId,   \* the id of the next record that a producer writes
    elections,      \* the elections so far: that of epoch e is element e + 1
    replicaLog,     \* per replica: its log, a sequence of records
    replicaState,   \* per replica: high watermark (0 at a follower) and leader epoch
    metadataLeader, \* the leader by the consumer's metadata
    consumer,       \* its position, and what it consumed up to there without a break
    answer,         \* what it was answered
    committed       \* its committed position

vars == <<nextRecordId, elections, replicaLog, replicaState, metadataLeader, consumer, answer, committed>>
partition == <<nextRecordId, elections, replicaLog, replicaState>>

-----------------------------------------------------------------------------
(* The shape of the state. *)

Offsets    == 0 .. LogSize - 1
EndOffsets == 0 .. LogSize
Ids        == 0 .. MaxRecords - 1
Epochs     == 0 .. MaxLeaderEpoch
EpochOpt   == Epochs \union {NoEpoch}
OffsetOpt  == EndOffsets \union {NoOffset}
Records    == [id : Ids, epoch : Epochs]

TypeOk ==
    /\ nextRecordId \in 0 .. MaxRecords
    /\ Len(elections) \in 0 .. MaxLeaderEpoch + 1
    /\ \A i \in 1 .. Len(elections) : elections[i] \in [leader : Replicas, unclean : {0, 1}]
    /\ DOMAIN replicaLog = Replicas
    /\ \A replica \in Replicas :
        /\ Len(replicaLog[replica]) \in EndOffsets
        /\ \A i \in 1 .. Len(replicaLog[replica]) : replicaLog[replica][i] \in Records
    /\ replicaState \in [Replicas -> [hw : EndOffsets, leaderEpoch : EpochOpt]]
    /\ metadataLeader \in Replicas \union {None}
    /\ consumer.position \in EndOffsets /\ consumer.consumedFrom \in 0 .. consumer.position
    /\ consumer.lastEpoch \in EpochOpt /\ consumer.seenEpoch \in EpochOpt
    /\ Len(consumer.consumed) = consumer.position - consumer.consumedFrom
    /\ \A i \in 1 .. Len(consumer.consumed) : consumer.consumed[i] \in Ids
    /\ answer \in [outcome : Outcome, answeredEpoch : EpochOpt,
                   reported : OffsetOpt, reportedEpoch : EpochOpt]
    /\ committed \in [offset : OffsetOpt, epoch : EpochOpt, seen : EpochOpt]

NoAnswer == [outcome |-> Fetching, answeredEpoch |-> NoEpoch, reported |-> NoOffset, reportedEpoch |-> NoEpoch]
NoCommit == [offset |-> NoOffset, epoch |-> NoEpoch, seen |-> NoEpoch]

Init ==
    /\ nextRecordId = 0
    /\ elections = <<>>
    /\ replicaLog = [replica \in Replicas |-> <<>>]
    /\ replicaState = [replica \in Replicas |-> [hw |-> 0, leaderEpoch |-> NoEpoch]]
    /\ metadataLeader = None
    /\ consumer = [position |-> 0, lastEpoch |-> NoEpoch, seenEpoch |-> NoEpoch, consumedFrom |-> 0,
                   consumed |-> <<>>]
    /\ answer = NoAnswer
    /\ committed = NoCommit

-----------------------------------------------------------------------------
(* Words for the rules. *)

Min(a, b) == IF a < b THEN a ELSE b
Max(a, b) == IF a < b THEN b ELSE a
LeastOf(set) == CHOOSE x \in set : \A y \in set : x <= y
GreatestOf(set) == CHOOSE x \in set : \A y \in set : x >= y

QuorumLeaderEpoch == Len(elections) - 1
EpochLeader(epoch) == elections[epoch + 1].leader
Unclean(epoch) == epoch \in 0 .. QuorumLeaderEpoch /\ elections[epoch + 1].unclean = 1
CurrentLeader == IF elections = <<>> THEN None ELSE EpochLeader(QuorumLeaderEpoch)

Leo(replica) == Len(replicaLog[replica])
Hw(replica) == replicaState[replica].hw
Epoch(replica) == replicaState[replica].leaderEpoch
RecordAt(replica, offset) == replicaLog[replica][offset + 1]
OffsetsOf(replica) == 0 .. Leo(replica) - 1
EpochAt(replica, offset) == IF offset \in OffsetsOf(replica) THEN RecordAt(replica, offset).epoch ELSE NoEpoch

SameRecord(one, other, offset) ==
    /\ offset < Leo(one)
    /\ offset < Leo(other)
    /\ RecordAt(one, offset) = RecordAt(other, offset)

\* Where two logs part.
CommonEnd(one, other) ==
    LET same == {o \in Offsets : SameRecord(one, other, o)}
    IN  IF same = {} THEN 0 ELSE GreatestOf(same) + 1

\* The replica was elected for the epoch that it is in, whether or not that is over.
PresumesLeadership(replica) == Epoch(replica) # NoEpoch /\ EpochLeader(Epoch(replica)) = replica

\* All do before the first election.
HoldsCommitted(replica) == CurrentLeader # None => Hw(CurrentLeader) <= CommonEnd(replica, CurrentLeader)

-----------------------------------------------------------------------------
(* The partition. *)

\* The new leader knows at once how much of what was committed it holds.
ElectEffect(newLeader, unclean) ==
    /\ elections' = Append(elections, [leader |-> newLeader, unclean |-> unclean])
    /\ replicaState' = [replicaState EXCEPT ![newLeader] =
            [hw |-> IF CurrentLeader = None THEN 0
                    ELSE Min(Hw(CurrentLeader), CommonEnd(newLeader, CurrentLeader)),
             leaderEpoch |-> QuorumLeaderEpoch + 1]]
    /\ UNCHANGED <<nextRecordId, replicaLog, metadataLeader, consumer, answer, committed>>

ElectCleanly(newLeader) ==
    /\ QuorumLeaderEpoch < MaxLeaderEpoch                           \* epoch_available
    /\ HoldsCommitted(newLeader)                                    \* holds_committed
    /\ ElectEffect(newLeader, 0)

ElectUncleanly(newLeader) ==
    /\ QuorumLeaderEpoch < MaxLeaderEpoch                           \* epoch_available
    /\ ~ HoldsCommitted(newLeader)                                  \* lacks_committed
    /\ ElectEffect(newLeader, 1)

BecomeFollower(follower) ==
    /\ elections # <<>>                                             \* leader_elected
    /\ Epoch(follower) < QuorumLeaderEpoch                          \* epoch_newer
    /\ replicaLog' = [replicaLog EXCEPT ![follower] = SubSeq(@, 1, CommonEnd(follower, CurrentLeader))]
    /\ replicaState' = [replicaState EXCEPT ![follower] = [hw |-> 0, leaderEpoch |-> QuorumLeaderEpoch]]
    /\ UNCHANGED <<nextRecordId, elections, metadataLeader, consumer, answer, committed>>

LeaderWrite(leader) ==
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ nextRecordId < MaxRecords                                    \* record_available
    /\ Leo(leader) < LogSize                                        \* log_not_full
    /\ replicaLog' = [replicaLog EXCEPT
            ![leader] = Append(@, [id |-> nextRecordId, epoch |-> Epoch(leader)])]
    /\ nextRecordId' = nextRecordId + 1
    /\ UNCHANGED <<elections, replicaState, metadataLeader, consumer, answer, committed>>

FollowerFetch(follower) ==
    /\ elections # <<>> /\ Epoch(follower) = QuorumLeaderEpoch      \* epoch_not_fenced
    /\ Leo(follower) < Leo(CurrentLeader)                           \* record_available
    /\ replicaLog' = [replicaLog EXCEPT ![follower] = Append(@, RecordAt(CurrentLeader, Leo(follower)))]
    /\ UNCHANGED <<nextRecordId, elections, replicaState, metadataLeader, consumer, answer, committed>>

\* A leader that was replaced cleanly has lost a member of its ISR to a newer epoch.
LeaderIncHighWatermark(leader) ==
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Hw(leader) < Leo(leader)                                     \* record_above_hw
    /\ Epoch(leader) = QuorumLeaderEpoch \/ Unclean(Epoch(leader) + 1)      \* isr_acknowledges
    /\ replicaState' = [replicaState EXCEPT ![leader].hw = @ + 1]
    /\ UNCHANGED <<nextRecordId, elections, replicaLog, metadataLeader, consumer, answer, committed>>

-----------------------------------------------------------------------------
(* What a leader says of a position. *)

\* Where the leader's cache has the next larger epoch begin: its own begins at its LEO while it wrote
\* nothing.
LargerEpochStart(leader, epoch) ==
    LET larger == {o \in OffsetsOf(leader) : RecordAt(leader, o).epoch > epoch}
    IN  IF larger = {} THEN Leo(leader) ELSE LeastOf(larger)

\* The largest epoch in the leader's log that is not larger than this one.
LargestEpochUpTo(leader, epoch) == EpochAt(leader, LargerEpochStart(leader, epoch) - 1)

EpochUnknown(leader, epoch, seen) == Epoch(leader) < Max(epoch, seen)

LargerBelow(leader) ==
    /\ consumer.lastEpoch < Epoch(leader)
    /\ LargerEpochStart(leader, consumer.lastEpoch) < consumer.position

LacksEpoch(leader) == LargestEpochUpTo(leader, consumer.lastEpoch) # consumer.lastEpoch

Truncated(leader) ==
    /\ consumer.lastEpoch # NoEpoch
    /\ CASE Check = "never" -> FALSE
         [] Check = "larger-epoch" -> LargerBelow(leader)
         [] Check = "known-epoch" -> LargerBelow(leader) \/ LacksEpoch(leader)
         [] Check = "clean-leader" ->
                ~ Unclean(Epoch(leader)) /\ (LargerBelow(leader) \/ LacksEpoch(leader))

\* What goes with an offset found at this leader: the epoch of the record before it, and its own.
EpochOfPosition(leader, offset) == IF Check = "never" THEN NoEpoch ELSE EpochAt(leader, offset - 1)
ServedBy(leader) == IF Seen THEN Epoch(leader) ELSE NoEpoch

\* What OffsetForLeaderEpoch makes of a position. The epoch is the one asked where the leader knows that:
\* the offset is then exactly where the logs part.
NearestOffset(leader, position, epoch) == Min(LargerEpochStart(leader, epoch), position)
NearestEpoch(leader, position, epoch) ==
    LET known == LargestEpochUpTo(leader, epoch)
    IN  IF LargerEpochStart(leader, epoch) <= position \/ known = epoch THEN known ELSE NoEpoch

-----------------------------------------------------------------------------
(* The consumer. *)

\* Go on from a position. Whoever goes back before the committed offset takes the commit back.
MoveEffect(position, epoch, seen, consumedFrom) ==
    /\ consumer' = [position |-> position, lastEpoch |-> epoch, seenEpoch |-> seen,
                    consumedFrom |-> consumedFrom,
                    consumed |-> IF consumedFrom = consumer.consumedFrom
                                 THEN SubSeq(consumer.consumed, 1, position - consumedFrom)
                                 ELSE <<>>]
    /\ answer' = NoAnswer
    /\ committed' = IF committed.offset <= position THEN committed ELSE NoCommit
    /\ UNCHANGED <<partition, metadataLeader>>

AnswerEffect(outcome, epoch, reported, reportedEpoch) ==
    /\ answer' = [outcome |-> outcome, answeredEpoch |-> epoch, reported |-> reported,
                  reportedEpoch |-> reportedEpoch]
    /\ UNCHANGED <<partition, metadataLeader, consumer, committed>>

\* From a broker that may be as far behind as the first election (KIP-232).
RefreshMetadata(epoch) ==
    /\ epoch <= QuorumLeaderEpoch                                   \* epoch_started
    /\ EpochLeader(epoch) # metadataLeader                          \* another_leader
    /\ metadataLeader' = EpochLeader(epoch)
    /\ answer' = IF answer.outcome = UnknownLeaderEpoch THEN NoAnswer ELSE answer
    /\ UNCHANGED <<partition, consumer, committed>>

ConsumerFetch(leader) ==
    /\ answer.outcome = Fetching                                    \* outcome_pending
    /\ metadataLeader = leader                                      \* asks_leader
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ ~ EpochUnknown(leader, consumer.lastEpoch, consumer.seenEpoch)       \* epoch_known
    /\ ~ Truncated(leader)                                          \* not_truncated
    /\ consumer.position < Hw(leader)                               \* below_high_watermark
    /\ consumer' = [consumer EXCEPT
            !.position = @ + 1,
            !.lastEpoch = EpochOfPosition(leader, consumer.position + 1),
            !.seenEpoch = ServedBy(leader),
            !.consumed = Append(@, RecordAt(leader, consumer.position).id)]
    /\ UNCHANGED <<partition, metadataLeader, answer, committed>>

AnswerUnknownLeaderEpoch(leader) ==
    /\ answer.outcome = Fetching                                    \* outcome_pending
    /\ metadataLeader = leader                                      \* asks_leader
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ EpochUnknown(leader, consumer.lastEpoch, consumer.seenEpoch) \* epoch_unknown
    /\ AnswerEffect(UnknownLeaderEpoch, Epoch(leader), NoOffset, NoEpoch)

AnswerLogTruncation(leader) ==
    /\ answer.outcome = Fetching                                    \* outcome_pending
    /\ metadataLeader = leader                                      \* asks_leader
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ ~ EpochUnknown(leader, consumer.lastEpoch, consumer.seenEpoch)       \* epoch_known
    /\ Truncated(leader)                                            \* truncated
    /\ AnswerEffect(LogTruncation, Epoch(leader), NoOffset, NoEpoch)

AnswerOutOfRange(leader) ==
    /\ answer.outcome = Fetching                                    \* outcome_pending
    /\ metadataLeader = leader                                      \* asks_leader
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ ~ EpochUnknown(leader, consumer.lastEpoch, consumer.seenEpoch)       \* epoch_known
    /\ ~ Truncated(leader)                                          \* not_truncated
    /\ Leo(leader) < consumer.position                              \* beyond_leo
    /\ AnswerEffect(OffsetOutOfRange, NoEpoch, NoOffset, NoEpoch)

\* The KIP has no validation here: consumers send -1 for the current epoch.
FindDivergence(leader) ==
    /\ answer.outcome = LogTruncation                               \* outcome_pending
    /\ metadataLeader = leader                                      \* asks_leader
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Seen => ~ EpochUnknown(leader, consumer.lastEpoch, consumer.seenEpoch)       \* epoch_known
    /\ CASE Reset = "nearest" ->
                AnswerEffect(DivergenceFound, Epoch(leader),
                             NearestOffset(leader, consumer.position, consumer.lastEpoch),
                             NearestEpoch(leader, consumer.position, consumer.lastEpoch))
         [] Reset = "earliest" ->
                AnswerEffect(DivergenceFound, Epoch(leader), 0, NoEpoch)
         [] Reset = "latest" ->
                AnswerEffect(DivergenceFound, Epoch(leader), Hw(leader), EpochOfPosition(leader, Hw(leader)))

\* The leader that answered knows the consumer's epoch.
Exact == answer.reportedEpoch = consumer.lastEpoch

\* Below an offset that is only a bound nothing is known: there the consumer begins anew.
ResetToDivergence ==
    /\ answer.outcome = DivergenceFound                             \* divergence_found
    /\ answer.reported # NoOffset                                   \* offset_reported
    /\ MoveEffect(answer.reported, answer.reportedEpoch, IF Seen THEN answer.answeredEpoch ELSE NoEpoch,
                  IF Exact /\ answer.reported <= consumer.position
                  THEN Min(consumer.consumedFrom, answer.reported)
                  ELSE answer.reported)

Seek(offset) ==
    /\ metadataLeader # None                                        \* has_metadata
    /\ consumer.position # offset \/ answer.outcome = DivergenceFound       \* elsewhere
    /\ MoveEffect(offset, NoEpoch, NoEpoch, offset)

ResetToLatest(leader) ==
    /\ \/ answer.outcome = OffsetOutOfRange
       \/ /\ answer.outcome = Fetching
          /\ consumer.position = consumer.consumedFrom
          /\ consumer.position # Hw(leader)                         \* needs_offset
    /\ metadataLeader = leader                                      \* asks_leader
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ MoveEffect(Hw(leader), EpochOfPosition(leader, Hw(leader)), ServedBy(leader), Hw(leader))

CommitOffset ==
    /\ answer.outcome = Fetching                                    \* fetching
    /\ committed.offset # consumer.position                         \* not_committed
    /\ committed' = [offset |-> consumer.position, epoch |-> consumer.lastEpoch, seen |-> consumer.seenEpoch]
    /\ UNCHANGED <<partition, metadataLeader, consumer, answer>>

Restart ==
    /\ committed # NoCommit                                         \* offset_committed
    /\ committed.offset # consumer.position \/ answer.outcome # Fetching    \* elsewhere
    /\ MoveEffect(committed.offset, committed.epoch, committed.seen,
                  Min(consumer.consumedFrom, committed.offset))

SeekToNearest(leader) ==
    /\ committed.offset # NoOffset /\ committed.epoch # NoEpoch     \* offset_stored
    /\ metadataLeader = leader                                      \* asks_leader
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Seen => ~ EpochUnknown(leader, committed.epoch, committed.seen)      \* epoch_known
    /\ MoveEffect(NearestOffset(leader, committed.offset, committed.epoch),
                  NearestEpoch(leader, committed.offset, committed.epoch),
                  ServedBy(leader),
                  IF NearestEpoch(leader, committed.offset, committed.epoch) = committed.epoch
                  THEN Min(consumer.consumedFrom, NearestOffset(leader, committed.offset, committed.epoch))
                  ELSE NearestOffset(leader, committed.offset, committed.epoch))

-----------------------------------------------------------------------------

Next ==
    \/ \E replica \in Replicas : ElectCleanly(replica)
    \/ \E replica \in Replicas : ElectUncleanly(replica)
    \/ \E replica \in Replicas : BecomeFollower(replica)
    \/ \E replica \in Replicas : LeaderWrite(replica)
    \/ \E replica \in Replicas : FollowerFetch(replica)
    \/ \E replica \in Replicas : LeaderIncHighWatermark(replica)
    \/ \E epoch \in Epochs : RefreshMetadata(epoch)
    \/ \E replica \in Replicas : ConsumerFetch(replica)
    \/ \E replica \in Replicas : AnswerUnknownLeaderEpoch(replica)
    \/ \E replica \in Replicas : AnswerLogTruncation(replica)
    \/ \E replica \in Replicas : AnswerOutOfRange(replica)
    \/ \E replica \in Replicas : FindDivergence(replica)
    \/ ResetToDivergence
    \/ \E offset \in Offsets : Seek(offset)
    \/ \E replica \in Replicas : ResetToLatest(replica)
    \/ CommitOffset
    \/ Restart
    \/ \E replica \in Replicas : SeekToNearest(replica)

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
(* The promises. *)

LogsMatch ==
    \A one, other \in Replicas : \A offset \in 0 .. CommonEnd(one, other) - 1 : SameRecord(one, other, offset)

\* Said while both leaders are still in their epochs.
UncleanMeansLost ==
    \A epoch \in 0 .. QuorumLeaderEpoch :
        Epoch(EpochLeader(epoch)) = epoch =>
            IF epoch = 0
            THEN ~ Unclean(epoch)
            ELSE LET old == EpochLeader(epoch - 1)
                 IN  Epoch(old) = epoch - 1 =>
                        (Unclean(epoch) <=> CommonEnd(old, EpochLeader(epoch)) < Hw(old))

HwAtLeaders ==
    \A replica \in Replicas : Hw(replica) <= IF PresumesLeadership(replica) THEN Leo(replica) ELSE 0

\* The log of a replica has at this offset what the consumer consumed there.
IsConsumed(offset) == consumer.consumedFrom <= offset /\ offset < consumer.position
ConsumedAt(offset) == consumer.consumed[offset - consumer.consumedFrom + 1]
ConsumedIsIn(replica, offset) ==
    /\ IsConsumed(offset)
    /\ offset < Leo(replica)
    /\ RecordAt(replica, offset).id = ConsumedAt(offset)

\* Every log that holds the record consumed last holds all that was consumed before it without a notice.
NoSilentGap ==
    \A replica \in Replicas :
        ConsumedIsIn(replica, consumer.position - 1) =>
            \A offset \in Offsets : IsConsumed(offset) => ConsumedIsIn(replica, offset)

\* The leader that found the truncation is still in the epoch of its answer.
Answering(leader) == EpochLeader(answer.answeredEpoch) = leader /\ Epoch(leader) = answer.answeredEpoch

TruncationIsTrue ==
    answer.outcome = LogTruncation =>
        /\ \E epoch \in Epochs : consumer.lastEpoch < epoch /\ Unclean(epoch)
        /\ \A leader \in Replicas :
            Answering(leader) => EpochAt(leader, consumer.position - 1) # consumer.lastEpoch

ReportedDivergence ==
    answer.outcome = DivergenceFound =>
        \A leader \in Replicas : Answering(leader) =>
            /\ answer.reported <= consumer.position
            /\ \A offset \in Offsets : answer.reported <= offset => ~ ConsumedIsIn(leader, offset)
            /\ IF Exact
               THEN \A offset \in 0 .. answer.reported - 1 : IsConsumed(offset) => ConsumedIsIn(leader, offset)
               ELSE /\ consumer.lastEpoch < Epoch(leader)
                    /\ EpochAt(leader, answer.reported - 1) < consumer.lastEpoch
                    /\ \/ answer.reported = consumer.position
                       \/ answer.reported = Leo(leader)
                       \/ EpochAt(leader, answer.reported) > consumer.lastEpoch

UnknownEpochIsStale == answer.outcome = UnknownLeaderEpoch => answer.answeredEpoch < QuorumLeaderEpoch

OutOfRangeOnlyUnchecked ==
    answer.outcome = OffsetOutOfRange =>
        consumer.position = consumer.consumedFrom /\ consumer.lastEpoch = NoEpoch

=============================================================================
