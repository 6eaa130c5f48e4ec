/* config_table.h: the table of options, which config_parse.c parses and config_print.c prints. A
 * new option is a field in struct config and a row in config_table.c. */
#pragma once

#include "config/config.h"

enum config_type {
    CONFIG_TEXT = 0, /* const char * */
    CONFIG_PLACE,    /* const char *; NULL if the text is "none" */
    CONFIG_BYTES,    /* uint64_t, a size above 0 */
    CONFIG_DURATION, /* uint32_t, seconds from `least` to `most`: "90s", "1h" */
    CONFIG_NUMBER,   /* uint32_t from `least` to `most` */
    CONFIG_SWITCH,   /* bool: --name, --no-name; "yes" or "no" in file and environment */
    CONFIG_WORD,     /* an enum, one of `words` */
    CONFIG_LIST,     /* const char *[REACH_MAX_GPUS + 1]; the option may be repeated */
    CONFIG_DEPTHS,   /* enum depth[CONFIG_MAX_DEPTHS]; the option may be repeated */
    CONFIG_FLAG      /* stores no value */
};

/* The heading of an option in --help. CONFIG_ONCE options are accepted on the command line only. */
enum config_section { CONFIG_SERVING = 0, CONFIG_GPUS, CONFIG_LOG, CONFIG_ONCE, CONFIG_SECTIONS };

struct config_word {
    const char *name; /* NULL in the last row */
    int value;
};

struct config_option {
    const char *name; /* "log-level" stands for --log-level, REACHD_LOG_LEVEL and log-level = */
    enum config_section section;
    enum config_type type;
    bool live;             /* whether SIGHUP can change the option */
    bool on;               /* default of a CONFIG_SWITCH */
    enum config_mode mode; /* the value that the option sets; 0 means none */
    size_t offset;         /* offset in struct config */
    size_t given_offset;   /* offset of a bool that is set if the option was given; 0 means none */
    const char *argument;  /* "ADDRESS:PORT" */
    const char *help;      /* lines, each at most 58 characters */
    uint32_t least, most;  /* CONFIG_NUMBER, CONFIG_DURATION */
    const struct config_word *words;
    /* For CONFIG_TEXT, CONFIG_PLACE and CONFIG_FLAG: checks the value. `*err` gets a message such
     * as "takes a path". */
    enum status (*check)(const char *value, struct err *err);
};

extern const struct config_option config_options[];
extern const size_t config_option_count;

/* Stores a value; `*err` gets a message without a subject: "must be a number from 1 to 9". A switch
 * takes "yes" and "no", and a place takes "none". Borrows `value`. */
enum status config_store(struct config *c, const struct config_option *o, const char *value,
                         enum config_source source, struct err *err);

/* Writes the value as text to `out`. Returns NULL if there is no value to show. `index` is the item
 * of a list. */
const char *config_show(const struct config *c, const struct config_option *o, size_t index,
                        char *out, size_t out_size);

/* Returns whether the option has the same value in `a` and `b`. */
bool config_same(const struct config *a, const struct config *b, const struct config_option *o);
/* Copies a value that is neither a text nor a list. */
void config_copy(struct config *to, const struct config *from, const struct config_option *o);
