/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keeps the latest numbers that the profile plugin has sent for each step. */
#include "agent/profiles.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/map.h"
#include "base/num.h"
#include "source/profile_message.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    BUCKETS = 1024,
    HEARD_AT_ONCE = 256, /* datagrams: whoever sends more must not keep the sampler from its work */
    VALUES_PER_DATASET = 64,
    MISSED_TURNS = 3,
};

static const int64_t grace_ns = 5 * NS_PER_SEC;

struct kept_step {
    struct link link;   /* among all, in the order in which they were first heard */
    struct link bucket; /* among those of one hash */
    struct profile_use use;
    size_t n_room; /* of datasets */
    int64_t heard_ns, silence_ns;
    int64_t ended_ns; /* if use.has_ended */
};

struct profiles {
    struct profile_socket *socket;
    struct list steps;
    struct list buckets[BUCKETS];
    size_t n_steps, n_values;
    int64_t due_ns;
    uint64_t messages, refused[PROFILE_REFUSALS];
};

struct profiles *profiles_new(struct profile_socket *socket)
{
    struct profiles *profiles = heap_alloc(sizeof(*profiles));

    profiles->socket = socket;
    profiles->due_ns = INT64_MAX;
    list_init(&profiles->steps);
    for (size_t i = 0; i < BUCKETS; i++)
        list_init(&profiles->buckets[i]);
    return profiles;
}

static struct list *bucket_of(struct profiles *profiles, const struct profile_id *id)
{
    return &profiles->buckets[(map_hash(str_of(id->step)) + id->job_id) % BUCKETS];
}

static struct kept_step *find_step(struct profiles *profiles, const struct profile_id *id)
{
    const struct list *bucket = bucket_of(profiles, id);

    for (struct link *link = list_first(bucket); link; link = list_next(bucket, link)) {
        struct kept_step *step = PART_OF(link, struct kept_step, bucket);

        if (step->use.id.job_id == id->job_id && strcmp(step->use.id.step, id->step) == 0 &&
            strcmp(step->use.id.node, id->node) == 0)
            return step;
    }
    return NULL;
}

static void forget_datasets(struct profiles *profiles, struct kept_step *step)
{
    for (size_t i = 0; i < step->use.n_datasets; i++) {
        struct profile_dataset *dataset = &step->use.datasets[i];

        profiles->n_values -= dataset->n_values;
        for (size_t k = 0; k < dataset->n_values; k++)
            free(dataset->values[k].sensor);
        free(dataset->values);
    }
    free(step->use.datasets);
    step->use.datasets = NULL;
    step->use.n_datasets = step->n_room = 0;
}

static void forget_step(struct profiles *profiles, struct kept_step *step)
{
    forget_datasets(profiles, step);
    list_remove(&step->link);
    list_remove(&step->bucket);
    profiles->n_steps--;
    free(step);
}

/* What has ended makes room for what has not; false: nothing has. */
static bool forget_some_ended(struct profiles *profiles)
{
    for (struct link *link = list_first(&profiles->steps); link;
         link = list_next(&profiles->steps, link)) {
        struct kept_step *step = PART_OF(link, struct kept_step, link);

        if (step->use.has_ended) {
            forget_step(profiles, step);
            return true;
        }
    }
    return false;
}

struct profiles *profiles_free(struct profiles *profiles)
{
    struct link *link;

    if (profiles) {
        while ((link = list_first(&profiles->steps)))
            forget_step(profiles, PART_OF(link, struct kept_step, link));
        profile_socket_close(profiles->socket);
        free(profiles);
    }
    return NULL;
}

/* NULL: there is no room. */
static struct kept_step *add_step(struct profiles *profiles, const struct profile_id *id)
{
    struct kept_step *step;

    if (profiles->n_steps == PROFILES_STEPS && !forget_some_ended(profiles))
        return NULL;
    step = heap_alloc(sizeof(*step));
    step->use.id = *id;
    list_append(&profiles->steps, &step->link);
    list_append(bucket_of(profiles, id), &step->bucket);
    profiles->n_steps++;
    return step;
}

/* The place of a dataset among those of its step, in the order of kinds and tasks; or where it
 * would be. */
static size_t dataset_place(const struct profile_use *use, const struct profile_sample *sample)
{
    size_t low = 0, high = use->n_datasets;

    while (low < high) {
        size_t middle = (low + high) / 2;
        const struct profile_dataset *dataset = &use->datasets[middle];

        if (dataset->kind < sample->kind ||
            (dataset->kind == sample->kind && dataset->task < sample->task))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct profile_dataset *find_dataset(const struct profile_use *use,
                                            const struct profile_sample *sample)
{
    size_t at = dataset_place(use, sample);
    struct profile_dataset *dataset = at < use->n_datasets ? &use->datasets[at] : NULL;

    return dataset && dataset->kind == sample->kind && dataset->task == sample->task ? dataset
                                                                                     : NULL;
}

/* NULL: there is no room. */
static struct profile_dataset *add_dataset(struct kept_step *step,
                                           const struct profile_sample *sample)
{
    struct profile_use *use = &step->use;
    size_t at = dataset_place(use, sample);
    struct profile_dataset *dataset;

    if (use->n_datasets == PROFILES_DATASETS)
        return NULL;
    use->datasets =
        heap_grow(use->datasets, use->n_datasets, &step->n_room, sizeof(*use->datasets));
    dataset = &use->datasets[at];
    memmove(dataset + 1, dataset, (use->n_datasets - at) * sizeof(*dataset));
    *dataset = (struct profile_dataset){ .kind = sample->kind, .task = sample->task };
    use->n_datasets++;
    return dataset;
}

static struct profile_value *find_value(const struct profile_dataset *dataset,
                                        const struct profile_sample *sample)
{
    for (size_t i = 0; i < dataset->n_values; i++) {
        struct profile_value *value = &dataset->values[i];

        if (value->metric == sample->metric && str_eq(str_of(value->sensor), sample->sensor))
            return value;
    }
    return NULL;
}

/* NULL: there is no room. A dataset is made for a value, never without. */
static struct profile_value *add_value(struct profiles *profiles, struct kept_step *step,
                                       struct profile_dataset *dataset,
                                       const struct profile_sample *sample)
{
    struct profile_value *value;

    if (profiles->n_values == PROFILES_VALUES && !forget_some_ended(profiles))
        return NULL;
    if (!dataset)
        dataset = add_dataset(step, sample);
    if (!dataset || dataset->n_values == VALUES_PER_DATASET)
        return NULL;
    dataset->values = heap_resize(dataset->values, dataset->n_values + 1, sizeof(*value));
    value = &dataset->values[dataset->n_values++];
    *value = (struct profile_value){ .metric = sample->metric };
    if (sample->sensor.n)
        value->sensor = heap_str(sample->sensor);
    profiles->n_values++;
    return value;
}

/* False: there is no room. */
static bool put_sample(struct profiles *profiles, struct kept_step *step,
                       const struct profile_sample *sample)
{
    struct profile_dataset *dataset = find_dataset(&step->use, sample);
    struct profile_value *value = dataset ? find_value(dataset, sample) : NULL;

    if (!value)
        value = add_value(profiles, step, dataset, sample);
    if (value)
        value->value = sample->value;
    return value != NULL;
}

/* A step that had ended and tells again is another run of it, with counters of its own. */
static struct kept_step *begin_again(struct profiles *profiles, struct kept_step *step)
{
    forget_datasets(profiles, step);
    step->use.has_ended = false;
    return step;
}

static bool take_samples(struct profiles *profiles, struct kept_step *step,
                         struct profile_message *message, int64_t now_ns)
{
    struct profile_sample sample;
    bool has_room = true;

    while (has_room && profile_message_next(message, &sample))
        has_room = put_sample(profiles, step, &sample);
    profiles->refused[PROFILE_FULL] += !has_room;
    if (!step->use.n_datasets) {
        forget_step(profiles, step);
        return false;
    }
    step->use.labels = message->labels;
    step->heard_ns = now_ns;
    step->silence_ns = MISSED_TURNS * message->every_seconds * NS_PER_SEC + grace_ns;
    if (now_ns + step->silence_ns < profiles->due_ns)
        profiles->due_ns = now_ns + step->silence_ns;
    return true;
}

static bool end_step(struct profiles *profiles, struct kept_step *step, int64_t now_ns)
{
    if (!step || step->use.has_ended)
        return false;
    step->use.has_ended = true;
    step->ended_ns = now_ns;
    profiles->due_ns = now_ns; /* it is asked then how long it is to be kept */
    return true;
}

bool profiles_take(struct profiles *profiles, struct str text, int64_t now_ns)
{
    struct profile_message message;
    struct kept_step *step;
    struct err err;
    int code = profile_message_read(text, &message, &err);

    profiles->messages++;
    if (code < 0) {
        profiles->refused[code == -EPROTO ? PROFILE_NEWER : PROFILE_GARBLED]++;
        return false;
    }
    step = find_step(profiles, &message.id);
    if (message.is_end)
        return end_step(profiles, step, now_ns);
    if (!step)
        step = add_step(profiles, &message.id);
    else if (step->use.has_ended)
        step = begin_again(profiles, step);
    if (step)
        return take_samples(profiles, step, &message, now_ns);
    profiles->refused[PROFILE_FULL]++;
    return false;
}

bool profiles_hear(struct profiles *profiles, int64_t now_ns)
{
    bool has_changed = false;
    struct str message;

    for (int i = 0; i < HEARD_AT_ONCE; i++) {
        int code = profile_socket_read(profiles->socket, &message);

        if (code == 0)
            break;
        if (code > 0) {
            has_changed |= profiles_take(profiles, message, now_ns);
        } else {
            profiles->messages++;
            profiles->refused[code == -EPERM ? PROFILE_FOREIGN : PROFILE_GARBLED]++;
        }
    }
    return has_changed;
}

/* `node` NULL: of any. */
static bool forget_unended(struct profiles *profiles, const struct profile_id *id, const char *node)
{
    const struct list *bucket = bucket_of(profiles, id);
    bool has_any = false;

    for (struct link *link = list_first(bucket), *next; link; link = next) {
        struct kept_step *step = PART_OF(link, struct kept_step, bucket);

        next = list_next(bucket, link);
        if (step->use.id.job_id != id->job_id || strcmp(step->use.id.step, id->step) != 0 ||
            (node && strcmp(step->use.id.node, node) != 0))
            continue;
        has_any = true;
        if (!step->use.has_ended)
            forget_step(profiles, step);
    }
    return has_any;
}

void profiles_stepd_ended(struct profiles *profiles, const char *job, const char *step,
                          const char *node, bool is_only)
{
    struct profile_id id;
    uint64_t job_id;

    if (!num_get_u64(str_of(job), &job_id) || job_id > UINT32_MAX)
        return; /* another scheduler's */
    id.job_id = (uint32_t)job_id;
    snprintf(id.step, sizeof(id.step), "%s", step);
    if (!forget_unended(profiles, &id, node) && is_only)
        forget_unended(profiles, &id, NULL);
}

bool profiles_expire(struct profiles *profiles, int64_t now_ns, int64_t linger_ns)
{
    bool has_any = false;

    profiles->due_ns = INT64_MAX;
    for (struct link *link = list_first(&profiles->steps), *next; link; link = next) {
        struct kept_step *step = PART_OF(link, struct kept_step, link);
        int64_t end_ns =
            step->use.has_ended ? step->ended_ns + linger_ns : step->heard_ns + step->silence_ns;

        next = list_next(&profiles->steps, link);
        if (now_ns >= end_ns) {
            forget_step(profiles, step);
            has_any = true;
        } else if (end_ns < profiles->due_ns) {
            profiles->due_ns = end_ns;
        }
    }
    return has_any;
}

int64_t profiles_due(const struct profiles *profiles)
{
    return profiles->due_ns;
}

const struct profile_use *profiles_next(const struct profiles *profiles,
                                        const struct profile_use *after)
{
    const struct link *link =
        after ? list_next(&profiles->steps, &PART_OF(after, struct kept_step, use)->link)
              : list_first(&profiles->steps);

    return link ? &PART_OF(link, struct kept_step, link)->use : NULL;
}

void profiles_count(const struct profiles *profiles, struct agent_use *to)
{
    to->hears_profiles = true;
    to->profile_messages = profiles->messages;
    memcpy(to->profile_refused, profiles->refused, sizeof(to->profile_refused));
    to->profile_steps = profiles->n_steps;
    to->profile_values = profiles->n_values;
}
