----------------------------- MODULE QuorumNodes -----------------------------
(***************************************************************************)
(* The nodes of a quorum that run by themselves: what each one has, what   *)
(* clients were told, and what is promised. Kip630Quorum has the steps of  *)
(* KIP-630 less its holes, KafkaQuorum those of Apache Kafka's nodes; here *)
(* are the steps that both have.                                           *)
(*                                                                         *)
(* A record is told by its offset and its epoch. LEO and high watermark    *)
(* are exclusive ends; a snapshot id is the last offset that the snapshot  *)
(* includes. A snapshot is told by its id, its size in chunks, and how     *)
(* many records its reader finds. As in Snapshots.                         *)
(*                                                                         *)
(* The reading rule of Fencing holds here: every conjunct of an action is  *)
(* a guard whose line ends with its name, or an effect.                    *)
(***************************************************************************)
EXTENDS Integers, FiniteSets

CONSTANTS
    Replicas,       \* the replicas, voters and observers: the naturals below their number
    Observers,      \* how many of them are observers
    LogSize,        \* how many offsets a log has
    MaxLeaderEpoch, \* the largest leader epoch
    MaxChunks,      \* the largest size of a snapshot, in responses of FetchSnapshot
    MinimumRecords, \* controller.snapshot.minimum.records
    LagExpires      \* 1 where max.replication.lag.ms may pass, 0 where it never does

None     == -1
NoEpoch  == -1
NoOffset == -1

ASSUME ConstantsOk ==
    /\ Replicas = 0 .. Cardinality(Replicas) - 1 /\ Replicas # {}
    /\ {Observers, LogSize, MaxLeaderEpoch, MaxChunks, MinimumRecords} \subseteq Nat
    /\ LagExpires \in {0, 1}

VARIABLES
    epochLeader,    \* per epoch: who was elected
    replicaLog,     \* per replica: LBO, LEO, the end of what is sure to be kept, and per offset the record's epoch
    replicaState,   \* per replica: leader epoch, high watermark, known leader, vote, and the votes that it has counted
    counted,        \* per leader and voter: up to where the leader knows the voter to have its log, NoOffset if not
    snapshotFiles,  \* per replica and last offset: the snapshot's size, epoch and records
    fetchState,     \* per replica: the snapshot being fetched, and how many chunks of it there are
    committed,      \* per offset: the epoch of the record that was committed; no step but its own reads it
    told            \* per offset: the epoch of the record of which a client was told that it is committed

vars == <<epochLeader, replicaLog, replicaState, counted, snapshotFiles, fetchState, committed, told>>

-----------------------------------------------------------------------------
(* The shape of the state. *)

Voters     == {replica \in Replicas : replica < Cardinality(Replicas) - Observers}
Offsets    == 0 .. LogSize - 1
EndOffsets == 0 .. LogSize
Epochs     == 0 .. MaxLeaderEpoch
Chunks     == 0 .. MaxChunks - 1
EpochOpt   == Epochs \union {NoEpoch}
OffsetOpt  == Offsets \union {NoOffset}
EndOpt     == EndOffsets \union {NoOffset}
ReplicaOpt == Replicas \union {None}

NoFile      == [size |-> 0, epoch |-> NoEpoch, records |-> -1]
NotFetching == [offset |-> NoOffset, epoch |-> NoEpoch, position |-> -1]

Lbo(replica) == replicaLog[replica].lbo
Leo(replica) == replicaLog[replica].leo
Synced(replica) == replicaLog[replica].synced
Hw(replica) == replicaState[replica].hw
Epoch(replica) == replicaState[replica].leaderEpoch
Known(replica) == replicaState[replica].leader
PresumesLeadership(replica) == Known(replica) = replica
InLog(replica, offset) == Lbo(replica) <= offset /\ offset < Leo(replica)
IsFetching(replica) == fetchState[replica].offset # NoOffset

QuorumOk ==
    /\ epochLeader \in [Epochs -> ReplicaOpt]
    /\ replicaLog \in [Replicas -> [lbo : EndOffsets, leo : EndOffsets, synced : EndOffsets,
                                    epochs : [Offsets -> EpochOpt]]]
    /\ replicaState \in [Replicas -> [leaderEpoch : EpochOpt, hw : EndOffsets, leader : ReplicaOpt,
                                      voted : ReplicaOpt, supporters : SUBSET Replicas]]
    /\ counted \in [Replicas -> [Replicas -> EndOpt]]
    /\ snapshotFiles \in [Replicas -> [Offsets -> [size : 0 .. MaxChunks, epoch : EpochOpt, records : EndOpt]]]
    /\ fetchState \in [Replicas -> [offset : OffsetOpt, epoch : EpochOpt, position : -1 .. MaxChunks]]
    /\ committed \in [Offsets -> EpochOpt]
    /\ told \in [Offsets -> EpochOpt]
    /\ \A replica \in Replicas, offset \in Offsets :
        /\ InLog(replica, offset) <=> replicaLog[replica].epochs[offset] # NoEpoch
    /\ \A leader, follower \in Replicas : counted[leader][follower] # NoOffset => PresumesLeadership(leader)

Init ==
    /\ epochLeader = [epoch \in Epochs |-> None]
    /\ replicaLog = [replica \in Replicas |->
            [lbo |-> 0, leo |-> 0, synced |-> 0, epochs |-> [o \in Offsets |-> NoEpoch]]]
    /\ replicaState = [replica \in Replicas |->
            [leaderEpoch |-> NoEpoch, hw |-> 0, leader |-> None, voted |-> None, supporters |-> {}]]
    /\ counted = [leader \in Replicas |-> [follower \in Replicas |-> NoOffset]]
    /\ snapshotFiles = [replica \in Replicas |-> [o \in Offsets |-> NoFile]]
    /\ fetchState = [replica \in Replicas |-> NotFetching]
    /\ committed = [o \in Offsets |-> NoEpoch]
    /\ told = [o \in Offsets |-> NoEpoch]

-----------------------------------------------------------------------------
(* Words for the rules. *)

Min(a, b) == IF a < b THEN a ELSE b
Max(a, b) == IF a < b THEN b ELSE a
LeastOf(set) == CHOOSE x \in set : \A y \in set : x <= y
GreatestOf(set) == CHOOSE x \in set : \A y \in set : x >= y

\* The function with another value at x, if it has one there.
Put(f, x, value) == IF x \in DOMAIN f THEN [f EXCEPT ![x] = value] ELSE f

RecordEpoch(replica, offset) == IF offset \in Offsets THEN replicaLog[replica].epochs[offset] ELSE NoEpoch
File(replica, offset) == IF offset \in Offsets THEN snapshotFiles[replica][offset] ELSE NoFile
EpochLeader(epoch) == IF epoch \in Epochs THEN epochLeader[epoch] ELSE None

Majority(set) == 2 * Cardinality(set \intersect Voters) > Cardinality(Voters)

\* A complete snapshot; and the last offset of the latest one.
HasSnapshot(replica, offset) == File(replica, offset).size > 0 /\ fetchState[replica].offset # offset
LatestSnapshot(replica) ==
    LET complete == {o \in Offsets : HasSnapshot(replica, o)}
    IN  IF complete = {} THEN NoOffset ELSE GreatestOf(complete)

\* The epoch at an offset, by the log or by a snapshot that ends there.
EpochAt(replica, offset) ==
    IF Lbo(replica) <= offset THEN RecordEpoch(replica, offset)
    ELSE IF fetchState[replica].offset = offset THEN fetchState[replica].epoch
    ELSE File(replica, offset).epoch
LastEpoch(replica) == EpochAt(replica, Leo(replica) - 1)

-----------------------------------------------------------------------------
(* The steps that all of them have. *)

Stands(candidate) == candidate \in replicaState[candidate].supporters

\* The replica in an epoch that is new to it.
In(replica, epoch, voted, supporters) ==
    [leaderEpoch |-> epoch, hw |-> Hw(replica), leader |-> None, voted |-> voted, supporters |-> supporters]

CountVote(candidate, voter) ==
    /\ candidate # voter                                            \* not_candidate_itself
    /\ Stands(candidate)                                            \* candidate_stands
    /\ voter \in Voters                                             \* is_voter
    /\ Epoch(voter) = Epoch(candidate) /\ replicaState[voter].voted = candidate     \* vote_given
    /\ replicaState' = [replicaState EXCEPT ![candidate].supporters = @ \union {voter}]
    /\ UNCHANGED <<epochLeader, replicaLog, counted, snapshotFiles, fetchState, committed, told>>

Resign(leader) ==
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ replicaState' = [replicaState EXCEPT ![leader].leader = None]
    /\ counted' = [counted EXCEPT ![leader] = [replica \in Replicas |-> NoOffset]]
    /\ UNCHANGED <<epochLeader, replicaLog, snapshotFiles, fetchState, committed, told>>

LogEffect(replica, log) ==
    /\ replicaLog' = [replicaLog EXCEPT ![replica] = log]
    /\ UNCHANGED <<epochLeader, replicaState, counted, snapshotFiles, fetchState, committed, told>>

ClientAppend(leader) ==
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Leo(leader) < LogSize                                        \* log_not_full
    /\ LogEffect(leader, [replicaLog[leader] EXCEPT !.leo = @ + 1, !.epochs = Put(@, Leo(leader), Epoch(leader))])

Sync(replica) ==
    /\ Synced(replica) < Leo(replica)                               \* not_synced
    /\ LogEffect(replica, [replicaLog[replica] EXCEPT !.synced = Leo(replica)])

\* The leader and up to two more voters.
Has(leader, replica, offset) == replica = leader \/ offset < counted[leader][replica]
MajorityHas(leader, offset) ==
    \E one, other \in Replicas :
        Has(leader, one, offset) /\ Has(leader, other, offset) /\ Majority({leader, one, other})

RaiseHighWatermark(leader, offset) ==
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Hw(leader) <= offset                                         \* above_high_watermark
    /\ RecordEpoch(leader, offset) = Epoch(leader)                  \* of_own_epoch
    /\ offset < Synced(leader)                                      \* synced
    /\ MajorityHas(leader, offset)                                  \* majority_has_it
    /\ replicaState' = [replicaState EXCEPT ![leader].hw = @ + 1]
    /\ committed' = IF committed[Hw(leader)] = NoEpoch
                    THEN [committed EXCEPT ![Hw(leader)] = RecordEpoch(leader, Hw(leader))]
                    ELSE committed
    /\ UNCHANGED <<epochLeader, replicaLog, counted, snapshotFiles, fetchState, told>>

Untold(leader, offset) ==
    offset \in Offsets /\ told[offset] = NoEpoch /\ RecordEpoch(leader, offset) = Epoch(leader)

\* The leader to which the client has appended the record; of several, in order.
TellClient(leader, offset) ==
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ offset < Hw(leader)                                          \* below_high_watermark
    /\ RecordEpoch(leader, offset) = Epoch(leader)                  \* of_own_epoch
    /\ told[offset] = NoEpoch                                       \* not_told
    /\ ~ Untold(leader, offset - 1)                                 \* in_order
    /\ told' = [told EXCEPT ![offset] = Epoch(leader)]
    /\ UNCHANGED <<epochLeader, replicaLog, replicaState, counted, snapshotFiles, fetchState, committed>>

\* Where the first epoch begins in a log that is larger than this one.
LargerEpochStart(replica, epoch) ==
    LET larger == {o \in Offsets : RecordEpoch(replica, o) > epoch}
    IN  IF larger = {} THEN Leo(replica) ELSE LeastOf(larger)

-----------------------------------------------------------------------------
(* The promises. *)

\* Every log that does not begin at 0 has a snapshot between LBO - 1 and the high watermark, or is fetching one.
SnapshotInBetween ==
    \A replica \in Replicas :
        \/ Lbo(replica) = 0
        \/ IsFetching(replica)
        \/ \E o \in Offsets : HasSnapshot(replica, o) /\ Lbo(replica) - 1 <= o /\ o < Hw(replica)

OffsetsInOrder == \A replica \in Replicas : Lbo(replica) <= Hw(replica) /\ Hw(replica) <= Leo(replica)

\* What could take an LBO back is a crash, if the log were not synced up to there.
LboNeverRetreats == \A replica \in Replicas : Lbo(replica) <= Synced(replica) /\ Synced(replica) <= Leo(replica)

\* In the log, or in the latest snapshot.
Holds(replica, offset) ==
    IF Lbo(replica) <= offset
    THEN offset < Leo(replica) /\ RecordEpoch(replica, offset) = committed[offset]
    ELSE offset <= LatestSnapshot(replica) /\ offset < File(replica, LatestSnapshot(replica)).records

\* And what a client was told of is the record that was committed there.
NoCommittedRecordLost ==
    LET elected == {epoch \in Epochs : epochLeader[epoch] # None}
    IN  /\ \A o \in Offsets : told[o] # NoEpoch => told[o] = committed[o]
        /\ \A replica \in Replicas :
            PresumesLeadership(replica) /\ elected # {} /\ Epoch(replica) = GreatestOf(elected) =>
                \A o \in Offsets : committed[o] # NoEpoch => Holds(replica, o)

SnapshotIsCommittedPrefix ==
    \A replica \in Replicas, o \in Offsets : HasSnapshot(replica, o) =>
        /\ committed[o] # NoEpoch
        /\ File(replica, o).epoch = committed[o]
        /\ File(replica, o).records = o + 1

SameRecord(one, other, offset) ==
    /\ InLog(one, offset) /\ InLog(other, offset)
    /\ RecordEpoch(one, offset) = RecordEpoch(other, offset)

LogsMatch ==
    \A one, other \in Replicas, end \in Offsets : SameRecord(one, other, end) =>
        \A o \in 0 .. end - 1 :
            InLog(one, o) /\ InLog(other, o) => RecordEpoch(one, o) = RecordEpoch(other, o)

CommittedBelowHighWatermark ==
    \A replica \in Replicas, o \in Offsets :
        InLog(replica, o) /\ o < Hw(replica) => RecordEpoch(replica, o) = committed[o]

=============================================================================
