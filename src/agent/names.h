/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a job's processes use, by their names, of which a job can invent any number: the first get a
 * place for the life of the job, so that their counters go on; who comes later takes the place of
 * one that is gone and was of no account, or is counted among the others. */
#ifndef SONDE_AGENT_NAMES_H
#define SONDE_AGENT_NAMES_H

#include "model/usage.h"

struct names {
    struct name_use *item; /* [0] is "other" */
    size_t n, room;
    size_t n_folded; /* times a name had to go to the others */
    struct name_past *past;
};

void names_free(struct names *names);

/* Forgets who lives; what was used by those that have ended stays. */
void names_begin(struct names *names);

/* The place of a name; `most` places besides that of the others, 255 at most. */
uint8_t names_place(struct names *names, size_t most, const char *name);

/* A process that lives, and has used so much CPU time under this name. */
void names_add(struct names *names, uint8_t place, uint64_t threads, uint64_t resident_bytes,
               uint64_t cpu_ns);

/* One that has ended, or has taken another name. */
void names_end(struct names *names, uint8_t place, uint64_t cpu_ns);

#endif
