/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes the OpenAPI description of the API. */
#include "web/openapi.h"

#include "web/api_call.h"

#include <ctype.h>

enum { PLAIN_BYTES = 1 << 20, NAME_BYTES = 40, INDENT = 2 };

static const struct {
    const char *name;
    const struct api_shape *shape;
} named_shapes[] = {
    { "Run", &api_row_shape },
    { "Usage", &api_usage_shape },
    { "Amount", &api_amount_shape },
    { "Held", &api_held_shape },
};

#define SECONDS_OF(words) "{\"type\":\"integer\",\"description\":\"" words "\"}"
#define COUNT_SCHEMA      "{\"type\":\"integer\",\"minimum\":0}"

static const char *const field_schemas[] = {
    [API_TEXT] = "{\"type\":\"string\"}",
    [API_ID] = COUNT_SCHEMA,
    [API_U32] = COUNT_SCHEMA,
    [API_U64] = COUNT_SCHEMA,
    [API_TIME] = SECONDS_OF("UTC seconds"),
    [API_SPAN] = SECONDS_OF("seconds"),
    [API_MINUTES] = SECONDS_OF("seconds"),
    [API_NUMBER] = "{\"type\":\"number\"}",
    [API_STATE] = "{\"type\":\"string\"}",
    [API_ORIGIN] = "{\"type\":\"string\",\"enum\":[\"seen\",\"accounted\"]}",
    [API_GPU_TYPES] = "{\"type\":\"object\",\"additionalProperties\":" COUNT_SCHEMA "}",
    [API_RUN_KEY] = "{\"type\":\"string\"}",
    [API_HET] = COUNT_SCHEMA,
    [API_FLAG] = "{\"type\":\"boolean\"}",
};

/* What stands in the schema of a member beside what it is for; lists and objects have more. */
static const char *const member_schemas[] = {
    [API_MEMBER_OBJECT] = NULL,
    [API_MEMBER_LIST] = "\"type\":\"array\"",
    [API_MEMBER_TEXT] = "\"type\":\"string\"",
    [API_MEMBER_TEXTS] = "\"type\":\"array\",\"items\":{\"type\":\"string\"}",
    [API_MEMBER_KEY] = "\"type\":[\"string\",\"null\"]",
    [API_MEMBER_COUNT] = "\"type\":\"integer\",\"minimum\":0",
    [API_MEMBER_TIME] = "\"type\":\"integer\"",
    [API_MEMBER_FLAG] = "\"type\":\"boolean\"",
    [API_MEMBER_BY_NAME] = "\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\"}",
    [API_MEMBER_ANY] = "\"type\":\"object\",\"additionalProperties\":true",
};

static const struct {
    const char *status, *words;
    bool is_json;
} refusals[] = {
    { "400", "The query is wrong: the sentence says what, and what is probably meant.", true },
    { "401", "Name and password are wanted.", false },
    { "403", "Who asks may not see this.", true },
    { "404", "There is no such thing.", true },
    { "413", "The answer would be too large: ask for less.", true },
    { "421", "It is called by a name that is not its own.", true },
    { "503", "It cannot be read at the moment, or there is too much to do: try again.", true },
    { "504", "It took too long: ask for less.", true },
};

#define SERIES                                                                                     \
    "{\"type\":\"object\",\"required\":[\"labels\",\"points\"],\"properties\":{"                   \
    "\"title\":{\"type\":\"string\"},\"unit\":{\"type\":\"string\"},"                              \
    "\"labels\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"                             \
    "\"colours\":{\"type\":\"array\",\"items\":{\"type\":\"integer\"}},"                           \
    "\"points\":{\"type\":\"array\",\"items\":{\"type\":\"array\","                                \
    "\"items\":{\"type\":[\"number\",\"null\"]}}}}}"
#define AMOUNT                                                                                     \
    "{\"type\":\"object\",\"properties\":{\"amount\":{\"type\":\"number\"},"                       \
    "\"unit\":{\"type\":\"string\"},\"count\":{\"type\":\"number\"},"                              \
    "\"usage\":{\"type\":\"number\"},\"time\":{\"type\":\"number\"},"                              \
    "\"lowest_expected_usage\":{\"type\":\"number\"},"                                             \
    "\"percent_of_total\":{\"type\":\"number\"},\"core\":{\"type\":\"string\"}}}"

struct other_param {
    const char *name, *help;
};

/* What is answered by pages of the site (show_petricore.c, show_plot.c, show_trend.c). */
static const struct other {
    const char *shown, *summary;
    struct other_param params[4];
    const char *schema;
} others[] = {
    { "/api/v1/jobs/ID/usage",
      "What a job used, as petricore's web app has it.",
      { { "cluster", "On this cluster." }, { "key", "This run of it." } },
      "{\"type\":\"object\",\"required\":[\"jobid\"],\"properties\":{"
      "\"jobid\":{\"type\":\"integer\"},\"simulated\":{\"type\":\"boolean\"},"
      "\"sponsor\":{\"type\":\"string\"},"
      "\"username\":{\"type\":\"string\"},\"runtime\":{\"type\":\"string\"},"
      "\"uses_scratch\":{\"type\":\"string\"},\"alloc_tres\":{\"type\":\"object\",\"properties\":{"
      "\"billing\":{\"type\":\"integer\"},\"alloc_cpu\":{\"type\":\"integer\"},"
      "\"alloc_mem\":{\"type\":\"string\"},\"alloc_nodes\":{\"type\":\"string\"}}},"
      "\"threads\":{\"type\":\"object\",\"additionalProperties\":{\"type\":\"number\"}},"
      "\"cpu\":{\"type\":\"object\",\"properties\":{\"available\":" AMOUNT ",\"used\":" AMOUNT
      ",\"time_core\":{\"type\":\"array\",\"items\":" AMOUNT "},\"time_total\":" AMOUNT
      ",\"avg_usage_job\":" AMOUNT ",\"max_usage_job\":" AMOUNT "}},"
      "\"ram\":{\"type\":\"object\",\"properties\":{\"used\":" AMOUNT ",\"available\":" AMOUNT "}},"
      "\"gpu\":{\"type\":\"object\",\"properties\":{\"alloc_gpu\":{\"type\":\"object\","
      "\"additionalProperties\":{\"type\":\"array\"}},\"metrics\":{\"type\":\"object\","
      "\"additionalProperties\":{\"type\":\"array\",\"items\":{\"type\":[\"number\",\"null\"]}}}}},"
      "\"io\":{\"type\":\"object\",\"properties\":{\"opened_files\":{\"type\":\"number\"},"
      "\"read\":" AMOUNT ",\"write\":" AMOUNT "}}}}" },
    { "/api/v1/users/NAME",
      "A user's jobs of the last 30 days, as petricore's web app has them.",
      { { "cluster", "On this cluster." } },
      "{\"type\":\"object\",\"required\":[\"user\",\"jobs\"],\"properties\":{"
      "\"user\":{\"type\":\"object\",\"properties\":{\"username\":{\"type\":\"string\"},"
      "\"uid\":{\"type\":\"integer\"}}},"
      "\"jobs\":{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}}}" },
    { "/api/v1/series/ID",
      "A job's numbers over time, for its charts.",
      { { "plot", "Which: cpu, memory, …" },
        { "cluster", "On this cluster." },
        { "key", "This run of it." } },
      SERIES },
    { "/api/v1/trends/NAME",
      "A cluster's or a node's numbers over time: cpus, gpus, memory, nodes, jobs, node_cpus.",
      { { "cluster", "Of this cluster." },
        { "node", "Of this node." },
        { "hours", "So many hours back from now." } },
      SERIES },
};

static void put_shape(struct buf *out, const struct api_shape *shape, bool has_simulated);

/* Without its own name, if it has one. */
static void put_ref(struct buf *out, const struct api_shape *shape)
{
    for (size_t i = 0; i < COUNT(named_shapes); i++)
        if (named_shapes[i].shape == shape) {
            buf_printf(out, "{\"$ref\":\"#/components/schemas/%s\"}", named_shapes[i].name);
            return;
        }
    put_shape(out, shape, false);
}

static void put_member(struct buf *out, const struct api_member *member)
{
    api_json_begin(out, member->name, '{');
    api_json_text(out, "description", str_of(member->help));
    if (member_schemas[member->type]) {
        api_json_next(out);
        buf_text(out, member_schemas[member->type]);
    }
    if (member->shape) {
        api_json_name(out, member->type == API_MEMBER_LIST ? "items" : "allOf");
        buf_text(out, member->type == API_MEMBER_LIST ? "" : "[");
        put_ref(out, member->shape);
        buf_text(out, member->type == API_MEMBER_LIST ? "" : "]");
    }
    buf_byte(out, '}');
}

static void put_required(struct buf *out, const struct api_shape *shape)
{
    size_t before = out->n, n = 0;

    api_json_begin(out, "required", '[');
    for (size_t i = 0; i < shape->n_members; i++) {
        if (shape->members[i].is_optional)
            continue;
        api_json_next(out);
        buf_json(out, str_of(shape->members[i].name));
        n++;
    }
    buf_byte(out, ']');
    if (!n)
        api_json_undo(out, before);
}

static void put_shape(struct buf *out, const struct api_shape *shape, bool has_simulated)
{
    buf_byte(out, '{');
    api_json_text(out, "type", STR("object"));
    put_required(out, shape);
    api_json_begin(out, "properties", '{');
    if (has_simulated) {
        api_json_name(out, "simulated");
        buf_text(out, "{\"const\":true,\"description\":\"Nothing of this is real.\"}");
    }
    for (size_t i = 0; i < shape->n_fields; i++) {
        api_json_name(out, shape->fields[i].name);
        buf_text(out, field_schemas[shape->fields[i].type]);
    }
    for (size_t i = 0; i < shape->n_members; i++)
        put_member(out, &shape->members[i]);
    buf_text(out, "}}");
}

/* "/api/v1/jobs/KEY" as "/api/v1/jobs/{key}"; and the word, or an empty one. */
static void put_path(struct buf *out, const char *shown, char word[NAME_BYTES])
{
    size_t n = 0;

    for (const char *c = shown; *c; c++) {
        if (!isupper((unsigned char)*c)) {
            buf_byte(out, *c);
            continue;
        }
        if (n == 0)
            buf_byte(out, '{');
        word[n++] = (char)tolower((unsigned char)*c);
        buf_byte(out, word[n - 1]);
        if (!isupper((unsigned char)c[1]))
            buf_byte(out, '}');
    }
    word[n] = '\0';
}

static void put_param(struct buf *out, const char *name, const char *place, const char *help,
                      const char *schema)
{
    bool is_path = strcmp(place, "path") == 0;

    api_json_begin(out, NULL, '{');
    api_json_text(out, "name", str_of(name));
    api_json_text(out, "in", str_of(place));
    if (is_path) {
        api_json_name(out, "required");
        buf_text(out, "true");
    }
    api_json_text(out, "description", str_of(help));
    api_json_name(out, "schema");
    buf_text(out, schema);
    buf_byte(out, '}');
}

static void put_responses(struct buf *out)
{
    for (size_t i = 0; i < COUNT(refusals); i++) {
        api_json_name(out, refusals[i].status);
        buf_printf(out, "{\"$ref\":\"#/components/responses/%s\"}", refusals[i].status);
    }
}

/* From its path to the schema of its answer, which follows. */
static void begin_operation(struct buf *out, const char *shown, const char *summary,
                            char word[NAME_BYTES])
{
    api_json_next(out);
    buf_byte(out, '"');
    put_path(out, shown, word);
    buf_text(out, "\":{\"get\":{");
    api_json_text(out, "summary", str_of(summary));
    api_json_begin(out, "parameters", '[');
    if (word[0])
        put_param(out, word, "path", "What stands in the path.", "{\"type\":\"string\"}");
}

static void begin_answer(struct buf *out)
{
    buf_text(out, "],\"responses\":{\"200\":{\"description\":\"Here it is.\",\"content\":{"
                  "\"application/json\":{\"schema\":");
}

static void end_operation(struct buf *out)
{
    buf_text(out, "}}}");
    put_responses(out);
    buf_text(out, "}}}");
}

static void put_resource(struct buf *out, const struct api_resource *resource)
{
    char word[NAME_BYTES];

    begin_operation(out, resource->shown, resource->summary, word);
    for (size_t i = 0; i < resource->n_params; i++)
        put_param(out, resource->params[i].name, "query", resource->params[i].help,
                  api_param_schema(&resource->params[i]));
    begin_answer(out);
    put_shape(out, resource->shape, true);
    end_operation(out);
}

static void put_other(struct buf *out, const struct other *other)
{
    char word[NAME_BYTES];

    begin_operation(out, other->shown, other->summary, word);
    for (size_t i = 0; i < COUNT(other->params) && other->params[i].name; i++)
        put_param(out, other->params[i].name, "query", other->params[i].help,
                  "{\"type\":\"string\"}");
    begin_answer(out);
    buf_text(out, other->schema);
    end_operation(out);
}

static void put_components(struct buf *out)
{
    buf_text(out, "\"components\":{\"securitySchemes\":{"
                  "\"password\":{\"type\":\"http\",\"scheme\":\"basic\"}},"
                  "\"schemas\":{\"Error\":{\"type\":\"object\",\"required\":[\"error\"],"
                  "\"properties\":{\"error\":{\"type\":\"string\"}}}");
    for (size_t i = 0; i < COUNT(named_shapes); i++) {
        api_json_name(out, named_shapes[i].name);
        put_shape(out, named_shapes[i].shape, false);
    }
    buf_text(out, "},\"responses\":{");
    for (size_t i = 0; i < COUNT(refusals); i++) {
        api_json_begin(out, refusals[i].status, '{');
        api_json_text(out, "description", str_of(refusals[i].words));
        if (refusals[i].is_json)
            buf_text(out, ",\"content\":{\"application/json\":{\"schema\":"
                          "{\"$ref\":\"#/components/schemas/Error\"}}}");
        buf_byte(out, '}');
    }
    buf_text(out, "}}");
}

static void put_plain(struct buf *out)
{
    buf_text(out,
             "{\"openapi\":\"3.1.0\",\"info\":{\"title\":\"sonde\",\"version\":\"1\","
             "\"description\":\"What is unknown is left out. Times are UTC seconds, durations "
             "seconds, sizes bytes. Members that are added later are no break: pass over what you "
             "do not know.\"},\"security\":[{},{\"password\":[]}],\"paths\":{");
    for (size_t i = 0; i < API_RESOURCES; i++)
        put_resource(out, api_resources[i]);
    for (size_t i = 0; i < COUNT(others); i++)
        put_other(out, &others[i]);
    buf_text(out, "},");
    put_components(out);
    buf_byte(out, '}');
}

static void put_line_end(struct buf *out, size_t depth)
{
    buf_byte(out, '\n');
    for (size_t i = 0; i < depth * INDENT; i++)
        buf_byte(out, ' ');
}

/* For people, and so that a change is a few lines: empty brackets stay together. */
static void indent(struct buf *out, struct str plain)
{
    bool is_text = false;
    size_t depth = 0;

    for (size_t i = 0; i < plain.n; i++) {
        char c = plain.p[i], next = i + 1 < plain.n ? plain.p[i + 1] : '\0';
        bool opens = !is_text && (c == '{' || c == '['),
             closes = !is_text && (c == '}' || c == ']');

        if (c == '"' && (i == 0 || plain.p[i - 1] != '\\'))
            is_text = !is_text;
        depth += opens;
        depth -= closes;
        if (closes && plain.p[i - 1] != '{' && plain.p[i - 1] != '[')
            put_line_end(out, depth);
        buf_byte(out, c);
        if ((opens && next != '}' && next != ']') || (!is_text && c == ','))
            put_line_end(out, depth);
        else if (!is_text && c == ':')
            buf_byte(out, ' ');
    }
    buf_byte(out, '\n');
}

void openapi_put(struct buf *out)
{
    struct buf plain;

    buf_init(&plain, PLAIN_BYTES);
    put_plain(&plain);
    indent(out, buf_str(&plain));
    buf_free(&plain);
}
