-------------------------- MODULE ValidatingClient --------------------------
(***************************************************************************)
(* A consumer as Apache Kafka's: it validates its position by itself when  *)
(* it hears of another leader or leader epoch, and fetches nothing until   *)
(* it has its answer; its fetches name no last epoch. A position found by  *)
(* ListOffsets, or sought by its offset alone, has no epoch, and nobody    *)
(* validates it. What is fetched is given to the application when it       *)
(* arrives. Metadata goes back to an older leader epoch only after a       *)
(* broker has not known the topic.                                         *)
(*                                                                         *)
(* Several requests may be on their way: an answer is of a leader as that  *)
(* was when it answered, and what it is to the consumer is decided by what *)
(* that is when it arrives.                                                *)
(*                                                                         *)
(* The variants differ in two rules:                                       *)
(*   EndsAlone = TRUE  a validation compares where the position's epoch    *)
(*           ends in the leader's log, and nothing else. Where a smaller   *)
(*           epoch is found instead, the position passes for a good one    *)
(*           (H1)                                                          *)
(*   Late = TRUE  the consumer takes answers of a leader that it has left  *)
(*           since (V6)                                                    *)
(* The consumer of Apache Kafka 4.4 has both faults.                       *)
(***************************************************************************)
EXTENDS ClientPartition

CONSTANTS
    EndsAlone,      \* whether a validation compares end offsets alone
    Late            \* whether answers of a leader that was left count

ASSUME EndsAlone \in BOOLEAN /\ Late \in BOOLEAN

-----------------------------------------------------------------------------
(* The shape of the state. *)

\* currentEpoch: the leader epoch in which the position was validated, or is to be. topicKnown: 1 where the
\* consumer knows the topic's id, so that metadata of an older leader epoch does not count.
TypeOk ==
    /\ PartitionOk
    /\ metadata \in [leader : Replicas \union {None}, epoch : EpochOpt, topicKnown : {0, 1}]
    /\ DOMAIN consumer = {"placed", "position", "lastEpoch", "currentEpoch", "validating", "consumedFrom", "consumed"}
    /\ consumer.placed \in {0, 1} /\ consumer.position \in EndOffsets /\ consumer.consumedFrom \in EndOffsets
    /\ consumer.lastEpoch \in EpochOpt /\ consumer.currentEpoch \in EpochOpt /\ consumer.validating \in {0, 1}
    /\ IsPart(consumer.consumed, consumer.consumedFrom, consumer.position)
    /\ pending \in [asking : Asking]

NoMetadata == [leader |-> None, epoch |-> NoEpoch, topicKnown |-> 0]
NoPosition == [placed |-> 0, position |-> 0, lastEpoch |-> NoEpoch, currentEpoch |-> NoEpoch, validating |-> 0,
               consumedFrom |-> 0, consumed |-> Nowhere]

Init ==
    /\ PartitionInit
    /\ metadata = NoMetadata
    /\ consumer = NoPosition
    /\ pending = [asking |-> "committed"]

-----------------------------------------------------------------------------
(* Where the consumer goes on from. *)

\* The newest leader epoch that is known: a position's own counts only where there is metadata to compare.
Newest(epoch) == IF metadata.epoch = NoEpoch THEN NoEpoch ELSE Max(metadata.epoch, epoch)

\* The leader epoch that a position is given: that of before it.
Current == IF metadata.leader = None THEN NoEpoch ELSE metadata.epoch

\* Once the position is validated. An epoch that comes with it may be newer than the metadata, which then names no
\* leader any more.
GoEffect(position, epoch, current, newest) ==
    /\ metadata' = [metadata EXCEPT !.leader = IF newest = metadata.epoch THEN @ ELSE None, !.epoch = newest]
    /\ consumer' = [placed |-> 1, position |-> position, lastEpoch |-> epoch, currentEpoch |-> current,
                    validating |-> IF epoch # NoEpoch /\ newest # NoEpoch THEN 1 ELSE 0,
                    consumedFrom |-> position, consumed |-> Nowhere]
    /\ pending' = [asking |-> "nothing"]
    /\ answer' = NoAnswer
    /\ UNCHANGED <<brokers, commits>>

\* The consumer has no position any more, and asks for one.
LeaveEffect(asking) ==
    /\ consumer' = NoPosition
    /\ pending' = [asking |-> asking]
    /\ answer' = NoAnswer
    /\ UNCHANGED <<brokers, commits>>

-----------------------------------------------------------------------------
(* What the application does. *)

\* Without an epoch nobody validates it.
SeekOffset(offset) ==
    /\ GoEffect(offset, NoEpoch, Current, metadata.epoch)

\* With the epoch of the record before it: what the application was told, or had kept.
SeekPosition(offset, epoch) ==
    /\ Elected(epoch)                                               \* epoch_started
    /\ GoEffect(offset, epoch, Current, Newest(epoch))

RequestReset(target) ==
    /\ target \in {"beginning", "end"}                              \* beginning_or_end
    /\ LeaveEffect(target)
    /\ UNCHANGED metadata

\* LogTruncationException, with where to go on from (the reset policy none).
RaiseTruncation ==
    /\ answer.outcome = DivergenceFound                             \* divergence_found
    /\ answer' = [answer EXCEPT !.told = answer.reported]
    /\ UNCHANGED <<brokers, metadata, consumer, pending, commits>>

\* All that the new process knows is the group's name.
RestartProcess ==
    /\ LeaveEffect("committed")
    /\ metadata' = NoMetadata

-----------------------------------------------------------------------------
(* Metadata. *)

\* A topic whose id the consumer does not know is new to it, and so is its leader epoch, whichever that is.
UpdateMetadata(epoch) ==
    /\ Elected(epoch)                                               \* epoch_started
    /\ metadata.topicKnown = 1 => metadata.epoch <= epoch           \* no_older
    /\ metadata' = [leader |-> EpochLeader(epoch), epoch |-> epoch, topicKnown |-> 1]
    /\ UNCHANGED <<brokers, consumer, pending, answer, commits>>

\* A broker does not know the topic yet: the consumer forgets who leads it, and its id, but not the leader epoch.
LoseMetadata ==
    /\ metadata' = [metadata EXCEPT !.leader = None, !.topicKnown = 0]
    /\ UNCHANGED <<brokers, consumer, pending, answer, commits>>

FollowMetadata ==
    /\ consumer.placed = 1                                          \* has_position
    /\ metadata.leader # None                                       \* has_leader
    /\ consumer.currentEpoch # metadata.epoch                       \* another_epoch
    /\ consumer' = [consumer EXCEPT
            !.currentEpoch = metadata.epoch,
            !.validating = IF consumer.lastEpoch = NoEpoch THEN 0 ELSE 1]
    /\ UNCHANGED <<brokers, metadata, pending, answer, commits>>

-----------------------------------------------------------------------------
(* What it is answered. *)

AwaitsValidation == consumer.placed = 1 /\ consumer.validating = 1
HasValidPosition == consumer.placed = 1 /\ consumer.validating = 0
InEpochOf(leader) == consumer.currentEpoch = Epoch(leader)

\* A leader whose own epoch is smaller, to which metadata has gone back, knows nothing, and to the consumer that is a
\* truncation.
KnowsNothing(leader) == Epoch(leader) < consumer.lastEpoch

\* Of OffsetsForLeaderEpoch: where the epoch of the position ends in the leader's log, and the largest epoch there
\* that is no larger; where there is none, as retention took it, or none was there, the one that is asked for.
EndFound(leader) == LargerEpochStart(leader, consumer.lastEpoch)
EpochFound(leader) ==
    IF EndFound(leader) <= Start(leader) \/ consumer.lastEpoch = Epoch(leader)
    THEN consumer.lastEpoch
    ELSE EpochAt(leader, EndFound(leader) - 1)

DivergedEffect(leader) ==
    /\ answer' = [
            outcome       |-> DivergenceFound,
            answeredEpoch |-> Epoch(leader),
            reported      |-> IF KnowsNothing(leader) THEN NoOffset ELSE Min(EndFound(leader), consumer.position),
            reportedEpoch |-> IF KnowsNothing(leader) THEN NoEpoch ELSE EpochFound(leader),
            told          |-> NoOffset]
    /\ UNCHANGED <<brokers, metadata, consumer, pending, commits>>

\* A smaller epoch than the position's is a truncation too.
Truncated(leader) ==
    \/ KnowsNothing(leader)
    \/ EndFound(leader) < consumer.position
    \/ ~ EndsAlone /\ EpochFound(leader) # consumer.lastEpoch

CompleteValidation(leader) ==
    /\ AwaitsValidation                                             \* awaits_validation
    /\ InEpochOf(leader)                                            \* same_epoch
    /\ Leads(leader)                                                \* leads
    /\ ~ Truncated(leader)                                          \* not_truncated
    /\ consumer' = [consumer EXCEPT !.validating = 0]
    /\ answer' = NoAnswer
    /\ UNCHANGED <<brokers, metadata, pending, commits>>

FindTruncation(leader) ==
    /\ AwaitsValidation                                             \* awaits_validation
    /\ InEpochOf(leader)                                            \* same_epoch
    /\ Leads(leader)                                                \* leads
    /\ Truncated(leader)                                            \* truncated
    /\ DivergedEffect(leader)

ReadEffect(leader) ==
    /\ consumer' = [consumer EXCEPT
            !.position = @ + 1,
            !.lastEpoch = EpochAt(leader, consumer.position),
            !.consumed = [@ EXCEPT ![consumer.position] = RecordAt(leader, consumer.position)]]
    /\ answer' = NoAnswer
    /\ UNCHANGED <<brokers, metadata, pending, commits>>

\* Of a leader in the position's epoch.
ReadRecord(leader) ==
    /\ InEpochOf(leader)                                            \* same_epoch
    /\ HasValidPosition                                             \* has_valid_position
    /\ Leads(leader)                                                \* leads
    /\ InRange(leader)                                              \* in_range
    /\ consumer.position < Hw(leader)                               \* below_high_watermark
    /\ ReadEffect(leader)

\* Of a leader that was asked before the position went over to another leader epoch.
ReadLateRecord(leader) ==
    /\ ~ InEpochOf(leader)                                          \* another_epoch
    /\ Epoch(leader) <= metadata.epoch                              \* heard_of
    /\ HasValidPosition                                             \* has_valid_position
    /\ Leads(leader)                                                \* leads
    /\ InRange(leader)                                              \* in_range
    /\ consumer.position < Hw(leader)                               \* below_high_watermark
    /\ ReadEffect(leader)

\* ListOffsets. The position has no epoch; that of the record before it is answered, too, and may be newer than
\* metadata that has gone back.
ResetPosition(leader) ==
    /\ pending.asking \in {"beginning", "end"}                      \* awaits_reset
    /\ Leads(leader)                                                \* leads
    /\ LET offset   == IF pending.asking = "beginning" THEN Start(leader) ELSE Hw(leader)
           answered == IF Start(leader) < offset THEN EpochAt(leader, offset - 1) ELSE NoEpoch
       IN  GoEffect(offset, NoEpoch, Current, Newest(answered))

-----------------------------------------------------------------------------
(* Commits. *)

Now == [offset |-> consumer.position, epoch |-> consumer.lastEpoch, seen |-> NoEpoch]

StoreCommit ==
    /\ HasPosition                                                  \* has_position
    /\ consumer.validating = 0                                      \* not_in_doubt
    /\ StoreEffect(Now)

RefuseCommit ==
    /\ HasPosition                                                  \* has_position
    /\ consumer.validating = 0                                      \* not_in_doubt
    /\ RefuseEffect(Now)

\* OffsetFetch. The epoch that comes with the position is taken up first.
BeginAtCommit ==
    /\ pending.asking = "committed"                                 \* initializing
    /\ committed.offset # NoOffset                                  \* committed
    /\ LET newest == Newest(committed.epoch)
       IN  GoEffect(committed.offset, committed.epoch, IF newest = metadata.epoch THEN Current ELSE NoEpoch, newest)

-----------------------------------------------------------------------------

Next ==
    \/ PartitionNext
    \/ \E offset \in EndOffsets : SeekOffset(offset)
    \/ \E offset \in EndOffsets, epoch \in Epochs : SeekPosition(offset, epoch)
    \/ \E target \in Asking : RequestReset(target)
    \/ RaiseTruncation
    \/ RestartProcess
    \/ \E epoch \in Epochs : UpdateMetadata(epoch)
    \/ LoseMetadata
    \/ FollowMetadata
    \/ \E leader \in Replicas : ReadRecord(leader)
    \/ \E leader \in Replicas : ResetPosition(leader)
    \/ StoreCommit
    \/ RefuseCommit
    \/ BeginAtCommit
    \/ \E leader \in Replicas : CompleteValidation(leader)
    \/ \E leader \in Replicas : FindTruncation(leader)
    \/ \E leader \in IF Late THEN Replicas ELSE {} : ReadLateRecord(leader)

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
(* The promises. *)

ReadWhatWasWritten == \A o \in Offsets : IsConsumed(o) => WasWritten(consumer.consumed[o])

ToldWhereLogsPart ==
    /\ answer.reported # NoOffset /\ answer.reported <= consumer.position
    /\ answer.told \in {NoOffset, answer.reported}
    /\ \A leader \in Replicas, o \in Offsets : StillLeads(leader) =>
        /\ Exact /\ IsConsumed(o) /\ o < answer.reported /\ Start(leader) <= o => ReadIsIn(leader, o)
        /\ answer.reported <= o => ~ ReadIsIn(leader, o)

\* Or nothing, by a leader of an older epoch than the position's.
ToldDivergence ==
    IF answer.outcome # DivergenceFound
    THEN answer.reported = NoOffset /\ answer.told = NoOffset
    ELSE \/ ToldWhereLogsPart
         \/ /\ answer.reported = NoOffset /\ answer.reportedEpoch = NoEpoch /\ answer.told = NoOffset
            /\ answer.answeredEpoch < consumer.lastEpoch

=============================================================================
