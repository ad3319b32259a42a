/* SPDX-License-Identifier: GPL-2.0-or-later */
/* "errors": [{ "description", "error", "error_number" }] of any version; slurm_errno.h. */
#include "source/refusal.h"

#include "base/json.h"
#include "base/quote.h"

enum { UNSPECIFIED = -1, AUTHENTICATION = 1007 };

/* The first error of a document. */
struct reading {
    bool is_at_errors, is_in_errors, has_one;
    enum member { MEMBER_OTHER, MEMBER_DESCRIPTION, MEMBER_ERROR, MEMBER_NUMBER } member;
    struct quote description, error;
    int64_t number;
};

static enum member member_of(struct str key)
{
    if (str_eq(key, STR("description")))
        return MEMBER_DESCRIPTION;
    if (str_eq(key, STR("error")))
        return MEMBER_ERROR;
    /* The second is of v0.0.38. */
    return str_eq(key, STR("error_number")) || str_eq(key, STR("errno")) ? MEMBER_NUMBER
                                                                         : MEMBER_OTHER;
}

static void take_value(struct reading *reading, const struct json *json, enum json_event event)
{
    if (event == JSON_STRING && reading->member == MEMBER_DESCRIPTION)
        reading->description = quote(json_text(json));
    else if (event == JSON_STRING && reading->member == MEMBER_ERROR)
        reading->error = quote(json_text(json));
    else if (event == JSON_NUMBER && reading->member == MEMBER_NUMBER)
        json_i64(json, &reading->number);
}

/* Depth 1 is the document, 2 the list, 3 an error. */
static void take(struct reading *reading, struct json *json, enum json_event event)
{
    size_t depth = json_depth(json);

    if (event == JSON_KEY && depth == 1)
        reading->is_at_errors = str_eq(json_text(json), STR("errors"));
    else if (event == JSON_ARRAY && depth == 2 && reading->is_at_errors)
        reading->is_in_errors = true;
    else if (event == JSON_ARRAY_END && depth == 1)
        reading->is_in_errors = false;
    else if (event == JSON_OBJECT_END && depth == 2 && reading->is_in_errors)
        reading->has_one = true;
    else if (event == JSON_KEY && depth == 3 && reading->is_in_errors && !reading->has_one)
        reading->member = member_of(json_text(json));
    else if (depth == 3 && reading->is_in_errors && !reading->has_one)
        take_value(reading, json, event);
}

static bool read_errors(struct str body, struct refusal *ret)
{
    struct json *json = json_new();
    struct reading reading = { 0 };
    enum json_event event;

    json_feed(json, body);
    while ((event = json_next(json)) > JSON_END)
        take(&reading, json, event);
    json_free(json);
    if (!reading.description.text[0] && !reading.error.text[0])
        return false;
    ret->number = reading.number;
    snprintf(ret->words, sizeof(ret->words), "%s%s%s", reading.description.text,
             reading.description.text[0] && reading.error.text[0] ? ": " : "", reading.error.text);
    return true;
}

bool refusal_is_page(const char *content_type)
{
    return str_eq_nocase(str_head(str_of(content_type), strlen("text/html")), STR("text/html"));
}

void refusal_read(struct str body, const char *content_type, struct refusal *ret)
{
    struct str text = str_trim(body);

    *ret = (struct refusal){ 0 };
    if (refusal_is_page(content_type))
        snprintf(ret->words, sizeof(ret->words), "an HTML page");
    else if (!read_errors(body, ret))
        snprintf(ret->words, sizeof(ret->words), "%s", text.n ? quote(text).text : "no words");
}

bool refusal_is_of_token(const struct refusal *refusal)
{
    struct str words = str_of(refusal->words);

    /* slurmdbd's has another number. */
    return refusal->number == AUTHENTICATION ||
           str_find_str(words, STR("authentication error")) < words.n;
}

bool refusal_may_be_of_token(const struct refusal *refusal)
{
    return refusal->number == UNSPECIFIED;
}
