/* Breadth-first search over packed keys, in PARTS tables: a key's hash says which it belongs to.
 *
 * A round: each part expands its next block of the level, and lays its successors out by part; then each part takes in
 * what came for it, in the order of the parts. So who is found first depends on nothing but the system, whatever the
 * number of threads. A thread has whole parts; threads wait for each other once a round. advance() comes back after
 * some time, at the end of a level, or where a part needs room: who called it then asks for memory, or gives up.
 */
#define BLOCK 2048            /* states of a part that a round expands */
#define FOUND (LANES * INSTANCES + 8192) /* successors of a round from one part to another */
#define NOBODY UINT32_MAX
#define AHEAD 24              /* successors whose slot is fetched ahead */
#define NEARER 12             /* those whose member is, too */
#define HUGE_PAGES (16u << 20) /* arrays from this many bytes on */

enum { LEVEL, TIME, ROOM, BROKEN, TOO_MANY };

typedef struct {
    Part parts[PARTS];
    uint64_t most;
    uint8_t wanted[INVARIANTS + 1];
    unsigned parity, pending;
    int late[2];
    double until;
    unsigned threads;
    int outcome, open;
    pthread_barrier_t barrier;
    pthread_mutex_t lock;
    pthread_cond_t opened;
} Search;

typedef struct {
    Search *search;
    unsigned number;
} Worker;

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

/* The low half says the part and the bits beside a number, the high half the slot. */
static inline uint64_t hashed(const uint64_t *key)
{
    uint64_t mixed = key[0] * 0x9E3779B97F4A7C15u;
    for (unsigned word = 1; word < WORDS; word++) {
        mixed ^= mixed >> 29;
        mixed += key[word];
        mixed *= 0xC2B2AE3D27D4EB4Fu;
    }
    mixed ^= mixed >> 32;
    mixed *= 0xD6E8FEB86659FD93u;
    return mixed ^ mixed >> 29;
}

static inline uint32_t home(const Part *part, uint64_t hash)
{
    return (uint32_t)((hash >> 32) * part->slot_count >> 32);
}

static inline uint32_t tagged(const Part *part, uint64_t hash)
{
    return (uint32_t)(hash >> 2) << part->number_bits;
}

static inline int same(const uint64_t *one, const uint64_t *other)
{
    uint64_t apart = 0;
    for (unsigned word = 0; word < WORDS; word++)
        apart |= one[word] ^ other[word];
    return !apart;
}

/* The member of this key, a new one where there is none. There is room for it. */
static inline uint32_t member(Part *part, const uint64_t *key, uint64_t hash, uint32_t slot)
{
    uint32_t tag = tagged(part, hash), numbers = ((uint32_t)1 << part->number_bits) - 1;
    for (;; slot = slot + 1 == part->slot_count ? 0 : slot + 1) {
        uint32_t held = part->slots[slot];
        if (!held) {
            part->slots[slot] = tag | ++part->count;
            memcpy(part->keys + (size_t)(part->count - 1) * WORDS, key, 8 * WORDS);
            return part->count - 1;
        }
        if ((held & ~numbers) == tag) {
            uint32_t number = (held & numbers) - 1;
            if (same(part->keys + (size_t)number * WORDS, key))
                return number;
        }
    }
}

static void take_in(Part *part, const uint64_t *found, uint32_t count)
{
    uint64_t hashes[32];
    uint32_t slots[32];
    uint32_t numbers = ((uint32_t)1 << part->number_bits) - 1;
    for (uint32_t i = 0; i < count + AHEAD; i++) {
        if (i < count) {
            uint64_t hash = hashed(found + (size_t)i * ENTRY);
            hashes[i & 31] = hash;
            slots[i & 31] = home(part, hash);
            __builtin_prefetch(part->slots + slots[i & 31]);
        }
        if (i >= NEARER && i - NEARER < count) {
            uint32_t j = (i - NEARER) & 31, held = part->slots[slots[j]];
            if (held && (held & ~numbers) == tagged(part, hashes[j]))
                __builtin_prefetch(part->keys + (size_t)((held & numbers) - 1) * WORDS);
        }
        if (i >= AHEAD) {
            uint32_t j = (i - AHEAD) & 31, known = part->count;
            const uint64_t *entry = found + (size_t)(i - AHEAD) * ENTRY;
            member(part, entry, hashes[j], slots[j]);
            if (part->count != known) {
                part->parents[known] = (uint32_t)(entry[WORDS] >> 32);
                part->discoveries[(uint32_t)entry[WORDS]]++;
            }
        }
    }
}

/* Find the members' slots again in a larger table: all differ, so no key is compared. */
static void refill(Part *part)
{
    uint32_t slots[32];
    uint32_t tags[32];
    for (uint32_t i = 0; i < part->count + AHEAD; i++) {
        if (i < part->count) {
            uint64_t hash = hashed(part->keys + (size_t)i * WORDS);
            slots[i & 31] = home(part, hash);
            tags[i & 31] = tagged(part, hash);
            __builtin_prefetch(part->slots + slots[i & 31], 1);
        }
        if (i >= AHEAD) {
            uint32_t j = (i - AHEAD) & 31, slot = slots[j];
            while (part->slots[slot])
                slot = slot + 1 == part->slot_count ? 0 : slot + 1;
            part->slots[slot] = tags[j] | (i - AHEAD + 1);
        }
    }
    part->stale = 0;
}

static void lay_out(Part *part, unsigned parity)
{
    for (uint32_t i = 0; i < part->staged_count; i++) {
        const uint64_t *entry = part->staged + (size_t)i * ENTRY;
        unsigned to = hashed(entry) & (PARTS - 1);
        memcpy(part->found[parity][to] + (size_t)part->found_count[parity][to]++ * ENTRY, entry, 8 * ENTRY);
    }
}

static void expand(Search *search, unsigned number, unsigned parity)
{
    Part *part = &search->parts[number];
    uint32_t last = part->end - part->at > BLOCK ? part->at + BLOCK : part->end;
    int full = 0;
    memset(part->found_count[parity], 0, sizeof part->found_count[parity]);
    while (part->at < last && !full && !part->broken) {
        uint32_t count = last - part->at < LANES ? last - part->at : LANES;
        part->staged_count = 0;
        group(part, number, part->keys + (size_t)part->at * WORDS, count, search->wanted);
        lay_out(part, parity);
        part->at += count;
        for (unsigned to = 0; to < PARTS; to++)
            full |= part->found_count[parity][to] > FOUND - LANES * INSTANCES;
    }
    part->note[parity] = (Note){part->count, part->at == part->end, part->broken};
}

static uint32_t incoming(const Search *search, unsigned to, unsigned parity)
{
    uint32_t sum = 0;
    for (unsigned from = 0; from < PARTS; from++)
        sum += search->parts[from].found_count[parity][to];
    return sum;
}

/* What becomes of a round that is expanded. Nothing is read that a thread which is ahead of this one may write. */
static int decided(const Search *search, unsigned parity)
{
    uint64_t count = 0;
    int finished = 1, broken = 0, room = 1;
    for (unsigned number = 0; number < PARTS; number++) {
        const Note *note = &search->parts[number].note[parity];
        count += note->count;
        finished &= (int)note->finished;
        broken |= (int)note->broken;
        room &= note->count + (uint64_t)incoming(search, number, parity) <= search->parts[number].room;
    }
    if (broken)
        return BROKEN;
    if (count > search->most)
        return TOO_MANY;
    if (!room)
        return ROOM;
    return finished ? LEVEL : search->late[parity] ? TIME : -1;
}

static void rounds(Search *search, unsigned thread)
{
    unsigned parity = search->parity, pending = search->pending;
    for (unsigned number = thread; number < PARTS; number += search->threads)
        if (search->parts[number].stale)
            refill(&search->parts[number]);
    for (;;) {
        if (!pending) {
            for (unsigned number = thread; number < PARTS; number += search->threads)
                expand(search, number, parity);
            if (!thread)
                search->late[parity] = now() > search->until;
            if (search->threads > 1)
                pthread_barrier_wait(&search->barrier);
        }
        pending = 0;
        int outcome = decided(search, parity);
        if (outcome != BROKEN && outcome != TOO_MANY && outcome != ROOM)
            for (unsigned to = thread; to < PARTS; to += search->threads)
                for (unsigned from = 0; from < PARTS; from++)
                    take_in(&search->parts[to], search->parts[from].found[parity][to],
                            search->parts[from].found_count[parity][to]);
        if (outcome >= 0) {
            if (!thread) {
                search->outcome = outcome;
                search->parity = parity;
            }
            return;
        }
        parity ^= 1;
    }
}

static void *begin(void *given)
{
    Worker *worker = given;
    Search *search = worker->search;
    pthread_mutex_lock(&search->lock);
    while (!search->open)
        pthread_cond_wait(&search->opened, &search->lock);
    pthread_mutex_unlock(&search->lock);
    if (worker->number < search->threads)
        rounds(search, worker->number);
    return NULL;
}

/* Go on for so many seconds, by at most so many threads: fewer where the system gives no more. */
int advance(Search *search, unsigned threads, double seconds)
{
    pthread_t started[PARTS];
    Worker workers[PARTS];
    unsigned count = 1;
    search->until = now() + seconds;
    search->open = 0;
    pthread_mutex_init(&search->lock, NULL);
    pthread_cond_init(&search->opened, NULL);
    while (count < threads && count < PARTS) {
        workers[count] = (Worker){search, count};
        if (pthread_create(&started[count], NULL, begin, &workers[count]))
            break;
        count++;
    }
    pthread_barrier_init(&search->barrier, NULL, count);
    pthread_mutex_lock(&search->lock);
    search->threads = count;
    search->open = 1;
    pthread_cond_broadcast(&search->opened);
    pthread_mutex_unlock(&search->lock);
    rounds(search, 0);
    for (unsigned number = 1; number < count; number++)
        pthread_join(started[number], NULL);
    pthread_barrier_destroy(&search->barrier);
    pthread_cond_destroy(&search->opened);
    pthread_mutex_destroy(&search->lock);
    search->pending = search->outcome == ROOM;
    return search->outcome;
}

static void *pages(void *former, size_t was, size_t bytes)
{
    void *made = former ? mremap(former, was, bytes, MREMAP_MAYMOVE)
                        : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return made == MAP_FAILED ? NULL : made;
}

static size_t key_bytes(uint32_t room)
{
    /* A group reads whole vectors: past the last member there must be something. */
    return ((size_t)room + LANES) * WORDS * 8;
}

/* Give a part so many slots, and room for three members to four slots. 0, or -1 where the system gives no pages. */
int grow(Search *search, unsigned number, uint32_t slot_count)
{
    Part *part = &search->parts[number];
    uint32_t room = (uint32_t)((uint64_t)slot_count * 3 / 4);
    uint64_t *keys = pages(part->keys, key_bytes(part->room), key_bytes(room));
    if (!keys)
        return -1;
    part->keys = keys;
    uint32_t *parents = pages(part->parents, (size_t)part->room * 4, (size_t)room * 4);
    if (!parents)
        return -1;
    part->parents = parents;
    if (part->slots)
        munmap(part->slots, (size_t)part->slot_count * 4);
    part->slots = pages(NULL, 0, (size_t)slot_count * 4);
    if (!part->slots)
        return -1;
    if ((size_t)slot_count * 4 >= HUGE_PAGES)
        madvise(part->slots, (size_t)slot_count * 4, MADV_HUGEPAGE);
    if (key_bytes(room) >= HUGE_PAGES)
        madvise(part->keys, key_bytes(room), MADV_HUGEPAGE);
    part->room = room;
    part->slot_count = slot_count;
    part->number_bits = 32 - (unsigned)__builtin_clz(room);
    part->stale = 1;
    return 0;
}

void finish(Search *search)
{
    for (unsigned number = 0; number < PARTS; number++) {
        Part *part = &search->parts[number];
        if (part->keys)
            munmap(part->keys, key_bytes(part->room));
        if (part->parents)
            munmap(part->parents, (size_t)part->room * 4);
        if (part->slots)
            munmap(part->slots, (size_t)part->slot_count * 4);
        free(part->staged);
        for (unsigned parity = 0; parity < 2; parity++)
            for (unsigned to = 0; to < PARTS; to++)
                free(part->found[parity][to]);
    }
    free(search);
}

/* The bytes that a search takes beside its members and slots, at most. */
uint64_t fixed_bytes(void)
{
    return sizeof(Search) + (uint64_t)PARTS * 8 * ENTRY * (LANES * INSTANCES + 2 * PARTS * (uint64_t)FOUND);
}

/* A search without members. ``wanted`` says of each invariant whether it is checked. NULL where there is no memory. */
Search *start(uint64_t most, const uint8_t *wanted)
{
    Search *search = calloc(1, sizeof *search);
    int made = search != NULL;
    for (unsigned number = 0; made && number < PARTS; number++) {
        Part *part = &search->parts[number];
        made &= (part->staged = malloc((size_t)8 * ENTRY * LANES * INSTANCES)) != NULL;
        for (unsigned parity = 0; parity < 2; parity++)
            for (unsigned to = 0; to < PARTS; to++)
                made &= (part->found[parity][to] = malloc((size_t)8 * ENTRY * FOUND)) != NULL;
        made &= !grow(search, number, 1 << 14);
        if (made)
            part->stale = 0;
    }
    if (!made) {
        if (search)
            finish(search);
        return NULL;
    }
    search->most = most;
    memcpy(search->wanted, wanted, INVARIANTS);
    return search;
}

/* Take in members in the order in which they were found: ``keys`` has their words side by side, ``parents`` the place of
 * one that leads there (-1: none). Those from ``begins`` on are the level that comes next. ``named`` gets their numbers.
 * There is room for all in every part.
 */
void seed(Search *search, const uint64_t *keys, const int32_t *parents, uint64_t count, uint64_t begins, uint32_t *named)
{
    for (unsigned number = 0; number < PARTS; number++)
        if (search->parts[number].stale)
            refill(&search->parts[number]);
    for (uint64_t i = 0; i < count; i++) {
        if (i == begins)
            for (unsigned number = 0; number < PARTS; number++)
                search->parts[number].at = search->parts[number].count;
        uint64_t hash = hashed(keys + i * WORDS);
        unsigned to = hash & (PARTS - 1);
        Part *part = &search->parts[to];
        uint32_t number = member(part, keys + i * WORDS, hash, home(part, hash));
        part->parents[number] = parents[i] < 0 ? NOBODY : named[parents[i]];
        named[i] = number * PARTS + to;
    }
    for (unsigned number = 0; number < PARTS; number++)
        search->parts[number].end = search->parts[number].count;
}

/* Begin the level of all that was found since the last one began. */
void next_level(Search *search)
{
    for (unsigned number = 0; number < PARTS; number++) {
        Part *part = &search->parts[number];
        part->at = part->end;
        part->end = part->count;
        memset(part->transitions, 0, sizeof part->transitions);
        memset(part->discoveries, 0, sizeof part->discoveries);
        memset(part->witnesses, 0, sizeof part->witnesses);
    }
}

/* Of each part: members, room, slots, what is to come in, the next to expand, the level's end. */
void told(const Search *search, uint64_t *out)
{
    for (unsigned number = 0; number < PARTS; number++) {
        const Part *part = &search->parts[number];
        uint64_t of[] = {part->count, part->room, part->slot_count,
                         search->pending ? incoming(search, number, search->parity) : 0, part->at, part->end};
        memcpy(out + 6 * number, of, sizeof of);
    }
}

/* Of the level: transitions and discoveries by instance, and how often each witness was met. */
void counted(const Search *search, uint64_t *transitions, uint64_t *discoveries, uint64_t *witnesses)
{
    for (unsigned number = 0; number < PARTS; number++) {
        const Part *part = &search->parts[number];
        for (unsigned i = 0; i < INSTANCES; i++) {
            transitions[i] += part->transitions[i];
            discoveries[i] += part->discoveries[i];
        }
        for (unsigned i = 0; i < WITNESSES; i++)
            witnesses[i] += part->witnesses[i];
    }
}

/* The first member of the level that breaks an invariant, and which; or 0. */
int broken(const Search *search, uint32_t *out)
{
    int any = 0;
    for (unsigned number = 0; number < PARTS; number++) {
        const Part *part = &search->parts[number];
        if (part->broken && (!any || part->broken_row < out[0] / PARTS)) {
            any = 1;
            out[0] = part->broken_row * PARTS + number;
            out[1] = part->broken_invariant;
        }
    }
    return any;
}

/* The same of the first member with a successor outside of the domains, and the instance that leads there. */
int escaped(const Search *search, uint32_t *out)
{
    int any = 0;
    for (unsigned number = 0; number < PARTS; number++) {
        const Part *part = &search->parts[number];
        if (part->escaped && (!any || part->escaped_row < out[0] / PARTS)) {
            any = 1;
            out[0] = part->escaped_row * PARTS + number;
            out[1] = part->escaped_instance;
        }
    }
    return any;
}

/* A member's key, and the number of one that leads there. */
uint32_t looked_up(const Search *search, uint32_t number, uint64_t *key)
{
    const Part *part = &search->parts[number % PARTS];
    memcpy(key, part->keys + (size_t)(number / PARTS) * WORDS, 8 * WORDS);
    return part->parents[number / PARTS];
}
