/* test_metrics.c: metrics of fingerprints. Unknown numbers are absent, labels may contain any
 * text, and every GPU has the same number of series. REACH_SEED repeats a run. */
#include "api/encode/metrics.h"
#include "base/units.h"
#include "fingerprint/fingerprint.h"
#include "snapshot/snapshot.h"
#include "tests/unit/support/any_fingerprint.h"
#include "tests/unit/support/paper_gpu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { RANDOM_PAGES = 200, MOST_SERIES = 70, LINE_BYTES = 2048 };

static char *page_of(const struct snapshot *s)
{
    char *text = NULL;
    size_t bytes = 0;
    struct metrics_page p = {.out = open_memstream(&text, &bytes)};

    assert_non_null(p.out);
    metrics_gpu(&p, s);
    assert_int_equal(fclose(p.out), 0);
    assert_int_equal(strlen(text), bytes);
    return text;
}

/* Makes a snapshot of one GPU with an empty fingerprint. */
static struct snapshot *one_gpu(void)
{
    struct snapshot *s = snapshot_draft(1);

    assert_non_null(s);
    (void)snprintf(s->gpus[0].identity.uuid, sizeof(s->gpus[0].identity.uuid), "GPU-1");
    s->gpus[0].has_fingerprint = true;
    fingerprint_init(&s->gpus[0].fingerprint);
    return s;
}

static void expect_line(const char *page, const char *line)
{
    char with_ends[LINE_BYTES];

    (void)snprintf(with_ends, sizeof(with_ends), "\n%s\n", line);
    if (!strstr(page, with_ends))
        fail_msg("no line \"%s\" in:\n%s", line, page);
}

static void what_is_not_known_has_no_sample(void **state)
{
    struct snapshot *s = one_gpu();
    char *page = page_of(s);

    (void)state;
    assert_null(strstr(page, "nan"));
    assert_null(strstr(page, "\nreachd_gpu_reach_bytes{"));
    assert_null(strstr(page, "\nreachd_gpu_plateau_bytes_per_second{"));
    assert_null(strstr(page, "\nreachd_gpu_groups{"));
    expect_line(page, "reachd_gpu_tlb_levels{gpu=\"GPU-1\"} 0");
    expect_line(page,
                "reachd_gpu_fingerprint_info{gpu=\"GPU-1\",model=\"\",signature=\"\",map=\"\","
                "origin=\"measured\",driver=\"\",depth=\"quick\"} 1");
    free(page);
    s->gpus[0].has_fingerprint = false;
    page = page_of(s);
    assert_null(strstr(page, "\nreachd_gpu_fingerprint"));
    expect_line(page, "reachd_gpu_sms{gpu=\"GPU-1\"} 0");
    free(page);
    snapshot_discard(s);
}

static void numbers_are_in_base_units(void **state)
{
    struct snapshot *s = one_gpu();
    struct fingerprint *fp = &s->gpus[0].fingerprint;
    char *page;

    (void)state;
    fp->windows.reach_bytes = KNOWN_U64(64 * GIB);
    fp->throughput.plateau_gbps = KNOWN_F64(2902.5);
    fp->duration_ms = 1250;
    fp->conditions.verdict = VERDICT_DISTURBED;
    fp->level_count = 2;
    fp->levels[1].level = 2;
    fp->levels[1].entries = KNOWN_U32(2049);
    fp->levels[1].miss_penalty_cycles = KNOWN_F64(90.5);
    page = page_of(s);
    expect_line(page, "reachd_gpu_reach_bytes{gpu=\"GPU-1\"} 68719476736");
    expect_line(page, "reachd_gpu_plateau_bytes_per_second{gpu=\"GPU-1\"} 2902500000000");
    expect_line(page, "reachd_gpu_fingerprint_duration_seconds{gpu=\"GPU-1\"} 1.25");
    expect_line(page, "reachd_gpu_fingerprint_verdict{gpu=\"GPU-1\",verdict=\"clean\"} 0");
    expect_line(page, "reachd_gpu_fingerprint_verdict{gpu=\"GPU-1\",verdict=\"disturbed\"} 1");
    expect_line(page, "reachd_gpu_tlb_entries{gpu=\"GPU-1\",level=\"2\"} 2049");
    expect_line(page, "reachd_gpu_tlb_miss_penalty_cycles{gpu=\"GPU-1\",level=\"2\"} 90.5");
    free(page);
    snapshot_discard(s);
}

static void any_text_stands_in_a_label(void **state)
{
    struct snapshot *s = one_gpu();
    struct fingerprint *fp = &s->gpus[0].fingerprint;
    char *page;

    (void)state;
    (void)snprintf(fp->gpu.name, sizeof(fp->gpu.name),
                   "a\"b\\c\nd\re\xff\xc3\xa9"
                   "} 1");
    memset(fp->topology.disabled.signature, 'x', FINGERPRINT_SIGNATURE_BYTES - 1);
    (void)snprintf(fp->gpu.driver_version, sizeof(fp->gpu.driver_version), "%s", "\xe2\x82");
    page = page_of(s);
    assert_non_null(strstr(page, ",model=\"a\\\"b\\\\c d e?\xc3\xa9} 1\",signature=\"xxx"));
    assert_non_null(strstr(page, "xxx\",map=\"\",origin=\"measured\",driver=\"?"));
    assert_null(strchr(page, '\r'));
    assert_null(strchr(page, '\xff'));
    free(page);
    snapshot_discard(s);
}

/* Returns how many sample lines of the page contain `needle`. */
static uint32_t count_samples(const char *page, const char *needle)
{
    uint32_t count = 0;

    for (const char *line = page; *line; line += strcspn(line, "\n") + 1) {
        const char *hit = strstr(line, needle);
        count += *line != '#' && hit && hit < line + strcspn(line, "\n") ? 1 : 0;
    }
    return count;
}

static void series_are_few_however_large_the_gpu(void **state)
{
    struct rng r = {.state = paper_seed("metrics", 20261121)};
    struct snapshot *s = snapshot_draft(2);
    uint32_t most = 0;

    (void)state;
    assert_non_null(s);
    (void)snprintf(s->gpus[0].identity.uuid, sizeof(s->gpus[0].identity.uuid), "GPU-A");
    (void)snprintf(s->gpus[1].identity.uuid, sizeof(s->gpus[1].identity.uuid), "GPU-B");
    for (int i = 0; i < RANDOM_PAGES; i++) {
        char map[FINGERPRINT_MAP_HASH_BYTES];
        char *page;
        any_fingerprint(&r, &s->gpus[0].fingerprint);
        s->gpus[0].has_fingerprint = true;
        page = page_of(s);
        const uint32_t series = count_samples(page, "{gpu=\"GPU-A\"");
        most = series > most ? series : most;
        assert_int_equal(count_samples(page, "sm=\""), 0);
        assert_int_equal(count_samples(page, "reachd_gpu_fingerprint_info{gpu=\"GPU-A\""), 1);
        assert_int_equal(count_samples(page, "reachd_gpu_fingerprint_info{gpu=\"GPU-B\""), 0);
        fingerprint_map_hash(&s->gpus[0].fingerprint.topology.partition, map);
        assert_true(map[0] == '\0' || count_samples(page, map) == 1);
        free(page);
    }
    print_message("at most %u series for a GPU\n", most);
    assert_in_range(most, 20, MOST_SERIES);
    snapshot_discard(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_known_has_no_sample),
        cmocka_unit_test(numbers_are_in_base_units),
        cmocka_unit_test(any_text_stands_in_a_label),
        cmocka_unit_test(series_are_few_however_large_the_gpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
