----------------------------- MODULE Kip320Client -----------------------------
(***************************************************************************)
(* A consumer that runs by itself, its coordinator, and the brokers that   *)
(* it reads from: KIP-320 ("Consumer Handling") less its holes.            *)
(*                                                                         *)
(* An exchange is two moments. The consumer sends the one request that is  *)
(* due and waits; the answer is of a leader, or of the coordinator, as     *)
(* that is when it answers, and counts only while it is waited for. What   *)
(* has arrived belongs to no position yet: poll gives it record by record. *)
(* A commit that was not acknowledged may be stored all the same, and a    *)
(* coordinator that starts finds it in its log, or not.                    *)
(*                                                                         *)
(* Which records a partition keeps is the business of Fencing. Here a      *)
(* replica that is not told to lead may lose what it likes from the end of *)
(* its log, any replica by a crash, and what is old goes by retention; a   *)
(* leader's high watermark rises when it likes.                            *)
(*                                                                         *)
(* The reading rule of Fencing holds here: every conjunct of an action is  *)
(* a guard whose line ends with its name, or an effect.                    *)
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
    consumer,       \* its position, if any, what it read up to there without a break, the commit that it knows of
    pending,        \* which answer it waits for, and which new position it asks for
    fetched,        \* what has arrived, and is not yet given to the application
    answer,         \* what its fetch was answered, and the divergence that the application was told of
    committed,      \* the committed position
    acknowledged,   \* the commit that was acknowledged last
    refused,        \* a commit that was not acknowledged and may be stored
    foundAgain      \* 1 where what is committed was never acknowledged, and found in the log

brokers == <<nextRecordId, elections, replicaLog, replicaState>>
commits == <<committed, acknowledged, refused, foundAgain>>
vars    == <<brokers, metadata, consumer, pending, fetched, answer, commits>>

-----------------------------------------------------------------------------
(* The shape of the state. *)

Offsets    == 0 .. LogSize - 1
EndOffsets == 0 .. LogSize
Ids        == 0 .. MaxRecords - 1
Epochs     == 0 .. MaxLeaderEpoch
EpochOpt   == Epochs \union {NoEpoch}
OffsetOpt  == EndOffsets \union {NoOffset}

\* Which answer a consumer waits for, and which new position it asks for.
Awaited == {"nothing", "fetch", "search", "list", "committed", "metadata"}
Asking  == {"nothing", "committed", "beginning", "end"}

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

TypeOk ==
    /\ nextRecordId \in 0 .. MaxRecords
    /\ Len(elections) \in 0 .. MaxLeaderEpoch + 1
    /\ \A i \in 1 .. Len(elections) : elections[i] \in [leader : Replicas \union {None}, unclean : {0, 1}]
    /\ DOMAIN replicaLog = Replicas
    /\ \A replica \in Replicas :
        /\ replicaLog[replica].start \in EndOffsets /\ replicaLog[replica].end \in EndOffsets
        /\ IsPart(replicaLog[replica].records, replicaLog[replica].start, replicaLog[replica].end)
    /\ replicaState \in [Replicas -> [hw : EndOffsets, leaderEpoch : EpochOpt, leading : {0, 1}]]
    /\ metadata \in [leader : Replicas \union {None}, epoch : EpochOpt]
    /\ consumer.placed \in {0, 1} /\ consumer.position \in EndOffsets /\ consumer.consumedFrom \in EndOffsets
    /\ consumer.lastEpoch \in EpochOpt /\ consumer.seenEpoch \in EpochOpt /\ consumer.known \in OffsetOpt
    /\ IsPart(consumer.consumed, consumer.consumedFrom, consumer.position)
    /\ pending \in [awaited : Awaited, asking : Asking]
    /\ fetched.end \in EndOffsets /\ fetched.seen \in EpochOpt
    /\ IsPart(fetched.records, consumer.position, fetched.end)
    /\ answer \in [outcome : Outcome, answeredEpoch : EpochOpt, reported : OffsetOpt,
                   reportedEpoch : EpochOpt, told : OffsetOpt]
    /\ committed \in Position /\ acknowledged \in Position /\ refused \in Position
    /\ foundAgain \in {0, 1}

Nowhere == [o \in Offsets |-> NoRecord]

Init ==
    /\ nextRecordId = 0
    /\ elections = <<>>
    /\ replicaLog = [replica \in Replicas |-> [start |-> 0, end |-> 0, records |-> Nowhere]]
    /\ replicaState = [replica \in Replicas |-> [hw |-> 0, leaderEpoch |-> NoEpoch, leading |-> 0]]
    /\ metadata = [leader |-> None, epoch |-> NoEpoch]
    /\ consumer = [placed |-> 0, position |-> 0, lastEpoch |-> NoEpoch, seenEpoch |-> NoEpoch, consumedFrom |-> 0,
                   consumed |-> Nowhere, known |-> NoOffset]
    /\ pending = [awaited |-> "nothing", asking |-> "committed"]
    /\ fetched = [end |-> 0, seen |-> NoEpoch, records |-> Nowhere]
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
GreatestOf(set) == CHOOSE x \in set : \A y \in set : x >= y

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
    /\ UNCHANGED <<nextRecordId, replicaLog, replicaState, metadata, consumer, pending, fetched, answer, commits>>

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
    /\ UNCHANGED <<nextRecordId, elections, replicaLog, metadata, consumer, pending, fetched, answer, commits>>

LeaderAppend(leader) ==
    /\ Leads(leader)                                                \* leads
    /\ nextRecordId < MaxRecords                                    \* record_available
    /\ Leo(leader) < LogSize                                        \* log_not_full
    /\ AppendEffect(leader, [id |-> nextRecordId, epoch |-> Epoch(leader)])
    /\ nextRecordId' = nextRecordId + 1
    /\ UNCHANGED <<elections, replicaState, metadata, consumer, pending, fetched, answer, commits>>

\* Its log agrees with the leader's up to its end, as far as both reach back.
FollowerCopy(follower, leader) ==
    /\ Leads(leader)                                                \* leads
    /\ ~ Leads(follower)                                            \* follows
    /\ Epoch(follower) = Epoch(leader)                              \* same_epoch
    /\ InLog(leader, Leo(follower))                                 \* record_there
    /\ Start(follower) <= Leo(follower) - 1 /\ Start(leader) <= Leo(follower) - 1 =>
            RecordAt(follower, Leo(follower) - 1).id = RecordAt(leader, Leo(follower) - 1).id  \* logs_agree
    /\ AppendEffect(follower, RecordAt(leader, Leo(follower)))
    /\ UNCHANGED <<nextRecordId, elections, replicaState, metadata, consumer, pending, fetched, answer, commits>>

TruncateLog(replica, end) ==
    /\ ~ Leads(replica)                                             \* follows
    /\ end < Leo(replica)                                           \* shorter
    /\ CutEffect(replica, Min(Start(replica), end), end)
    /\ UNCHANGED <<nextRecordId, elections, replicaState, metadata, consumer, pending, fetched, answer, commits>>

BeginLogAt(replica, start) ==
    /\ ~ Leads(replica)                                             \* follows
    /\ CutEffect(replica, start, start)
    /\ UNCHANGED <<nextRecordId, elections, replicaState, metadata, consumer, pending, fetched, answer, commits>>

DeleteRecords(replica, offset) ==
    /\ Start(replica) < offset                                      \* above_log_start
    /\ offset <= IF Leads(replica) THEN Hw(replica) ELSE Leo(replica)       \* committed
    /\ CutEffect(replica, offset, Leo(replica))
    /\ UNCHANGED <<nextRecordId, elections, replicaState, metadata, consumer, pending, fetched, answer, commits>>

RaiseHighWatermark(leader, offset) ==
    /\ Leads(leader)                                                \* leads
    /\ Hw(leader) < offset                                          \* higher
    /\ offset <= Leo(leader)                                        \* in_log
    /\ replicaState' = [replicaState EXCEPT ![leader].hw = offset]
    /\ UNCHANGED <<nextRecordId, elections, replicaLog, metadata, consumer, pending, fetched, answer, commits>>

\* It leads nothing until it is told to in a newer epoch.
ReplicaRestarts(replica, end) ==
    /\ end <= Leo(replica)                                          \* no_longer
    /\ CutEffect(replica, Start(replica), Max(end, Start(replica)))
    /\ replicaState' = [replicaState EXCEPT ![replica].hw = 0, ![replica].leading = 0]
    /\ UNCHANGED <<nextRecordId, elections, metadata, consumer, pending, fetched, answer, commits>>

-----------------------------------------------------------------------------
(* What a leader says of a position. *)

\* Where the leader's cache has the next larger epoch begin: its own begins at its LEO while it wrote
\* nothing.
LargerEpochStart(leader, epoch) ==
    LET larger == {o \in Offsets : EpochAt(leader, o) > epoch}
    IN  IF larger = {} THEN Leo(leader) ELSE LeastOf(larger)

EpochUnknown(leader) == Epoch(leader) < Max(consumer.lastEpoch, consumer.seenEpoch)

\* Of what retention took, nothing can be said.
Truncated(leader) ==
    LET start == LargerEpochStart(leader, consumer.lastEpoch)
        gone  == 0 < start /\ start <= Start(leader)
    IN  /\ consumer.lastEpoch # NoEpoch
        /\ \/ consumer.lastEpoch < Epoch(leader) /\ start < consumer.position
           \/ ~ gone /\ EpochAt(leader, start - 1) # consumer.lastEpoch

InRange(leader) == Start(leader) <= consumer.position /\ consumer.position <= Leo(leader)

\* What OffsetForLeaderEpoch makes of the position. The epoch is the one asked where the leader knows that:
\* the offset is then exactly where the logs part.
NearestOffset(leader) == Min(LargerEpochStart(leader, consumer.lastEpoch), consumer.position)
NearestEpoch(leader) ==
    LET end == LargerEpochStart(leader, consumer.lastEpoch)
        known == EpochAt(leader, end - 1)
    IN  IF end <= consumer.position \/ known = consumer.lastEpoch THEN known ELSE NoEpoch

\* The leader that answered knows the consumer's epoch.
Exact == answer.reportedEpoch = consumer.lastEpoch

-----------------------------------------------------------------------------
(* Where the consumer goes on from. *)

\* Where the run of reading begins that a position is in: it goes on where the record before the position is the one
\* that was read there, by its offset and its epoch.
Begin(position, epoch) ==
    IF /\ consumer.consumedFrom < position /\ position <= consumer.position
       /\ epoch # NoEpoch /\ consumer.consumed[position - 1].epoch = epoch
    THEN consumer.consumedFrom
    ELSE position

\* What was asked and what has arrived is dropped.
JumpEffect(placed, position, epoch, seen, begin, asking, known) ==
    /\ consumer' = [placed |-> placed, position |-> position, lastEpoch |-> epoch, seenEpoch |-> seen,
                    consumedFrom |-> begin, consumed |-> Part(consumer.consumed, begin, position), known |-> known]
    /\ pending' = [awaited |-> "nothing", asking |-> asking]
    /\ fetched' = [end |-> position, seen |-> NoEpoch, records |-> Nowhere]
    /\ answer' = NoAnswer
    /\ UNCHANGED <<brokers, commits>>

MoveEffect(position, epoch, seen, begin) == JumpEffect(1, position, epoch, seen, begin, "nothing", consumer.known)

-----------------------------------------------------------------------------
(* What the application does. *)

\* The next fetch names no epoch, and is not checked.
SeekTo(offset) ==
    /\ MoveEffect(offset, NoEpoch, NoEpoch, offset)
    /\ UNCHANGED metadata

SeekToTold ==
    /\ answer.told # NoOffset                                       \* was_told
    /\ MoveEffect(answer.reported, answer.reportedEpoch, answer.answeredEpoch, answer.reported)
    /\ UNCHANGED metadata

AskFor(target) ==
    /\ target # "nothing"                                           \* somewhere
    /\ pending' = [awaited |-> "nothing", asking |-> target]
    /\ fetched' = [end |-> consumer.position, seen |-> NoEpoch, records |-> Nowhere]
    /\ UNCHANGED <<brokers, metadata, consumer, answer, commits>>

TakeRecord ==
    /\ consumer.position < fetched.end                              \* has_arrived
    /\ LET at == consumer.position
       IN  /\ consumer' = [consumer EXCEPT
                    !.position = at + 1,
                    !.lastEpoch = fetched.records[at].epoch,
                    !.seenEpoch = fetched.seen,
                    !.consumed = [@ EXCEPT ![at] = fetched.records[at]]]
           /\ fetched' = [end |-> fetched.end,
                          seen |-> IF at + 1 = fetched.end THEN NoEpoch ELSE fetched.seen,
                          records |-> Part(fetched.records, at + 1, fetched.end)]
    /\ UNCHANGED <<brokers, metadata, pending, answer, commits>>

TellDivergence ==
    /\ answer.outcome = DivergenceFound                             \* divergence_found
    /\ pending.asking = "nothing"                                   \* asks_for_nothing
    /\ answer' = [answer EXCEPT !.told = answer.reported]
    /\ UNCHANGED <<brokers, metadata, consumer, pending, fetched, commits>>

\* Below an offset that is only a bound nothing is known.
GoToDivergence ==
    /\ answer.outcome = DivergenceFound                             \* divergence_found
    /\ pending.asking = "nothing"                                   \* asks_for_nothing
    /\ MoveEffect(answer.reported, answer.reportedEpoch, answer.answeredEpoch,
                  IF Exact THEN Begin(answer.reported, answer.reportedEpoch) ELSE answer.reported)
    /\ UNCHANGED metadata

ResetByPolicy(target) ==
    /\ answer.outcome = OffsetOutOfRange                            \* out_of_range
    /\ pending.asking = "nothing"                                   \* asks_for_nothing
    /\ target \in {"beginning", "end"}                              \* by_policy
    /\ pending' = [pending EXCEPT !.asking = target]
    /\ UNCHANGED <<brokers, metadata, consumer, fetched, answer, commits>>

\* All that the new process knows is the group's name.
RestartConsumer ==
    /\ JumpEffect(0, 0, NoEpoch, NoEpoch, 0, "committed", NoOffset)
    /\ metadata' = [leader |-> None, epoch |-> NoEpoch]

-----------------------------------------------------------------------------
(* Requests, and their answers. *)

HasPosition == consumer.placed = 1 /\ pending.asking = "nothing"
NotInDoubt == answer.outcome \in {Fetching, UnknownLeaderEpoch}

Due(awaited) ==
    \/ awaited = "fetch" /\ HasPosition /\ NotInDoubt
    \/ awaited = "search" /\ HasPosition /\ answer.outcome = LogTruncation
    \/ awaited = "list" /\ pending.asking \in {"beginning", "end"}
    \/ awaited = "committed" /\ pending.asking = "committed"
    \/ awaited = "metadata" /\ pending.asking # "committed"

Send(request) ==
    /\ pending.awaited = "nothing"                                  \* awaits_nothing
    /\ fetched.end = consumer.position                              \* nothing_has_arrived
    /\ Due(request)                                                 \* due
    /\ pending' = [pending EXCEPT !.awaited = request]
    /\ UNCHANGED <<brokers, metadata, consumer, fetched, answer, commits>>

GiveUp ==
    /\ pending.awaited # "nothing"                                  \* awaits_something
    /\ pending' = [pending EXCEPT !.awaited = "nothing"]
    /\ UNCHANGED <<brokers, metadata, consumer, fetched, answer, commits>>

\* From a broker that may be as far behind as the first election (KIP-232).
LearnLeader(epoch) ==
    /\ pending.awaited = "metadata"                                 \* awaits_metadata
    /\ Elected(epoch)                                               \* epoch_started
    /\ EpochLeader(epoch) # None                                    \* leader_elected
    /\ LET known == [leader |-> EpochLeader(epoch), epoch |-> epoch]
       IN  /\ metadata' = known
           /\ answer' = IF known # metadata /\ answer.outcome = UnknownLeaderEpoch
                        THEN [answer EXCEPT !.outcome = Fetching, !.answeredEpoch = NoEpoch]
                        ELSE answer
    /\ pending' = [pending EXCEPT !.awaited = "nothing"]
    /\ UNCHANGED <<brokers, consumer, fetched, commits>>

\* One more record of the answer, behind those before it.
FetchRecord(leader) ==
    /\ pending.awaited = "fetch"                                    \* awaits_fetch
    /\ Leads(leader)                                                \* leads
    /\ ~ EpochUnknown(leader)                                       \* epoch_known
    /\ ~ Truncated(leader)                                          \* not_truncated
    /\ InRange(leader)                                              \* in_range
    /\ fetched.end = consumer.position \/ fetched.seen = Epoch(leader) \* of_one_answer
    /\ fetched.end < Hw(leader)                                     \* below_high_watermark
    /\ fetched' = [end |-> fetched.end + 1, seen |-> Epoch(leader),
                   records |-> [fetched.records EXCEPT ![fetched.end] = RecordAt(leader, fetched.end)]]
    /\ UNCHANGED <<brokers, metadata, consumer, pending, answer, commits>>

\* All of the answer has arrived.
EndFetch(leader) ==
    /\ pending.awaited = "fetch"                                    \* awaits_fetch
    /\ Leads(leader)                                                \* leads
    /\ ~ EpochUnknown(leader)                                       \* epoch_known
    /\ ~ Truncated(leader)                                          \* not_truncated
    /\ InRange(leader)                                              \* in_range
    /\ pending' = [pending EXCEPT !.awaited = "nothing"]
    /\ answer' = [answer EXCEPT !.outcome = Fetching, !.answeredEpoch = NoEpoch]
    /\ UNCHANGED <<brokers, metadata, consumer, fetched, commits>>

RefuseEffect(outcome, epoch) ==
    /\ pending' = [pending EXCEPT !.awaited = "nothing"]
    /\ answer' = [answer EXCEPT !.outcome = outcome, !.answeredEpoch = epoch]
    /\ UNCHANGED <<brokers, metadata, consumer, fetched, commits>>

RefuseUnknownEpoch(leader) ==
    /\ pending.awaited = "fetch"                                    \* awaits_fetch
    /\ Leads(leader)                                                \* leads
    /\ EpochUnknown(leader)                                         \* epoch_unknown
    /\ RefuseEffect(UnknownLeaderEpoch, Epoch(leader))

RefuseTruncated(leader) ==
    /\ pending.awaited = "fetch"                                    \* awaits_fetch
    /\ Leads(leader)                                                \* leads
    /\ ~ EpochUnknown(leader)                                       \* epoch_known
    /\ Truncated(leader)                                            \* truncated
    /\ RefuseEffect(LogTruncation, Epoch(leader))

RefuseOutOfRange(leader) ==
    /\ pending.awaited = "fetch"                                    \* awaits_fetch
    /\ Leads(leader)                                                \* leads
    /\ ~ EpochUnknown(leader)                                       \* epoch_known
    /\ ~ Truncated(leader)                                          \* not_truncated
    /\ ~ InRange(leader)                                            \* not_in_range
    /\ RefuseEffect(OffsetOutOfRange, NoEpoch)

\* OffsetsForLeaderEpoch, after LOG_TRUNCATION.
LearnDivergence(leader) ==
    /\ pending.awaited = "search"                                   \* awaits_search
    /\ Leads(leader)                                                \* leads
    /\ ~ EpochUnknown(leader)                                       \* epoch_known
    /\ pending' = [pending EXCEPT !.awaited = "nothing"]
    /\ answer' = [answer EXCEPT !.outcome = DivergenceFound, !.answeredEpoch = Epoch(leader),
                                !.reported = NearestOffset(leader), !.reportedEpoch = NearestEpoch(leader)]
    /\ UNCHANGED <<brokers, metadata, consumer, fetched, commits>>

\* ListOffsets; there is no record before the log start to check by.
LearnBeginning(leader) ==
    /\ pending.awaited = "list"                                     \* awaits_list
    /\ pending.asking = "beginning"                                 \* asks_for_beginning
    /\ Leads(leader)                                                \* leads
    /\ MoveEffect(Start(leader), NoEpoch, Epoch(leader), Start(leader))
    /\ UNCHANGED metadata

LearnEnd(leader) ==
    /\ pending.awaited = "list"                                     \* awaits_list
    /\ pending.asking = "end"                                       \* asks_for_end
    /\ Leads(leader)                                                \* leads
    /\ MoveEffect(Hw(leader), EpochAt(leader, Hw(leader) - 1), Epoch(leader), Hw(leader))
    /\ UNCHANGED metadata

-----------------------------------------------------------------------------
(* Commits. *)

Now == [offset |-> consumer.position, epoch |-> consumer.lastEpoch, seen |-> consumer.seenEpoch]

StoreCommit ==
    /\ HasPosition                                                  \* has_position
    /\ NotInDoubt                                                   \* not_in_doubt
    /\ committed' = Now
    /\ acknowledged' = Now
    /\ refused' = NoCommit
    /\ foundAgain' = 0
    /\ UNCHANGED <<brokers, metadata, consumer, pending, fetched, answer>>

\* The coordinator cannot tell whether it is in its log.
RefuseCommit ==
    /\ HasPosition                                                  \* has_position
    /\ NotInDoubt                                                   \* not_in_doubt
    /\ refused' = Now
    /\ UNCHANGED <<brokers, metadata, consumer, pending, fetched, answer, committed, acknowledged, foundAgain>>

FindCommit ==
    /\ refused.offset # NoOffset                                    \* was_refused
    /\ committed' = refused
    /\ refused' = NoCommit
    /\ foundAgain' = IF refused = acknowledged THEN 0 ELSE 1
    /\ UNCHANGED <<brokers, metadata, consumer, pending, fetched, answer, acknowledged>>

MissCommit ==
    /\ refused.offset # NoOffset                                    \* was_refused
    /\ refused' = NoCommit
    /\ UNCHANGED <<brokers, metadata, consumer, pending, fetched, answer, committed, acknowledged, foundAgain>>

HearCommit ==
    /\ committed.offset # NoOffset                                  \* committed
    /\ consumer' = [consumer EXCEPT !.known = committed.offset]
    /\ UNCHANGED <<brokers, metadata, pending, fetched, answer, commits>>

\* OffsetFetch; what came after is read again.
LearnCommit ==
    /\ pending.awaited = "committed"                                \* awaits_committed
    /\ committed.offset # NoOffset                                  \* committed
    /\ JumpEffect(1, committed.offset, committed.epoch, committed.seen, Begin(committed.offset, committed.epoch),
                  "nothing", committed.offset)
    /\ UNCHANGED metadata

LearnNoCommit(target) ==
    /\ pending.awaited = "committed"                                \* awaits_committed
    /\ committed.offset = NoOffset                                  \* nothing_committed
    /\ target # "committed"                                         \* by_policy
    /\ pending' = [awaited |-> "nothing", asking |-> target]
    /\ UNCHANGED <<brokers, metadata, consumer, fetched, answer, commits>>

-----------------------------------------------------------------------------

Next ==
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
    \/ \E offset \in EndOffsets : SeekTo(offset)
    \/ SeekToTold
    \/ \E target \in Asking : AskFor(target)
    \/ TakeRecord
    \/ TellDivergence
    \/ GoToDivergence
    \/ \E target \in Asking : ResetByPolicy(target)
    \/ RestartConsumer
    \/ \E request \in Awaited : Send(request)
    \/ GiveUp
    \/ \E epoch \in Epochs : LearnLeader(epoch)
    \/ \E replica \in Replicas : FetchRecord(replica)
    \/ \E replica \in Replicas : EndFetch(replica)
    \/ \E replica \in Replicas : RefuseUnknownEpoch(replica)
    \/ \E replica \in Replicas : RefuseTruncated(replica)
    \/ \E replica \in Replicas : RefuseOutOfRange(replica)
    \/ \E replica \in Replicas : LearnDivergence(replica)
    \/ \E replica \in Replicas : LearnBeginning(replica)
    \/ \E replica \in Replicas : LearnEnd(replica)
    \/ StoreCommit
    \/ RefuseCommit
    \/ FindCommit
    \/ MissCommit
    \/ HearCommit
    \/ LearnCommit
    \/ \E target \in Asking : LearnNoCommit(target)

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
(* The promises. *)

SameRecord(one, other, offset) ==
    InLog(one, offset) /\ InLog(other, offset) /\ RecordAt(one, offset).id = RecordAt(other, offset).id

\* As far as both reach back.
KeptLogsMatch ==
    \A one, other \in Replicas, end \in Offsets : SameRecord(one, other, end) =>
        \A o \in Max(Start(one), Start(other)) .. end - 1 : SameRecord(one, other, o)

IsConsumed(offset) == consumer.consumedFrom <= offset /\ offset < consumer.position
IsFetched(offset) == consumer.position <= offset /\ offset < fetched.end

ReadWhatWasWritten ==
    \A o \in Offsets :
        /\ IsConsumed(o) => consumer.consumed[o].id \in 0 .. nextRecordId - 1 /\ consumer.consumed[o].epoch # NoEpoch
        /\ IsFetched(o) => fetched.records[o].id \in 0 .. nextRecordId - 1 /\ fetched.records[o].epoch # NoEpoch

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

TruncationWasFound ==
    answer.outcome = LogTruncation =>
        \A leader \in Replicas : StillLeads(leader) => EpochAt(leader, consumer.position - 1) # consumer.lastEpoch

ToldDivergence ==
    IF answer.outcome # DivergenceFound
    THEN answer.reported = NoOffset /\ answer.told = NoOffset
    ELSE /\ answer.reported # NoOffset /\ answer.reported <= consumer.position
         /\ answer.told \in {NoOffset, answer.reported}
         /\ \A leader \in Replicas, o \in Offsets : StillLeads(leader) =>
                /\ Exact /\ IsConsumed(o) /\ o < answer.reported /\ Start(leader) <= o => ReadIsIn(leader, o)
                /\ answer.reported <= o => ~ ReadIsIn(leader, o)

UnknownEpochIsStale == answer.outcome = UnknownLeaderEpoch => answer.answeredEpoch < QuorumLeaderEpoch

\* Or one that the coordinator found again in its log.
AcknowledgedCommitIsKept == committed = acknowledged \/ (foundAgain = 1 /\ committed.offset # NoOffset)

=============================================================================
