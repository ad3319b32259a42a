/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes the simulated cluster's JSON documents from tables. */
#include "sim_json.h"

/* As json-c does it: a slash is escaped, and what is not ASCII stands as it came. */
void sim_json_put_string(struct buf *buf, struct str s)
{
    static const char letters[32] = {
        ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'
    };
    size_t plain = 0;

    buf_byte(buf, '"');
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];

        if (c >= 0x20 && c != '"' && c != '\\' && c != '/')
            continue;
        buf_put(buf, (struct str){ s.p + plain, i - plain });
        plain = i + 1;
        if (c >= 0x20 || letters[c])
            buf_put(buf, (struct str){ (char[]){ '\\', c < 0x20 ? letters[c] : (char)c }, 2 });
        else
            buf_printf(buf, "\\u%04x", c);
    }
    buf_put(buf, (struct str){ s.p + plain, s.n - plain });
    buf_byte(buf, '"');
}

/* A null, a plain number or an object that says whether there is one. */
void sim_json_put_plain(struct buf *buf, int64_t number)
{
    if (number == SIM_ABSENT || number == SIM_INFINITE)
        buf_put(buf, STR("null"));
    else
        buf_i64(buf, number);
}

void sim_json_put_object(struct buf *buf, int64_t number)
{
    if (number == SIM_ABSENT) {
        buf_put(buf, STR(UNSET));
    } else if (number == SIM_INFINITE) {
        buf_put(buf, STR(UNLIMITED));
    } else {
        buf_put(buf,
                STR("{" IN "  \"set\": true," IN "  \"infinite\": false," IN "  \"number\": "));
        buf_i64(buf, number);
        buf_put(buf, STR(IN "}"));
    }
}

struct sim_json_list sim_json_list_begin(struct buf *buf, bool is_42)
{
    buf_byte(buf, '[');
    return (struct sim_json_list){ buf, is_42, false };
}

void sim_json_list_add(struct sim_json_list *list, struct str word)
{
    if (list->has_items)
        buf_byte(list->buf, ',');
    buf_put(list->buf, STR(IN "  "));
    sim_json_put_string(list->buf, word);
    list->has_items = true;
}

void sim_json_list_end(struct sim_json_list *list)
{
    if (list->has_items || !list->is_42)
        buf_put(list->buf, STR(IN));
    buf_byte(list->buf, ']');
}

void sim_json_list_add_upper(struct sim_json_list *list, struct str word)
{
    char upper[32];
    size_t n = word.n < sizeof(upper) ? word.n : sizeof(upper);

    for (size_t i = 0; i < n; i++)
        upper[i] = word.p[i] >= 'a' && word.p[i] <= 'z' ? (char)(word.p[i] - 'a' + 'A') : word.p[i];
    sim_json_list_add(list, (struct str){ upper, n });
}

static void put_value(const struct sim_json_record *record, const struct sim_json_member *member)
{
    struct buf *buf = &record->out->buf;
    const void *at = (const char *)record->view + member->offset;
    struct str text;
    int64_t number;

    switch (member->shape) {
    case FIXED:
        buf_text(buf, member->fixed);
        break;
    case TEXT:
    case TEXT_OR_NULL:
        memcpy(&text, at, sizeof(text));
        if (member->shape == TEXT_OR_NULL && !text.n)
            buf_put(buf, STR("null"));
        else
            sim_json_put_string(buf, text);
        break;
    case PLAIN:
        memcpy(&number, at, sizeof(number));
        sim_json_put_plain(buf, number);
        break;
    case OBJECT:
        memcpy(&number, at, sizeof(number));
        sim_json_put_object(buf, number);
        break;
    case MADE:
        member->put(record);
        break;
    }
}

void sim_json_put_members(const struct sim_json_record *record,
                          const struct sim_json_member *members, size_t n)
{
    struct buf *buf = &record->out->buf;

    for (size_t i = 0; i < n; i++) {
        buf_text(buf, i ? "," IN "\"" : IN "\"");
        buf_text(buf, members[i].key);
        buf_text(buf, "\": ");
        put_value(record, &members[i]);
    }
}

void sim_json_begin_record(struct sim_json_document *document, struct buf *buf)
{
    buf_text(buf, document->has_records ? ",\n    {" : "\n    {");
    document->has_records = true;
}

void sim_json_put_document_38(struct sim_out *out, const char *list)
{
    buf_printf(&out->buf,
               "{\n  \"meta\": {\n    \"plugin\": {\n      \"type\": \"openapi\\/v0.0.38\",\n"
               "      \"name\": \"Slurm OpenAPI v0.0.38\"\n    },\n    \"Slurm\": {\n"
               "      \"version\": {\n        \"major\": 22,\n        \"micro\": 8,\n"
               "        \"minor\": 5\n      },\n      \"release\": \"22.05.8\"\n    }\n  },\n"
               "  \"errors\": [\n  ],\n  \"%s\": [",
               list);
}

void sim_json_put_update_time(struct buf *buf, const char *key, int64_t time)
{
    buf_printf(buf,
               "  \"%s\": {\n    \"set\": true,\n    \"infinite\": false,\n"
               "    \"number\": %lld\n  },\n",
               key, (long long)time);
}

void sim_json_put_end_42(struct sim_out *out, const char *command)
{
    buf_printf(&out->buf,
               "  \"meta\": {\n    \"plugin\": {\n      \"type\": \"\",\n      \"name\": \"\",\n"
               "      \"data_parser\": \"data_parser\\/v0.0.42\",\n"
               "      \"accounting_storage\": \"accounting_storage\\/slurmdbd\"\n    },\n"
               "    \"client\": {\n      \"source\": \"\",\n      \"user\": \"root\",\n"
               "      \"group\": \"root\"\n    },\n    \"command\": [\n      \"%s\"\n    ],\n"
               "    \"slurm\": {\n      \"version\": {\n        \"major\": \"24\",\n"
               "        \"micro\": \"5\",\n        \"minor\": \"11\"\n      },\n"
               "      \"release\": \"24.11.5\",\n      \"cluster\": \"simulated\"\n    }\n  },\n"
               "  \"errors\": [],\n  \"warnings\": []\n}\n",
               command);
}
