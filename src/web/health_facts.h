/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What sonde says of itself, site_config.health:
 *     {"stages":[{"name":"refresh of jobs","seconds":[0.012,0.013]}],
 *      "facts":{"store":{"path":"/var/lib/sonde/sonde.db","size_bytes":123},"uptime_seconds":5}}
 * Stages have the last hundred, the newest last. A fact is a text, a number, or true or false; an
 * object is a group of them. Names that end with _seconds, _bytes and _time (UTC seconds) say what
 * their numbers are. */
#ifndef SONDE_WEB_HEALTH_FACTS_H
#define SONDE_WEB_HEALTH_FACTS_H

#include "base/arena.h"
#include "base/err.h"

enum { HEALTH_STAGES = 64, HEALTH_SECONDS = 100, HEALTH_FACTS = 500, HEALTH_DEPTH = 4 };

struct health_stage {
    struct str name;
    double second[HEALTH_SECONDS]; /* the newest last */
    size_t n;
};

struct health_fact {
    struct str group; /* "store", "sources jobs"; empty: of sonde as a whole */
    struct str name;
    struct str text; /* if it is no number */
    double number;   /* NAN: it is a text */
};

struct health_facts {
    struct health_stage *stage;
    size_t n_stages;
    struct health_fact *fact;
    size_t n_facts;
};

/* -EBADMSG with a sentence for what is not such a document. What is beyond the ceilings is left
 * out; texts live in the arena. */
int health_facts_read(struct str document, struct arena *arena, struct health_facts *ret,
                      struct err *err);

#endif
