/* SPDX-License-Identifier: GPL-2.0-or-later */
/* docs/openapi.json is what the tables say; SONDE_UPDATE_GOLDEN=1 writes it anew. */
#include "test.h"

#include "base/json.h"
#include "web/api_call.h"
#include "web/openapi.h"

enum { FILE_BYTES = 1 << 20 };

static bool has(struct str text, const char *part)
{
    return str_find_str(text, str_of(part)) < text.n;
}

static void read_golden(const char *path, struct buf *to)
{
    FILE *file = fopen(path, "r");
    char *room = buf_room(to, FILE_BYTES);

    if (!file)
        fail_msg("there is no %s: SONDE_UPDATE_GOLDEN=1 writes it", path);
    to->n = fread(room, 1, FILE_BYTES, file);
    buf_end(to);
    fclose(file);
}

static void write_golden(const char *path, struct str text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_int_equal(fwrite(text.p, 1, text.n, file), text.n);
    assert_int_equal(fclose(file), 0);
}

TEST(the_file_is_what_the_tables_say)
{
    const char *data = getenv("TEST_DATA"), *update = getenv("SONDE_UPDATE_GOLDEN");
    struct buf made, golden;
    char path[4096];

    if (!data)
        skip_because("TEST_DATA is not set");
    snprintf(path, sizeof(path), "%s/../../docs/openapi.json", data);
    buf_init(&made, FILE_BYTES);
    buf_init(&golden, FILE_BYTES + 1);
    openapi_put(&made);
    assert_false(made.over);
    if (update && strcmp(update, "1") == 0)
        write_golden(path, buf_str(&made));
    read_golden(path, &golden);
    if (!str_eq(buf_str(&made), buf_str(&golden)))
        fail_msg("docs/openapi.json is not what is answered at /api/v1/openapi.json: run this test "
                 "with SONDE_UPDATE_GOLDEN=1, and look at what has changed");
    buf_free(&made);
    buf_free(&golden);
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
