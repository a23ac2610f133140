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
(***************************************************************************)
EXTENDS QuorumNodes

TypeOk ==
    /\ QuorumOk
    /\ \A replica \in Replicas, offset \in Offsets :
        /\ IF snapshotFiles[replica][offset].size = 0
           THEN snapshotFiles[replica][offset] = NoFile
           ELSE /\ snapshotFiles[replica][offset].epoch # NoEpoch
                /\ snapshotFiles[replica][offset].records # -1
                /\ offset < Leo(replica)
                /\ fetchState[replica].offset <= offset

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

SettledLogEffect(replica, log) ==
    /\ UNCHANGED <<epochLeader, replicaState, fetchState, committed, told>>
    /\ SettleEffect([replicaLog EXCEPT ![replica] = log], snapshotFiles, counted)

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
    /\ SettledLogEffect(leader, [replicaLog[leader] EXCEPT !.lbo = lbo])

DeleteRecords(leader, lbo) ==
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Lbo(leader) < lbo                                            \* increases
    /\ lbo <= LatestSnapshot(leader) + 1                            \* snapshot_includes
    /\ LagExpires = 1 \/ Replicated(leader, lbo)                    \* replicated_or_old
    /\ SettledLogEffect(leader, [replicaLog[leader] EXCEPT !.lbo = lbo])

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

\* The logs part within a batch of the follower's, and all of that goes. Where it begins nobody sees; its records are of
\* one epoch, of which the leader has none.
TruncateBatch(leader, follower, end) ==
    /\ leader # follower                                            \* not_leader_itself
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Epoch(follower) = Epoch(leader)                              \* epoch_not_fenced
    /\ Lbo(follower) <= end /\ Lbo(leader) <= end                   \* in_both_logs
    /\ \E o \in Offsets :
          /\ end <= o
          /\ RecordEpoch(follower, end) < RecordEpoch(leader, o)
          /\ RecordEpoch(leader, o) <= RecordEpoch(follower, Leo(follower) - 1)  \* below_divergence
    /\ LargerEpochStart(leader, RecordEpoch(follower, Leo(follower) - 1))
       < LargerEpochStart(follower, RecordEpoch(follower, end))      \* within_batch
    /\ RecordEpoch(follower, end) # RecordEpoch(leader, end)         \* keeps_what_matches
    /\ replicaState' = [replicaState EXCEPT ![follower].hw = Min(end, @)]
    /\ UNCHANGED <<epochLeader, fetchState, committed, told>>
    /\ SettleEffect([replicaLog EXCEPT ![follower] = [@ EXCEPT !.leo = end, !.synced = Min(end, @)]],
                    snapshotFiles, counted)

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
    \/ \E leader, follower \in Replicas, end \in Offsets : TruncateBatch(leader, follower, end)
    \/ \E leader, follower \in Replicas, offset \in Offsets : LoseSnapshot(leader, follower, offset)
    \/ \E leader, follower \in Replicas : LoseLog(leader, follower)

Spec == Init /\ [][Next]_vars

=============================================================================
