/* test_host_answer.c: the answer of a daemon is read unchanged. Each contradiction in an answer,
 * and each document that is not an answer, is detected and named. TEST_SEED repeats a run. */
#include "clients/fleet/host_answer.h"

#include "base/json_writer.h"

#include "tests/unit/support/as_json.h"
#include "tests/unit/support/any_fingerprint.h"
#include "fingerprint/fingerprint_json.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CASES = 60, GPUS = 3 };

static struct rng rng;

/* Makes a GPU in the form that the daemon sends: any fingerprint, with a UUID of its own. */
static json_t *make_gpu(uint32_t index, bool measured)
{
    struct fingerprint *const fp = malloc(sizeof(*fp));
    char uuid[64];
    char id[FINGERPRINT_ID_BYTES] = "";
    json_t *gpu;

    assert_non_null(fp);
    snprintf(uuid, sizeof(uuid), "GPU-%016" PRIx64 "-%u", rng_next(&rng), index);
    any_fingerprint(&rng, fp);
    snprintf(fp->gpu.uuid, sizeof(fp->gpu.uuid), "%s", uuid);
    assert_int_equal(fingerprint_id(fp, id, NULL), STATUS_OK);
    gpu = json_pack("{s:i, s:s, s:s, s:n, s:s, s:s?, s:o, s:i}", "index", (int)index, "uuid", uuid,
                    "name", "Chip of a test", "serial", "state", "ready", "fingerprint_id",
                    measured ? id : NULL, "fingerprint",
                    measured ? AS_JSON(fingerprint_write, fp, NULL) : json_null(),
                    "of a later release", 1);
    assert_non_null(gpu);
    free(fp);
    return gpu;
}

static json_t *make_document(void)
{
    json_t *const gpus = json_array();

    for (uint32_t i = 0; i < GPUS; i++)
        json_array_append_new(gpus, make_gpu(i, i != 1));
    return json_pack("{s:s, s:o, s:n}", "daemon_version", "1.2\x1b[31m", "gpus", gpus,
                     "source_error");
}

static json_t *gpu_of(json_t *document, size_t i)
{
    return json_array_get(json_object_get(document, "gpus"), i);
}

static struct host_answer *read(const json_t *document, enum status wanted, const char *why)
{
    static struct host_answer answer;
    struct err err = {0};

    host_answer_free(&answer); /* frees the previous answer */
    const enum status s = host_answer_read(document, &answer, &err);

    if (s != wanted || (why && !strstr(err.text, why)))
        fail_msg("%s: %s, not %s: %s", status_info(s)->slug, err.text, status_info(wanted)->slug,
                 why ? why : "");
    return &answer;
}

static void what_a_daemon_says(void **state)
{
    (void)state;
    for (int i = 0; i < CASES; i++) {
        json_t *const document = make_document();
        char *const text = json_dumps(document, JSON_COMPACT);
        /* Writes the document as text and reads it again, like in a transfer between two processes.
         */
        json_t *const again = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
        const struct host_answer *const c = read(again, STATUS_OK, NULL);
        assert_string_equal(c->daemon_version, "1.2 [31m");
        assert_int_equal(c->gpu_count, GPUS);
        for (uint32_t g = 0; g < GPUS; g++) {
            const json_t *const gpu = gpu_of(document, g);
            assert_int_equal(c->gpus[g].slot, g);
            assert_string_equal(c->gpus[g].uuid, json_string_value(json_object_get(gpu, "uuid")));
            assert_string_equal(c->gpus[g].serial, "");
            assert_string_equal(c->gpus[g].model, "Chip of a test");
            assert_string_equal(c->gpus[g].state, "ready");
            assert_int_equal(c->gpus[g].fingerprint != NULL, g != 1);
            assert_int_equal(c->gpus[g].text != NULL, g != 1);
            assert_int_equal(c->gpus[g].fingerprint_id[0] != '\0', g != 1);
        }
        free(text);
        json_decref(again);
        json_decref(document);
    }
}

/* The answer of a daemon of a later release has one more field, which is part of the hash. This is
 * not a contradiction. */
static void a_later_release(void **state)
{
    json_t *const document = make_document();
    json_t *const fingerprint = json_object_get(gpu_of(document, 0), "fingerprint");
    char id[FINGERPRINT_ID_BYTES];
    struct json_writer writer;
    size_t bytes = 0;
    uint64_t h;

    (void)state;
    json_object_set_new(fingerprint, "added_gbps", json_real(0.1));
    read(document, STATUS_CONFLICT, "not the hash of its content");
    json_object_del(fingerprint, "id");
    json_writer_begin(&writer, 0);
    writer.sorted = true;
    json_writer_value(&writer, NULL, fingerprint);
    char *const text = json_writer_end(&writer, &bytes);
    h = UINT64_C(0xcbf29ce484222325); /* the FNV-1a hash, computed independently */
    for (const char *c = text; *c != '\n'; c++)
        h = (h ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
    free(text);
    snprintf(id, sizeof(id), "fp%016" PRIx64, h);
    json_object_set_new(fingerprint, "id", json_string(id));
    json_object_set_new(gpu_of(document, 0), "fingerprint_id", json_string(id));
    read(document, STATUS_OK, NULL);
    json_decref(document);
}

static void lies(void **state)
{
    (void)state;
    for (int lie = 0; lie < 8; lie++) {
        static const char *const why[] = {"listed twice",
                                          "two GPUs are in slot 0",
                                          "differs from the listed id",
                                          "hash of its content",
                                          "belongs to another GPU",
                                          "without an id",
                                          "without a fingerprint",
                                          "listed twice"};
        json_t *const document = make_document();
        json_t *const first = gpu_of(document, 0);
        json_t *const last = gpu_of(document, 2);
        json_t *const fingerprint = json_object_get(last, "fingerprint");
        char upper[64];
        switch (lie) {
        case 0:
            json_object_set_new(gpu_of(document, 1), "uuid",
                                json_copy(json_object_get(first, "uuid")));
            break;
        case 1:
            json_object_set_new(gpu_of(document, 1), "index", json_integer(0));
            break;
        case 2:
            json_object_set_new(last, "fingerprint_id", json_string("fp0123456789abcdef"));
            break;
        case 3:
            json_object_set_new(fingerprint, "duration_ms", json_integer(77777777));
            break;
        case 4:
            json_object_set(last, "fingerprint", json_object_get(first, "fingerprint"));
            json_object_set(last, "fingerprint_id", json_object_get(first, "fingerprint_id"));
            break;
        case 5:
            json_object_set_new(last, "fingerprint", json_null());
            break;
        case 6:
            json_object_set_new(last, "fingerprint_id", json_null());
            break;
        default:
            snprintf(upper, sizeof(upper), "%s", json_string_value(json_object_get(first, "uuid")));
            for (char *c = upper; *c; c++)
                *c = (char)(*c >= 'a' && *c <= 'z' ? *c - 32 : *c);
            json_object_set_new(gpu_of(document, 1), "uuid", json_string(upper));
        }
        read(document, STATUS_CONFLICT, why[lie]);
        json_decref(document);
    }
}

static void no_answer_of_a_daemon(void **state)
{
    static const char *const texts[] = {
        "[]",
        "{}",
        "1",
        "null",
        "{\"gpus\": {}}",
        "{\"gpus\": [1]}",
        "{\"gpus\": [{}]}",
        "{\"gpus\": [{\"uuid\": \"a b\", \"name\": \"x\", \"state\": \"ready\"}]}",
        "{\"gpus\": [{\"uuid\": \"a\", \"name\": \"\", \"state\": \"ready\"}]}",
        "{\"gpus\": [{\"uuid\": \"a\", \"name\": \"x\", \"state\": \"\\u001b[2J\"}]}",
        "{\"gpus\": [{\"uuid\": \"\\u001b[2J\", \"name\": \"x\", \"state\": \"ready\"}]}",
        "{\"gpus\": [{\"uuid\": \"a\", \"name\": 1, \"state\": \"ready\"}]}",
        "{\"gpus\": [{\"uuid\": \"a\", \"name\": \"x\", \"state\": \"ready\", \"index\": 32}]}",
        "{\"gpus\": [{\"uuid\": \"a\", \"name\": \"x\", \"state\": \"ready\", \"index\": -1}]}",
        "{\"gpus\": [{\"uuid\": \"a\", \"name\": \"x\", \"state\": \"ready\", \"fingerprint_id\": "
        "\"fp1\"}]}",
        "{\"gpus\": [{\"uuid\": \"a\", \"name\": \"x\", \"state\": \"ready\", \"fingerprint_id\": "
        "\"fp0123456789ABCDEF\"}]}",
    };
    json_t *document = make_document();
    json_t *const gpus = json_object_get(document, "gpus");

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        json_t *const json = json_loads(texts[i], JSON_DECODE_ANY, NULL);
        assert_non_null(json);
        read(json, STATUS_PROTOCOL, NULL);
        json_decref(json);
    }
    for (uint32_t i = GPUS; i < REACH_MAX_GPUS; i++)
        json_array_append_new(gpus, make_gpu(i, false));
    read(document, STATUS_OK, NULL);
    json_array_append_new(gpus, make_gpu(0, false));
    read(document, STATUS_PROTOCOL, "33 GPUs");
    json_decref(document);
    /* The id is right, but the document is not a fingerprint. */
    document = make_document();
    json_t *const last = gpu_of(document, 2);
    json_t *const fake = json_pack("{s:{s:s}, s:i}", "gpu", "uuid",
                                   json_string_value(json_object_get(last, "uuid")), "tlb", 1);
    char *const text = json_dumps(fake, JSON_COMPACT | JSON_SORT_KEYS);
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    char id[FINGERPRINT_ID_BYTES];
    for (const char *c = text; *c; c++)
        h = (h ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
    snprintf(id, sizeof(id), "fp%016" PRIx64, h);
    json_object_set_new(fake, "id", json_string(id));
    json_object_set_new(last, "fingerprint_id", json_string(id));
    json_object_set_new(last, "fingerprint", fake);
    read(document, STATUS_PROTOCOL, "the fingerprint of GPU-");
    free(text);
    json_decref(document);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_daemon_says),
        cmocka_unit_test(a_later_release),
        cmocka_unit_test(lies),
        cmocka_unit_test(no_answer_of_a_daemon),
    };
    const char *const given = getenv("TEST_SEED");

    rng.state = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
    print_message("# TEST_SEED=%" PRIu64 "\n", rng.state);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
