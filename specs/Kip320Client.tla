----------------------------- MODULE Kip320Client -----------------------------
(***************************************************************************)
(* A consumer that runs by itself, and has each of its fetches checked:    *)
(* KIP-320 ("Consumer Handling") less its holes.                           *)
(*                                                                         *)
(* An exchange is two moments. The consumer sends the one request that is  *)
(* due and waits; the answer is of a leader, or of the coordinator, as     *)
(* that is when it answers, and counts only while it is waited for. What   *)
(* has arrived belongs to no position yet: poll gives it record by record. *)
(***************************************************************************)
EXTENDS ClientPartition

-----------------------------------------------------------------------------
(* The shape of the state. *)

\* Which answer a consumer waits for.
Awaited == {"nothing", "fetch", "search", "list", "committed", "metadata"}

\* What has arrived, and is not yet given to the application; nothing from a position on.
Fetched == pending.fetched
NothingFrom(position) == [end |-> position, seen |-> NoEpoch, records |-> Nowhere]

TypeOk ==
    /\ PartitionOk
    /\ metadata \in [leader : Replicas \union {None}, epoch : EpochOpt]
    /\ consumer.placed \in {0, 1} /\ consumer.position \in EndOffsets /\ consumer.consumedFrom \in EndOffsets
    /\ consumer.lastEpoch \in EpochOpt /\ consumer.seenEpoch \in EpochOpt /\ consumer.known \in OffsetOpt
    /\ IsPart(consumer.consumed, consumer.consumedFrom, consumer.position)
    /\ DOMAIN pending = {"awaited", "asking", "fetched"}
    /\ pending.awaited \in Awaited /\ pending.asking \in Asking
    /\ pending.fetched.end \in EndOffsets /\ pending.fetched.seen \in EpochOpt
    /\ IsPart(pending.fetched.records, consumer.position, pending.fetched.end)

Init ==
    /\ PartitionInit
    /\ metadata = [leader |-> None, epoch |-> NoEpoch]
    /\ consumer = [placed |-> 0, position |-> 0, lastEpoch |-> NoEpoch, seenEpoch |-> NoEpoch, consumedFrom |-> 0,
                   consumed |-> Nowhere, known |-> NoOffset]
    /\ pending = [awaited |-> "nothing", asking |-> "committed", fetched |-> NothingFrom(0)]

-----------------------------------------------------------------------------
(* What a leader says of a position. *)

EpochUnknown(leader) == Epoch(leader) < Max(consumer.lastEpoch, consumer.seenEpoch)

\* Of what retention took, nothing can be said.
Truncated(leader) ==
    LET start == LargerEpochStart(leader, consumer.lastEpoch)
        gone  == 0 < start /\ start <= Start(leader)
    IN  /\ consumer.lastEpoch # NoEpoch
        /\ \/ consumer.lastEpoch < Epoch(leader) /\ start < consumer.position
           \/ ~ gone /\ EpochAt(leader, start - 1) # consumer.lastEpoch

\* What OffsetForLeaderEpoch makes of the position. The epoch is the one asked where the leader knows that:
\* the offset is then exactly where the logs part.
NearestOffset(leader) == Min(LargerEpochStart(leader, consumer.lastEpoch), consumer.position)
NearestEpoch(leader) ==
    LET end == LargerEpochStart(leader, consumer.lastEpoch)
        known == EpochAt(leader, end - 1)
    IN  IF end <= consumer.position \/ known = consumer.lastEpoch THEN known ELSE NoEpoch

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
    /\ pending' = [awaited |-> "nothing", asking |-> asking, fetched |-> NothingFrom(position)]
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
    /\ pending' = [awaited |-> "nothing", asking |-> target, fetched |-> NothingFrom(consumer.position)]
    /\ UNCHANGED <<brokers, metadata, consumer, answer, commits>>

TakeRecord ==
    /\ consumer.position < Fetched.end                              \* has_arrived
    /\ LET at == consumer.position
       IN  /\ consumer' = [consumer EXCEPT
                    !.position = at + 1,
                    !.lastEpoch = Fetched.records[at].epoch,
                    !.seenEpoch = Fetched.seen,
                    !.consumed = [@ EXCEPT ![at] = Fetched.records[at]]]
           /\ pending' = [pending EXCEPT !.fetched =
                    [end     |-> @.end,
                     seen    |-> IF at + 1 = @.end THEN NoEpoch ELSE @.seen,
                     records |-> Part(@.records, at + 1, @.end)]]
    /\ UNCHANGED <<brokers, metadata, answer, commits>>

TellDivergence ==
    /\ answer.outcome = DivergenceFound                             \* divergence_found
    /\ pending.asking = "nothing"                                   \* asks_for_nothing
    /\ answer' = [answer EXCEPT !.told = answer.reported]
    /\ UNCHANGED <<brokers, metadata, consumer, pending, commits>>

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
    /\ UNCHANGED <<brokers, metadata, consumer, answer, commits>>

\* All that the new process knows is the group's name.
RestartConsumer ==
    /\ JumpEffect(0, 0, NoEpoch, NoEpoch, 0, "committed", NoOffset)
    /\ metadata' = [leader |-> None, epoch |-> NoEpoch]

-----------------------------------------------------------------------------
(* Requests, and their answers. *)

NotInDoubt == answer.outcome \in {Fetching, UnknownLeaderEpoch}

Due(awaited) ==
    \/ awaited = "fetch" /\ HasPosition /\ NotInDoubt
    \/ awaited = "search" /\ HasPosition /\ answer.outcome = LogTruncation
    \/ awaited = "list" /\ pending.asking \in {"beginning", "end"}
    \/ awaited = "committed" /\ pending.asking = "committed"
    \/ awaited = "metadata" /\ pending.asking # "committed"

Send(request) ==
    /\ pending.awaited = "nothing"                                  \* awaits_nothing
    /\ Fetched.end = consumer.position                              \* nothing_has_arrived
    /\ Due(request)                                                 \* due
    /\ pending' = [pending EXCEPT !.awaited = request]
    /\ UNCHANGED <<brokers, metadata, consumer, answer, commits>>

GiveUp ==
    /\ pending.awaited # "nothing"                                  \* awaits_something
    /\ pending' = [pending EXCEPT !.awaited = "nothing"]
    /\ UNCHANGED <<brokers, metadata, consumer, answer, commits>>

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
    /\ UNCHANGED <<brokers, consumer, commits>>

\* One more record of the answer, behind those before it.
FetchRecord(leader) ==
    /\ pending.awaited = "fetch"                                    \* awaits_fetch
    /\ Leads(leader)                                                \* leads
    /\ ~ EpochUnknown(leader)                                       \* epoch_known
    /\ ~ Truncated(leader)                                          \* not_truncated
    /\ InRange(leader)                                              \* in_range
    /\ Fetched.end = consumer.position \/ Fetched.seen = Epoch(leader) \* of_one_answer
    /\ Fetched.end < Hw(leader)                                     \* below_high_watermark
    /\ pending' = [pending EXCEPT !.fetched =
            [end |-> @.end + 1, seen |-> Epoch(leader),
             records |-> [@.records EXCEPT ![Fetched.end] = RecordAt(leader, Fetched.end)]]]
    /\ UNCHANGED <<brokers, metadata, consumer, answer, commits>>

\* All of the answer has arrived.
EndFetch(leader) ==
    /\ pending.awaited = "fetch"                                    \* awaits_fetch
    /\ Leads(leader)                                                \* leads
    /\ ~ EpochUnknown(leader)                                       \* epoch_known
    /\ ~ Truncated(leader)                                          \* not_truncated
    /\ InRange(leader)                                              \* in_range
    /\ pending' = [pending EXCEPT !.awaited = "nothing"]
    /\ answer' = [answer EXCEPT !.outcome = Fetching, !.answeredEpoch = NoEpoch]
    /\ UNCHANGED <<brokers, metadata, consumer, commits>>

TurnAwayEffect(outcome, epoch) ==
    /\ pending' = [pending EXCEPT !.awaited = "nothing"]
    /\ answer' = [answer EXCEPT !.outcome = outcome, !.answeredEpoch = epoch]
    /\ UNCHANGED <<brokers, metadata, consumer, commits>>

RefuseUnknownEpoch(leader) ==
    /\ pending.awaited = "fetch"                                    \* awaits_fetch
    /\ Leads(leader)                                                \* leads
    /\ EpochUnknown(leader)                                         \* epoch_unknown
    /\ TurnAwayEffect(UnknownLeaderEpoch, Epoch(leader))

RefuseTruncated(leader) ==
    /\ pending.awaited = "fetch"                                    \* awaits_fetch
    /\ Leads(leader)                                                \* leads
    /\ ~ EpochUnknown(leader)                                       \* epoch_known
    /\ Truncated(leader)                                            \* truncated
    /\ TurnAwayEffect(LogTruncation, Epoch(leader))

RefuseOutOfRange(leader) ==
    /\ pending.awaited = "fetch"                                    \* awaits_fetch
    /\ Leads(leader)                                                \* leads
    /\ ~ EpochUnknown(leader)                                       \* epoch_known
    /\ ~ Truncated(leader)                                          \* not_truncated
    /\ ~ InRange(leader)                                            \* not_in_range
    /\ TurnAwayEffect(OffsetOutOfRange, NoEpoch)

\* OffsetsForLeaderEpoch, after LOG_TRUNCATION.
LearnDivergence(leader) ==
    /\ pending.awaited = "search"                                   \* awaits_search
    /\ Leads(leader)                                                \* leads
    /\ ~ EpochUnknown(leader)                                       \* epoch_known
    /\ pending' = [pending EXCEPT !.awaited = "nothing"]
    /\ answer' = [answer EXCEPT !.outcome = DivergenceFound, !.answeredEpoch = Epoch(leader),
                                !.reported = NearestOffset(leader), !.reportedEpoch = NearestEpoch(leader)]
    /\ UNCHANGED <<brokers, metadata, consumer, commits>>

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
    /\ StoreEffect(Now)

RefuseCommit ==
    /\ HasPosition                                                  \* has_position
    /\ NotInDoubt                                                   \* not_in_doubt
    /\ RefuseEffect(Now)

HearCommit ==
    /\ committed.offset # NoOffset                                  \* committed
    /\ consumer' = [consumer EXCEPT !.known = committed.offset]
    /\ UNCHANGED <<brokers, metadata, pending, answer, commits>>

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
    /\ pending' = [pending EXCEPT !.awaited = "nothing", !.asking = target]
    /\ UNCHANGED <<brokers, metadata, consumer, answer, commits>>

-----------------------------------------------------------------------------

Next ==
    \/ PartitionNext
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
    \/ HearCommit
    \/ LearnCommit
    \/ \E target \in Asking : LearnNoCommit(target)

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
(* The promises. *)

IsFetched(offset) == consumer.position <= offset /\ offset < pending.fetched.end

ReadWhatWasWritten ==
    \A o \in Offsets :
        /\ IsConsumed(o) => WasWritten(consumer.consumed[o])
        /\ IsFetched(o) => WasWritten(pending.fetched.records[o])

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

=============================================================================
