/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Documents of JSON made of tables of members, shared by the sim_json*.c files only. */
#ifndef SONDE_TESTS_SIM_JSON_H
#define SONDE_TESTS_SIM_JSON_H

#include "sim_view.h"

/* In the members of a record, which stand at this depth in every document. */
#define IN "\n      "

#define NUMBER_OBJECT(set, infinite, number)                                                       \
    "{" IN "  \"set\": " set "," IN "  \"infinite\": " infinite "," IN "  \"number\": " number IN  \
    "}"
#define UNSET     NUMBER_OBJECT("false", "false", "0")
#define ZERO      NUMBER_OBJECT("true", "false", "0")
#define UNLIMITED NUMBER_OBJECT("false", "true", "0")

/* Takes the words of a list one at a time; 22.05 breaks the line in an empty one. */
struct sim_json_list {
    struct buf *buf;
    bool is_42, has_items;
};

struct sim_json_list sim_json_list_begin(struct buf *buf, bool is_42);
void sim_json_list_add(struct sim_json_list *list, struct str word);
void sim_json_list_add_upper(struct sim_json_list *list, struct str word);
void sim_json_list_end(struct sim_json_list *list);

/* What a printer of one member gets. */
struct sim_json_record {
    struct sim_out *out;
    const struct sim_cluster *cluster;
    const void *view;
    bool is_42;
};

struct sim_json_member {
    const char *key;
    enum { FIXED, TEXT, TEXT_OR_NULL, PLAIN, OBJECT, MADE } shape;
    size_t offset;
    const char *fixed;
    void (*put)(const struct sim_json_record *record);
};

#define AS_IS(key, text)                                                                           \
    {                                                                                              \
        key, FIXED, 0, text, NULL                                                                  \
    }
#define BY(key, function)                                                                          \
    {                                                                                              \
        key, MADE, 0, NULL, function                                                               \
    }
#define EMPTY "\"\""

/* As json-c does it: a slash is escaped, and what is not ASCII stands as it came. */
void sim_json_put_string(struct buf *buf, struct str s);
void sim_json_put_plain(struct buf *buf, int64_t number);
void sim_json_put_object(struct buf *buf, int64_t number);
void sim_json_put_members(const struct sim_json_record *record,
                          const struct sim_json_member *members, size_t n);

/* A document: what stands before its records and after them, and whether one has come. */
struct sim_json_document {
    bool is_42, has_records;
};

void sim_json_begin_record(struct sim_json_document *document, struct buf *buf);
void sim_json_put_document_38(struct sim_out *out, const char *list);
void sim_json_put_update_time(struct buf *buf, const char *key, int64_t time);
void sim_json_put_end_42(struct sim_out *out, const char *command);

#endif
