/* measured.c: see measured.h. */
#include "clients/lab/validate/measured.h"

#include "clients/lab/exit_status.h"
#include "fingerprint/fingerprint_read.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

int measured_exit(const struct measured_tally *t)
{
    if (t->failed)
        return LAB_ERROR;
    return t->not_reproduced > 0 ? LAB_DIFFERS : LAB_OK;
}

bool measured_fingerprint(const char *folder, const char *name, struct fingerprint *out,
                          struct err *err)
{
    static const char *const depths[] = {"full", "memory"};
    bool found = false;
    for (size_t i = 0; i < sizeof depths / sizeof depths[0] && !found; i++) {
        char path[MEASURED_PATH_BYTES];
        (void)snprintf(path, sizeof path, "%s/%s/fingerprint-%s.json", folder, name, depths[i]);
        json_t *json = json_load_file(path, 0, NULL);
        found = json && fingerprint_from_json(json, out, err) == STATUS_OK;
        json_decref(json);
    }
    return found;
}

bool measured_observations(const char *folder, const char *name, struct unpack *out)
{
    static const char *const depths[] = {"full", "memory", "matrix"};
    bool found = false;
    for (size_t i = 0; i < sizeof depths / sizeof depths[0] && !found; i++) {
        char path[MEASURED_PATH_BYTES];
        (void)snprintf(path, sizeof path, "%s/%s/observations-%s.jsonl.xz", folder, name,
                       depths[i]);
        found = unpack_open(path, out, NULL) == STATUS_OK;
    }
    return found;
}

bool measured_each(const char *folder, const char *prefix, measured_check *check,
                   struct measured_tally *tally)
{
    struct dirent **names = NULL;
    const int count = scandir(folder, &names, NULL, alphasort);
    bool found = false;
    for (int i = 0; i < count; i++) {
        if (strncmp(names[i]->d_name, prefix, strlen(prefix)) == 0) {
            check(folder, names[i]->d_name, tally);
            found = true;
        }
        free(names[i]);
    }
    free(names);
    if (!found)
        (void)fprintf(
            stderr,
            "reach-lab check: no %s* in %s; name the folder docs/measurements of the sources\n",
            prefix, folder);
    return found;
}
