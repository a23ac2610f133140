----------------------------- MODULE Kip630Quorum -----------------------------
(***************************************************************************)
(* A quorum that runs by itself: KIP-630 less its holes, on the log of     *)
(* KIP-595, each replica with its own vote, candidacy and knowledge of who *)
(* leads. An exchange is one step, which reads what one side has sent and  *)
(* writes what the other does with it.                                     *)
(*                                                                         *)
(* A vote is heard of, given and counted in three steps. A crash takes     *)
(* what is not synced: records, half a snapshot, who leads. It may come in *)
(* the midst of a full reset, and between a record and the LBO that came   *)
(* with it. What clients were told is remembered.                          *)
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

TypeOk ==
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
        /\ IF snapshotFiles[replica][offset].size = 0
           THEN snapshotFiles[replica][offset] = NoFile
           ELSE /\ snapshotFiles[replica][offset].epoch # NoEpoch
                /\ snapshotFiles[replica][offset].records # -1
                /\ offset < Leo(replica)
                /\ fetchState[replica].offset <= offset
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

\* What every step ends with: of the logs, files and counts given to it, what is still there. TLC reads the next
\* replicaState and fetchState, so these come before it.
SettleEffect(logs, files, counts) ==
    /\ replicaLog' = [replica \in Replicas |->
            [logs[replica] EXCEPT !.epochs = [o \in Offsets |->
                IF logs[replica].lbo <= o /\ o < logs[replica].leo THEN logs[replica].epochs[o] ELSE NoEpoch]]]
    /\ snapshotFiles' = [replica \in Replicas |-> [o \in Offsets |->
            IF files[replica][o].size > 0 /\ o < logs[replica].leo /\ fetchState'[replica].offset <= o
            THEN files[replica][o]
            ELSE NoFile]]
    /\ counted' = [leader \in Replicas |->
            IF replicaState'[leader].leader = leader THEN counts[leader] ELSE [replica \in Replicas |-> NoOffset]]

\* A full reset: what the replica's log is, if it begins at this offset.
BeginAt(replica, offset) ==
    [replicaLog EXCEPT ![replica] = [@ EXCEPT !.lbo = offset, !.leo = offset, !.synced = offset]]

\* Of a crash: who starts knows no leader, and stands for nothing.
Forgotten(state) == [state EXCEPT !.leader = None, !.supporters = {}]

-----------------------------------------------------------------------------
(* Elections. *)

Stands(candidate) == candidate \in replicaState[candidate].supporters

\* LastOffsetEpoch and LastOffset + 1 of a vote ("Changes to Leader Election").
VoteEpoch(replica) == IF IsFetching(replica) THEN NoEpoch ELSE LastEpoch(replica)
VoteEnd(replica) == IF IsFetching(replica) THEN 0 ELSE Leo(replica)

UpToDate(candidate, voter) ==
    \/ VoteEpoch(voter) < VoteEpoch(candidate)
    \/ VoteEpoch(voter) = VoteEpoch(candidate) /\ VoteEnd(voter) <= VoteEnd(candidate)

\* In a newer epoch, chunks of an older leader go.
EnterEffect(replica, newer, state) ==
    /\ replicaState' = [replicaState EXCEPT ![replica] = state]
    /\ fetchState' = IF newer /\ IsFetching(replica)
                     THEN [fetchState EXCEPT ![replica].position = 0]
                     ELSE fetchState
    /\ SettleEffect(replicaLog,
            IF newer THEN [snapshotFiles EXCEPT ![replica] = Put(@, fetchState[replica].offset, NoFile)]
                     ELSE snapshotFiles,
            counted)
    /\ UNCHANGED <<epochLeader, committed, told>>

\* The replica in an epoch that is new to it.
In(replica, epoch, voted, supporters) ==
    [leaderEpoch |-> epoch, hw |-> Hw(replica), leader |-> None, voted |-> voted, supporters |-> supporters]

\* A replica hears of another's epoch: a newer one it enters, in the same one it learns of it. Either way it stands
\* for nothing from then on.
HearEffect(replica, other, leader) ==
    LET newer == Epoch(replica) < Epoch(other)
    IN  EnterEffect(replica, newer, [
            leaderEpoch |-> Epoch(other),
            hw          |-> Hw(replica),
            leader      |-> leader,
            voted       |-> IF newer THEN None ELSE replicaState[replica].voted,
            supporters  |-> {}])

Stand(replica, epoch) ==
    /\ replica \in Voters                                           \* is_voter
    /\ ~ PresumesLeadership(replica)                                \* not_leading
    /\ epoch = Epoch(replica) + 1                                   \* epoch_next
    /\ EnterEffect(replica, TRUE, In(replica, epoch, replica, {replica}))

LookForLeader(replica) ==
    /\ replica \notin Voters                                        \* is_observer
    /\ Known(replica) # None                                        \* knows_leader
    /\ EnterEffect(replica, FALSE, [replicaState[replica] EXCEPT !.leader = None])

\* The voter is in the epoch from then on, whether it gives its vote or not.
HearOfCandidate(candidate, voter) ==
    /\ candidate # voter                                            \* not_candidate_itself
    /\ Stands(candidate)                                            \* candidate_stands
    /\ voter \in Voters                                             \* is_voter
    /\ Epoch(voter) < Epoch(candidate)                              \* epoch_newer
    /\ EnterEffect(voter, TRUE, In(voter, Epoch(candidate), None, {}))

GiveVote(candidate, voter) ==
    /\ candidate # voter                                            \* not_candidate_itself
    /\ Stands(candidate)                                            \* candidate_stands
    /\ voter \in Voters                                             \* is_voter
    /\ Epoch(voter) <= Epoch(candidate)                             \* epoch_not_fenced
    /\ Epoch(voter) = Epoch(candidate)                              \* in_its_epoch
    /\ replicaState[voter].voted = None /\ Known(voter) = None      \* vote_free
    /\ UpToDate(candidate, voter)                                   \* up_to_date
    /\ EnterEffect(voter, FALSE, [replicaState[voter] EXCEPT !.voted = candidate])

CountVote(candidate, voter) ==
    /\ candidate # voter                                            \* not_candidate_itself
    /\ Stands(candidate)                                            \* candidate_stands
    /\ voter \in Voters                                             \* is_voter
    /\ Epoch(voter) = Epoch(candidate) /\ replicaState[voter].voted = candidate     \* vote_given
    /\ EnterEffect(candidate, FALSE, [replicaState[candidate] EXCEPT !.supporters = @ \union {voter}])

\* One whose snapshot is incomplete stood as if its log were empty, and begins with that.
TakeOffice(replica) ==
    /\ Stands(replica)                                              \* candidate_stands
    /\ Majority(replicaState[replica].supporters)                   \* majority_voted
    /\ epochLeader' = [epochLeader EXCEPT ![Epoch(replica)] = replica]
    /\ replicaState' = [replicaState EXCEPT ![replica] = [@ EXCEPT
            !.leader = replica,
            !.supporters = {},
            !.hw = IF IsFetching(replica) THEN 0 ELSE @]]
    /\ fetchState' = [fetchState EXCEPT ![replica] = NotFetching]
    /\ SettleEffect(IF IsFetching(replica) THEN BeginAt(replica, 0) ELSE replicaLog, snapshotFiles, counted)
    /\ UNCHANGED <<committed, told>>

\* The leader that a message names; who was one itself and hears of it has forgotten that it was.
ToldOf(replica, teller) == IF Known(teller) = replica THEN None ELSE Known(teller)

LearnLeader(replica, teller) ==
    /\ replica # teller                                             \* not_told_by_itself
    /\ \/ Epoch(replica) < Epoch(teller)
       \/ /\ Epoch(replica) = Epoch(teller)
          /\ ToldOf(replica, teller) # None
          /\ Known(replica) = None                                  \* is_news
    /\ HearEffect(replica, teller, ToldOf(replica, teller))

\* BeginQuorumEpoch.
BeginEpoch(leader, follower) ==
    /\ leader # follower                                            \* not_leader_itself
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ follower \in Voters                                          \* is_voter
    /\ Epoch(follower) <= Epoch(leader)                             \* epoch_not_fenced
    /\ Epoch(follower) < Epoch(leader) \/ Known(follower) \in {None, leader}        \* no_other_leader
    /\ HearEffect(follower, leader, leader)

Resign(leader) ==
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ EnterEffect(leader, FALSE, [replicaState[leader] EXCEPT !.leader = None])

\* EndQuorumEpoch.
EndEpoch(leader, follower) ==
    /\ leader # follower                                            \* not_leader_itself
    /\ EpochLeader(Epoch(leader)) = leader                          \* was_elected
    /\ Known(leader) = None                                         \* has_resigned
    /\ follower \in Voters                                          \* is_voter
    /\ Epoch(follower) <= Epoch(leader)                             \* epoch_not_fenced
    /\ Epoch(follower) < Epoch(leader) \/ Known(follower) \in {None, leader}        \* no_other_leader
    /\ HearEffect(follower, leader, None)

-----------------------------------------------------------------------------
(* Fetch: what a leader says of a follower's log. *)

\* Where the first epoch begins in a log that is larger than this one.
LargerEpochStart(replica, epoch) ==
    LET larger == {o \in Offsets : RecordEpoch(replica, o) > epoch}
    IN  IF larger = {} THEN Leo(replica) ELSE LeastOf(larger)

\* The largest epoch up to this one that the leader knows.
KnownEpoch(leader, epoch) == EpochAt(leader, LargerEpochStart(leader, epoch) - 1)

\* The fetch is below the LBO, or the record before it is below and, by its epoch, not the leader's.
BelowLog(leader, follower) ==
    LET epoch == LastEpoch(follower)
        end   == LargerEpochStart(leader, epoch)
        known == KnownEpoch(leader, epoch)
    IN  \/ Leo(follower) < Lbo(leader)
        \/ 0 < end /\ end = Lbo(leader) /\ (known = NoEpoch \/ epoch < known)

Matches(leader, follower) ==
    /\ KnownEpoch(leader, LastEpoch(follower)) = LastEpoch(follower)
    /\ Leo(follower) <= LargerEpochStart(leader, LastEpoch(follower))

\* The log and the state of a follower that has appended the next record, if there is one.
Fetched(leader, follower) ==
    LET end == Min(Leo(follower) + 1, Leo(leader))
    IN  [replicaLog[follower] EXCEPT
            !.leo = end,
            !.epochs = Put(@, Leo(follower), RecordEpoch(leader, Leo(follower)))]
Raised(leader, follower) ==
    [replicaState[follower] EXCEPT !.hw = Max(@, Min(Hw(leader), Min(Leo(follower) + 1, Leo(leader))))]

\* The leader's LBO is larger, and the follower's own snapshot reaches it.
BringsBegin(leader, follower) == Lbo(follower) < Lbo(leader) /\ Lbo(leader) - 1 <= LatestSnapshot(follower)

SnapshotFound(leader, follower) ==
    /\ HasSnapshot(leader, fetchState[follower].offset)
    /\ File(leader, fetchState[follower].offset).epoch = fetchState[follower].epoch

PositionInRange(leader, follower) ==
    fetchState[follower].position <= File(leader, fetchState[follower].offset).size

-----------------------------------------------------------------------------
(* Fetch and FetchSnapshot, request and response in one step. *)

FollowerFetch(leader, follower) ==
    /\ leader # follower                                            \* not_leader_itself
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Epoch(follower) = Epoch(leader)                              \* epoch_not_fenced
    /\ ~ BelowLog(leader, follower)                                 \* reaches_back
    /\ Matches(leader, follower)                                    \* last_record_matches
    /\ replicaState' = [replicaState EXCEPT ![follower] = Raised(leader, follower)]
    /\ UNCHANGED <<epochLeader, fetchState, committed, told>>
    /\ SettleEffect([replicaLog EXCEPT ![follower] = [Fetched(leader, follower) EXCEPT
                        !.lbo = IF BringsBegin(leader, follower) THEN Lbo(leader) ELSE @]],
                    snapshotFiles, counted)

FollowerTruncate(leader, follower) ==
    /\ leader # follower                                            \* not_leader_itself
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Epoch(follower) = Epoch(leader)                              \* epoch_not_fenced
    /\ ~ BelowLog(leader, follower)                                 \* reaches_back
    /\ ~ Matches(leader, follower)                                  \* diverges
    /\ LET end == Min(LargerEpochStart(leader, LastEpoch(follower)),
                      LargerEpochStart(follower, KnownEpoch(leader, LastEpoch(follower))))
       IN  /\ replicaState' = [replicaState EXCEPT ![follower].hw = Min(end, @)]
           /\ UNCHANGED <<epochLeader, fetchState, committed, told>>
           /\ SettleEffect([replicaLog EXCEPT ![follower] = [@ EXCEPT !.leo = end, !.synced = Min(end, @)]],
                           snapshotFiles, counted)

\* The follower deletes its entire log and all snapshots, and begins to fetch both.
FollowerStartOver(leader, follower) ==
    /\ leader # follower                                            \* not_leader_itself
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Epoch(follower) = Epoch(leader)                              \* epoch_not_fenced
    /\ BelowLog(leader, follower)                                   \* begins_later
    /\ LatestSnapshot(leader) # NoOffset                            \* snapshot_exists
    /\ LET offset == LatestSnapshot(leader)
       IN  /\ replicaState' = [replicaState EXCEPT ![follower].hw = offset + 1]
           /\ fetchState' = [fetchState EXCEPT ![follower] =
                    [offset |-> offset, epoch |-> File(leader, offset).epoch, position |-> 0]]
           /\ UNCHANGED <<epochLeader, committed, told>>
           /\ SettleEffect(BeginAt(follower, offset + 1), [snapshotFiles EXCEPT ![follower][offset] = NoFile], counted)

\* Bytes of two files that differ, or a gap between bytes, make a file in which a reader finds nothing.
FetchSnapshot(leader, follower) ==
    /\ IsFetching(follower)                                         \* is_fetching
    /\ leader # follower                                            \* not_leader_itself
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Epoch(follower) = Epoch(leader)                              \* epoch_not_fenced
    /\ SnapshotFound(leader, follower)                              \* snapshot_found
    /\ PositionInRange(leader, follower)                            \* position_in_range
    /\ LET fetching == fetchState[follower]
           theirs   == File(leader, fetching.offset)
           ours     == File(follower, fetching.offset)
           end      == Min(fetching.position + 1, theirs.size)
           complete == end = theirs.size
           first    == fetching.position = 0
       IN  /\ fetchState' = [fetchState EXCEPT ![follower] =
                    IF complete THEN NotFetching ELSE [@ EXCEPT !.position = end]]
           /\ UNCHANGED <<epochLeader, replicaState, committed, told>>
           /\ SettleEffect(replicaLog, [snapshotFiles EXCEPT ![follower][fetching.offset] = [
                    size    |-> IF first \/ complete THEN theirs.size ELSE ours.size,
                    epoch   |-> fetching.epoch,
                    records |-> IF first THEN theirs.records ELSE IF theirs.size = ours.size THEN ours.records ELSE 0]],
                    counted)

\* A full reset to nothing at all.
EmptyEffect(replica, state) ==
    /\ replicaState' = [replicaState EXCEPT ![replica] = [state EXCEPT !.hw = 0]]
    /\ fetchState' = [fetchState EXCEPT ![replica] = NotFetching]
    /\ SettleEffect(BeginAt(replica, 0), snapshotFiles, counted)
    /\ UNCHANGED <<epochLeader, committed, told>>

\* Who is asked leads no more in that epoch, or has no such snapshot, or a shorter one.
RediscoverAt(leader, follower) ==
    /\ IsFetching(follower)                                         \* is_fetching
    /\ leader # follower                                            \* not_leader_itself
    /\ Epoch(follower) = Epoch(leader)                              \* epoch_not_fenced
    /\ \/ ~ PresumesLeadership(leader)
       \/ ~ SnapshotFound(leader, follower)
       \/ ~ PositionInRange(leader, follower)                       \* fetch_refused
    /\ EmptyEffect(follower, replicaState[follower])

-----------------------------------------------------------------------------
(* Records, the high watermark, and what clients are told. *)

LogEffect(replica, log) ==
    /\ UNCHANGED <<epochLeader, replicaState, fetchState, committed, told>>
    /\ SettleEffect([replicaLog EXCEPT ![replica] = log], snapshotFiles, counted)

ClientAppend(leader) ==
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Leo(leader) < LogSize                                        \* log_not_full
    /\ LogEffect(leader, [replicaLog[leader] EXCEPT !.leo = @ + 1, !.epochs = Put(@, Leo(leader), Epoch(leader))])

Sync(replica) ==
    /\ Synced(replica) < Leo(replica)                               \* not_synced
    /\ LogEffect(replica, [replicaLog[replica] EXCEPT !.synced = Leo(replica)])

\* The last fetch counts, be it an old one that comes late; that of who lacks the snapshot before its log tells nothing.
CountFetch(leader, follower) ==
    /\ leader # follower                                            \* not_leader_itself
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Epoch(follower) = Epoch(leader)                              \* epoch_not_fenced
    /\ ~ BelowLog(leader, follower)                                 \* reaches_back
    /\ Matches(leader, follower)                                    \* last_record_matches
    /\ follower \in Voters                                          \* is_voter
    /\ Synced(follower) = Leo(follower)                             \* synced
    /\ UNCHANGED <<epochLeader, replicaState, fetchState, committed, told>>
    /\ SettleEffect(replicaLog, snapshotFiles, [counted EXCEPT ![leader][follower] =
            IF IsFetching(follower) THEN NoOffset ELSE Leo(follower)])

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

-----------------------------------------------------------------------------
(* Snapshots and the LBO. *)

FilesEffect(replica, files) ==
    /\ UNCHANGED <<epochLeader, replicaState, fetchState, committed, told>>
    /\ SettleEffect(replicaLog, [snapshotFiles EXCEPT ![replica] = files], counted)

\* What a state machine has applied: its latest snapshot and, if nothing is missing between, the log.
GenerateSnapshot(replica, offset, more) ==
    /\ ~ IsFetching(replica)                                        \* state_loaded
    /\ offset = Hw(replica) - 1                                     \* below_high_watermark
    /\ LatestSnapshot(replica) < offset                             \* later_than_latest
    /\ MinimumRecords < Hw(replica) - 1 - LatestSnapshot(replica)   \* enough_records
    /\ offset < Synced(replica)                                     \* synced
    /\ LET applied == Max(File(replica, LatestSnapshot(replica)).records, 0)
       IN  FilesEffect(replica, [snapshotFiles[replica] EXCEPT ![offset] = [
                size    |-> more + 1,
                epoch   |-> RecordEpoch(replica, offset),
                records |-> IF Lbo(replica) <= applied THEN offset + 1 ELSE applied]])

Replicated(leader, lbo) ==
    \A replica \in Replicas :
        \/ lbo <= Lbo(replica)
        \/ lbo <= Leo(replica) /\ RecordEpoch(replica, lbo - 1) = RecordEpoch(leader, lbo - 1)

LeaderAdvanceLbo(leader, lbo) ==
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Lbo(leader) < lbo                                            \* increases
    /\ lbo <= LatestSnapshot(leader) + 1                            \* snapshot_includes
    /\ LagExpires = 1 \/ Replicated(leader, lbo)                    \* replicated_or_old
    /\ LogEffect(leader, [replicaLog[leader] EXCEPT !.lbo = lbo])

DeleteRecords(leader, lbo) ==
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Lbo(leader) < lbo                                            \* increases
    /\ lbo <= LatestSnapshot(leader) + 1                            \* snapshot_includes
    /\ LagExpires = 1 \/ Replicated(leader, lbo)                    \* replicated_or_old
    /\ LogEffect(leader, [replicaLog[leader] EXCEPT !.lbo = lbo])

DeleteSnapshot(replica, offset) ==
    /\ HasSnapshot(replica, offset)                                 \* is_complete
    /\ offset < Lbo(replica) - 1                                    \* below_lbo
    /\ FilesEffect(replica, [snapshotFiles[replica] EXCEPT ![offset] = NoFile])

-----------------------------------------------------------------------------
(* Crashes. *)

LogValid(replica) == Lbo(replica) = 0 \/ Lbo(replica) - 1 <= LatestSnapshot(replica)

\* All that was synced, and any part of the rest.
Resume(replica, end) ==
    /\ Synced(replica) <= end                                       \* keeps_synced
    /\ end <= Leo(replica)                                          \* was_written
    /\ LogValid(replica)                                            \* log_valid
    /\ replicaState' = [replicaState EXCEPT ![replica] = [Forgotten(@) EXCEPT !.hw = LatestSnapshot(replica) + 1]]
    /\ UNCHANGED <<epochLeader, fetchState, committed, told>>
    /\ SettleEffect([replicaLog EXCEPT ![replica] = [@ EXCEPT !.leo = end, !.synced = end]], snapshotFiles, counted)

ResumeEmpty(replica) ==
    /\ ~ LogValid(replica)                                          \* log_not_valid
    /\ EmptyEffect(replica, Forgotten(replicaState[replica]))

\* The power goes between a record that a follower has fetched and the LBO that came with it.
LoseBegin(leader, follower) ==
    /\ leader # follower                                            \* not_leader_itself
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Epoch(follower) = Epoch(leader)                              \* epoch_not_fenced
    /\ ~ BelowLog(leader, follower)                                 \* reaches_back
    /\ Matches(leader, follower)                                    \* last_record_matches
    /\ Leo(follower) < Leo(leader)                                  \* brings_record
    /\ BringsBegin(leader, follower)                                \* brings_begin
    /\ replicaState' = [replicaState EXCEPT ![follower] = Forgotten(Raised(leader, follower))]
    /\ UNCHANGED <<epochLeader, fetchState, committed, told>>
    /\ SettleEffect([replicaLog EXCEPT ![follower] = Fetched(leader, follower)], snapshotFiles, counted)

\* Where a follower's log and its leader's part: it truncates to there.
PartsAt(leader, follower) ==
    Min(LargerEpochStart(leader, LastEpoch(follower)),
        LargerEpochStart(follower, KnownEpoch(leader, LastEpoch(follower))))

\* The power goes while a follower truncates to where its log and the leader's part: any part of it may be gone.
LoseTail(leader, follower) ==
    /\ leader # follower                                            \* not_leader_itself
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Epoch(follower) = Epoch(leader)                              \* epoch_not_fenced
    /\ ~ BelowLog(leader, follower)                                 \* reaches_back
    /\ ~ Matches(leader, follower)                                  \* diverges
    /\ PartsAt(leader, follower) < Synced(follower)                 \* was_synced
    /\ replicaState' = [replicaState EXCEPT ![follower] = Forgotten(@)]
    /\ UNCHANGED <<epochLeader, fetchState, committed, told>>
    /\ SettleEffect([replicaLog EXCEPT ![follower].synced = PartsAt(leader, follower)], snapshotFiles, counted)

\* The power goes in the midst of a full reset: first snapshots are deleted, one by one. The log still has one before
\* it, or needs none; else what is left counts as empty.
LoseSnapshot(leader, follower, offset) ==
    /\ leader # follower                                            \* not_leader_itself
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Epoch(follower) = Epoch(leader)                              \* epoch_not_fenced
    /\ BelowLog(leader, follower)                                   \* begins_later
    /\ LatestSnapshot(leader) # NoOffset                            \* snapshot_exists
    /\ HasSnapshot(follower, offset)                                \* is_complete
    /\ \/ Lbo(follower) = 0
       \/ \E o \in Offsets \ {offset} : HasSnapshot(follower, o) /\ Lbo(follower) <= o + 1  \* log_stays_valid
    /\ replicaState' = [replicaState EXCEPT ![follower] = Forgotten(@)]
    /\ UNCHANGED <<epochLeader, fetchState, committed, told>>
    /\ SettleEffect(replicaLog, [snapshotFiles EXCEPT ![follower][offset] = NoFile], counted)

\* Then the log is cut: any part of it may be gone.
LoseLog(leader, follower) ==
    /\ leader # follower                                            \* not_leader_itself
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Epoch(follower) = Epoch(leader)                              \* epoch_not_fenced
    /\ BelowLog(leader, follower)                                   \* begins_later
    /\ LatestSnapshot(leader) # NoOffset                            \* snapshot_exists
    /\ Lbo(follower) = 0                                            \* begins_at_0
    /\ LatestSnapshot(follower) = NoOffset                          \* no_snapshot
    /\ 0 < Synced(follower)                                         \* was_synced
    /\ replicaState' = [replicaState EXCEPT ![follower] = Forgotten(@)]
    /\ UNCHANGED <<epochLeader, fetchState, committed, told>>
    /\ SettleEffect([replicaLog EXCEPT ![follower].synced = 0], snapshotFiles, counted)

-----------------------------------------------------------------------------

Next ==
    \/ \E replica \in Replicas, epoch \in Epochs : Stand(replica, epoch)
    \/ \E replica \in Replicas : LookForLeader(replica)
    \/ \E candidate, voter \in Replicas : HearOfCandidate(candidate, voter)
    \/ \E candidate, voter \in Replicas : GiveVote(candidate, voter)
    \/ \E candidate, voter \in Replicas : CountVote(candidate, voter)
    \/ \E replica \in Replicas : TakeOffice(replica)
    \/ \E replica, teller \in Replicas : LearnLeader(replica, teller)
    \/ \E leader, follower \in Replicas : BeginEpoch(leader, follower)
    \/ \E leader \in Replicas : Resign(leader)
    \/ \E leader, follower \in Replicas : EndEpoch(leader, follower)
    \/ \E leader, follower \in Replicas : FollowerFetch(leader, follower)
    \/ \E leader, follower \in Replicas : FollowerTruncate(leader, follower)
    \/ \E leader, follower \in Replicas : FollowerStartOver(leader, follower)
    \/ \E leader, follower \in Replicas : FetchSnapshot(leader, follower)
    \/ \E leader, follower \in Replicas : RediscoverAt(leader, follower)
    \/ \E leader \in Replicas : ClientAppend(leader)
    \/ \E replica \in Replicas : Sync(replica)
    \/ \E leader, follower \in Replicas : CountFetch(leader, follower)
    \/ \E leader \in Replicas, offset \in Offsets : RaiseHighWatermark(leader, offset)
    \/ \E leader \in Replicas, offset \in Offsets : TellClient(leader, offset)
    \/ \E replica \in Replicas, offset \in Offsets, more \in Chunks : GenerateSnapshot(replica, offset, more)
    \/ \E leader \in Replicas, lbo \in EndOffsets : LeaderAdvanceLbo(leader, lbo)
    \/ \E leader \in Replicas, lbo \in EndOffsets : DeleteRecords(leader, lbo)
    \/ \E replica \in Replicas, offset \in Offsets : DeleteSnapshot(replica, offset)
    \/ \E replica \in Replicas, end \in EndOffsets : Resume(replica, end)
    \/ \E replica \in Replicas : ResumeEmpty(replica)
    \/ \E leader, follower \in Replicas : LoseBegin(leader, follower)
    \/ \E leader, follower \in Replicas : LoseTail(leader, follower)
    \/ \E leader, follower \in Replicas, offset \in Offsets : LoseSnapshot(leader, follower, offset)
    \/ \E leader, follower \in Replicas : LoseLog(leader, follower)

Spec == Init /\ [][Next]_vars

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
