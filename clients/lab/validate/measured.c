/* measured.c: see measured.h. */
#include "clients/lab/validate/measured.h"

#include "clients/lab/exit_status.h"
#include "fingerprint/fingerprint_read.h"

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

FILE *measured_observations(const char *folder, const char *name)
{
    static const char *const depths[] = {"full", "memory", "matrix"};
    for (size_t i = 0; i < sizeof depths / sizeof depths[0]; i++) {
        char path[MEASURED_PATH_BYTES];
        char command[MEASURED_PATH_BYTES + 32];
        (void)snprintf(path, sizeof path, "%s/%s/observations-%s.jsonl.xz", folder, name,
                       depths[i]);
        FILE *file = strchr(path, '\'') ? NULL : fopen(path, "re");
        if (!file)
            continue;
        (void)fclose(file);
        (void)snprintf(command, sizeof command, "xz -dc '%s'", path);
        return popen(command, "re");
    }
    return NULL;
}

int measured_names(const char *folder, const char *prefix, struct dirent ***out)
{
    const int count = scandir(folder, out, NULL, alphasort);
    int kept = 0;
    for (int i = 0; i < count; i++) {
        if (strncmp((*out)[i]->d_name, prefix, strlen(prefix)) == 0)
            (*out)[kept++] = (*out)[i];
        else
            free((*out)[i]);
    }
    if (kept > 0)
        return kept;
    (void)fprintf(
        stderr, "reach-lab check: no %s* in %s; name the folder docs/measurements of the sources\n",
        prefix, folder);
    if (count >= 0)
        free(*out);
    return 0;
}
