/* SPDX-License-Identifier: GPL-2.0-or-later */
/* GRES (GPUs, shards, any other) by name and type, from the GRES strings of nodes and the TRES
 * strings of jobs: see model/tres.h. Each distinct string of a section is read once. */
#ifndef SONDE_COLLECTOR_GRES_H
#define SONDE_COLLECTOR_GRES_H

#include "model/section.h"

enum {
    GRES_TYPES_MAX = 100, /* any more are of the type "other" of their name */
    GRES_TYPES_ROOM = 2 * GRES_TYPES_MAX + 3,
};

struct gres_list {
    struct gres_count {
        uint32_t type;  /* of gres_reader.types */
        uint64_t count; /* MODEL_UNKNOWN_U64: more than 64 bits hold */
    } * item;           /* each type once, also those with a count of 0 */
    size_t n;
};

struct gres_reader {
    const struct section *section;
    struct str name; /* "gpu": no other GRES is read, and types[0] has no type; empty: all */
    struct gres_type {
        struct str name, type; /* "tpu", "v4"; the type is empty where the string names none */
    } types[GRES_TYPES_ROOM];  /* in the order in which they were read */
    size_t n_types;
    const struct gres_list **lists; /* by the section's symbols; NULL until read */
    struct arena arena;
};

/* Without a section only gres_read_text can be used. */
void gres_reader_init(struct gres_reader *reader, const struct section *section, struct str name);
void gres_reader_free(struct gres_reader *reader);

/* What the string names; nothing for symbol 0. In a TRES string the whole ("gres/gpu=4") is not
 * counted beside its parts ("gres/gpu:a100=3"): the rest has no type. Valid until
 * gres_reader_free. */
const struct gres_list *gres_read(struct gres_reader *reader, symbol text);
const struct gres_list *gres_read_text(struct gres_reader *reader, struct str text);

static inline struct str gres_name(const struct gres_reader *reader, size_t type)
{
    return reader->types[type].name;
}

/* Empty where the string names no type. */
static inline struct str gres_type_name(const struct gres_reader *reader, size_t type)
{
    return reader->types[type].type;
}

/* The value of the label `type`. To Prometheus an empty label is no label, and a dashboard that
 * lists the types would miss such GRES: without a type they are of type none, which model/tres
 * takes for no type as well. */
static inline struct str gres_type_label(const struct gres_reader *reader, size_t type)
{
    struct str name = gres_type_name(reader, type);

    return name.n ? name : STR("none");
}

#endif
