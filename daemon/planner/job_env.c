/* job_env.c: see job_env.h. Any program can write into an environment, so the text is not trusted.
 * The reader of fingerprints reads it and checks every field and the whole fingerprint. */
#include "planner/job_env.h"

#include "base/hash.h"
#include "base/json_writer.h"
#include "fingerprint/fingerprint_json.h"
#include "fingerprint/fingerprint_read.h"
#include "planner/placement.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BEGIN  "{\"version\":"
#define DIGITS "0123456789"

enum { FIRST_BYTES = 16 << 10 }; /* enough for most texts */
enum { CHECK_BYTES = sizeof ",\"check\":\"0123456789abcdef\"}" };

/* Writes the member `check` and the closing brace for a text that has `bytes` before them. Returns
 * `out`, which needs CHECK_BYTES. */
static const char *format_check(const char *text, size_t bytes, char *out)
{
    (void)snprintf(out, CHECK_BYTES, ",\"check\":\"%016" PRIx64 "\"}",
                   hash_bytes(HASH_START, text, bytes));
    return out;
}

/* ---- the text ---- */

char *job_env_text(const struct fingerprint *fp, const char *id, struct err *err)
{
    struct json_writer t;
    size_t bytes = 0;
    char *text;
    char *out;

    json_writer_begin(&t, FIRST_BYTES);
    json_writer_open(&t, NULL, '{');
    json_writer_u64(&t, "version", 1);
    json_writer_text(&t, "id", id);
    fingerprint_write_for_planner(&t, fp);
    json_writer_close(&t, '}');
    text = json_writer_end(&t, &bytes);
    out = text ? realloc(text, bytes + CHECK_BYTES) : NULL;
    if (!out) {
        free(text);
        err_no_memory(err, "the environment of GPU %s", fp->gpu.uuid);
        return NULL;
    }
    bytes -= strlen("}\n");
    if (bytes + CHECK_BYTES > JOB_ENV_TEXT_BYTES) {
        err_set(err, STATUS_INTERNAL, "the environment of GPU %s needs %zu bytes of at most %d",
                fp->gpu.uuid, bytes + CHECK_BYTES, (int)JOB_ENV_TEXT_BYTES);
        free(out);
        return NULL;
    }
    for (size_t i = 0; i < bytes; i++)
        out[i] = out[i] < ' ' || out[i] > '~' ? '?' : out[i];
    (void)format_check(out, bytes, out + bytes);
    return out;
}

/* ---- variables ---- */

static void print_windows(FILE *out, const struct placement_answer *answer)
{
    if (answer->window_count == 0)
        return;
    for (uint32_t w = 0; w < answer->window_count; w++)
        fprintf(out, "%s%" PRIu64, w ? "," : "REACH_WINDOWS=", answer->windows[w].length_bytes);
    for (uint32_t sm = 0; sm < answer->sm_slots; sm++)
        fprintf(out, "%s%d", sm ? "," : "\nREACH_WINDOW_OF_SM=", answer->window_of_sm[sm]);
    fprintf(out, "\n");
}

/* Writes the variables for scripts. A GPU with unknown memory (an imported one) has no such
 * variables. */
static enum status print_plan(FILE *out, const struct fingerprint *fp, const char *id,
                              struct err *err)
{
    const struct scope_request scope = {.layout = layout_single(fp->gpu.memory_bytes),
                                        .fingerprint_id = id};
    const struct placement_request whole = {.bytes = fp->gpu.memory_bytes, .fingerprint_id = id};
    struct placement_answer answer;
    struct scope_answer pass;
    enum status s;

    if (fp->gpu.memory_bytes == 0)
        return STATUS_OK;
    s = placement_scope(fp, &scope, &pass, err);
    if (s == STATUS_OK)
        s = placement_plan(fp, &whole, &answer, err);
    if (s != STATUS_OK)
        return s;
    fprintf(out, "REACH_SCOPE_BYTES=%" PRIu64 "\n", pass.scope_bytes);
    print_windows(out, &answer);
    return STATUS_OK;
}

char *job_env_variables(const struct fingerprint *fp, const char *id, struct err *err)
{
    char *const text = job_env_text(fp, id, err);
    char *variables = NULL;
    size_t bytes;
    FILE *const out = text ? open_memstream(&variables, &bytes) : NULL;
    enum status s = STATUS_NO_MEMORY;

    if (out) {
        fprintf(out, "REACH_FINGERPRINT_ID=%s\nREACH_GPU_UUID=%s\n", id, fp->gpu.uuid);
        s = print_plan(out, fp, id, err);
        fprintf(out, "REACH_JOB=%s\n", text);
        s = fclose(out) == 0 ? s : STATUS_NO_MEMORY;
    }
    if (text && s == STATUS_NO_MEMORY)
        err_set(err, s, "cannot allocate the environment of GPU %s: out of memory", fp->gpu.uuid);
    free(text);
    if (s == STATUS_OK)
        return variables;
    free(variables);
    return NULL;
}

/* ---- reading ---- */

static enum status check_text(const char *text, size_t bytes, struct err *err)
{
    const size_t checked = bytes > CHECK_BYTES ? bytes - (CHECK_BYTES - 1) : 0;
    const char *const version = text + strlen(BEGIN);
    char check[CHECK_BYTES];

    if (strncmp(text, BEGIN, strlen(BEGIN)) != 0 || strspn(version, DIGITS) == 0)
        return err_set(err, STATUS_CORRUPT, "the value does not begin with %s and a number", BEGIN);
    if (strspn(version, DIGITS) != 1 || version[0] != '1')
        return err_set(err, STATUS_NOT_SUPPORTED, "the value has version %.*s, not 1",
                       (int)strspn(version, DIGITS), version);
    if (bytes == JOB_ENV_TEXT_BYTES)
        return err_set(err, STATUS_CORRUPT, "the value must have fewer than %d bytes",
                       (int)JOB_ENV_TEXT_BYTES);
    if (strcmp(text + checked, format_check(text, checked, check)) != 0)
        return err_set(err, STATUS_CORRUPT, "the value was truncated or changed");
    return STATUS_OK;
}

static enum status read_document(const json_t *document, struct fingerprint *out, char *out_id,
                                 struct err *err)
{
    const char *const id = json_string_value(json_object_get(document, "id"));
    const enum status s = fingerprint_from_json(document, out, err);

    if (s != STATUS_OK)
        return s;
    if (!id || !fingerprint_is_id(id))
        return err_set(err, STATUS_CORRUPT, "field id: must be the id of a fingerprint");
    if (!out->gpu.uuid[0])
        return err_set(err, STATUS_CORRUPT, "field gpu.uuid is missing");
    memcpy(out_id, id, strlen(id) + 1);
    return STATUS_OK;
}

enum status job_env_read(const char *text, struct fingerprint *out, char *out_id, struct err *err)
{
    const size_t bytes = strnlen(text, JOB_ENV_TEXT_BYTES);
    enum status s = check_text(text, bytes, err);
    json_t *json;

    fingerprint_init(out);
    out_id[0] = '\0';
    if (s != STATUS_OK)
        return s;
    json = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, NULL);
    s = json ? read_document(json, out, out_id, err)
             : err_set(err, STATUS_CORRUPT, "the value is not JSON");
    json_decref(json);
    return s;
}
