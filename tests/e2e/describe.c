/* describe.c: the tables that other files are generated from, as JSON (tests/e2e/lib_generated.py).
 */
#include "base/json_writer.h"
#include "planner/params.h"

#include <stdio.h>
#include <stdlib.h>

enum { ROOM = 64 << 10 };

static void text_or_null(struct json_writer *t, const char *name, const char *text)
{
    if (text)
        json_writer_text(t, name, text);
    else
        json_writer_null(t, name);
}

static const char *kind_name(enum param_kind kind)
{
    static const char *const names[] = {
        [PARAM_SIZE] = "size",   [PARAM_MAYBE_SIZE] = "maybe-size", [PARAM_ACCESS_SIZE] = "size",
        [PARAM_COUNT] = "count", [PARAM_LONG_COUNT] = "count",      [PARAM_FLAG] = "flag",
        [PARAM_REAL] = "real",   [PARAM_REAL_OR_0] = "real-or-0",   [PARAM_COMPLEMENT] = "share",
        [PARAM_WORD] = "word"};

    return names[kind];
}

static const char *form_name(enum param_form form)
{
    static const char *const names[] = {[PARAM_ABSENT] = NULL,
                                        [PARAM_ONE] = "one",
                                        [PARAM_ITEMS] = "items",
                                        [PARAM_EACH] = "each",
                                        [PARAM_EACH_ALWAYS] = "each-always"};

    return names[form];
}

static void describe_use(struct json_writer *t, enum planner_function function,
                         const struct param_use *use)
{
    json_writer_open(t, planner_function_name(function), '{');
    json_writer_text(t, "form", form_name(use->form));
    text_or_null(t, "member", use->member);
    text_or_null(t, "about", use->about);
    json_writer_bool(t, "needed", use->needed != NULL);
    json_writer_bool(t, "unless_alone", use->unless_alone);
    json_writer_close(t, '}');
}

static void describe_param(struct json_writer *t, const struct param *p)
{
    json_writer_open(t, NULL, '{');
    json_writer_text(t, "name", p->name);
    json_writer_text(t, "kind", kind_name(p->kind));
    text_or_null(t, "operand", p->operand);
    if (p->kind == PARAM_LONG_COUNT) /* of which a double is not exact */
        json_writer_u64(t, "most", INT64_MAX);
    else
        json_writer_u64(t, "most", (uint64_t)p->most);
    text_or_null(t, "default", p->by_default);
    text_or_null(t, "about", p->about);
    json_writer_open(t, "words", '[');
    for (uint32_t i = 0; p->word && p->word(i); i++)
        json_writer_text(t, NULL, p->word(i));
    json_writer_close(t, ']');
    json_writer_open(t, "uses", '{');
    for (enum planner_function f = PLANNER_SCOPE; f < PLANNER_COUNT; f++) {
        if (p->uses[f].form)
            describe_use(t, f, &p->uses[f]);
    }
    json_writer_close(t, '}');
    json_writer_close(t, '}');
}

int main(void)
{
    const struct param *p;
    struct json_writer t;
    size_t bytes;
    char *text;

    json_writer_begin(&t, ROOM);
    json_writer_open(&t, NULL, '{');
    json_writer_open(&t, "params", '[');
    for (uint32_t i = 0; (p = param_at(i)); i++)
        describe_param(&t, p);
    json_writer_close(&t, ']');
    json_writer_close(&t, '}');
    text = json_writer_end(&t, &bytes);
    if (!text || puts(text) < 0)
        return EXIT_FAILURE;
    free(text);
    return EXIT_SUCCESS;
}
