/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Queries and keys of the API, a parameter a line; the first byte is the resource, "a" the first of
 * api_resources. Whatever is asked, it is taken or refused with a
 * sentence that is valid JSON text; a key that is taken is spelt in no other way; and a document of
 * an agent comes out as one JSON object, or not at all. */
#include "web/api_call.h"
#include "web/api_key.h"
#include "web/api_time.h"

#include <jansson.h>

#include "fuzz.h"

static void check_runs(struct str text, struct arena *arena, struct buf *out)
{
    struct run_key key;

    if (!api_key_read_run(text, arena, &key))
        return;
    FUZZ_CHECK(key.submit_time > 0 && key.job_id > 0 && key.cluster.n > 0);
    buf_reset(out);
    api_key_put_run(out, &key);
    FUZZ_CHECK(str_eq(buf_str(out), text));
}

static void check_nodes(struct str text, struct arena *arena, struct buf *out)
{
    struct api_node_key key;

    if (!api_key_read_node(text, arena, &key))
        return;
    FUZZ_CHECK(key.cluster.n > 0 && key.name.n > 0);
    buf_reset(out);
    api_key_put_node(out, &key);
    FUZZ_CHECK(str_eq(buf_str(out), text));
}

static void check_time(struct str text)
{
    int64_t time = 0;

    FUZZ_CHECK(!api_time_read(text, &time) || (time >= 100000000 && time < 253402300800));
}

/* Whether another parser takes it. */
static bool is_json_object(struct str text)
{
    json_t *value = json_loadb(text.p, text.n, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL);
    bool is_object = json_is_object(value);

    json_decref(value);
    return is_object;
}

static void check_document(struct str text, struct buf *out)
{
    buf_reset(out);
    if (!api_json_object(out, text)) {
        FUZZ_CHECK(out->n == 0);
        return;
    }
    if (out->over || str_find(text, 'e') < text.n || str_find(text, 'E') < text.n)
        return; /* jansson refuses numbers too large for a double */
    FUZZ_CHECK(is_json_object(buf_str(out)), "%.*s", STR_ARG(buf_str(out)));
}

static void check_query(const struct api_resource *resource, struct str text, struct arena *arena)
{
    struct api_request request;
    uint64_t seen = 0;

    api_request_clear(&request);
    for (struct str line, name, rest = text; rest.p;) {
        struct err err = { 0 };
        int code;

        line = str_cut(&rest, '\n');
        name = str_cut(&line, '=');
        if (!line.p)
            line = STR("");
        code = api_request_take(&request, resource->params, resource->n_params, &seen, name, line,
                                arena, &err);
        FUZZ_CHECK(code == 0 || code == -EINVAL);
        FUZZ_CHECK((code < 0) == (err.text[0] != '\0'));
    }
    FUZZ_CHECK(request.limit >= 1 && request.limit <= API_MOST_ROWS);
    FUZZ_CHECK(request.n_keys <= USAGE_KEYS && request.filter.n_ids <= API_MOST_WORDS);
    FUZZ_CHECK(request.filter.nodes.n <= API_MOST_WORDS && request.filter.min_seconds >= 0);
    FUZZ_CHECK(request.sort.by < QUEUE_SORTS && request.phrase.n <= API_PHRASE_MAX);
    for (size_t i = 0; i < request.filter.n_ids; i++)
        FUZZ_CHECK(request.filter.ids[i] > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = { 0 };
    struct str text;
    struct buf out;

    if (size < 1)
        return 0;
    text = (struct str){ (const char *)data + 1, size - 1 };
    buf_init(&out, 10 * size + 4096);
    check_runs(text, &arena, &out);
    check_nodes(text, &arena, &out);
    check_time(text);
    check_document(text, &out);
    check_query(api_resources[(uint8_t)(data[0] - 'a') % API_RESOURCES], text, &arena);
    buf_free(&out);
    arena_clear(&arena);
    return 0;
}
