/* patch_cases.cc: the patch of reach-profile (clients/profile/inject/patch.cu) on the CPU, with random lanes active and
 * random addresses: pages, counters and records equal those of a plain loop. PATCH is the name of the patch without its
 * PTX. Prints TAP. TEST_SEED repeats a run, and REACH_COUNT sets the number of warp executions. */
#include "tests/cuda_on_host/cuda_runtime.h"

static unsigned long long timer_ns = 1; /* the timer of the GPU */

#include PATCH

#include <ctime>
#include <map>
#include <set>

enum { WARPS = 3, INSTRUCTIONS = 5 };

static uint64_t random_state;
static int point, failed;

static uint64_t random_below(uint64_t n)
{
    random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
    return (random_state >> 20) % n;
}

static void ok(bool right, const char *name)
{
    printf("%sok %d - %s\n", right ? "" : "not ", ++point, name);
    failed += !right;
}

/* One execution by a warp. */
struct execution {
    uint64_t pc, block;
    unsigned warp, mask, kind, bytes;
    std::vector<uint64_t> addresses; /* of the active lanes */

    bool operator<(const execution &other) const
    {
        return std::tie(block, warp, mask, kind, bytes, addresses) <
               std::tie(other.block, other.warp, other.mask, other.kind, other.bytes, other.addresses);
    }
};

struct counters {
    uint64_t warps, lanes, runs;
};

static execution random_execution()
{
    static const unsigned widths[] = {1, 2, 4, 8, 16};
    execution e = {};
    e.pc = 16 * random_below(INSTRUCTIONS);
    e.kind = e.pc / 16 % 3;
    e.bytes = widths[e.pc / 16];
    e.block = random_below(24);
    e.warp = random_below(WARPS);
    e.mask = random_below(3) ? (unsigned)random_below(1ull << 32) : random_below(2) ? ~0u : 1u << random_below(32);
    e.mask = e.mask ? e.mask : 1;
    const uint64_t base = (1ull << 44) + random_below(1ull << 37) / 16 * 16;
    /* Strides of contiguous, equal, descending and page-wide accesses, and addresses without a stride. */
    const int64_t strides[] = {e.bytes, 0, -(int64_t)e.bytes, 4096, 1 << 21, -(1ll << 33), 3ll << 21};
    const bool scattered = random_below(3) == 0;
    const int64_t stride = strides[random_below(7)];
    for (unsigned lane = 0, rank = 0; lane < 32; lane++) {
        if (e.mask >> lane & 1)
            e.addresses.push_back(scattered ? base + random_below(1ull << 32) / 16 * 16
                                            : base + (uint64_t)(stride * rank++) + (1ull << 42));
    }
    return e;
}

static void run(const execution &e, profile_launch *launch)
{
    const uint32_t flags[] = {1, 2, 3};
    const std::function<void()> body = [&] {
        const unsigned lane = threadIdx.x % 32;
        if (threadIdx.x / 32 != e.warp || !(e.mask >> lane & 1))
            return;
        const unsigned rank = (unsigned)__builtin_popcount(e.mask & ((1u << lane) - 1));
        reach_profile_access(launch, e.pc, (void *)e.addresses[rank], e.bytes, flags[e.kind], nullptr);
    };
    gridDim = dim3(4);
    gridDim.y = 3;
    gridDim.z = 2;
    blockIdx.x = (unsigned)(e.block % 4);
    blockIdx.y = (unsigned)(e.block / 4 % 3);
    blockIdx.z = (unsigned)(e.block / 12);
    blockDim = dim3(32 * WARPS);
    cuda_on_host::active = e.mask;
    cuda_on_host::body = &body;
    cuda_on_host::run_block(blockDim.x);
}

static uint64_t runs_of(const execution &e)
{
    uint64_t runs = 1;
    for (size_t i = 1; i < e.addresses.size(); i++)
        runs += e.addresses[i] != e.addresses[i - 1] && e.addresses[i] != e.addresses[i - 1] + e.bytes;
    return runs;
}

static std::multiset<execution> records_of(const profile_launch &l)
{
    std::multiset<execution> found;
    for (uint64_t at = 0; at + PROFILE_HEAD_WORDS <= l.used && at < l.room;) {
        const profile_record *const r = (const profile_record *)(l.words + at);
        const uint64_t *const list = (const uint64_t *)(l.words + at + PROFILE_HEAD_WORDS);
        const bool listed = r->kind_bytes & PROFILE_LISTED;
        execution e = {0, r->block, r->warp, r->mask, r->kind_bytes >> 8 & 3, r->kind_bytes & 0xff, {}};
        const unsigned lanes = (unsigned)__builtin_popcount(r->mask);
        for (unsigned k = 0; k < lanes; k++)
            e.addresses.push_back(listed ? list[k] : r->base + (uint64_t)((int64_t)r->stride * k));
        found.insert(e);
        at += PROFILE_HEAD_WORDS + (listed ? 2 * lanes : 0);
    }
    return found;
}

static bool any_others(const profile_launch &l)
{
    for (const auto &widths : l.others) {
        for (const profile_instruction &i : widths) {
            if (i.warps)
                return true;
        }
    }
    return false;
}

/* Fills all slots of the instructions, and compares the counters without a slot with the executions. */
static bool counts_others(profile_launch l, int executions)
{
    std::vector<profile_instruction> full(PROFILE_COPIES * PROFILE_INSTRUCTIONS, {~0ull, 0, 0, 0, 0, 0});
    std::map<unsigned, counters> counted; /* by kind and bytes */
    bool equal = true;
    l.instructions = full.data();
    for (int i = 0; i < executions; i++) {
        const execution e = random_execution();
        run(e, &l);
        counters &c = counted[e.kind << 8 | e.bytes];
        c.warps++;
        c.lanes += e.addresses.size();
        c.runs += runs_of(e);
    }
    for (unsigned kind = 0; kind < PROFILE_KINDS; kind++) {
        for (unsigned width = 0; width < PROFILE_WIDTHS; width++) {
            const profile_instruction &i = l.others[kind][width];
            const counters &c = counted[kind << 8 | (width ? 1u << (width - 1) : 0)];
            equal = equal && i.warps == c.warps && i.lanes == c.lanes && i.runs == c.runs;
        }
    }
    return equal;
}

/* Copies a tile by the tensor memory accelerator. Returns the only instruction that was counted. */
static profile_instruction copied(profile_launch l)
{
    std::vector<profile_instruction> none(PROFILE_COPIES * PROFILE_INSTRUCTIONS);
    const std::function<void()> body = [&] { reach_profile_bulk_load(&l, 16, 1ull << 44, 0, 0, 256, 0); };
    l.instructions = none.data();
    cuda_on_host::active = 1;
    cuda_on_host::body = &body;
    cuda_on_host::run_block(1);
    for (const profile_instruction &i : none) {
        if (i.pc)
            return i;
    }
    return {};
}

int main()
{
    const char *const seed = getenv("TEST_SEED"), *const count = getenv("REACH_COUNT");
    random_state = seed ? strtoull(seed, nullptr, 0) : (uint64_t)time(nullptr);
    printf("# TEST_SEED=%llu\n", (unsigned long long)random_state);
    const int executions = count ? atoi(count) : 400;
    std::vector<uint64_t> pages(PROFILE_PAGES);
    std::vector<profile_instruction> instructions(PROFILE_COPIES * PROFILE_INSTRUCTIONS);
    std::vector<uint64_t> words(1 << 16); /* aligned for the lists of addresses */
    profile_launch l = {};
    l.pages = pages.data();
    l.instructions = instructions.data();
    l.words = (uint32_t *)words.data();
    l.room = words.size() * 2;
    l.run_shift = 1;
    l.every = 3;

    std::set<uint64_t> touched;
    std::map<uint64_t, counters> counted;
    std::multiset<execution> sampled;
    for (int i = 0; i < executions; i++) {
        execution e = random_execution();
        run(e, &l);
        for (uint64_t address : e.addresses)
            touched.insert(address >> PROFILE_PAGE_SHIFT);
        counters &c = counted[e.pc];
        c.warps++;
        c.lanes += e.addresses.size();
        c.runs += runs_of(e);
        e.pc = 0; /* a record has no program counter */
        if ((e.block >> l.run_shift) % l.every == 0)
            sampled.insert(e);
    }

    std::set<uint64_t> found;
    for (uint64_t page : pages) {
        if (page)
            found.insert(page - 1);
    }
    ok(found == touched && l.pages_lost == 0, "every touched page, and no other");
    bool equal = true;
    std::map<uint64_t, counters> sums;
    for (const profile_instruction &i : instructions) {
        if (!i.pc)
            continue;
        counters &c = sums[i.pc - 1];
        c.warps += i.warps;
        c.lanes += i.lanes;
        c.runs += i.runs;
    }
    for (const auto &[pc, c] : sums)
        equal = equal && counted[pc].warps == c.warps && counted[pc].lanes == c.lanes && counted[pc].runs == c.runs;
    ok(equal && sums.size() == counted.size() && !any_others(l), "counters of each instruction");
    const std::multiset<execution> records = records_of(l);
    ok(l.records_lost == 0 && records.size() == sampled.size() &&
           std::equal(records.begin(), records.end(), sampled.begin(),
                      [](const execution &a, const execution &b) { return !(a < b) && !(b < a); }),
       "records of the sampled blocks with all addresses");

    ok(counts_others(l, executions), "counters by kind and width of the instructions without a slot");
    const profile_instruction copy = copied(l);
    ok(copy.pc == 17 && copy.kind_bytes == PROFILE_LOAD << 8 && copy.warps == 1,
       "a bulk copy is counted apart from the accesses that have records");

    const unsigned long long used = l.used;
    l.room = used;
    execution more = random_execution();
    more.block = 0;
    run(more, &l);
    ok(l.records_lost == 1 && l.used > used, "a record without room is lost, and counted");

    const unsigned long long lost = l.records_lost;
    l.limit_ns = 1000;
    timer_ns = l.begin_ns + l.limit_ns;
    run(more, &l);
    ok(l.is_late == 0 && l.records_lost == lost + 1, "an access within the limit of time is recorded");
    timer_ns++;
    run(more, &l);
    ok(l.is_late == 1 && l.records_lost == lost + 1, "an access after the limit is not");
    profile_launch none = {};
    run(more, nullptr);
    ok(none.used == 0, "a launch without data records nothing");
    printf("1..%d\n", point);
    return failed != 0;
}
