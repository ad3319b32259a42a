/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the API answers, as JSON (RFC 8259). A field is a row of a table: docs/api.md is held
 * against these. What is unknown is left out, everywhere. */
#ifndef SONDE_WEB_API_JSON_H
#define SONDE_WEB_API_JSON_H

#include "base/buf.h"

enum api_field_type {
    API_TEXT,      /* struct str; empty: unknown */
    API_ID,        /* uint32_t; 0: unknown */
    API_U32,       /* uint32_t; MODEL_UNKNOWN_U32 */
    API_U64,       /* uint64_t; MODEL_UNKNOWN_U64 */
    API_TIME,      /* int64_t; 0 */
    API_SPAN,      /* int64_t, seconds; -1 */
    API_MINUTES,   /* uint32_t, told in seconds; MODEL_UNKNOWN_U32 */
    API_NUMBER,    /* double; NAN */
    API_STATE,     /* struct job_state */
    API_ORIGIN,    /* enum record_origin */
    API_GPU_TYPES, /* struct job_row, for its gpu_types and gpus: an object of numbers by type */
    API_RUN_KEY,   /* struct run_key */
    API_HET,       /* struct job_record, for its het_offset */
    API_FLAG,      /* bool */
};

struct api_field {
    const char *name;
    enum api_field_type type;
    size_t offset;
};

/* What an object is made of: its fields, and members that are no plain value. From these openapi.c
 * describes every answer. */
enum api_member_type {
    API_MEMBER_OBJECT,
    API_MEMBER_LIST, /* of objects */
    API_MEMBER_TEXT,
    API_MEMBER_TEXTS, /* a list */
    API_MEMBER_KEY,   /* a text, or null */
    API_MEMBER_COUNT,
    API_MEMBER_TIME,
    API_MEMBER_FLAG,
    API_MEMBER_BY_NAME, /* an object of texts, by names that somebody else has given */
    API_MEMBER_ANY,     /* an object that somebody else has written */
};

struct api_shape;

struct api_member {
    const char *name;
    enum api_member_type type;
    bool is_optional;
    const char *help;
    const struct api_shape *shape; /* of an object, or of each object of a list */
};

struct api_shape {
    const struct api_field *fields;
    size_t n_fields;
    const struct api_member *members;
    size_t n_members;
};

/* The comma, if something stands before it; the name and its colon. */
void api_json_next(struct buf *out);
void api_json_name(struct buf *out, const char *name);

/* A member: a whole number; a text, if it is not empty. */
void api_json_count(struct buf *out, const char *name, uint64_t count);
void api_json_text(struct buf *out, const char *name, struct str text);

/* What begins with '{' or '['; without a name (NULL) as one of a list. */
void api_json_begin(struct buf *out, const char *name, char bracket);

/* One of these as an object, likewise. */
void api_json_put(struct buf *out, const char *name, const struct api_field *fields, size_t n,
                  const void *from);

/* A list of n structs that follow each other. */
void api_json_list(struct buf *out, const char *name, const struct api_field *fields,
                   size_t n_fields, const void *from, size_t n, size_t size);

/* Takes back what was added since it had n bytes. */
void api_json_undo(struct buf *out, size_t n);

/* The known ones of a struct. */
void api_json_fields(struct buf *out, const struct api_field *fields, size_t n, const void *from);

/* A document that somebody else wrote, written anew: whatever it was, what is added is one JSON
 * object. False, and nothing is added, if it is none. */
bool api_json_object(struct buf *out, struct str document);

#endif
