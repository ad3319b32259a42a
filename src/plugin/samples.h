/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The samples of one step on this node: the latest of each dataset, and what has been added up. One
 * thread writes (Slurm holds a mutex), one reads, and neither waits for the other: each dataset has
 * two copies and a version; the version's copy is read while the next is written into the other.
 * Memory is taken when a dataset is made, never when a sample comes. A ring of samples would lose
 * what is counted when it is full; this cannot. */
#ifndef SONDE_PLUGIN_SAMPLES_H
#define SONDE_PLUGIN_SAMPLES_H

#include "model/profile.h"

enum {
    SAMPLES_DATASETS = 4096, /* tasks of a step on one node, and the node's own; more are refused */
    SAMPLES_FIELDS = 32,     /* of a dataset; more are left out */
};

struct samples;

/* As Slurm describes a field, in its order. */
struct samples_field {
    const char *name;
    bool is_double; /* otherwise uint64_t */
};

struct samples *samples_new(const struct profile_quirks *quirks); /* NULL: no memory */
struct samples *samples_ref(struct samples *samples);  /* one more must call samples_free */
struct samples *samples_free(struct samples *samples); /* the last one frees; returns NULL */

/* The number of the dataset, from 0 up; one of the same kind, task and fields is the same. `task`
 * counts for PROFILE_OF_TASK alone. Of two with other fields (acct_gather_energy can have several
 * plugins), the later has only what the earlier has not. -1: no memory, one too many, or no field
 * that is known and new. */
int samples_dataset(struct samples *samples, enum profile_kind kind, uint32_t task,
                    const struct samples_field *fields, size_t n_fields);

/* `data` has 8 bytes for each field that the dataset was made with. An unknown number does nothing.
 *
 * What is not finite, negative or more than can be is not counted, and no gauge. The sample that
 * Slurm takes of a task that has ended (no memory) counts, but changes no gauge. Counters never
 * fall. */
void samples_add(struct samples *samples, int64_t dataset, const void *data);

struct samples_value {
    const struct profile_metric *metric;
    const char *sensor; /* "" where it has none */
    double value;
};

struct samples_view {
    enum profile_kind kind;
    uint32_t task;
    size_t n;
    struct samples_value values[2 * SAMPLES_FIELDS];
};

size_t samples_count(const struct samples *samples); /* of datasets */

/* What a dataset says now, of the sets of names that are wanted; all from one sample. False: no
 * sample yet, or they come faster than they can be read. */
bool samples_read(const struct samples *samples, size_t dataset, enum profile_names names,
                  struct samples_view *ret);

/* Changes with each sample: who has sent all that there was need not send it again. */
uint64_t samples_serial(const struct samples *samples);

#endif
