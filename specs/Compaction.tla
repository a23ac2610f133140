------------------------------ MODULE Compaction ------------------------------
(***************************************************************************)
(* Log compaction of KIP-280: one partition whose replicas clean their     *)
(* logs, each by itself; by offset, by timestamp or by a header's value.   *)
(*                                                                         *)
(* A record is told by its offset and its leader epoch. What it is stays   *)
(* written in records, which never change; a log has for each offset the   *)
(* epoch of the record that is there, or -1. What Fencing is about is one  *)
(* step each here: there is no leader but the newest one, all know the one *)
(* high watermark, and whoever is elected has followed the one before.     *)
(* Ends are exclusive. There is no clock: that delete.retention.ms is over *)
(* is said by who has come past a tombstone.                               *)
(*                                                                         *)
(* The variants differ in sixteen constants, their rules:                  *)
(*   Last = "retained"     the last record of a log stays                  *)
(*          "empty-batch"  it goes, and an empty batch takes its offset up *)
(*          "removed"      it goes, and for whoever fetches its offset too *)
(*   TiesToHigher          of equal versions the higher offset stays       *)
(*   LastOccurrence        of a repeated header the last value counts      *)
(*   HeaderStays           who has the header stays before who has it not  *)
(*   ChecksHeader          a value that is no long is refused, and is none *)
(*   CommittedOnly         nothing above the high watermark is cleaned     *)
(*   InactiveOnly          nothing in the active segment is cleaned        *)
(*   SameStrategy          the consumer reads by the topic's strategy      *)
(*   MapsAll               records are compared with cleaned ones, too     *)
(*   RemembersDeletes      a consumer keeps the tombstone that it has read *)
(*   ReadersInTime         a tombstone goes when all have come past it     *)
(*   CleanedInTime         it goes when what it beats has gone             *)
(*   ArrivesInTime         what it beats comes no more when it has gone    *)
(*   ChangesWhenAlike      a strategy is set where all logs are alike      *)
(*   ChangesOverridden     a broker's, where the topic has one of its own  *)
(*   ReadsOnce             a consumer does not start over                  *)
(* All of them TRUE, with "retained", is the KIP less its holes. As it is  *)
(* written the last eight are FALSE (DEVIATIONS.md).                       *)
(*                                                                         *)
(* The reading rule of Fencing holds here: every conjunct of an action is  *)
(* a guard whose line ends with its name, or an effect.                    *)
(***************************************************************************)
EXTENDS Integers, FiniteSets

CONSTANTS
    Replicas,        \* the replicas: the naturals below their number
    LogSize,         \* how many offsets a log has
    Keys,            \* how many keys there are
    Timestamps,      \* how many timestamps
    HeaderValues,    \* how many values of the header; where it is 0 no record has it
    RepeatedHeaders, \* 1 where a record may have the header twice
    MaxLeaderEpoch,  \* the largest leader epoch
    MaxChanges,      \* how often a strategy is set
    DefaultStrategy, \* the brokers' strategy at first: 0 unset, 1 offset, 2 timestamp, 3 header
    Consumers,       \* 1 where somebody reads the log
    Last,
    TiesToHigher,
    LastOccurrence,
    HeaderStays,
    ChecksHeader,
    CommittedOnly,
    InactiveOnly,
    SameStrategy,
    MapsAll,
    RemembersDeletes,
    ReadersInTime,
    CleanedInTime,
    ArrivesInTime,
    ChangesWhenAlike,
    ChangesOverridden,
    ReadsOnce

None == -1

ASSUME ConstantsOk ==
    /\ Replicas = 0 .. Cardinality(Replicas) - 1 /\ Replicas # {}
    /\ {LogSize, Keys, Timestamps, HeaderValues, MaxLeaderEpoch, MaxChanges} \subseteq Nat
    /\ {RepeatedHeaders, Consumers} \subseteq {0, 1} /\ DefaultStrategy \in 0 .. 3
    /\ Last \in {"retained", "empty-batch", "removed"}
    /\ {TiesToHigher, LastOccurrence, HeaderStays, ChecksHeader, CommittedOnly, InactiveOnly, SameStrategy, MapsAll,
        RemembersDeletes, ReadersInTime, CleanedInTime, ArrivesInTime, ChangesWhenAlike, ChangesOverridden,
        ReadsOnce} \subseteq BOOLEAN

VARIABLES
    quorum,         \* who leads, in which epoch; the ISR; the LEO with which each epoch's leader began
    committed,      \* the high watermark, and the epochs of the records below it
    replicaLog,     \* per replica: its epoch, its LEO, its records, its active segment, how far it is clean
    records,        \* per epoch and offset: what its leader wrote there
    configuration,  \* the strategies; how often one was set, since when it counts, and which tombstones have gone
    consumer        \* its position, and the offset of what it has of each key

vars == <<quorum, committed, replicaLog, records, configuration, consumer>>

-----------------------------------------------------------------------------
(* The shape of the state. *)

Offsets    == 0 .. LogSize - 1
EndOffsets == 0 .. LogSize
OffsetOpt  == -1 .. LogSize - 1
Epochs     == 0 .. MaxLeaderEpoch
EpochOpt   == -1 .. MaxLeaderEpoch
KeyIds     == 0 .. Keys - 1
Strategies == {"unset", "offset", "timestamp", "header"}

\* What a record may have under the configured key: 0 nothing, then the values, and last what is no long.
Headers   == 0 .. HeaderValues + 1
HeaderOpt == -1 .. HeaderValues

NotWritten == [key |-> -1, tombstone |-> 0, timestamp |-> 0, header |-> -1, earlierHeader |-> -1]
\* What is read of no record.
NoRecord == [key |-> -1, tombstone |-> -1, timestamp |-> -1, header |-> -1, earlierHeader |-> -1]

Max(a, b) == IF a < b THEN b ELSE a
Min(a, b) == IF a < b THEN a ELSE b
LeastOf(set) == CHOOSE x \in set : \A y \in set : x <= y
GreatestOf(set) == CHOOSE x \in set : \A y \in set : y <= x

Hw == committed.hw
Leader == quorum.leader
Leo(replica) == IF replica = None THEN -1 ELSE replicaLog[replica].leo
RecordEpoch(replica, offset) == IF replica = None THEN -1 ELSE replicaLog[replica].records[offset]
Record(epoch, offset) == IF epoch = -1 THEN NoRecord ELSE records[epoch][offset]
RecordAt(replica, offset) == Record(RecordEpoch(replica, offset), offset)

Holds(replica, offset) == offset < Leo(replica) /\ RecordEpoch(replica, offset) # -1
HoldsCommitted(replica, offset) ==
    offset < Hw /\ Holds(replica, offset) /\ RecordEpoch(replica, offset) = committed.epochs[offset]
Follows(replica) == Leader # None /\ replicaLog[replica].joined = quorum.leaderEpoch

TypeOk ==
    /\ quorum \in [leader : Replicas \union {None}, leaderEpoch : EpochOpt, isr : SUBSET Replicas,
                   epochStart : [Epochs -> -1 .. LogSize]]
    /\ committed \in [hw : EndOffsets, epochs : [Offsets -> EpochOpt]]
    /\ replicaLog \in [Replicas -> [joined : EpochOpt, leo : EndOffsets, records : [Offsets -> EpochOpt],
                                    active : EndOffsets, checkpoint : EndOffsets]]
    /\ records \in [Epochs -> [Offsets -> [key : -1 .. Keys - 1, tombstone : {0, 1}, timestamp : 0 .. Timestamps - 1,
                                           header : HeaderOpt, earlierHeader : HeaderOpt]]]
    /\ configuration \in [topic : Strategies, brokers : [Replicas -> Strategies], changes : 0 .. MaxChanges,
                          since : EndOffsets,
                          deletedVersion : [KeyIds -> -1 .. Timestamps + HeaderValues]]
    /\ consumer \in [position : EndOffsets, table : [KeyIds -> OffsetOpt]]
    /\ \A epoch \in Epochs : epoch > quorum.leaderEpoch => quorum.epochStart[epoch] = -1
    /\ \A offset \in Offsets :
        /\ Hw <= offset => committed.epochs[offset] = -1
        /\ \A replica \in Replicas : Leo(replica) <= offset => RecordEpoch(replica, offset) = -1

Init ==
    /\ quorum = [leader |-> None, leaderEpoch |-> -1, isr |-> Replicas, epochStart |-> [epoch \in Epochs |-> -1]]
    /\ committed = [hw |-> 0, epochs |-> [offset \in Offsets |-> -1]]
    /\ replicaLog = [replica \in Replicas |->
            [joined |-> -1, leo |-> 0, records |-> [offset \in Offsets |-> -1], active |-> 0, checkpoint |-> 0]]
    /\ records = [epoch \in Epochs |-> [offset \in Offsets |-> NotWritten]]
    /\ configuration = [topic |-> "unset",
                        brokers |-> [replica \in Replicas |->
                            CASE DefaultStrategy = 0 -> "unset" [] DefaultStrategy = 1 -> "offset"
                              [] DefaultStrategy = 2 -> "timestamp" [] DefaultStrategy = 3 -> "header"],
                        changes |-> 0, since |-> 0, deletedVersion |-> [key \in KeyIds |-> -1]]
    /\ consumer = [position |-> 0, table |-> [key \in KeyIds |-> -1]]

-----------------------------------------------------------------------------
(* Which of two records of one key stays. *)

\* The topic's strategy, or else its broker's.
StrategyOf(replica) ==
    IF configuration.topic # "unset" THEN configuration.topic
    ELSE IF replica = None THEN "unset" ELSE configuration.brokers[replica]

IsLong(header) == 0 <= header /\ header < HeaderValues
KnownHeader(header) == IF IsLong(header) THEN header ELSE -1

VersionOf(strategy, timestamp, header) ==
    CASE strategy = "timestamp" -> timestamp [] strategy = "header" -> header [] OTHER -> 0

\* By the text: of a repeated header the last value, and none where that is no long.
Version(strategy, record) == VersionOf(strategy, record.timestamp, KnownHeader(record.header))

\* By the variant's cleaner.
CleanerHeader(record) ==
    LET counted == IF LastOccurrence \/ record.earlierHeader = -1 THEN record.header ELSE record.earlierHeader
        checked == IF ChecksHeader THEN KnownHeader(counted) ELSE counted
    IN  IF ~ HeaderStays /\ checked = -1 THEN HeaderValues ELSE checked

CleanerVersion(strategy, record) == VersionOf(strategy, record.timestamp, CleanerHeader(record))

\* The larger version stays, and of equal ones the higher offset.
Beats(strategy, epoch, offset, otherEpoch, otherOffset) ==
    LET one == Version(strategy, Record(epoch, offset))
        other == Version(strategy, Record(otherEpoch, otherOffset))
    IN  other < one \/ (one = other /\ otherOffset < offset)

CleanerBeats(strategy, epoch, offset, otherEpoch, otherOffset) ==
    LET one == CleanerVersion(strategy, Record(epoch, offset))
        other == CleanerVersion(strategy, Record(otherEpoch, otherOffset))
    IN  other < one \/ (one = other /\ IF TiesToHigher THEN otherOffset < offset ELSE offset < otherOffset)

-----------------------------------------------------------------------------
(* Configuration. *)

LogsAreAlike ==
    \A replica \in Replicas :
        /\ Leo(replica) = Hw
        /\ \A offset \in Offsets : Hw <= offset \/ RecordEpoch(replica, offset) = RecordEpoch(Leader, offset)

BrokersAgree == \A replica \in Replicas : configuration.brokers[replica] = configuration.brokers[Leader]

SetTopicStrategy(strategy) ==
    /\ Leader # None                                                \* has_leader
    /\ configuration.changes < MaxChanges                           \* change_available
    /\ configuration.topic # strategy                               \* differs
    /\ ChangesWhenAlike => LogsAreAlike                             \* logs_are_alike
    /\ ChangesOverridden => strategy # "unset" \/ BrokersAgree      \* brokers_agree
    /\ configuration' = [configuration EXCEPT !.topic = strategy, !.changes = @ + 1, !.since = Hw,
                                              !.deletedVersion = [key \in KeyIds |-> -1]]
    /\ consumer' = [position |-> 0, table |-> [key \in KeyIds |-> -1]]
    /\ UNCHANGED <<quorum, committed, replicaLog, records>>

SetBrokerStrategy(replica, strategy) ==
    /\ configuration.changes < MaxChanges                           \* change_available
    /\ configuration.brokers[replica] # strategy                    \* differs
    /\ ChangesOverridden => configuration.topic # "unset"           \* topic_overrides
    /\ configuration' = [configuration EXCEPT !.brokers[replica] = strategy, !.changes = @ + 1]
    /\ UNCHANGED <<quorum, committed, replicaLog, records, consumer>>

-----------------------------------------------------------------------------
(* Leaders and followers. *)

ElectLeader(replica) ==
    /\ replica \in quorum.isr                                       \* in_isr
    /\ Leader # replica                                             \* not_leader_yet
    /\ Leader = None \/ Follows(replica)                            \* follows_leader
    /\ quorum.leaderEpoch < MaxLeaderEpoch                          \* epoch_available
    /\ quorum' = [quorum EXCEPT !.leader = replica, !.leaderEpoch = @ + 1,
                                !.epochStart[quorum.leaderEpoch + 1] = Leo(replica)]
    /\ replicaLog' = [replicaLog EXCEPT ![replica].joined = quorum.leaderEpoch + 1]
    /\ UNCHANGED <<committed, records, configuration, consumer>>

\* Up to where a replica's log is the leader's: where the first epoch began that it has missed.
SharedEnd(replica) ==
    LET missed == {epoch \in Epochs : replicaLog[replica].joined < epoch /\ epoch <= quorum.leaderEpoch}
    IN  LeastOf({quorum.epochStart[epoch] : epoch \in missed} \union {LogSize})

BecomeFollower(replica) ==
    /\ Leader # None                                                \* has_leader
    /\ replicaLog[replica].joined < quorum.leaderEpoch              \* epoch_newer
    /\ LET end == Min(Leo(replica), SharedEnd(replica))
       IN  replicaLog' = [replicaLog EXCEPT ![replica] = [
                joined |-> quorum.leaderEpoch,
                leo |-> end,
                records |-> [offset \in Offsets |-> IF offset < end THEN @.records[offset] ELSE -1],
                active |-> Min(end, @.active),
                checkpoint |-> Min(end, @.checkpoint)]]
    /\ UNCHANGED <<quorum, committed, records, configuration, consumer>>

LeaderWrite(key, tombstone, timestamp, header, earlierHeader) ==
    LET strategy == StrategyOf(Leader)
        end == Leo(Leader)
        rank == VersionOf(strategy, timestamp, KnownHeader(header - 1))
    IN
    /\ Leader # None                                                \* has_leader
    /\ end < LogSize                                                \* log_not_full
    /\ header = 0 \/ 0 < HeaderValues                              \* headers_used
    /\ earlierHeader = 0 \/ (RepeatedHeaders = 1 /\ header # 0)     \* repeats_a_header
    /\ ChecksHeader =>
        strategy # "header" \/ header = 0 \/ IsLong(header - 1)     \* header_is_long
    /\ ArrivesInTime => configuration.deletedVersion[key] <= rank   \* arrives_in_time
    /\ replicaLog' = [replicaLog EXCEPT ![Leader].leo = end + 1, ![Leader].records[end] = quorum.leaderEpoch]
    /\ records' = [records EXCEPT ![quorum.leaderEpoch][end] =
            [key |-> key, tombstone |-> tombstone, timestamp |-> timestamp, header |-> header - 1,
             earlierHeader |-> earlierHeader - 1]]
    /\ UNCHANGED <<quorum, committed, configuration, consumer>>

FollowerFetch(replica, offset) ==
    /\ Follows(replica) /\ Leader # replica                         \* follows_leader
    /\ Holds(Leader, offset)                                        \* record_there
    /\ Leo(replica) <= offset                                       \* not_fetched
    /\ ~ \E o \in Leo(replica) .. offset - 1 : Holds(Leader, o)     \* is_next
    /\ replicaLog' = [replicaLog EXCEPT ![replica].leo = offset + 1,
                                        ![replica].records[offset] = RecordEpoch(Leader, offset)]
    /\ UNCHANGED <<quorum, committed, records, configuration, consumer>>

\* In the variants with an empty batch alone.
FollowerFetchEmptyBatch(replica) ==
    /\ Follows(replica) /\ Leader # replica                         \* follows_leader
    /\ Leo(replica) < Leo(Leader)                                   \* not_fetched
    /\ ~ \E o \in Offsets : Leo(replica) <= o /\ Holds(Leader, o)   \* no_record_left
    /\ replicaLog' = [replicaLog EXCEPT ![replica].leo = Leo(Leader)]
    /\ UNCHANGED <<quorum, committed, records, configuration, consumer>>

\* The end of a log as whoever fetches sees it: past its last record, or its empty batch.
LogEnd(replica) ==
    IF Last = "removed"
    THEN GreatestOf({offset \in Offsets : Holds(replica, offset)} \union {-1}) + 1
    ELSE Leo(replica)

LeaderIncHighWatermark ==
    /\ Leader # None                                                \* has_leader
    /\ Hw < LogSize                                                 \* record_above_hw
    /\ \A replica \in quorum.isr : Follows(replica) /\ Hw < Leo(replica)        \* isr_has_it
    /\ committed' = [hw |-> Hw + 1, epochs |-> [committed.epochs EXCEPT ![Hw] = RecordEpoch(Leader, Hw)]]
    /\ UNCHANGED <<quorum, replicaLog, records, configuration, consumer>>

LeaderShrinkIsr(replica) ==
    /\ Leader # None                                                \* has_leader
    /\ Leader # replica                                             \* not_leader_itself
    /\ replica \in quorum.isr                                       \* in_isr
    /\ ~ (Follows(replica) /\ Leo(Leader) <= Leo(replica))          \* not_caught_up
    /\ quorum' = [quorum EXCEPT !.isr = @ \ {replica}]
    /\ UNCHANGED <<committed, replicaLog, records, configuration, consumer>>

LeaderExpandIsr(replica) ==
    /\ replica \notin quorum.isr                                    \* outside_isr
    /\ Follows(replica)                                             \* follows_leader
    /\ Min(Hw, LogEnd(Leader)) <= Leo(replica)                      \* reached_high_watermark
    /\ quorum' = [quorum EXCEPT !.isr = @ \union {replica}]
    /\ UNCHANGED <<committed, replicaLog, records, configuration, consumer>>

-----------------------------------------------------------------------------
(* The cleaner of a replica. *)

Removable(replica, offset) ==
    /\ Holds(replica, offset)
    /\ CommittedOnly => offset < Hw
    /\ InactiveOnly => offset < replicaLog[replica].active

MayGo(replica, offset) == IF Last = "retained" THEN offset + 1 < Leo(replica) ELSE offset < Leo(replica)

\* Of two records of one key the one at winner is below an end and beats the other, as this cleaner sees it.
IsBeaten(replica, offset, winner, end) ==
    /\ Holds(replica, winner)
    /\ winner < end
    /\ RecordAt(replica, offset).key = RecordAt(replica, winner).key
    /\ CleanerBeats(StrategyOf(replica), RecordEpoch(replica, winner), winner, RecordEpoch(replica, offset), offset)
    /\ MapsAll \/ replicaLog[replica].checkpoint <= winner

RollSegment(replica) ==
    /\ replicaLog[replica].active < Leo(replica)                    \* segment_not_empty
    /\ replicaLog' = [replicaLog EXCEPT ![replica].active = Leo(replica)]
    /\ UNCHANGED <<quorum, committed, records, configuration, consumer>>

RemoveRecord(replica, offset, winner) ==
    /\ Follows(replica)                                             \* follows_leader
    /\ Removable(replica, offset)                                   \* cleanable
    /\ Removable(replica, winner)                                   \* winner_cleanable
    /\ IsBeaten(replica, offset, winner, Leo(replica))              \* is_beaten
    /\ MayGo(replica, offset)                                       \* not_last
    /\ replicaLog' = [replicaLog EXCEPT ![replica].records[offset] = -1]
    /\ UNCHANGED <<quorum, committed, records, configuration, consumer>>

NothingLeft(replica, end) ==
    ~ \E offset \in 0 .. end - 1, winner \in Offsets :
        Holds(replica, offset) /\ MayGo(replica, offset) /\ IsBeaten(replica, offset, winner, end)

FinishCleaning(replica, end) ==
    /\ Follows(replica)                                             \* follows_leader
    /\ replicaLog[replica].checkpoint < end                         \* cleans_more
    /\ end <= Leo(replica)                                          \* in_log
    /\ CommittedOnly => end <= Hw                                   \* committed
    /\ InactiveOnly => end <= replicaLog[replica].active            \* inactive
    /\ NothingLeft(replica, end)                                    \* nothing_left
    /\ replicaLog' = [replicaLog EXCEPT ![replica].checkpoint = end]
    /\ UNCHANGED <<quorum, committed, records, configuration, consumer>>

AllHavePassed(offset) ==
    /\ Consumers = 0 \/ offset < consumer.position
    /\ \A replica \in Replicas : Follows(replica) /\ offset < Leo(replica)

\* The replica has no other record of a tombstone's key that it beats, and will not be given one.
BeatsNothing(replica, offset) ==
    LET epoch == RecordEpoch(replica, offset)
    IN  ~ \E other \in Replicas, at \in Offsets :
            /\ at # offset
            /\ other = replica \/ Leo(replica) <= at
            /\ Holds(other, at)
            /\ RecordAt(other, at).key = Record(epoch, offset).key
            /\ CleanerBeats(StrategyOf(replica), epoch, offset, RecordEpoch(other, at), at)

RemoveTombstone(replica, offset) ==
    /\ Follows(replica)                                             \* follows_leader
    /\ Holds(replica, offset) /\ RecordAt(replica, offset).tombstone = 1        \* is_tombstone
    /\ offset < replicaLog[replica].checkpoint                      \* cleaned_before
    /\ MayGo(replica, offset)                                       \* not_last
    /\ ReadersInTime => AllHavePassed(offset)                       \* readers_in_time
    /\ CleanedInTime => BeatsNothing(replica, offset)               \* cleaned_in_time
    /\ replicaLog' = [replicaLog EXCEPT ![replica].records[offset] = -1]
    /\ configuration' = [configuration EXCEPT !.deletedVersion[RecordAt(replica, offset).key] =
            Max(@, Version(StrategyOf(replica), RecordAt(replica, offset)))]
    /\ UNCHANGED <<quorum, committed, records, consumer>>

-----------------------------------------------------------------------------
(* Who reads. *)

ConsumerFetch(offset) ==
    /\ Consumers = 1                                                \* consumer_reads
    /\ Leader # None /\ Holds(Leader, offset)                       \* record_there
    /\ offset < Hw                                                  \* committed
    /\ consumer.position <= offset                                  \* not_read
    /\ ~ \E o \in consumer.position .. offset - 1 : Holds(Leader, o)            \* is_next
    /\ LET epoch == RecordEpoch(Leader, offset)
           record == Record(epoch, offset)
           kept == consumer.table[record.key]
           strategy == IF SameStrategy THEN StrategyOf(Leader) ELSE "offset"
           taken == kept = -1 \/ Beats(strategy, epoch, offset, committed.epochs[kept], kept)
           now == IF ~ RemembersDeletes /\ record.tombstone = 1 THEN -1 ELSE offset
       IN  consumer' = [position |-> offset + 1,
                        table |-> [consumer.table EXCEPT ![record.key] = IF taken THEN now ELSE kept]]
    /\ UNCHANGED <<quorum, committed, replicaLog, records, configuration>>

\* In the variants in which a consumer starts over alone.
ConsumerStartOver ==
    /\ 0 < consumer.position                                        \* has_read
    /\ consumer' = [position |-> 0, table |-> [key \in KeyIds |-> -1]]
    /\ UNCHANGED <<quorum, committed, replicaLog, records, configuration>>

-----------------------------------------------------------------------------

Next ==
    \/ \E strategy \in Strategies : SetTopicStrategy(strategy)
    \/ \E replica \in Replicas, strategy \in Strategies : SetBrokerStrategy(replica, strategy)
    \/ \E replica \in Replicas : ElectLeader(replica)
    \/ \E replica \in Replicas : BecomeFollower(replica)
    \/ \E key \in KeyIds, tombstone \in {0, 1}, timestamp \in 0 .. Timestamps - 1, header \in Headers,
          earlierHeader \in Headers : LeaderWrite(key, tombstone, timestamp, header, earlierHeader)
    \/ \E replica \in Replicas, offset \in Offsets : FollowerFetch(replica, offset)
    \/ \E replica \in IF Last = "empty-batch" THEN Replicas ELSE {} : FollowerFetchEmptyBatch(replica)
    \/ LeaderIncHighWatermark
    \/ \E replica \in Replicas : LeaderShrinkIsr(replica)
    \/ \E replica \in Replicas : LeaderExpandIsr(replica)
    \/ \E replica \in Replicas : RollSegment(replica)
    \/ \E replica \in Replicas, offset \in Offsets, winner \in Offsets : RemoveRecord(replica, offset, winner)
    \/ \E replica \in Replicas, end \in EndOffsets : FinishCleaning(replica, end)
    \/ \E replica \in Replicas, offset \in Offsets : RemoveTombstone(replica, offset)
    \/ \E offset \in Offsets : ConsumerFetch(offset)
    \/ \E again \in {TRUE} \ {ReadsOnce} : ConsumerStartOver

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
(* What is promised. *)

CommittedRecord(offset) == Record(committed.epochs[offset], offset)

\* What was committed at an offset counts: it was since the strategy was set, or somebody has it.
Counts(offset) ==
    /\ offset < Hw
    /\ configuration.since <= offset \/ \E replica \in Replicas : HoldsCommitted(replica, offset)

IsWinner(offset) ==
    LET strategy == StrategyOf(Leader)
        record == CommittedRecord(offset)
    IN  /\ Counts(offset)
        /\ record.key = -1 \/ configuration.deletedVersion[record.key] <= Version(strategy, record)
        /\ ~ \E other \in Offsets :
            /\ other # offset
            /\ Counts(other)
            /\ CommittedRecord(other).key = record.key
            /\ Beats(strategy, committed.epochs[other], other, committed.epochs[offset], offset)

Deletes(offset) == CommittedRecord(offset).tombstone = 1

WinnerIsKept ==
    \A offset \in Offsets : IsWinner(offset) /\ ~ Deletes(offset) =>
        \A replica \in Replicas : Follows(replica) /\ offset < Leo(replica) => HoldsCommitted(replica, offset)

DeletedStaysDeleted ==
    \A offset \in Offsets : IsWinner(offset) /\ Deletes(offset) =>
        \A replica \in Replicas : Follows(replica) /\ offset < Leo(replica) =>
            \/ HoldsCommitted(replica, offset)
            \/ ~ \E other \in Offsets : other < Hw /\ Holds(replica, other)
                                        /\ RecordAt(replica, other).key = CommittedRecord(offset).key

ConsumerAgrees ==
    \A offset \in Offsets :
        /\ ~ \E o \in consumer.position .. offset : Holds(Leader, o)
        /\ IsWinner(offset)
        => LET kept == IF CommittedRecord(offset).key = -1 THEN -1 ELSE consumer.table[CommittedRecord(offset).key]
           IN  IF Deletes(offset) THEN kept = -1 \/ Deletes(kept) ELSE kept = offset

SurvivorIsAlone ==
    \A replica \in Replicas, one, other \in Offsets :
        LET end == IF Last = "retained" THEN replicaLog[replica].checkpoint - 1 ELSE replicaLog[replica].checkpoint
        IN  one < other /\ other < end /\ Holds(replica, one) /\ Holds(replica, other)
            => RecordAt(replica, one).key # RecordAt(replica, other).key

OffsetsAgree ==
    \A replica \in Replicas, offset \in Offsets :
        Follows(replica) /\ offset < Hw /\ Holds(replica, offset) /\ (\E r \in Replicas : HoldsCommitted(r, offset))
        => RecordEpoch(replica, offset) = committed.epochs[offset]

UncommittedIsWhole ==
    \A replica \in Replicas, offset \in Offsets : Hw <= offset /\ offset < Leo(replica) => Holds(replica, offset)

ActiveSegmentIsUncleaned ==
    \A replica \in Replicas :
        replicaLog[replica].checkpoint <= Hw /\ replicaLog[replica].checkpoint <= replicaLog[replica].active

\* Of the variants in which a strategy is set where logs are alike and the topic overrides.
HeaderIsLong ==
    Leader # None /\ StrategyOf(Leader) = "header" =>
        \A replica \in Replicas, offset \in Offsets :
            configuration.since <= offset /\ Holds(replica, offset) =>
                RecordAt(replica, offset).header = -1 \/ IsLong(RecordAt(replica, offset).header)

=============================================================================
