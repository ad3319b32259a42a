/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Posts to /ingest. Whatever comes, records are complete, and their documents are JSON objects
 * within their ceiling that are read as they were written. */
#include "http/ingest_body.h"

#include "base/buf.h"
#include "base/json.h"

#include "fuzz.h"

static void check_document(struct str document)
{
    struct json *json = json_new();
    enum json_event event;

    FUZZ_CHECK(document.n <= INGEST_DOCUMENT_MAX, "%zu bytes", document.n);
    json_feed(json, document);
    json_finish(json);
    FUZZ_CHECK(json_next(json) == JSON_OBJECT, "no object");
    while ((event = json_next(json)) > JSON_END)
        FUZZ_CHECK(json_depth(json) <= 8, "too deep");
    FUZZ_CHECK(event == JSON_END, "not JSON: %.*s", STR_ARG(document));
    json_free(json);
}

static void check_again(const struct ingest_body *body)
{
    struct arena arena = { 0 };
    struct ingest_body again;
    struct err err;
    int64_t bad;
    struct buf text;

    buf_init(&text, INGEST_BODY_MAX);
    buf_text(&text, "{\"records\":[");
    for (size_t i = 0; i < body->n_records; i++) {
        const struct final_record *record = &body->records[i];

        buf_printf(&text,
                   "%s{\"job_id\":%u,\"begin_time\":%lld,\"end_time\":%lld,\"node\":", i ? "," : "",
                   record->job_id, (long long)record->begin_time, (long long)record->end_time);
        buf_json(&text, record->node);
        if (record->document.n > 2)
            buf_byte(&text, ',');
        buf_put(&text, str_skip(record->document, 1));
    }
    buf_text(&text, "]}");
    if (!text.over) {
        FUZZ_CHECK(ingest_body_read(buf_str(&text), &arena, &again, &bad, &err) == 0, "%s",
                   err.text);
        FUZZ_CHECK(again.n_records == body->n_records, "%zu records", again.n_records);
        for (size_t i = 0; i < body->n_records; i++)
            FUZZ_CHECK(str_eq(again.records[i].document, body->records[i].document), "%.*s",
                       STR_ARG(again.records[i].document));
    }
    arena_clear(&arena);
    buf_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = { 0 };
    struct ingest_body body = { 0 };
    struct err err = { 0 };
    int64_t bad = -2;
    int code =
        ingest_body_read((struct str){ (const char *)data, size }, &arena, &body, &bad, &err);

    FUZZ_CHECK(code == 0 || code == -EBADMSG, "code %d", code);
    FUZZ_CHECK(code == 0 ? bad == -1 : bad >= -1 && bad < INGEST_RECORDS_MAX, "bad %lld",
               (long long)bad);
    FUZZ_CHECK(code == 0 || err.text[0], "no sentence");
    if (code == 0) {
        FUZZ_CHECK(body.n_records <= INGEST_RECORDS_MAX, "%zu records", body.n_records);
        for (size_t i = 0; i < body.n_records; i++) {
            FUZZ_CHECK(body.records[i].job_id && body.records[i].node.n &&
                           body.records[i].begin_time > 0 &&
                           body.records[i].end_time >= body.records[i].begin_time,
                       "half a record");
            check_document(body.records[i].document);
        }
        check_again(&body);
    }
    arena_clear(&arena);
    return 0;
}
