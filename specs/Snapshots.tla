------------------------------ MODULE Snapshots ------------------------------
(***************************************************************************)
(* Snapshots of a replicated log, and the log begin offset (LBO) that      *)
(* follows them: KIP-630 on the log of KIP-595.                            *)
(*                                                                         *)
(* Replicas are voters or observers. An epoch has one candidate; each vote *)
(* is a step, and with a majority of votes the candidate leads at once. A  *)
(* record is told by its offset and its epoch. LEO and high watermark are  *)
(* exclusive ends; a snapshot id is the last offset that the snapshot      *)
(* includes. A snapshot is told by its id, its size in chunks, and how     *)
(* many records its reader finds.                                          *)
(*                                                                         *)
(* The variants differ in ten constants, their rules:                      *)
(*   Boot = "snapshot"        a log with a snapshot at LBO - 1 or later    *)
(*                            does not count as empty at boot              *)
(*          "high-watermark"  one between LBO - 1 and the high watermark   *)
(*                            that was last written to disk                *)
(*          "from-lbo"        one at LBO or later                          *)
(*   VotesAsEmpty       who has half a snapshot votes by an empty log      *)
(*   AcknowledgesWhole  what it fetches does not count as replicated       *)
(*   ValidatesAtLbo     a fetch at the LBO that the leader cannot check is *)
(*                      answered with the snapshot                         *)
(*   FetchesAnew        in a new epoch half a snapshot is fetched anew     *)
(*   Correlates         a response to an old request is dropped            *)
(*   CommittedOnly      a snapshot includes only what is committed         *)
(*   CoveredLbo         the LBO is not advanced past the snapshot          *)
(*   KeepsLast          the snapshot at LBO - 1 is not deleted             *)
(*   AsNodes            the steps of nodes that send messages: a vote that *)
(*                      is refused is a step, a fetch is counted before it *)
(*                      is answered, a snapshot has all that is committed, *)
(*                      a leader that is gone refuses nothing, and the     *)
(*                      high watermark is in no file                       *)
(* All of them TRUE but the last, with "snapshot", is the KIP less its     *)
(* holes. As it is written it is "high-watermark" with the second, third,  *)
(* fourth and fifth FALSE (DEVIATIONS.md).                                 *)
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
    LateResponses,  \* how many responses the network holds back, and may repeat
    LagExpires,     \* 1 where max.replication.lag.ms may pass, 0 where it never does
    Boot,
    VotesAsEmpty,
    AcknowledgesWhole,
    ValidatesAtLbo,
    FetchesAnew,
    Correlates,
    CommittedOnly,
    CoveredLbo,
    KeepsLast,
    AsNodes,
    VotesTravel,
    CountsLateVotes

None     == -1
NoEpoch  == -1
NoOffset == -1

\* What a held response is.
Records         == 0
Divergence      == 1
Snapshot        == 2
ChunkOfSnapshot == 3

ASSUME ConstantsOk ==
    /\ Replicas = 0 .. Cardinality(Replicas) - 1 /\ Replicas # {}
    /\ {Observers, LogSize, MaxLeaderEpoch, MaxChunks, MinimumRecords, LateResponses} \subseteq Nat
    /\ LagExpires \in {0, 1}
    /\ Boot \in {"snapshot", "high-watermark", "from-lbo"}
    /\ {VotesAsEmpty, AcknowledgesWhole, ValidatesAtLbo, FetchesAnew, Correlates, CommittedOnly, CoveredLbo,
        KeepsLast, AsNodes, VotesTravel, CountsLateVotes} \subseteq BOOLEAN

VARIABLES
    election,       \* the newest epoch, its candidate until that is decided, and who voted for it
    voters,         \* the replicas that are no observers
    epochLeader,    \* per epoch: its leader, until that crashes
    replicaLog,     \* per replica: LBO, LEO, and per offset the epoch of the record
    replicaState,   \* per replica: leader epoch, high watermark, and the largest LBO since its last full reset
    acknowledged,   \* per leader and offset: the followers that it knows to hold its log up to there
    snapshotFiles,  \* per replica and last offset: the snapshot's size, epoch and records
    fetchState,     \* per replica: the snapshot being fetched, and how many chunks of it there are
    late,           \* per slot: a response that the network holds back
    committed,      \* per offset: the epoch of the record that was committed; no step reads it
    voteAnswers     \* per epoch: who stood for it, and who has granted its vote; as at first where votes do not travel

vars == <<election, voters, epochLeader, replicaLog, replicaState, acknowledged, snapshotFiles, fetchState, late,
          committed, voteAnswers>>

-----------------------------------------------------------------------------
(* The shape of the state. *)

Offsets    == 0 .. LogSize - 1
EndOffsets == 0 .. LogSize
Epochs     == 0 .. MaxLeaderEpoch
Chunks     == 0 .. MaxChunks - 1
Slots      == 0 .. LateResponses - 1
EpochOpt   == Epochs \union {NoEpoch}
OffsetOpt  == Offsets \union {NoOffset}
EndOpt     == EndOffsets \union {NoOffset}
ReplicaOpt == Replicas \union {None}

NoFile     == [size |-> 0, epoch |-> NoEpoch, records |-> -1]
NotFetching == [offset |-> NoOffset, epoch |-> NoEpoch, position |-> -1]
NoResponse == [kind |-> -1, to |-> None, epoch |-> NoEpoch, fetchOffset |-> -1, fetchEpoch |-> NoEpoch,
               offset |-> NoOffset, offsetEpoch |-> NoEpoch, hw |-> -1, lbo |-> -1, size |-> -1, records |-> -1]

InLog(replica, offset) == replicaLog[replica].lbo <= offset /\ offset < replicaLog[replica].leo
IsFetching(replica) == fetchState[replica].offset # NoOffset

\* The replica was elected for the epoch that it is in, and has not crashed since.
PresumesLeadership(replica) ==
    LET epoch == replicaState[replica].leaderEpoch
    IN  epoch # NoEpoch /\ epochLeader[epoch] = replica

TypeOk ==
    /\ election.newestEpoch \in EpochOpt /\ election.candidate \in ReplicaOpt
    /\ election.votes \subseteq Replicas /\ (election.candidate = None => election.votes = {})
    /\ voters \subseteq Replicas
    /\ epochLeader \in [Epochs -> ReplicaOpt]
    /\ replicaLog \in [Replicas -> [lbo : EndOffsets, leo : EndOffsets, epochs : [Offsets -> EpochOpt]]]
    /\ replicaState \in [Replicas -> [leaderEpoch : EpochOpt, hw : EndOffsets, lboReached : EndOffsets]]
    /\ acknowledged \in [Replicas -> [Offsets -> SUBSET Replicas]]
    /\ snapshotFiles \in [Replicas -> [Offsets -> [size : 0 .. MaxChunks, epoch : EpochOpt, records : EndOpt]]]
    /\ fetchState \in [Replicas -> [offset : OffsetOpt, epoch : EpochOpt, position : -1 .. MaxChunks]]
    /\ committed \in [Offsets -> EpochOpt]
    /\ voteAnswers \in [Epochs -> [stood : ReplicaOpt, granted : SUBSET Replicas]]
    /\ \A replica \in Replicas, offset \in Offsets :
        /\ InLog(replica, offset) <=> replicaLog[replica].epochs[offset] # NoEpoch
        /\ IF snapshotFiles[replica][offset].size = 0
           THEN snapshotFiles[replica][offset] = NoFile
           ELSE /\ snapshotFiles[replica][offset].epoch # NoEpoch
                /\ snapshotFiles[replica][offset].records # -1
                /\ offset < replicaLog[replica].leo
                /\ fetchState[replica].offset <= offset
        /\ acknowledged[replica][offset] # {} =>
            /\ PresumesLeadership(replica)
            /\ replicaState[replica].hw <= offset /\ offset < replicaLog[replica].leo

Init ==
    /\ election = [newestEpoch |-> NoEpoch, candidate |-> None, votes |-> {}]
    /\ voters = {replica \in Replicas : replica < Cardinality(Replicas) - Observers}
    /\ epochLeader = [epoch \in Epochs |-> None]
    /\ replicaLog = [replica \in Replicas |-> [lbo |-> 0, leo |-> 0, epochs |-> [o \in Offsets |-> NoEpoch]]]
    /\ replicaState = [replica \in Replicas |-> [leaderEpoch |-> NoEpoch, hw |-> 0, lboReached |-> 0]]
    /\ acknowledged = [replica \in Replicas |-> [o \in Offsets |-> {}]]
    /\ snapshotFiles = [replica \in Replicas |-> [o \in Offsets |-> NoFile]]
    /\ fetchState = [replica \in Replicas |-> NotFetching]
    /\ late = [slot \in Slots |-> NoResponse]
    /\ committed = [o \in Offsets |-> NoEpoch]
    /\ voteAnswers = [epoch \in Epochs |-> [stood |-> None, granted |-> {}]]

-----------------------------------------------------------------------------
(* Words for the rules. *)

Min(a, b) == IF a < b THEN a ELSE b
Max(a, b) == IF a < b THEN b ELSE a
LeastOf(set) == CHOOSE x \in set : \A y \in set : x <= y
GreatestOf(set) == CHOOSE x \in set : \A y \in set : x >= y

\* The function with another value at x, if it has one there.
Put(f, x, value) == IF x \in DOMAIN f THEN [f EXCEPT ![x] = value] ELSE f

Lbo(replica) == replicaLog[replica].lbo
Leo(replica) == replicaLog[replica].leo
Hw(replica) == replicaState[replica].hw
Epoch(replica) == replicaState[replica].leaderEpoch
RecordEpoch(replica, offset) == IF offset \in Offsets THEN replicaLog[replica].epochs[offset] ELSE NoEpoch
File(replica, offset) == IF offset \in Offsets THEN snapshotFiles[replica][offset] ELSE NoFile

Majority(set) == 2 * Cardinality(set \intersect voters) > Cardinality(voters)

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

\* What every step ends with: of the logs, acknowledgements and files given to it, what is still there. TLC
\* reads the next epochLeader, replicaState and fetchState, so these come before it.
SettleEffect(logs, acks, files) ==
    /\ replicaLog' = [replica \in Replicas |->
            [logs[replica] EXCEPT !.epochs = [o \in Offsets |->
                IF logs[replica].lbo <= o /\ o < logs[replica].leo THEN logs[replica].epochs[o] ELSE NoEpoch]]]
    /\ acknowledged' = [replica \in Replicas |-> [o \in Offsets |->
            LET epoch == replicaState'[replica].leaderEpoch
                leads == epoch # NoEpoch /\ epochLeader'[epoch] = replica
            IN  IF leads /\ replicaState'[replica].hw <= o /\ o < logs[replica].leo
                THEN acks[replica][o]
                ELSE {}]]
    /\ snapshotFiles' = [replica \in Replicas |-> [o \in Offsets |->
            IF files[replica][o].size > 0 /\ o < logs[replica].leo /\ fetchState'[replica].offset <= o
            THEN files[replica][o]
            ELSE NoFile]]

-----------------------------------------------------------------------------
(* Elections. *)

\* LastOffsetEpoch and LastOffset + 1 of a vote ("Changes to Leader Election").
VoteEpoch(replica) == IF VotesAsEmpty /\ IsFetching(replica) THEN NoEpoch ELSE LastEpoch(replica)
VoteEnd(replica) == IF VotesAsEmpty /\ IsFetching(replica) THEN 0 ELSE Leo(replica)

UpToDate(candidate, voter) ==
    \/ VoteEpoch(voter) < VoteEpoch(candidate)
    \/ VoteEpoch(voter) = VoteEpoch(candidate) /\ VoteEnd(voter) <= VoteEnd(candidate)

CountVotesEffect(epoch, candidate, votes) ==
    /\ election' = IF Majority(votes)
                   THEN [newestEpoch |-> epoch, candidate |-> None, votes |-> {}]
                   ELSE [newestEpoch |-> epoch, candidate |-> candidate, votes |-> votes]
    /\ epochLeader' = [epochLeader EXCEPT ![epoch] = IF Majority(votes) THEN candidate ELSE None]

\* With FetchesAnew, chunks of an older leader go.
EnterEpochEffect(replica, epoch) ==
    LET anew == FetchesAnew /\ IsFetching(replica)
    IN  /\ replicaState' = [replicaState EXCEPT ![replica].leaderEpoch = epoch]
        /\ fetchState' = IF anew THEN [fetchState EXCEPT ![replica].position = 0] ELSE fetchState
        /\ SettleEffect(replicaLog, acknowledged,
                IF anew
                THEN [snapshotFiles EXCEPT ![replica] = Put(@, fetchState[replica].offset, NoFile)]
                ELSE snapshotFiles)
        /\ UNCHANGED <<voters, late, committed>>

BecomeCandidate(candidate) ==
    /\ candidate \in voters                                         \* is_voter
    /\ ~ PresumesLeadership(candidate)                              \* not_leading
    /\ election.newestEpoch < MaxLeaderEpoch                        \* epoch_available
    /\ CountVotesEffect(election.newestEpoch + 1, candidate, {candidate})
    /\ EnterEpochEffect(candidate, election.newestEpoch + 1)
    /\ voteAnswers' = IF VotesTravel
                      THEN [voteAnswers EXCEPT ![election.newestEpoch + 1].stood = candidate]
                      ELSE voteAnswers

\* As nodes have it, who has refused is in the epoch, and may have another log after a crash.
IsFree(voter) ==
    \/ Epoch(voter) < election.newestEpoch
    \/ AsNodes /\ Epoch(voter) = election.newestEpoch /\ voter \notin election.votes
       /\ voter \notin voteAnswers[election.newestEpoch].granted

\* Where votes travel, the candidate does not hear of it yet.
GrantEffect(voter) ==
    IF VotesTravel
    THEN /\ voteAnswers' = [voteAnswers EXCEPT ![election.newestEpoch].granted = @ \union {voter}]
         /\ UNCHANGED <<election, epochLeader>>
    ELSE /\ CountVotesEffect(election.newestEpoch, election.candidate, election.votes \union {voter})
         /\ UNCHANGED voteAnswers

HearEffect(voter) ==
    /\ CountVotesEffect(election.newestEpoch, election.candidate, election.votes \union {voter})
    /\ UNCHANGED <<voters, replicaLog, replicaState, acknowledged, snapshotFiles, fetchState, late, committed,
                   voteAnswers>>

GrantVote(voter) ==
    /\ election.candidate # None                                    \* candidate_stands
    /\ voter \in voters                                             \* is_voter
    /\ IsFree(voter)                                                \* epoch_newer
    /\ UpToDate(election.candidate, voter)                          \* up_to_date
    /\ GrantEffect(voter)
    /\ EnterEpochEffect(voter, election.newestEpoch)

\* A late answer, or one that comes again, counts as long as its candidate stands in that epoch, and once.
HearVote(voter, epoch) ==
    /\ voter \in voteAnswers[epoch].granted                         \* vote_granted
    /\ election.candidate # None                                    \* candidate_stands
    /\ voteAnswers[epoch].stood = election.candidate                \* asked_by_candidate
    /\ epoch = election.newestEpoch \/ (CountsLateVotes /\ epoch <= election.newestEpoch) \* of_this_candidacy
    /\ voter \notin election.votes                                  \* not_counted
    /\ HearEffect(voter)

RefuseVote(voter) ==
    /\ election.candidate # None                                    \* candidate_stands
    /\ voter \in voters                                             \* is_voter
    /\ Epoch(voter) < election.newestEpoch                          \* epoch_newer
    /\ AsNodes /\ ~ UpToDate(election.candidate, voter)             \* out_of_date
    /\ UNCHANGED <<election, epochLeader>>
    /\ EnterEpochEffect(voter, election.newestEpoch)
    /\ UNCHANGED voteAnswers

BecomeFollower(follower, epoch) ==
    /\ epochLeader[epoch] # None                                    \* leader_elected
    /\ Epoch(follower) < epoch                                      \* epoch_newer
    /\ UNCHANGED <<election, epochLeader>>
    /\ EnterEpochEffect(follower, epoch)
    /\ UNCHANGED voteAnswers

-----------------------------------------------------------------------------
(* Appends and the high watermark. *)

LeaderWrite(leader) ==
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Leo(leader) < LogSize                                        \* log_not_full
    /\ UNCHANGED <<election, voters, epochLeader, replicaState, fetchState, late, committed>>
    /\ SettleEffect([replicaLog EXCEPT
            ![leader].leo = @ + 1,
            ![leader].epochs = Put(@, Leo(leader), Epoch(leader))], acknowledged, snapshotFiles)
    /\ UNCHANGED voteAnswers

LeaderIncHighWatermark(leader, offset) ==
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Hw(leader) <= offset                                         \* above_high_watermark
    /\ RecordEpoch(leader, offset) = Epoch(leader)                  \* of_own_epoch
    /\ Majority(acknowledged[leader][offset] \union {leader})       \* majority_acknowledges
    /\ replicaState' = [replicaState EXCEPT ![leader].hw = @ + 1]
    /\ committed' = IF committed[Hw(leader)] = NoEpoch
                    THEN [committed EXCEPT ![Hw(leader)] = RecordEpoch(leader, Hw(leader))]
                    ELSE committed
    /\ UNCHANGED <<election, voters, epochLeader, fetchState, late>>
    /\ SettleEffect(replicaLog, acknowledged, snapshotFiles)
    /\ UNCHANGED voteAnswers

-----------------------------------------------------------------------------
(* Fetch: what a leader says of a follower's log. *)

\* Where the first epoch begins in a log that is larger than this one.
LargerEpochStart(replica, epoch) ==
    LET larger == {o \in Offsets : RecordEpoch(replica, o) > epoch}
    IN  IF larger = {} THEN Leo(replica) ELSE LeastOf(larger)

\* The largest epoch up to this one that the leader knows.
KnownEpoch(leader, epoch) ==
    LET end   == LargerEpochStart(leader, epoch)
        known == EpochAt(leader, end - 1)
    IN  IF ~ ValidatesAtLbo /\ end = Lbo(leader) /\ known = NoEpoch THEN epoch ELSE known

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

RecordsResponse(leader, follower) ==
    [NoResponse EXCEPT
        !.fetchOffset = Leo(follower),
        !.fetchEpoch = LastEpoch(follower),
        !.offset = Min(Leo(follower) + 1, Leo(leader)),
        !.offsetEpoch = RecordEpoch(leader, Leo(follower)),
        !.hw = Hw(leader),
        !.lbo = Lbo(leader)]

DivergenceResponse(leader, follower) ==
    [NoResponse EXCEPT
        !.fetchOffset = Leo(follower),
        !.fetchEpoch = LastEpoch(follower),
        !.offset = LargerEpochStart(leader, LastEpoch(follower)),
        !.offsetEpoch = KnownEpoch(leader, LastEpoch(follower))]

SnapshotResponse(leader, follower) ==
    [NoResponse EXCEPT
        !.fetchOffset = Leo(follower),
        !.fetchEpoch = LastEpoch(follower),
        !.offset = LatestSnapshot(leader),
        !.offsetEpoch = File(leader, LatestSnapshot(leader)).epoch]

ChunkResponse(leader, follower) ==
    [NoResponse EXCEPT
        !.fetchOffset = fetchState[follower].position,
        !.offset = fetchState[follower].offset,
        !.offsetEpoch = fetchState[follower].epoch,
        !.size = File(leader, fetchState[follower].offset).size,
        !.records = File(leader, fetchState[follower].offset).records]

\* The leader learns from a fetch that the follower has its log up to there.
Acknowledge(leader, follower) ==
    IF follower \in voters /\ (AcknowledgesWhole => ~ IsFetching(follower)) /\ Leo(follower) > 0
    THEN [acknowledged EXCEPT ![leader][Leo(follower) - 1] = @ \union {follower}]
    ELSE acknowledged
AcknowledgeAtOnce(leader, follower) == IF AsNodes THEN acknowledged ELSE Acknowledge(leader, follower)

-----------------------------------------------------------------------------
(* Fetch: what a follower makes of a response. *)

\* It takes the LBO if its own snapshot reaches it.
TakeRecordsEffect(follower, response, acks) ==
    LET covered == Lbo(follower) < response.lbo /\ response.lbo - 1 <= LatestSnapshot(follower)
        begin   == IF covered THEN response.lbo ELSE Lbo(follower)
    IN  /\ replicaState' = [replicaState EXCEPT
                ![follower].hw = Max(@, Min(response.hw, response.offset)),
                ![follower].lboReached = Max(@, begin)]
        /\ UNCHANGED <<election, voters, epochLeader, fetchState, late, committed>>
        /\ SettleEffect([replicaLog EXCEPT ![follower] = [
                lbo    |-> begin,
                leo    |-> response.offset,
                epochs |-> Put(@.epochs, response.fetchOffset, response.offsetEpoch)]], acks, snapshotFiles)

TakeDivergenceEffect(follower, response) ==
    LET end == Min(response.offset, LargerEpochStart(follower, response.offsetEpoch))
    IN  /\ replicaState' = [replicaState EXCEPT ![follower].hw = Min(end, @)]
        /\ UNCHANGED <<election, voters, epochLeader, fetchState, late, committed>>
        /\ SettleEffect([replicaLog EXCEPT ![follower].leo = end], acknowledged, snapshotFiles)

\* A full reset: what the replica's log and state are, if its log begins at this offset.
BeginAt(replica, offset) == [replicaLog EXCEPT ![replica].lbo = offset, ![replica].leo = offset]
StateAt(replica, offset) == [replicaState EXCEPT ![replica].hw = offset, ![replica].lboReached = offset]

TakeSnapshotEffect(follower, response) ==
    /\ replicaState' = StateAt(follower, response.offset + 1)
    /\ fetchState' = [fetchState EXCEPT ![follower] = [offset |-> response.offset, epoch |-> response.offsetEpoch,
                                                       position |-> 0]]
    /\ UNCHANGED <<election, voters, epochLeader, late, committed>>
    /\ SettleEffect(BeginAt(follower, response.offset + 1), acknowledged,
                    [snapshotFiles EXCEPT ![follower] = Put(@, response.offset, NoFile)])

\* Bytes of two files that differ, or a gap between bytes, make a file in which a reader finds nothing.
TakeChunkEffect(follower, response) ==
    LET fetched  == fetchState[follower]
        file     == File(follower, fetched.offset)
        end      == Min(response.fetchOffset + 1, response.size)
        complete == end = response.size
        first    == response.fetchOffset = 0
        sameFile == /\ response.offset = fetched.offset /\ response.offsetEpoch = fetched.epoch
                    /\ response.size = file.size /\ response.fetchOffset <= fetched.position
    IN  /\ fetchState' = [fetchState EXCEPT ![follower] =
                IF complete THEN NotFetching ELSE [@ EXCEPT !.position = end]]
        /\ UNCHANGED <<election, voters, epochLeader, replicaState, late, committed>>
        /\ SettleEffect(replicaLog, acknowledged, [snapshotFiles EXCEPT ![follower][fetched.offset] = [
                size    |-> IF first \/ complete THEN response.size ELSE file.size,
                epoch   |-> fetched.epoch,
                records |-> IF first THEN response.records ELSE IF sameFile THEN file.records ELSE 0]])

-----------------------------------------------------------------------------
(* Fetch and FetchSnapshot, request and response in one step. *)

FollowerFetch(leader, follower) ==
    /\ leader # follower                                            \* not_leader_itself
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Epoch(follower) = Epoch(leader)                              \* epoch_not_fenced
    /\ ~ BelowLog(leader, follower)                                 \* reaches_back
    /\ Matches(leader, follower)                                    \* last_record_matches
    /\ TakeRecordsEffect(follower, RecordsResponse(leader, follower), AcknowledgeAtOnce(leader, follower))
    /\ UNCHANGED voteAnswers

FollowerAcknowledge(leader, follower) ==
    /\ leader # follower                                            \* not_leader_itself
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Epoch(follower) = Epoch(leader)                              \* epoch_not_fenced
    /\ ~ BelowLog(leader, follower)                                 \* reaches_back
    /\ AsNodes /\ Matches(leader, follower)                         \* last_record_matches
    /\ UNCHANGED <<election, voters, epochLeader, replicaState, fetchState, late, committed>>
    /\ SettleEffect(replicaLog, Acknowledge(leader, follower), snapshotFiles)
    /\ UNCHANGED voteAnswers

FollowerTruncate(leader, follower) ==
    /\ leader # follower                                            \* not_leader_itself
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Epoch(follower) = Epoch(leader)                              \* epoch_not_fenced
    /\ ~ BelowLog(leader, follower)                                 \* reaches_back
    /\ ~ Matches(leader, follower)                                  \* diverges
    /\ TakeDivergenceEffect(follower, DivergenceResponse(leader, follower))
    /\ UNCHANGED voteAnswers

FollowerStartOver(leader, follower) ==
    /\ leader # follower                                            \* not_leader_itself
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Epoch(follower) = Epoch(leader)                              \* epoch_not_fenced
    /\ BelowLog(leader, follower)                                   \* begins_later
    /\ LatestSnapshot(leader) # NoOffset                            \* snapshot_exists
    /\ TakeSnapshotEffect(follower, SnapshotResponse(leader, follower))
    /\ UNCHANGED voteAnswers

SnapshotFound(leader, follower) ==
    /\ HasSnapshot(leader, fetchState[follower].offset)
    /\ File(leader, fetchState[follower].offset).epoch = fetchState[follower].epoch

PositionInRange(leader, follower) ==
    fetchState[follower].position <= File(leader, fetchState[follower].offset).size

FetchSnapshot(leader, follower) ==
    /\ IsFetching(follower)                                         \* is_fetching
    /\ leader # follower                                            \* not_leader_itself
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Epoch(follower) = Epoch(leader)                              \* epoch_not_fenced
    /\ SnapshotFound(leader, follower)                              \* snapshot_found
    /\ PositionInRange(leader, follower)                            \* position_in_range
    /\ TakeChunkEffect(follower, ChunkResponse(leader, follower))
    /\ UNCHANGED voteAnswers

\* NOT_LEADER_FOR_PARTITION, SNAPSHOT_NOT_FOUND, OFFSET_OUT_OF_RANGE.
FetchRefused(follower) ==
    LET leader == IF Epoch(follower) = NoEpoch THEN None ELSE epochLeader[Epoch(follower)]
        isThere == leader # None /\ Epoch(leader) = Epoch(follower)
    IN  IF isThere
        THEN ~ (SnapshotFound(leader, follower) /\ PositionInRange(leader, follower))
        ELSE ~ AsNodes

RediscoverSnapshot(follower) ==
    /\ IsFetching(follower)                                         \* is_fetching
    /\ FetchRefused(follower)                                       \* fetch_refused
    /\ replicaState' = StateAt(follower, 0)
    /\ fetchState' = [fetchState EXCEPT ![follower] = NotFetching]
    /\ UNCHANGED <<election, voters, epochLeader, late, committed>>
    /\ SettleEffect(BeginAt(follower, 0), acknowledged, snapshotFiles)
    /\ UNCHANGED voteAnswers

-----------------------------------------------------------------------------
(* Late responses: the leader handles a request, and the response stays in a slot, to be delivered at any *)
(* time, again and again, until another one takes its place.                                              *)

HoldEffect(slot, leader, follower, kind, response, acks) ==
    /\ late' = [late EXCEPT ![slot] = [response EXCEPT !.kind = kind, !.to = follower, !.epoch = Epoch(leader)]]
    /\ UNCHANGED <<election, voters, epochLeader, replicaState, fetchState, committed>>
    /\ SettleEffect(replicaLog, acks, snapshotFiles)

HoldRecords(leader, follower, slot) ==
    /\ leader # follower                                            \* not_leader_itself
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Epoch(follower) = Epoch(leader)                              \* epoch_not_fenced
    /\ ~ BelowLog(leader, follower)                                 \* reaches_back
    /\ Matches(leader, follower)                                    \* last_record_matches
    /\ HoldEffect(slot, leader, follower, Records, RecordsResponse(leader, follower),
                  AcknowledgeAtOnce(leader, follower))
    /\ UNCHANGED voteAnswers

HoldDivergence(leader, follower, slot) ==
    /\ leader # follower                                            \* not_leader_itself
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Epoch(follower) = Epoch(leader)                              \* epoch_not_fenced
    /\ ~ BelowLog(leader, follower)                                 \* reaches_back
    /\ ~ Matches(leader, follower)                                  \* diverges
    /\ HoldEffect(slot, leader, follower, Divergence, DivergenceResponse(leader, follower), acknowledged)
    /\ UNCHANGED voteAnswers

HoldSnapshot(leader, follower, slot) ==
    /\ leader # follower                                            \* not_leader_itself
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Epoch(follower) = Epoch(leader)                              \* epoch_not_fenced
    /\ BelowLog(leader, follower)                                   \* begins_later
    /\ LatestSnapshot(leader) # NoOffset                            \* snapshot_exists
    /\ HoldEffect(slot, leader, follower, Snapshot, SnapshotResponse(leader, follower), acknowledged)
    /\ UNCHANGED voteAnswers

HoldChunk(leader, follower, slot) ==
    /\ IsFetching(follower)                                         \* is_fetching
    /\ leader # follower                                            \* not_leader_itself
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Epoch(follower) = Epoch(leader)                              \* epoch_not_fenced
    /\ SnapshotFound(leader, follower)                              \* snapshot_found
    /\ PositionInRange(leader, follower)                            \* position_in_range
    /\ HoldEffect(slot, leader, follower, ChunkOfSnapshot, ChunkResponse(leader, follower), acknowledged)
    /\ UNCHANGED voteAnswers

AddressedTo(follower, slot, kind) == late[slot].to = follower /\ late[slot].kind = kind

\* The request that the response answers is the one that the follower would send.
AnswersFetch(follower, slot) ==
    late[slot].fetchOffset = Leo(follower) /\ late[slot].fetchEpoch = LastEpoch(follower)

LateRecords(follower, slot) ==
    /\ AddressedTo(follower, slot, Records)                         \* addressed_to
    /\ late[slot].epoch = Epoch(follower)                           \* epoch_not_fenced
    /\ IF Correlates THEN AnswersFetch(follower, slot)
                     ELSE late[slot].fetchOffset = Leo(follower)    \* answers_request
    /\ TakeRecordsEffect(follower, late[slot], acknowledged)
    /\ UNCHANGED voteAnswers

LateDivergence(follower, slot) ==
    /\ AddressedTo(follower, slot, Divergence)                      \* addressed_to
    /\ late[slot].epoch = Epoch(follower)                           \* epoch_not_fenced
    /\ Correlates => AnswersFetch(follower, slot)                   \* answers_request
    /\ TakeDivergenceEffect(follower, late[slot])
    /\ UNCHANGED voteAnswers

LateSnapshot(follower, slot) ==
    /\ AddressedTo(follower, slot, Snapshot)                        \* addressed_to
    /\ late[slot].epoch = Epoch(follower)                           \* epoch_not_fenced
    /\ Correlates => AnswersFetch(follower, slot)                   \* answers_request
    /\ TakeSnapshotEffect(follower, late[slot])
    /\ UNCHANGED voteAnswers

LateChunk(follower, slot) ==
    /\ IsFetching(follower)                                         \* is_fetching
    /\ AddressedTo(follower, slot, ChunkOfSnapshot)                 \* addressed_to
    /\ Correlates => late[slot].epoch = Epoch(follower)             \* epoch_not_fenced
    /\ Correlates => fetchState[follower] = [offset |-> late[slot].offset, epoch |-> late[slot].offsetEpoch,
                                             position |-> late[slot].fetchOffset]       \* answers_request
    /\ TakeChunkEffect(follower, late[slot])
    /\ UNCHANGED voteAnswers

-----------------------------------------------------------------------------
(* Snapshots and the LBO. *)

SnapshotLimit(replica) == IF CommittedOnly THEN Hw(replica) ELSE Leo(replica)

\* What a state machine has applied: its latest snapshot and, if nothing is missing between, the log.
GenerateSnapshot(replica, offset, more) ==
    /\ ~ IsFetching(replica)                                        \* state_loaded
    /\ IF AsNodes THEN offset = SnapshotLimit(replica) - 1
                  ELSE offset < SnapshotLimit(replica)              \* below_high_watermark
    /\ LatestSnapshot(replica) < offset                             \* later_than_latest
    /\ MinimumRecords < SnapshotLimit(replica) - 1 - LatestSnapshot(replica)        \* enough_records
    /\ UNCHANGED <<election, voters, epochLeader, replicaState, fetchState, late, committed>>
    /\ LET applied == Max(File(replica, LatestSnapshot(replica)).records, 0)
       IN  SettleEffect(replicaLog, acknowledged, [snapshotFiles EXCEPT ![replica][offset] = [
                size    |-> more + 1,
                epoch   |-> RecordEpoch(replica, offset),
                records |-> IF Lbo(replica) <= applied THEN offset + 1 ELSE applied]])
    /\ UNCHANGED voteAnswers

Covered(leader) == IF CoveredLbo THEN LatestSnapshot(leader) + 1 ELSE Hw(leader)
Replicated(leader, lbo) ==
    \A replica \in Replicas :
        \/ lbo <= Lbo(replica)
        \/ lbo <= Leo(replica) /\ RecordEpoch(replica, lbo - 1) = RecordEpoch(leader, lbo - 1)

AdvanceEffect(leader, lbo) ==
    /\ replicaState' = [replicaState EXCEPT ![leader].lboReached = Max(@, lbo)]
    /\ UNCHANGED <<election, voters, epochLeader, fetchState, late, committed>>
    /\ SettleEffect([replicaLog EXCEPT ![leader].lbo = lbo], acknowledged, snapshotFiles)

LeaderAdvanceLbo(leader, lbo) ==
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Lbo(leader) < lbo                                            \* increases
    /\ lbo <= Covered(leader)                                       \* snapshot_includes
    /\ LagExpires = 1 \/ Replicated(leader, lbo)                          \* replicated_or_old
    /\ AdvanceEffect(leader, lbo)
    /\ UNCHANGED voteAnswers

DeleteRecords(leader, lbo) ==
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Lbo(leader) < lbo                                            \* increases
    /\ lbo <= Covered(leader)                                       \* snapshot_includes
    /\ LagExpires = 1 \/ Replicated(leader, lbo)                          \* replicated_or_old
    /\ AdvanceEffect(leader, lbo)
    /\ UNCHANGED voteAnswers

DeleteSnapshot(replica, offset) ==
    /\ HasSnapshot(replica, offset)                                 \* is_complete
    /\ offset < IF KeepsLast THEN Lbo(replica) - 1 ELSE Lbo(replica)        \* below_lbo
    /\ UNCHANGED <<election, voters, epochLeader, replicaState, fetchState, late, committed>>
    /\ SettleEffect(replicaLog, acknowledged, [snapshotFiles EXCEPT ![replica][offset] = NoFile])
    /\ UNCHANGED voteAnswers

-----------------------------------------------------------------------------
(* A crash, and booting after it. *)

LogValid(replica, checkpoint) ==
    \/ Lbo(replica) = 0
    \/ CASE Boot = "snapshot" -> Lbo(replica) - 1 <= LatestSnapshot(replica)
         [] Boot = "from-lbo" -> Lbo(replica) <= LatestSnapshot(replica)
         [] Boot = "high-watermark" ->
                \E o \in Offsets : HasSnapshot(replica, o) /\ Lbo(replica) - 1 <= o /\ o < checkpoint

\* Whoever crashes leads no more in its epoch, and stands for none.
LeaveOfficeEffect(replica) ==
    /\ epochLeader' = IF PresumesLeadership(replica)
                      THEN [epochLeader EXCEPT ![Epoch(replica)] = None]
                      ELSE epochLeader
    /\ election' = IF election.candidate = replica
                   THEN [election EXCEPT !.candidate = None, !.votes = {}]
                   ELSE election
    /\ UNCHANGED <<voters, late, committed>>

WasKnown(replica, checkpoint) == IF AsNodes THEN checkpoint = 0 ELSE checkpoint <= Hw(replica)

Restart(replica, checkpoint) ==
    /\ WasKnown(replica, checkpoint)                                \* was_known
    /\ LogValid(replica, checkpoint)                                \* log_valid
    /\ replicaState' = [replicaState EXCEPT ![replica].hw =
            IF Boot = "high-watermark" THEN checkpoint ELSE Max(checkpoint, LatestSnapshot(replica) + 1)]
    /\ fetchState' = fetchState
    /\ LeaveOfficeEffect(replica)
    /\ SettleEffect(replicaLog, acknowledged, snapshotFiles)
    /\ UNCHANGED voteAnswers

RestartEmpty(replica, checkpoint) ==
    /\ WasKnown(replica, checkpoint)                                \* was_known
    /\ ~ LogValid(replica, checkpoint)                              \* log_not_valid
    /\ replicaState' = StateAt(replica, 0)
    /\ fetchState' = [fetchState EXCEPT ![replica] = NotFetching]
    /\ LeaveOfficeEffect(replica)
    /\ SettleEffect(BeginAt(replica, 0), acknowledged, snapshotFiles)
    /\ UNCHANGED voteAnswers

-----------------------------------------------------------------------------

Next ==
    \/ \E replica \in Replicas : BecomeCandidate(replica)
    \/ \E replica \in Replicas : GrantVote(replica)
    \/ \E replica \in Replicas, epoch \in Epochs : HearVote(replica, epoch)
    \/ \E replica \in Replicas : RefuseVote(replica)
    \/ \E replica \in Replicas, epoch \in Epochs : BecomeFollower(replica, epoch)
    \/ \E replica \in Replicas : LeaderWrite(replica)
    \/ \E replica \in Replicas, offset \in Offsets : LeaderIncHighWatermark(replica, offset)
    \/ \E leader, follower \in Replicas : FollowerFetch(leader, follower)
    \/ \E leader, follower \in Replicas : FollowerAcknowledge(leader, follower)
    \/ \E leader, follower \in Replicas : FollowerTruncate(leader, follower)
    \/ \E leader, follower \in Replicas : FollowerStartOver(leader, follower)
    \/ \E leader, follower \in Replicas : FetchSnapshot(leader, follower)
    \/ \E replica \in Replicas : RediscoverSnapshot(replica)
    \/ \E leader, follower \in Replicas, slot \in Slots : HoldRecords(leader, follower, slot)
    \/ \E leader, follower \in Replicas, slot \in Slots : HoldDivergence(leader, follower, slot)
    \/ \E leader, follower \in Replicas, slot \in Slots : HoldSnapshot(leader, follower, slot)
    \/ \E leader, follower \in Replicas, slot \in Slots : HoldChunk(leader, follower, slot)
    \/ \E follower \in Replicas, slot \in Slots : LateRecords(follower, slot)
    \/ \E follower \in Replicas, slot \in Slots : LateDivergence(follower, slot)
    \/ \E follower \in Replicas, slot \in Slots : LateSnapshot(follower, slot)
    \/ \E follower \in Replicas, slot \in Slots : LateChunk(follower, slot)
    \/ \E replica \in Replicas, offset \in Offsets, more \in Chunks : GenerateSnapshot(replica, offset, more)
    \/ \E leader \in Replicas, lbo \in EndOffsets : LeaderAdvanceLbo(leader, lbo)
    \/ \E leader \in Replicas, lbo \in EndOffsets : DeleteRecords(leader, lbo)
    \/ \E replica \in Replicas, offset \in Offsets : DeleteSnapshot(replica, offset)
    \/ \E replica \in Replicas, checkpoint \in EndOffsets : Restart(replica, checkpoint)
    \/ \E replica \in Replicas, checkpoint \in EndOffsets : RestartEmpty(replica, checkpoint)

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

LboNeverRetreats == \A replica \in Replicas : Lbo(replica) = replicaState[replica].lboReached

\* In the log, or in the latest snapshot.
Holds(replica, offset) ==
    IF Lbo(replica) <= offset
    THEN offset < Leo(replica) /\ RecordEpoch(replica, offset) = committed[offset]
    ELSE offset <= LatestSnapshot(replica) /\ offset < File(replica, LatestSnapshot(replica)).records

NoCommittedRecordLost ==
    LET leader == IF election.newestEpoch = NoEpoch THEN None ELSE epochLeader[election.newestEpoch]
    IN  leader # None => \A o \in Offsets : committed[o] # NoEpoch => Holds(leader, o)

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
