----------------------------- MODULE KafkaQuorum -----------------------------
(***************************************************************************)
(* A quorum of Apache Kafka's nodes, the F rows of DEVIATIONS.md. A        *)
(* snapshot is fetched beside the log, which is cut when the last bytes    *)
(* have come, and whoever changes its role gives the snapshot up. Each     *)
(* node cleans its own log, to the end of a snapshot of its own; nobody    *)
(* follows a leader's log start. A fetch is validated by the earliest      *)
(* snapshot, and one from 0 is answered with a snapshot wherever there is  *)
(* one. Whoever restarts is in the role that its state file says, but for  *)
(* a leader, which has resigned, and knows no high watermark. A leader     *)
(* that has resigned still names itself.                                   *)
(***************************************************************************)
EXTENDS QuorumNodes

\* A snapshot is complete where it is there at all: one that is fetched lies beside it.
TypeOk ==
    /\ QuorumOk
    /\ \A replica \in Replicas, offset \in Offsets :
        IF snapshotFiles[replica][offset].size = 0
        THEN snapshotFiles[replica][offset] = NoFile
        ELSE Lbo(replica) <= offset + 1

\* What every step ends with: of the logs, files and counts given to it, what is still there. TLC reads the next
\* replicaState, so it comes before it.
SettleEffect(logs, files, counts) ==
    /\ replicaLog' = [replica \in Replicas |->
            [logs[replica] EXCEPT !.epochs = [o \in Offsets |->
                IF logs[replica].lbo <= o /\ o < logs[replica].leo THEN logs[replica].epochs[o] ELSE NoEpoch]]]
    /\ snapshotFiles' = [replica \in Replicas |-> [o \in Offsets |->
            IF files[replica][o].size > 0 /\ logs[replica].lbo <= o + 1 THEN files[replica][o] ELSE NoFile]]
    /\ counted' = [leader \in Replicas |->
            IF replicaState'[leader].leader = leader THEN counts[leader] ELSE [replica \in Replicas |-> NoOffset]]

-----------------------------------------------------------------------------
(* Roles. *)

\* Whoever changes its role closes the snapshot that it was fetching, which deletes it.
RoleEffect(replica, state, changes) ==
    /\ replicaState' = [replicaState EXCEPT ![replica] = state]
    /\ fetchState' = IF changes THEN [fetchState EXCEPT ![replica] = NotFetching] ELSE fetchState
    /\ SettleEffect(replicaLog, snapshotFiles, counted)
    /\ UNCHANGED <<epochLeader, committed, told>>

\* A newer epoch is entered, and in the same one a leader is heard of. A vote in the same epoch stays.
FollowEffect(replica, other, leader) ==
    LET newer == Epoch(replica) < Epoch(other)
    IN  RoleEffect(replica,
            [leaderEpoch |-> Epoch(other),
             hw          |-> Hw(replica),
             leader      |-> leader,
             voted       |-> IF newer THEN None ELSE replicaState[replica].voted,
             supporters  |-> {}],
            newer \/ Known(replica) = None)

\* It was elected for the epoch that it is in; it leads, or has resigned.
HasLed(replica) == EpochLeader(Epoch(replica)) = replica
HasResigned(replica) == HasLed(replica) /\ ~ PresumesLeadership(replica)

Stand(replica, epoch) ==
    /\ replica \in Voters                                           \* is_voter
    /\ ~ PresumesLeadership(replica)                                \* not_leading
    /\ epoch = Epoch(replica) + 1                                   \* epoch_next
    /\ RoleEffect(replica, In(replica, epoch, replica, {replica}), TRUE)

\* Whoever is asked for its vote, or whether it would give it, enters the epoch of who asks.
HearOfEpoch(replica, teller) ==
    /\ replica # teller                                             \* not_told_by_itself
    /\ Epoch(replica) < Epoch(teller)                               \* epoch_newer
    /\ RoleEffect(replica, In(replica, Epoch(teller), None, {}), TRUE)

UpToDate(candidate, voter) ==
    \/ LastEpoch(voter) < LastEpoch(candidate)
    \/ LastEpoch(voter) = LastEpoch(candidate) /\ Leo(voter) <= Leo(candidate)

GiveVote(candidate, voter) ==
    /\ candidate # voter                                            \* not_candidate_itself
    /\ Stands(candidate)                                            \* candidate_stands
    /\ voter \in Voters                                             \* is_voter
    /\ Epoch(voter) <= Epoch(candidate)                             \* epoch_not_fenced
    /\ Epoch(voter) = Epoch(candidate)                              \* in_its_epoch
    /\ replicaState[voter].voted = None /\ Known(voter) = None      \* vote_free
    /\ UpToDate(candidate, voter)                                   \* up_to_date
    /\ RoleEffect(voter, [replicaState[voter] EXCEPT !.voted = candidate], FALSE)

\* Its election timeout runs off; its vote is its own still.
LoseElection(replica) ==
    /\ Stands(replica)                                              \* candidate_stands
    /\ RoleEffect(replica, [replicaState[replica] EXCEPT !.supporters = {}], FALSE)

\* Of who has resigned, or has restarted as a leader, after a while.
LeaveEpoch(replica) ==
    /\ HasResigned(replica)                                         \* has_resigned
    /\ RoleEffect(replica, In(replica, Epoch(replica) + 1, None, {}), TRUE)

TakeOffice(replica) ==
    /\ Stands(replica)                                              \* candidate_stands
    /\ Majority(replicaState[replica].supporters)                   \* majority_voted
    /\ epochLeader' = [epochLeader EXCEPT ![Epoch(replica)] = replica]
    /\ replicaState' = [replicaState EXCEPT ![replica] = [@ EXCEPT !.leader = replica, !.supporters = {}]]
    /\ UNCHANGED <<fetchState, committed, told>>
    /\ SettleEffect(replicaLog, snapshotFiles, counted)

\* The leader that an answer names; who was one itself and hears of it has forgotten that it was.
ToldOf(replica, named) == IF named = replica THEN None ELSE named
IsNews(replica, teller, named) ==
    \/ Epoch(replica) < Epoch(teller)
    \/ Epoch(replica) = Epoch(teller) /\ ToldOf(replica, named) # None /\ Known(replica) = None

LearnLeader(replica, teller) ==
    /\ replica # teller                                             \* not_told_by_itself
    /\ IsNews(replica, teller, Known(teller))                       \* is_news
    /\ FollowEffect(replica, teller, ToldOf(replica, Known(teller)))

\* Until it leaves the epoch, it names itself.
LearnResignedLeader(replica, teller) ==
    /\ HasResigned(teller)                                          \* has_resigned
    /\ replica # teller                                             \* not_told_by_itself
    /\ IsNews(replica, teller, teller)                              \* is_news
    /\ FollowEffect(replica, teller, ToldOf(replica, teller))

BeginEpoch(leader, follower) ==
    /\ leader # follower                                            \* not_leader_itself
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ follower \in Voters                                          \* is_voter
    /\ Epoch(follower) <= Epoch(leader)                             \* epoch_not_fenced
    /\ Epoch(follower) < Epoch(leader) \/ Known(follower) \in {None, leader}        \* no_other_leader
    /\ FollowEffect(follower, leader, leader)

\* A voter follows who led the epoch until its fetch timeout, which is short then.
EndEpoch(leader, follower) ==
    /\ leader # follower                                            \* not_leader_itself
    /\ HasLed(leader)                                               \* was_elected
    /\ Known(leader) = None                                         \* has_resigned
    /\ follower \in Voters                                          \* is_voter
    /\ Epoch(follower) <= Epoch(leader)                             \* epoch_not_fenced
    /\ Epoch(follower) < Epoch(leader) \/ Known(follower) \in {None, leader}        \* no_other_leader
    /\ FollowEffect(follower, leader, leader)

-----------------------------------------------------------------------------
(* Fetch: what a leader says of a follower's log. *)

\* The largest epoch up to this one in a log. Of one below all in the log it is that of the snapshot where the log
\* begins, and that epoch itself where it begins at 0.
KnownEpoch(replica, epoch) ==
    IF LargerEpochStart(replica, epoch) = 0 /\ Leo(replica) > 0
    THEN epoch
    ELSE EpochAt(replica, LargerEpochStart(replica, epoch) - 1)

\* A fetch is answered with a snapshot id: from 0 always, and wherever the earliest snapshot says more.
GetsSnapshot(leader, follower) ==
    LET epoch == LastEpoch(follower)
        there == {o \in Offsets : HasSnapshot(leader, o)}
    IN  /\ there # {}
        /\ \/ Leo(follower) = 0
           \/ Leo(follower) < Lbo(leader)
           \/ Leo(follower) = Lbo(leader) /\ epoch # File(leader, Lbo(leader) - 1).epoch
           \/ \A o \in there : epoch < File(leader, o).epoch

Matches(leader, follower) ==
    \/ Leo(follower) = 0
    \/ /\ KnownEpoch(leader, LastEpoch(follower)) = LastEpoch(follower)
       /\ Leo(follower) <= LargerEpochStart(leader, LastEpoch(follower))

\* A leader's high watermark once it has reached a record of its own epoch; -1 before.
ToldHighWatermark(leader) == IF EpochAt(leader, Hw(leader) - 1) = Epoch(leader) THEN Hw(leader) ELSE -1

FollowerFetch(leader, follower) ==
    /\ leader # follower                                            \* not_leader_itself
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Epoch(follower) = Epoch(leader)                              \* epoch_not_fenced
    /\ ~ GetsSnapshot(leader, follower)                             \* reaches_back
    /\ Matches(leader, follower)                                    \* last_record_matches
    /\ LET at  == Leo(follower)
           end == Min(at + 1, Leo(leader))
       IN  /\ replicaState' = [replicaState EXCEPT ![follower].hw = Max(@, Min(ToldHighWatermark(leader), end))]
           /\ UNCHANGED <<epochLeader, fetchState, committed, told>>
           /\ SettleEffect([replicaLog EXCEPT ![follower] = [@ EXCEPT
                        !.leo = end, !.epochs = Put(@, at, RecordEpoch(leader, at))]],
                    snapshotFiles, counted)

\* The last fetch counts, be it an old one that comes late.
CountFetch(leader, follower) ==
    /\ leader # follower                                            \* not_leader_itself
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Epoch(follower) = Epoch(leader)                              \* epoch_not_fenced
    /\ ~ GetsSnapshot(leader, follower)                             \* reaches_back
    /\ Matches(leader, follower)                                    \* last_record_matches
    /\ follower \in Voters                                          \* is_voter
    /\ Synced(follower) = Leo(follower)                             \* synced
    /\ UNCHANGED <<epochLeader, replicaState, fetchState, committed, told>>
    /\ SettleEffect(replicaLog, snapshotFiles, [counted EXCEPT ![leader][follower] = Leo(follower)])

\* Where the follower has not the epoch that the leader names, it keeps what it has up to it, and asks again.
FollowerTruncate(leader, follower) ==
    /\ leader # follower                                            \* not_leader_itself
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Epoch(follower) = Epoch(leader)                              \* epoch_not_fenced
    /\ ~ GetsSnapshot(leader, follower)                             \* reaches_back
    /\ ~ Matches(leader, follower)                                  \* diverges
    /\ LET epoch  == KnownEpoch(leader, LastEpoch(follower))
           theirs == LargerEpochStart(leader, LastEpoch(follower))
           mine   == LargerEpochStart(follower, epoch)
           end    == IF mine <= Lbo(follower) \/ EpochAt(follower, mine - 1) = epoch THEN Min(theirs, mine) ELSE mine
       IN  /\ UNCHANGED <<epochLeader, replicaState, fetchState, committed, told>>
           /\ SettleEffect([replicaLog EXCEPT ![follower] = [@ EXCEPT !.leo = end, !.synced = Min(end, @)]],
                           snapshotFiles, counted)

\* One that it has already it does not fetch.
FollowerStartOver(leader, follower) ==
    /\ leader # follower                                            \* not_leader_itself
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Epoch(follower) = Epoch(leader)                              \* epoch_not_fenced
    /\ GetsSnapshot(leader, follower)                               \* begins_later
    /\ LatestSnapshot(leader) # NoOffset                            \* snapshot_exists
    /\ LET offset == LatestSnapshot(leader)
           epoch  == File(leader, offset).epoch
       IN  fetchState' = [fetchState EXCEPT ![follower] =
                IF HasSnapshot(follower, offset) /\ File(follower, offset).epoch = epoch
                THEN NotFetching
                ELSE [offset |-> offset, epoch |-> epoch, position |-> 0]]
    /\ UNCHANGED <<epochLeader, replicaLog, replicaState, counted, snapshotFiles, committed, told>>

SnapshotFound(leader, follower) ==
    /\ HasSnapshot(leader, fetchState[follower].offset)
    /\ File(leader, fetchState[follower].offset).epoch = fetchState[follower].epoch

\* With the last chunk the log begins where the snapshot ends, and is empty.
FetchSnapshot(leader, follower) ==
    /\ IsFetching(follower)                                         \* is_fetching
    /\ leader # follower                                            \* not_leader_itself
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Epoch(follower) = Epoch(leader)                              \* epoch_not_fenced
    /\ SnapshotFound(leader, follower)                              \* snapshot_found
    /\ fetchState[follower].position < File(leader, fetchState[follower].offset).size   \* position_in_range
    /\ LET offset   == fetchState[follower].offset
           theirs   == File(leader, offset)
           complete == fetchState[follower].position + 1 = theirs.size
           begin    == offset + 1
       IN  /\ replicaState' = [replicaState EXCEPT ![follower].hw = IF complete THEN begin ELSE @]
           /\ fetchState' = [fetchState EXCEPT ![follower] =
                    IF complete THEN NotFetching ELSE [@ EXCEPT !.position = @ + 1]]
           /\ UNCHANGED <<epochLeader, committed, told>>
           /\ SettleEffect(
                    IF complete
                    THEN [replicaLog EXCEPT ![follower] = [@ EXCEPT !.lbo = begin, !.leo = begin, !.synced = begin]]
                    ELSE replicaLog,
                    [snapshotFiles EXCEPT ![follower][offset] = IF complete THEN theirs ELSE NoFile],
                    counted)

GiveUpEffect(replica) ==
    /\ fetchState' = [fetchState EXCEPT ![replica] = NotFetching]
    /\ UNCHANGED <<epochLeader, replicaLog, replicaState, counted, snapshotFiles, committed, told>>

\* The leader has no such snapshot any more: the follower fetches by its log again.
RediscoverAt(leader, follower) ==
    /\ IsFetching(follower)                                         \* is_fetching
    /\ leader # follower                                            \* not_leader_itself
    /\ Epoch(follower) = Epoch(leader)                              \* epoch_not_fenced
    /\ PresumesLeadership(leader) /\ ~ SnapshotFound(leader, follower)      \* fetch_refused
    /\ GiveUpEffect(follower)

\* Its fetch timeout runs off.
GiveUpSnapshot(replica) ==
    /\ IsFetching(replica)                                          \* is_fetching
    /\ GiveUpEffect(replica)

-----------------------------------------------------------------------------
(* Snapshots, cleaning, restarts. *)

\* Of what a state machine had applied at the end of a batch. An observer never syncs its log: nobody counts on it.
GenerateSnapshot(replica, offset, more) ==
    /\ Lbo(replica) <= offset /\ offset < Hw(replica)               \* below_high_watermark
    /\ LatestSnapshot(replica) < offset                             \* later_than_latest
    /\ offset < Synced(replica) \/ replica \notin Voters            \* synced
    /\ LET applied == Max(File(replica, LatestSnapshot(replica)).records, 0)
       IN  /\ UNCHANGED <<epochLeader, replicaState, fetchState, committed, told>>
           /\ SettleEffect(replicaLog, [snapshotFiles EXCEPT ![replica][offset] = [
                    size    |-> more + 1,
                    epoch   |-> RecordEpoch(replica, offset),
                    records |-> IF Lbo(replica) <= applied THEN offset + 1 ELSE applied]],
                counted)

\* To the end of a snapshot of its own; earlier snapshots go.
DeleteBeforeSnapshot(replica, lbo) ==
    /\ Lbo(replica) < lbo                                           \* increases
    /\ HasSnapshot(replica, lbo - 1)                                \* snapshot_exists
    /\ lbo <= Hw(replica)                                           \* below_high_watermark
    /\ UNCHANGED <<epochLeader, replicaState, fetchState, committed, told>>
    /\ SettleEffect([replicaLog EXCEPT ![replica] = [@ EXCEPT !.lbo = lbo, !.synced = Max(lbo, @)]],
                    snapshotFiles, counted)

\* Who has led has resigned, who has stood stands, though it has heard meanwhile who leads. Its high watermark is
\* where its log begins.
Resume(replica, end) ==
    /\ Synced(replica) <= end                                       \* keeps_synced
    /\ end <= Leo(replica)                                          \* was_written
    /\ Lbo(replica) = 0 \/ Lbo(replica) - 1 <= LatestSnapshot(replica)      \* log_valid
    /\ LET stands == replicaState[replica].voted = replica /\ ~ HasLed(replica)
       IN  /\ replicaState' = [replicaState EXCEPT ![replica] = [@ EXCEPT
                    !.hw = Lbo(replica),
                    !.leader = IF @ = replica \/ stands THEN None ELSE @,
                    !.supporters = IF stands THEN {replica} ELSE {}]]
           /\ fetchState' = [fetchState EXCEPT ![replica] = NotFetching]
           /\ UNCHANGED <<epochLeader, committed, told>>
           /\ SettleEffect([replicaLog EXCEPT ![replica].leo = end], snapshotFiles, counted)

-----------------------------------------------------------------------------

Next ==
    \/ \E replica \in Replicas, epoch \in Epochs : Stand(replica, epoch)
    \/ \E replica, teller \in Replicas : HearOfEpoch(replica, teller)
    \/ \E candidate, voter \in Replicas : GiveVote(candidate, voter)
    \/ \E candidate, voter \in Replicas : CountVote(candidate, voter)
    \/ \E replica \in Replicas : LoseElection(replica)
    \/ \E replica \in Replicas : LeaveEpoch(replica)
    \/ \E replica \in Replicas : TakeOffice(replica)
    \/ \E replica, teller \in Replicas : LearnLeader(replica, teller)
    \/ \E replica, teller \in Replicas : LearnResignedLeader(replica, teller)
    \/ \E leader, follower \in Replicas : BeginEpoch(leader, follower)
    \/ \E leader \in Replicas : Resign(leader)
    \/ \E leader, follower \in Replicas : EndEpoch(leader, follower)
    \/ \E leader, follower \in Replicas : FollowerFetch(leader, follower)
    \/ \E leader, follower \in Replicas : CountFetch(leader, follower)
    \/ \E leader, follower \in Replicas : FollowerTruncate(leader, follower)
    \/ \E leader, follower \in Replicas : FollowerStartOver(leader, follower)
    \/ \E leader, follower \in Replicas : FetchSnapshot(leader, follower)
    \/ \E leader, follower \in Replicas : RediscoverAt(leader, follower)
    \/ \E replica \in Replicas : GiveUpSnapshot(replica)
    \/ \E leader \in Replicas : ClientAppend(leader)
    \/ \E replica \in Replicas : Sync(replica)
    \/ \E leader \in Replicas, offset \in Offsets : RaiseHighWatermark(leader, offset)
    \/ \E leader \in Replicas, offset \in Offsets : TellClient(leader, offset)
    \/ \E replica \in Replicas, offset \in Offsets, more \in Chunks : GenerateSnapshot(replica, offset, more)
    \/ \E replica \in Replicas, lbo \in EndOffsets : DeleteBeforeSnapshot(replica, lbo)
    \/ \E replica \in Replicas, end \in EndOffsets : Resume(replica, end)

Spec == Init /\ [][Next]_vars

=============================================================================
