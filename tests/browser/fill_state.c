/* fill_state.c: makes a database that contains the measurement of a real GPU, so that a daemon
 * can serve it without that GPU.
 *
 *     fill_state DATABASE FINGERPRINT.json [OBSERVATIONS.jsonl]
 *
 * Of the observations only the pairs of SMs are stored, because the page shows them.
 */
#include "store/store.h"

#include "base/json_load.h"
#include "fingerprint/fingerprint_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(enum status s, const struct err *err)
{
    if (s == STATUS_OK)
        return;
    fprintf(stderr, "fill_state: %s\n", err->text);
    exit(1);
}

static FILE *open_file(const char *path)
{
    FILE *file = fopen(path, "r");

    if (!file) {
        perror(path);
        exit(1);
    }
    return file;
}

static void load_fingerprint(const char *path, struct fingerprint *out)
{
    FILE *file = open_file(path);
    json_t *json = json_loadf(file, 0, NULL);
    struct err err;

    fclose(file);
    must(fingerprint_from_json(json, out, &err), &err);
    json_decref(json);
}

/* Stores one line of the observations if it is a probe of pairs. Other lines are left out. */
static void add_line(struct store *store, int64_t run, const char *line, size_t bytes)
{
    json_t *json = json_load_whole(line, bytes, NULL);
    const char *kind = json_string_value(json_object_get(json_object_get(json, "probe"), "kind"));
    struct observation o;
    struct err err;

    if (kind && strcmp(kind, "pairs") == 0) {
        must(observation_from_json(json, &o, &err), &err);
        must(store_add_observation(store, run, &o, NULL, &err), &err);
        observation_free(&o);
    }
    json_decref(json);
}

static void add_observations(struct store *store, int64_t run, const char *path)
{
    FILE *file = open_file(path);
    char *line = NULL;
    size_t room = 0;
    ssize_t bytes;

    while ((bytes = getline(&line, &room, file)) > 0)
        add_line(store, run, line, (size_t)bytes);
    free(line);
    fclose(file);
}

int main(int argc, char **argv)
{
    static struct fingerprint fp;
    const struct gpu_limits limits = {.arena = 0};
    struct store *store = NULL;
    struct err err;
    int64_t run = 0;

    if (argc < 3)
        return 64;
    load_fingerprint(argv[2], &fp);
    must(store_open(argv[1], &store, &err), &err);
    must(store_begin_run(store, &fp.gpu, &limits, fp.depth, fp.taken_at, &run, &err), &err);
    if (argc > 3)
        add_observations(store, run, argv[3]);
    must(store_finish_run(store, run, &fp, &fp, &err), &err);
    store_close(store);
    return 0;
}
