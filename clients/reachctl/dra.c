/* dra.c: reachctl dra: the GPUs of this node as a ResourceSlice of Kubernetes' dynamic resource
 * allocation (resource.k8s.io/v1), for the selectors of claims.
 *
 * A device is published by the driver that hands it out, and a claim selects by the attributes that
 * this driver publishes. reachd hands out nothing. So the document has what a driver needs to take
 * the attributes over: they are fully qualified ("reachd.internal/reachBytes"), and each device has
 * its UUID and the standard attribute of its PCI address, by which a driver knows it. It is a
 * ResourceSlice by itself, with a driver of that name, so that it can be checked and shown with
 * Kubernetes' own tools.
 *
 * Limits of the API: 32 attributes and capacities per device, an identifier of C with at most 32
 * characters as the name of one, 64 characters as a text, 128 devices.
 */
#include "clients/reachctl/client.h"
#include "clients/reachctl/node.h"

#include "base/clock.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_CHARS = 64, NAME_BYTES = NODE_DOMAIN_BYTES + 40, LABEL_CHARS = 63 };

#define PCI_ATTRIBUTE "resource.kubernetes.io/pciBusID"

struct slice {
    const char *domain;
    const char *node;
    json_t *devices;
    bool no_memory;
};

/* ---- a device ---- */

struct device {
    struct slice *slice;
    json_t *attributes;
    json_t *capacity;
};

/* Adds {type: value} under the name in the namespace; takes `value`. */
static void add(struct device *d, const char *name, const char *type, json_t *take_value)
{
    char full[NAME_BYTES];

    if (strchr(name, '/'))
        snprintf(full, sizeof(full), "%s", name);
    else
        snprintf(full, sizeof(full), "%s/%s", d->slice->domain, name);
    if (json_object_set_new(d->attributes, full, json_pack("{s:o}", type, take_value)) != 0)
        d->slice->no_memory = true;
}

/* At most the characters that the API takes, up to one that is not printable ASCII; nothing for "".
 */
static void add_text(struct device *d, const char *name, const char *text)
{
    size_t length = 0;

    while (text && length < TEXT_CHARS && text[length] >= ' ' && text[length] <= '~')
        length++;
    if (length > 0)
        add(d, name, "string", json_stringn(text, length));
}

static void add_integer(struct device *d, const char *name, enum known known, uint64_t v)
{
    if (known == MAYBE_KNOWN && v <= INT64_MAX)
        add(d, name, "int", json_integer((json_int_t)v));
}

static void add_rounded(struct device *d, const char *name, struct maybe_f64 v)
{
    add_integer(d, name, v.known,
                IS_KNOWN(v) && v.v >= 0 && v.v < 1e15 ? (uint64_t)llround(v.v) : 0);
}

static void add_chip(struct device *d, const struct chip *chip)
{
    const struct fingerprint *const fp = &chip->fp;
    const enum known groups = chip->group_count > 0 ? MAYBE_KNOWN : MAYBE_UNKNOWN;
    char word[NODE_WORD_BYTES];

    add_text(d, "origin", origin_name(fp->gpu.origin));
    add_text(d, "verdict", verdict_name(fp->conditions.verdict));
    node_class(chip, word);
    add_text(d, "topologyClass", word);
    node_map(chip, word);
    add_text(d, "map", word);
    add_integer(d, "sms", MAYBE_KNOWN, fp->gpu.sm_count);
    add_integer(d, "groups", groups, chip->group_count);
    add_integer(d, "windows", chip->planned ? MAYBE_KNOWN : MAYBE_UNKNOWN,
                chip->plan.window_count == 0 && chip->plan.advice == ADVICE_NOTHING_TO_DO
                    ? 1
                    : chip->plan.window_count);
    add_integer(d, "reachBytes", fp->windows.reach_bytes.known, fp->windows.reach_bytes.v);
    add_integer(d, "windowBytes", fp->windows.recommended_bytes.known,
                fp->windows.recommended_bytes.v);
    add_integer(d, "alignmentBytes", fp->windows.entry_bytes.known, fp->windows.entry_bytes.v);
    add_rounded(d, "inReachGbps", fp->throughput.plateau_gbps);
    add_rounded(d, "wholeMemoryGbps", fp->throughput.whole_memory_gbps);
}

/* A DNS label of a UUID: "gpu-3232f831-...". False if nothing of it can be one. */
static bool name_of(const char *uuid, char out[LABEL_CHARS + 1])
{
    size_t n = 0;

    for (; *uuid && n < LABEL_CHARS; uuid++) {
        const char c = (char)tolower((unsigned char)*uuid);
        const bool fits = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (fits || n > 0)
            out[n++] = (char)(fits ? c : '-');
    }
    while (n > 0 && out[n - 1] == '-')
        n--;
    out[n] = '\0';
    return n > 0;
}

/* One that Kubernetes would call the same is left out: names are unique. */
static bool is_taken(const struct slice *slice, const char *name)
{
    const json_t *device;
    size_t i;

    json_array_foreach(slice->devices, i, device)
    {
        if (strcmp(json_string_value(json_object_get(device, "name")), name) == 0)
            return true;
    }
    return false;
}

static void describe_chip(struct device *d, const json_t *gpu)
{
    struct chip *const chip = calloc(1, sizeof(*chip));
    struct err err = {0};
    char text[32];

    if (!chip) {
        d->slice->no_memory = true;
        return;
    }
    if (fingerprint_from_json(json_object_get(gpu, "fingerprint"), &chip->fp, &err) == STATUS_OK) {
        add_text(d, "fingerprint", json_string_value(json_object_get(gpu, "fingerprint_id")));
        chip_derive(chip);
        add_chip(d, chip);
        snprintf(text, sizeof(text), "%" PRIu64, chip->fp.gpu.memory_bytes);
        if (chip->fp.gpu.memory_bytes > 0 &&
            json_object_set_new(d->capacity, "memory", json_pack("{s:s}", "value", text)) != 0)
            d->slice->no_memory = true;
    } else {
        fprintf(stderr, "reachctl: a GPU has no attributes, its fingerprint is invalid: %s\n",
                err.text);
    }
    free(chip);
}

/* The standard attribute of Kubernetes has lower case: "0000:3b:00.0". Nothing if it is no address.
 */
static void add_address(struct device *d, const char *name, const char *address)
{
    static const char form[] = "xxxx:xx:xx.0";
    char text[sizeof(form)];
    size_t n = 0;

    for (; address && n < strlen(form) && address[n]; n++) {
        const char c = (char)tolower((unsigned char)address[n]);
        if (form[n] == 'x'   ? !isxdigit((unsigned char)c)
            : form[n] == '0' ? c < '0' || c > '7'
                             : c != form[n])
            return;
        text[n] = c;
    }
    text[n] = '\0';
    if (n == strlen(form) && !address[n])
        add_text(d, name, text);
}

/* What is not current has a UUID, an address and a state. */
static void describe(struct device *d, const json_t *gpu, const char *uuid, const char *state)
{
    const bool mig = json_is_true(json_object_get(gpu, "mig"));

    add_text(d, "uuid", uuid);
    add_text(d, "state", state);
    add(d, "mig", "bool", json_boolean(mig));
    add_address(d, mig ? "parentPciBusID" : PCI_ATTRIBUTE,
                json_string_value(json_object_get(gpu, "pci_bus_id")));
    if (node_is_current(gpu, state))
        describe_chip(d, gpu);
}

static enum status add_gpu(struct slice *slice, const json_t *gpu, struct err *err)
{
    const char *const state = json_string_value(json_object_get(gpu, "state"));
    const char *const uuid = json_string_value(json_object_get(gpu, "uuid"));
    struct device d = {.slice = slice, .attributes = json_object(), .capacity = json_object()};
    char name[LABEL_CHARS + 1];
    json_t *device;

    if (state && uuid && name_of(uuid, name) && !is_taken(slice, name)) {
        describe(&d, gpu, uuid, state);
        device = json_pack("{s:s,s:O,s:O}", "name", name, "attributes", d.attributes, "capacity",
                           d.capacity);
        slice->no_memory |= json_array_append_new(slice->devices, device) != 0;
    }
    json_decref(d.attributes);
    json_decref(d.capacity);
    return state && uuid
               ? STATUS_OK
               : err_set(err, STATUS_PROTOCOL, "a GPU of the answer has no state or no UUID");
}

/* ---- the document ---- */

/* A GPU in MIG mode cannot be used: its instances are devices of their own. */
static bool is_divided(const json_t *gpu)
{
    return json_is_true(json_object_get(gpu, "mig")) &&
           json_integer_value(json_object_get(gpu, "sm_count")) == 0;
}

static enum status add_gpus(struct slice *slice, const json_t *document, struct err *err)
{
    const json_t *const gpus = json_object_get(document, "gpus");
    enum status s = STATUS_OK;
    const json_t *gpu;
    size_t i;

    if (!json_is_array(gpus) || json_array_size(gpus) > REACH_MAX_GPUS)
        return err_set(err, STATUS_PROTOCOL, "the answer has no list of at most %d GPUs",
                       REACH_MAX_GPUS);
    json_array_foreach(gpus, i, gpu)
    {
        if (s == STATUS_OK && !is_divided(gpu))
            s = add_gpu(slice, gpu, err);
    }
    return s == STATUS_OK && slice->no_memory ? err_set(err, STATUS_NO_MEMORY, "no memory") : s;
}

/* A pool has the name of its node; its generation is the time. */
static json_t *document_of(const struct slice *slice)
{
    char name[2 * NODE_DOMAIN_BYTES];

    snprintf(name, sizeof(name), "%s-%s", slice->node, slice->domain);
    name[NODE_DOMAIN_BYTES - 1] = '\0';
    return json_pack("{s:s,s:s,s:{s:s},s:{s:s,s:s,s:{s:s,s:I,s:i},s:O}}", "apiVersion",
                     "resource.k8s.io/v1", "kind", "ResourceSlice", "metadata", "name", name,
                     "spec", "driver", slice->domain, "nodeName", slice->node, "pool", "name",
                     slice->node, "generation", (json_int_t)clock_wall_seconds(),
                     "resourceSliceCount", 1, "devices", slice->devices);
}

static enum exit_code print_slice(const struct slice *slice)
{
    json_t *const document = document_of(slice);
    char *const text = document ? json_dumps(document, JSON_INDENT(2)) : NULL;

    if (text)
        puts(text);
    else
        fputs("reachctl: no memory\n", stderr);
    free(text);
    json_decref(document);
    return text ? EXIT_DONE : EXIT_FAILED;
}

/* The node's name for Kubernetes: of the option, of the downward API, of the host. */
static const char *node_name(const struct options *options, char host[NODE_DOMAIN_BYTES])
{
    const char *const set = options->node ? options->node : getenv("NODE_NAME");

    if (set && *set)
        return set;
    if (gethostname(host, NODE_DOMAIN_BYTES) != 0)
        return "";
    host[NODE_DOMAIN_BYTES - 1] = '\0';
    for (char *c = host; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    return host;
}

enum exit_code command_dra(struct client *client, const struct options *options)
{
    struct slice slice = {.domain =
                              options->label_namespace ? options->label_namespace : NODE_DOMAIN};
    char host[NODE_DOMAIN_BYTES];
    struct client_answer answer;
    struct err err = {0};
    enum exit_code exit_code;

    slice.node = node_name(options, host);
    /* The domain of an attribute, and the name of a driver, have at most 63 characters. */
    if (!node_is_domain(slice.domain) || strlen(slice.domain) > LABEL_CHARS)
        return client_usage_error(
            "--namespace is a DNS name in lower case of at most 63 characters", NULL);
    if (!node_is_domain(slice.node))
        return client_usage_error("--node is the name of the node, a DNS name in lower case", NULL);
    exit_code = client_get(client, "/v1/fingerprints", NULL, &answer);
    if (exit_code != EXIT_DONE)
        return exit_code;
    slice.devices = json_array();
    if (add_gpus(&slice, answer.json, &err) == STATUS_OK)
        exit_code = print_slice(&slice);
    else
        exit_code = client_print_error(&err);
    json_decref(slice.devices);
    client_answer_free(&answer);
    return exit_code;
}
