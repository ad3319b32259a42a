/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Slurm's JSON documents, read by tables that say which member of which object goes where. One
 * table serves every data_parser: a number may be plain, null, a text or { set, infinite, number },
 * and a list of words a single word. What no table names is passed over; what a release leaves out,
 * or says is not set, stays as the record began. */
#ifndef SONDE_SOURCE_JSON_TABLE_H
#define SONDE_SOURCE_JSON_TABLE_H

#include "base/json.h"
#include "source/answer.h"

/* How a member is read, and the type of the field that it fills. What is infinite is unknown. */
enum json_shape {
    SHAPE_U32,        /* uint32_t */
    SHAPE_U64,        /* uint64_t */
    SHAPE_MEBIBYTES,  /* uint64_t, in bytes */
    SHAPE_TIME,       /* int64_t, UTC seconds */
    SHAPE_HUNDREDTHS, /* double */
    SHAPE_REAL,       /* double; what is infinite is so */
    SHAPE_TRUTH,      /* bool */
    SHAPE_TEXT,       /* symbol: see answer_text */
    SHAPE_NAME,       /* symbol: see answer_name */
    SHAPE_AS_IS,      /* symbol of whatever the text is */
    SHAPE_WORDS,      /* none: each word of a list, or the only one, is handed to `word` */
    SHAPE_TEXTS,      /* likewise, and null is an empty one: of a list in which the place counts */
    SHAPE_OBJECT,     /* what `table` fills */
    SHAPE_LIST,       /* none: each object of it begins a record of `table` */
};

struct json_member {
    struct str key; /* or a path, "max/jobs/active": a member of objects that have no record */
    enum json_shape shape;
    size_t offset; /* of the field in the record */
    const struct json_table *table;
};

/* MEMBER(struct draft, "job_id", SHAPE_U32, job.id) */
#define MEMBER(record, key, shape, field)                                                          \
    {                                                                                              \
        STR_INIT(key), shape, offsetof(record, field), NULL                                        \
    }
#define MEMBER_WORDS(key)                                                                          \
    {                                                                                              \
        STR_INIT(key), SHAPE_WORDS, 0, NULL                                                        \
    }
#define MEMBER_TEXTS(key)                                                                          \
    {                                                                                              \
        STR_INIT(key), SHAPE_TEXTS, 0, NULL                                                        \
    }
#define MEMBER_LIST(key, table)                                                                    \
    {                                                                                              \
        STR_INIT(key), SHAPE_LIST, 0, table                                                        \
    }

/* The members of one sort of object. The functions may be NULL. */
struct json_table {
    const struct json_member *members;
    size_t n;
    void *(*begin)(struct answer *answer); /* a record; NULL: the field in the one around it */
    void (*word)(struct answer *answer, void *record, const struct json_member *member,
                 struct str word);
    void (*end)(struct answer *answer, void *record);
};

enum { JSON_TABLES = 8, JSON_SLOTS = 256, JSON_FRAMES = 8, JSON_PATH = 64 };

/* A table, and its members by a hash of their keys and of every beginning of a path. */
struct json_index {
    const struct json_table *table;
    unsigned char slots[JSON_SLOTS]; /* index of the member + 1 */
};

/* An answer in JSON begins with this. The rest is json_table.c's own. */
struct json_answer {
    struct answer answer;
    struct json *json;
    struct json_index indexes[JSON_TABLES];
    size_t n_indexes;
    struct json_frame {
        const struct json_index *index;
        void *record;
        const struct json_member *list; /* whose objects are being read, or NULL */
        struct str path;                /* from the record to here; empty: the record itself */
    } frames[JSON_FRAMES];              /* the objects that are open */
    size_t n_frames;
    unsigned state;
    const struct json_member *member; /* whose value is at hand, */
    size_t n_path;                    /* or so many bytes of its path */
    unsigned part;                    /* of { set, infinite, number } */
    bool is_set, is_infinite, has_number;
    uint64_t number;
    double real;
    bool has_content, has_records, has_errors;
    struct json_error {
        symbol description, words;
    } error;             /* the one being read, */
    symbol refusal;      /* and the first */
    int64_t last_update; /* slurmctld's time, of a document that tells it and whose table asks */
};

/* For the table of a document: what Slurm says went wrong. */
extern const struct json_table json_errors;
#define MEMBER_ERRORS MEMBER_LIST("errors", &json_errors)

/* The document's own table comes first; its first member is what the document is for, and its
 * record is the answer itself. */
void json_answer_begin(struct answer *answer, const struct json_table *document);
int json_answer_feed(struct answer *answer, struct str piece, struct err *err);

/* Also an error: a document without what it is for, or with an error of Slurm's in its place. */
int json_answer_end(struct answer *answer, struct err *err);
void json_answer_free(struct answer *answer);

/* For a table's `begin`: whose list the record is in. The offset of such a member is free. */
const struct json_member *json_answer_list(const struct answer *answer);

#endif
