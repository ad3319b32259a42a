/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a section of each kind is made of, field by field, for whoever writes sections down and
 * reads them back: the wire between sonde and its helper, and recordings. What a refresher adds
 * from its memory (waits, what is known from other kinds) is not among it. */
#ifndef SONDE_MODEL_FIELDS_H
#define SONDE_MODEL_FIELDS_H

#include "base/err.h"
#include "model/section.h"

enum field_type {
    FIELD_BOOL,
    FIELD_U8,
    FIELD_U32,    /* MODEL_UNKNOWN_U32: absent */
    FIELD_U64,    /* MODEL_UNKNOWN_U64: absent */
    FIELD_TIME,   /* int64_t, UTC seconds; 0: absent */
    FIELD_DOUBLE, /* NAN: absent */
    FIELD_SYMBOL, /* 0: absent */
    FIELD_JOB_STATE,
    FIELD_NODE_STATE,
};

/* What a text or number names, for who may not tell it. */
enum field_sense {
    SENSE_PUBLIC, /* Slurm's own words, and amounts */
    SENSE_USER,
    SENSE_USERS, /* "alice,bob" */
    SENSE_USER_ID,
    SENSE_ACCOUNT,
    SENSE_ACCOUNTS,
    SENSE_JOB_NAME,
    SENSE_NODE,
    SENSE_NODES, /* a host list */
    SENSE_RESERVATION,
    SENSE_RESERVATIONS,
    SENSE_CLUSTER,
    SENSE_LICENSE,
    SENSE_LICENSES, /* "matlab:4,ansys" */
    SENSE_TRES,     /* "cpu=4,license/matlab=1": licences are among them */
    SENSE_REASON,   /* of a job, in Slurm's words; nodes may follow them */
    SENSE_REMARK,   /* what somebody wrote: the reason of a node */
    SENSES,
};

struct field {
    const char *name;
    unsigned char type, sense;
    size_t offset; /* in its record */
};

/* A struct. */
struct field_record {
    size_t size;
    const struct field *fields;
    size_t n;
};

/* An array of them. */
struct field_array {
    const char *name;
    const struct field_record *record;
    size_t items, count; /* offsets in struct section of the pointer and of the size_t */
};

struct field_kind {
    struct field_record head; /* the fields of the section itself, offsets from its beginning */
    const struct field_array *arrays;
    size_t n_arrays;
};

extern const struct field_kind field_kinds[KINDS]; /* nothing for KIND_TRACES */

/* False if the value at that place is the one for what is not known. */
bool field_is_told(const struct field *field, const void *at);

/* For a section that somebody else has put together: -EBADMSG if a number in it that stands for a
 * place in an array or in an enum is past its end, or if the runs of an array have together more
 * items than it has. */
int fields_check(const struct section *section, struct err *err);

#endif
