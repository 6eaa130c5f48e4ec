/* config_print.c: prints the options as help (--help) and as a file (--check-config). */
#include "config/config_table.h"

#include <string.h>

enum { HELP_COLUMN = 26 };

static void print_row(const struct config_option *o, FILE *out)
{
    const char *line = o->help;
    char left[64];
    const bool worker = strcmp(o->name, "worker") == 0; /* its value follows an equals sign */

    snprintf(left, sizeof left, "  --%s%s%s%s", o->type == CONFIG_SWITCH && o->on ? "no-" : "",
             o->name, o->argument ? worker ? "=" : " " : "", o->argument ? o->argument : "");
    if (strlen(left) >= HELP_COLUMN) {
        fprintf(out, "%s\n", left);
        left[0] = '\0';
    }
    while (line) {
        const char *end = strchr(line, '\n');
        int length = (int)(end ? (size_t)(end - line) : strlen(line));

        fprintf(out, "%-*s%.*s\n", HELP_COLUMN, left, length, line);
        left[0] = '\0';
        line = end ? end + 1 : NULL;
    }
}

void config_print_help(FILE *out)
{
    static const char *const titles[CONFIG_SECTIONS] = {[CONFIG_SERVING] = "Serving",
                                                        [CONFIG_GPUS] = "GPUs",
                                                        [CONFIG_LOG] = "Log (SIGHUP changes it)",
                                                        [CONFIG_ONCE] = "Command line only"};

    fputs(
        "reachd: measures how far each GPU of this node translates addresses without a miss, and\n"
        "reports over HTTP which SM of a job should use which addresses.\n"
        "\n"
        "An option is given as --log-level debug, as REACHD_LOG_LEVEL=debug in the environment,\n"
        "or as log-level = debug in the configuration file; the first of these wins. A switch is\n"
        "turned off by no- before its name, and is yes or no in the other places.\n",
        out);
    for (int section = 0; section < CONFIG_SECTIONS; section++) {
        fprintf(out, "\n%s\n", titles[section]);
        for (size_t i = 0; i < config_option_count; i++) {
            if ((int)config_options[i].section == section)
                print_row(&config_options[i], out);
        }
    }
    fputs("\nExit status, as in sysexits.h: 0 fine, 64 wrong command line, 78 wrong configuration\n"
          "file or environment, 75 another process has the database or the address, 69 no driver\n"
          "or GPU, 73 the database or the files of --measure cannot be created or read, 74 an\n"
          "error of a file or the system, 65 invalid data, 70 a bug, 1 any other error.\n",
          out);
}

void config_print(const struct config *config, FILE *out)
{
    if (config->file)
        fprintf(out, "# %s, the environment and the command line\n", config->file);
    for (size_t i = 0; i < config_option_count; i++) {
        const struct config_option *o = &config_options[i];
        char text[40];
        const char *value = config_show(config, o, 0, text, sizeof text);

        for (size_t item = 0; value && o->section != CONFIG_ONCE;) {
            fprintf(out, "%s = %s\n", o->name, value);
            item++;
            value = o->type == CONFIG_LIST ? config_show(config, o, item, text, sizeof text) : NULL;
        }
    }
}
