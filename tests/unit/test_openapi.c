/* SPDX-License-Identifier: GPL-2.0-or-later */
/* docs/openapi.json is what the tables say; SONDE_UPDATE_GOLDEN=1 writes it anew. */
#include "test.h"

#include "base/json.h"
#include "files.h"
#include "web/api_call.h"
#include "web/openapi.h"

enum { FILE_BYTES = 1 << 20 };

static bool has(struct str text, const char *part)
{
    return str_find_str(text, str_of(part)) < text.n;
}

TEST(the_file_is_what_the_tables_say)
{
    struct buf made;

    buf_init(&made, FILE_BYTES);
    openapi_put(&made);
    assert_false(made.over);
    assert_golden(buf_str(&made), "docs/openapi.json");
    buf_free(&made);
}

TEST(it_is_json_and_says_every_path_and_parameter)
{
    struct json *json = json_new();
    enum json_event event;
    struct buf made;

    buf_init(&made, FILE_BYTES);
    openapi_put(&made);
    json_feed(json, buf_str(&made));
    while ((event = json_next(json)) > JSON_END)
        ;
    json_finish(json);
    while (event == JSON_MORE && (event = json_next(json)) > JSON_END)
        ;
    assert_int_equal(event, JSON_END);
    json_free(json);
    for (size_t i = 0; i < API_RESOURCES; i++) {
        const struct api_resource *resource = api_resources[i];
        char part[200];

        assert_true(has(buf_str(&made), resource->summary));
        for (size_t p = 0; p < resource->n_params; p++) {
            snprintf(part, sizeof(part), "\"name\": \"%s\"", resource->params[p].name);
            assert_true(has(buf_str(&made), part));
        }
    }
    assert_true(has(buf_str(&made), "\"/api/v1/jobs/{key}\": {"));
    assert_true(has(buf_str(&made), "\"/api/v1/users/{name}/summary\": {"));
    buf_free(&made);
}

TEST(a_row_of_usage_has_a_member_for_each_key)
{
    const struct api_shape *shape = api_usage.shape;

    for (size_t i = 0; i < shape->n_members; i++)
        if (strcmp(shape->members[i].name, "rows") == 0)
            for (size_t k = 0; k < USAGE_KEYS; k++)
                assert_str(usage_key_words[k], shape->members[i].shape->members[k].name);
}

/* "submit, id, name, …" in the help of sort. */
TEST(the_columns_that_can_be_sorted_by_are_told)
{
    for (size_t p = 0; p < api_queue.n_params; p++)
        if (api_queue.params[p].type == API_PARAM_SORT)
            for (size_t i = 0; i < QUEUE_SORTS; i++)
                assert_contains(api_queue.params[p].help, queue_sort_words[i]);
}
