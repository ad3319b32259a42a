/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parses lines that look like JSON but are not escaped. */
#include "source/json_line.h"

#include "source/lines.h"

#include <assert.h>

/* The key in `, "key": "`. */
static struct str key_in(struct str text)
{
    struct str from_colon = str_skip(text, str_find(text, ':'));
    struct str before = str_head(text, text.n - from_colon.n);
    size_t open;

    before.n -= before.n && before.p[before.n - 1] == '"';
    for (open = before.n; open && before.p[open - 1] != '"'; open--)
        ;
    return str_skip(before, open);
}

void json_line_init(struct json_line *form, struct str format)
{
    struct str rest = format;

    *form = (struct json_line){ .json = json_new() };
    for (;;) {
        size_t at = str_find(rest, '%');

        form->between[form->n] = str_head(rest, at);
        if (at == rest.n)
            break;
        assert(form->n < JSON_LINE_FIELDS);
        form->keys[form->n] = key_in(form->between[form->n]);
        form->n++;
        rest = str_skip(rest, at + sizeof("%a") - 1);
    }
    /* A byte that is not UTF-8 becomes three. */
    buf_init(&form->unescaped, (size_t)3 * LINES_MAX);
}

void json_line_free(struct json_line *form)
{
    json_free(form->json);
    buf_free(&form->unescaped);
}

/* Cuts a line that is in the very format. */
static bool match(const struct json_line *form, struct str line, struct str *fields)
{
    struct str rest = line, last = form->between[form->n];

    if (!str_starts(rest, form->between[0]))
        return false;
    rest = str_skip(rest, form->between[0].n);
    for (size_t i = 0; i + 1 < form->n; i++) {
        struct str between = form->between[i + 1];
        size_t end = str_find(rest, between.p[0]);

        if (!str_starts(str_skip(rest, end), between))
            return false;
        fields[i] = str_head(rest, end);
        rest = str_skip(rest, end + between.n);
    }
    if (!str_ends(rest, last))
        return false;
    fields[form->n - 1] = str_head(rest, rest.n - last.n);
    return true;
}

static bool take(struct str *rest, char byte)
{
    if (!rest->n || rest->p[0] != byte)
        return false;
    *rest = str_trim(str_skip(*rest, 1));
    return true;
}

static bool ends_value(struct str rest)
{
    rest = str_trim(rest);
    return rest.n && (rest.p[0] == ',' || str_eq(rest, STR("}")));
}

/* Takes a text, with its quotes, to the first quote that can be its end. */
static bool take_text(struct str *rest, struct str *ret)
{
    for (size_t i = 1; i < rest->n; i++) {
        if (rest->p[i] == '\\') {
            i++;
        } else if (rest->p[i] == '"' && ends_value(str_skip(*rest, i + 1))) {
            *ret = str_head(*rest, i + 1);
            *rest = str_trim(str_skip(*rest, i + 1));
            return true;
        }
    }
    return false;
}

/* Takes a number, or whatever word stands in its place. */
static bool take_word(struct str *rest, struct str *ret)
{
    size_t end = 0;

    while (end < rest->n && !memchr(" \t,{}[]\"", rest->p[end], sizeof(" \t,{}[]\"") - 1))
        end++;
    *ret = str_head(*rest, end);
    *rest = str_trim(str_skip(*rest, end));
    return ret->n > 0 && ends_value(*rest);
}

/* A text in quotes, unescaped, or as it is if it is not JSON. */
static struct str unescape(struct json_line *form, struct str quoted)
{
    size_t begin = form->unescaped.n;
    struct str plain = str_head(str_skip(quoted, 1), quoted.n - 2);

    if (str_find(plain, '\\') == plain.n)
        return plain;
    json_reset(form->json);
    json_feed(form->json, quoted);
    if (json_next(form->json) != JSON_STRING)
        return plain;
    buf_put(&form->unescaped, json_text(form->json));
    return (struct str){ form->unescaped.p + begin, form->unescaped.n - begin };
}

static void keep(struct json_line *form, struct str key, struct str value, struct str *fields)
{
    for (size_t i = 0; i < form->n; i++) {
        if (!str_eq(key, form->keys[i]))
            continue;
        if (!fields[i].p)
            fields[i] = value.p[0] == '"' ? unescape(form, value) : value;
        return;
    }
}

/* Reads a line as an object whose values are texts and words. */
static bool scan(struct json_line *form, struct str line, struct str *fields)
{
    struct str rest = str_trim(line);

    memset(fields, 0, form->n * sizeof(*fields));
    buf_reset(&form->unescaped);
    if (!buf_room(&form->unescaped, 3 * line.n) || !take(&rest, '{'))
        return false;
    do {
        size_t end = str_find(str_skip(rest, 1), '"');
        struct str key = str_head(str_skip(rest, 1), end), value;

        if (!rest.n || rest.p[0] != '"')
            return false;
        rest = str_trim(str_skip(rest, end + 2));
        if (!take(&rest, ':') || !rest.n)
            return false;
        if (rest.p[0] == '"' ? !take_text(&rest, &value) : !take_word(&rest, &value))
            return false;
        keep(form, key, value, fields);
    } while (take(&rest, ','));
    return str_eq(rest, STR("}"));
}

bool json_line_read(struct json_line *form, struct str line, struct str *ret_fields)
{
    return match(form, line, ret_fields) || scan(form, line, ret_fields);
}
