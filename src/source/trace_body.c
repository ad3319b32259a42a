/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parses the body of a POST to /trace. */
#include "source/trace_body.h"

#include "base/json.h"
#include "base/quote.h"
#include "source/trace.h"

#include <math.h>

enum form {
    FORM_NUMBER, /* finite, from least to most; a double of struct trace_body */
    FORM_WHOLE,  /* the same, without a fraction */
    FORM_HOST,
    FORM_TEXT, /* nobody needs it */
};

/* Slurm's NO_VAL and INFINITE are the two numbers above the highest id. Past the highest amount no
 * sum would be true. */
static const double highest_id = 4294967293, highest_pid = 2147483647, highest_amount = 1e18;

#define ID     "a whole number up to 4294967293"
#define AMOUNT "a number from 0 to 1e18"

static const struct member {
    const char *name;
    enum form form;
    size_t offset;
    double least;
    const double *most;
    const char *must_be;
} members[] = {
    { "job_id", FORM_WHOLE, offsetof(struct trace_body, job_id), 1, &highest_id,
      "a whole number from 1 to 4294967293" },
    { "step", FORM_WHOLE, offsetof(struct trace_body, step), 0, &highest_id, ID },
    { "task", FORM_WHOLE, offsetof(struct trace_body, task), 0, &highest_id, ID },
    { "pid", FORM_WHOLE, offsetof(struct trace_body, pid), 1, &highest_pid,
      "a whole number from 1 to 2147483647" },
    { "period", FORM_NUMBER, offsetof(struct trace_body, period_seconds), 0, &highest_amount,
      "a number of seconds, from 0" },
    { "cpus", FORM_NUMBER, offsetof(struct trace_body, amounts.cpu_percent), 0, &highest_amount,
      AMOUNT },
    { "mem", FORM_NUMBER, offsetof(struct trace_body, amounts.memory_bytes), 0, &highest_amount,
      AMOUNT },
    { "read_bytes", FORM_NUMBER, offsetof(struct trace_body, amounts.read_bytes), 0,
      &highest_amount, AMOUNT },
    { "write_bytes", FORM_NUMBER, offsetof(struct trace_body, amounts.write_bytes), 0,
      &highest_amount, AMOUNT },
    { "threads", FORM_NUMBER, offsetof(struct trace_body, amounts.threads), 0, &highest_amount,
      AMOUNT },
    { "hostname", FORM_HOST, 0, 0, NULL, "a text of printable UTF-8" },
    { "username", FORM_TEXT, 0, 0, NULL, "a text" },
};

static const struct member *find_member(struct str name)
{
    for (size_t i = 0; i < COUNT(members); i++)
        if (str_eq(name, str_of(members[i].name)))
            return &members[i];
    return NULL;
}

static bool read_number(const struct json *json, const struct member *member,
                        struct trace_body *body)
{
    double *to = (double *)(void *)((char *)body + member->offset);
    double value;

    if (!json_double(json, &value) || !isfinite(value) || value < member->least ||
        value > *member->most || (member->form == FORM_WHOLE && value != floor(value)))
        return false;
    *to = value + 0.0; /* no minus before a zero */
    return true;
}

/* C0, DEL and C1; and the sign that the scanner puts where a byte was not UTF-8. */
static bool is_printable(struct str character)
{
    unsigned char first = (unsigned char)character.p[0];

    if (character.n == 2 && first == 0xc2)
        return (unsigned char)character.p[1] >= 0xa0;
    return first >= 0x20 && first != 0x7f && !str_eq(character, STR("\xef\xbf\xbd"));
}

static bool read_host(struct str text, struct trace_body *body)
{
    struct str rest = text;

    for (body->n_host = 0; rest.n;) {
        struct str character = str_head(rest, str_utf8_len(rest));

        if (!is_printable(character))
            return false;
        if (body->n_host + character.n > TRACE_HOST_MAX)
            break;
        memcpy(body->host + body->n_host, character.p, character.n);
        body->n_host += character.n;
        rest = str_skip(rest, character.n);
    }
    return true;
}

/* The value of a member that we know is at hand. */
static bool read_value(const struct json *json, enum json_event event, const struct member *member,
                       struct trace_body *body)
{
    if (event == JSON_NULL)
        return true;
    if (member->form == FORM_NUMBER || member->form == FORM_WHOLE)
        return event == JSON_NUMBER && read_number(json, member, body);
    return event == JSON_STRING && (member->form == FORM_TEXT || read_host(json_text(json), body));
}

static int complain(const struct json *json, enum json_event event, const struct member *member,
                    struct err *err)
{
    struct str text = json_text(json);

    if (event == JSON_STRING || event == JSON_NUMBER)
        return err_set(err, EBADMSG, "%s must be %s, not %s%s%s", member->name, member->must_be,
                       event == JSON_STRING ? "\"" : "", quote(text).text,
                       event == JSON_STRING ? "\"" : "");
    return err_set(err, EBADMSG, "%s must be %s", member->name, member->must_be);
}

static int read_members(struct json *json, struct trace_body *body, struct err *err)
{
    const struct member *member = NULL;
    enum json_event event;

    if (json_next(json) != JSON_OBJECT) {
        if (json_error(json, NULL))
            return 0;
        return err_set(err, EBADMSG, "a post must be a JSON object, as {\"job_id\": 1}");
    }
    while ((event = json_next(json)) > JSON_END) {
        if (event == JSON_KEY) {
            member = find_member(json_text(json));
            if (!member)
                json_skip(json);
        } else if (member) {
            if (!read_value(json, event, member, body))
                return complain(json, event, member, err);
            member = NULL;
        }
    }
    return 0;
}

int trace_body_read(struct str text, struct trace_body *ret, struct err *err)
{
    struct trace_body body = {
        .job_id = NAN,
        .step = NAN,
        .task = NAN,
        .pid = NAN,
        .period_seconds = NAN,
        .amounts = { NAN, NAN, NAN, NAN, NAN },
    };
    struct json *json;
    struct err why;
    int code;

    if (text.n > TRACE_BODY_MAX)
        return err_set(err, EFBIG, "a post must not be longer than %d bytes", TRACE_BODY_MAX);
    json = json_new();
    json_feed(json, text);
    json_finish(json);
    code = read_members(json, &body, err);
    if (code == 0 && json_error(json, &why) < 0)
        code = err_set(err, EBADMSG, "the post is no JSON: %s", why.text);
    json_free(json);
    if (code < 0)
        return code;
    if (isnan(body.job_id))
        return err_set(err, EBADMSG, "job_id is missing");
    *ret = body;
    return 0;
}
