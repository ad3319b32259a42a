/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parses the health facts that a program gives to its page. */
#include "web/health_facts.h"

#include "base/buf.h"
#include "base/json.h"

#include <math.h>

enum { GROUP_BYTES = 200 };

struct reading {
    struct json *json;
    struct arena *arena;
    struct health_facts *to;
};

/* The whole document was fed: what more there is, is its end. */
static enum json_event next(struct reading *reading)
{
    enum json_event event = json_next(reading->json);

    if (event != JSON_MORE)
        return event;
    json_finish(reading->json);
    return json_next(reading->json);
}

static bool is_key(const struct reading *reading, const char *name)
{
    return str_eq(json_text(reading->json), str_of(name));
}

/* What nobody asked for; an ARRAY or OBJECT with its end. */
static void pass_over(struct reading *reading, enum json_event event)
{
    if (event == JSON_OBJECT || event == JSON_ARRAY)
        json_skip(reading->json);
}

static void add_second(struct health_stage *stage, double seconds)
{
    if (stage->n == HEALTH_SECONDS) {
        memmove(stage->second, stage->second + 1, sizeof(stage->second) - sizeof(*stage->second));
        stage->n--;
    }
    stage->second[stage->n++] = seconds;
}

static void read_seconds(struct reading *reading, struct health_stage *stage)
{
    enum json_event event = next(reading);

    if (event != JSON_ARRAY) {
        pass_over(reading, event);
        return;
    }
    while ((event = next(reading)) > JSON_END && event != JSON_ARRAY_END) {
        double seconds;

        if (event == JSON_NUMBER && json_double(reading->json, &seconds) && isfinite(seconds) &&
            seconds >= 0)
            add_second(stage, seconds);
        else
            pass_over(reading, event);
    }
}

static void read_stage(struct reading *reading, struct health_stage *stage)
{
    enum json_event event;

    while ((event = next(reading)) == JSON_KEY) {
        if (is_key(reading, "seconds")) {
            read_seconds(reading, stage);
        } else if (is_key(reading, "name")) {
            event = next(reading);
            if (event == JSON_STRING)
                stage->name = arena_str(reading->arena, json_text(reading->json));
            else
                pass_over(reading, event);
        } else {
            json_skip(reading->json);
        }
    }
}

static void read_stages(struct reading *reading)
{
    struct health_facts *to = reading->to;
    enum json_event event = next(reading);

    if (event != JSON_ARRAY) {
        pass_over(reading, event);
        return;
    }
    while ((event = next(reading)) > JSON_END && event != JSON_ARRAY_END) {
        if (event == JSON_OBJECT && to->n_stages < HEALTH_STAGES)
            read_stage(reading, &to->stage[to->n_stages++]);
        else
            pass_over(reading, event);
    }
}

static void add_fact(struct reading *reading, struct str group, struct str name,
                     enum json_event event)
{
    static const struct str words[] = {
        [JSON_TRUE] = STR_INIT("yes"), [JSON_FALSE] = STR_INIT("no")
    };
    struct health_facts *to = reading->to;
    struct health_fact fact = { .group = group, .name = name, .number = NAN };

    if (event == JSON_STRING)
        fact.text = arena_str(reading->arena, json_text(reading->json));
    else if (event == JSON_TRUE || event == JSON_FALSE)
        fact.text = words[event];
    else if (event != JSON_NUMBER || !json_double(reading->json, &fact.number))
        return; /* null: unknown */
    if (to->n_facts < HEALTH_FACTS)
        to->fact[to->n_facts++] = fact;
}

static struct str join(struct reading *reading, struct str group, struct str name)
{
    struct str joined;
    struct buf text;

    buf_init(&text, GROUP_BYTES);
    buf_put(&text, group);
    buf_text(&text, group.n ? " " : "");
    buf_put(&text, name);
    joined = arena_str(reading->arena, buf_str(&text));
    buf_free(&text);
    return joined;
}

/* The members of an object that has begun. */
static void read_facts(struct reading *reading, struct str group, unsigned depth)
{
    while (next(reading) == JSON_KEY) {
        struct str name = arena_str(reading->arena, json_text(reading->json));
        enum json_event event = next(reading);

        if (event == JSON_OBJECT && depth < HEALTH_DEPTH)
            read_facts(reading, join(reading, group, name), depth + 1);
        else if (event == JSON_OBJECT || event == JSON_ARRAY)
            json_skip(reading->json);
        else
            add_fact(reading, group, name, event);
    }
}

static int read_document(struct reading *reading, struct err *err)
{
    enum json_event event = next(reading);

    if (event != JSON_OBJECT)
        return err_set(err, EBADMSG, "what sonde says of itself is no JSON object");
    while ((event = next(reading)) == JSON_KEY) {
        if (is_key(reading, "stages")) {
            read_stages(reading);
        } else if (is_key(reading, "facts")) {
            event = next(reading);
            if (event == JSON_OBJECT)
                read_facts(reading, STR(""), 1);
            else
                pass_over(reading, event);
        } else {
            json_skip(reading->json);
        }
    }
    while (event > JSON_END)
        event = next(reading);
    return event == JSON_END ? 0 : json_error(reading->json, err);
}

int health_facts_read(struct str document, struct arena *arena, struct health_facts *ret,
                      struct err *err)
{
    struct reading reading = { .json = json_new(), .arena = arena, .to = ret };
    int code;

    *ret = (struct health_facts){
        .stage = ARENA_ARRAY(arena, struct health_stage, HEALTH_STAGES),
        .fact = ARENA_ARRAY(arena, struct health_fact, HEALTH_FACTS),
    };
    json_feed(reading.json, document);
    code = read_document(&reading, err);
    json_free(reading.json);
    return code;
}
