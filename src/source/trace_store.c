/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whatever a post touches is found by hash, or is the first of a list or ranking: its cost does not
 * grow with the number of senders, but for the logarithm that a ranking takes. */
#include "source/trace_store.h"

#include "base/map.h"

#include <math.h>

enum {
    KEY_MAX = 320,
    FIRST_SLOTS = 256,
    MOST_USERS = 65536,
};

static const double periods_of_life = 2.5, longest_period_seconds = 3600;
static const int64_t longest_life_ns = 365 * 86400 * NS_PER_SEC;

/* Within this time a stale sender is known again, and so is its period. */
static const int64_t remembered_ns = 3600 * NS_PER_SEC;

/* By then an idle user may post as much as a new one: nothing is lost with him. */
static const int64_t idle_ns = 60 * NS_PER_SEC;

struct key {
    size_t n;
    char bytes[KEY_MAX];
};

static void key_add(struct key *key, const void *bytes, size_t n)
{
    if (n)
        memcpy(key->bytes + key->n, bytes, n);
    key->n += n;
}

static struct str key_str(const struct key *key)
{
    return (struct str){ key->bytes, key->n };
}

static struct key user_key(const struct trace_identity *who)
{
    struct key key;

    key.n = 0;
    key_add(&key, "u", 1);
    key_add(&key, &who->proof, sizeof(who->proof));
    if (who->proof == TRACE_UID)
        key_add(&key, &who->uid, sizeof(who->uid));
    if (who->proof == TRACE_NAME)
        key_add(&key, who->name.p, who->name.n);
    return key;
}

static struct key group_key(const struct trace_user *user, uint32_t job_id)
{
    struct key key;

    key.n = 0;
    key_add(&key, "g", 1);
    key_add(&key, &user, sizeof(user));
    key_add(&key, &job_id, sizeof(job_id));
    return key;
}

static struct key process_key(const struct trace_group *group, const struct trace_body *body)
{
    struct key key;

    key.n = 0;
    key_add(&key, "p", 1);
    key_add(&key, &group, sizeof(group));
    key_add(&key, &body->step, sizeof(body->step));
    key_add(&key, &body->task, sizeof(body->task));
    key_add(&key, &body->pid, sizeof(body->pid));
    key_add(&key, body->host, body->n_host);
    return key;
}

static struct keyed **slot_of(const struct trace_store *store, uint64_t hash)
{
    return &store->slots[hash & (store->n_slots - 1)];
}

static void *find(const struct trace_store *store, const struct key *key)
{
    uint64_t hash = map_hash(key_str(key));
    struct keyed *keyed = *slot_of(store, hash);

    while (keyed && !(keyed->hash == hash && str_eq(keyed->key, key_str(key))))
        keyed = keyed->next;
    return keyed;
}

static void chain(struct trace_store *store, struct keyed *keyed)
{
    struct keyed **slot = slot_of(store, keyed->hash);

    keyed->next = *slot;
    *slot = keyed;
}

static void double_slots(struct trace_store *store)
{
    struct keyed **old = store->slots;
    size_t n_old = store->n_slots;

    store->n_slots = 2 * n_old;
    store->slots = heap_alloc(store->n_slots * sizeof(*store->slots));
    for (size_t i = 0; i < n_old; i++) {
        while (old[i]) {
            struct keyed *keyed = old[i];

            old[i] = keyed->next;
            chain(store, keyed);
        }
    }
    free(old);
}

/* So many zeroed bytes that begin with a struct keyed. */
static void *add(struct trace_store *store, const struct key *key, size_t bytes)
{
    struct keyed *keyed = heap_alloc(bytes + key->n);
    char *copy = (char *)keyed + bytes;

    if (store->n_keyed == store->n_slots)
        double_slots(store);
    memcpy(copy, key->bytes, key->n);
    keyed->key = (struct str){ copy, key->n };
    keyed->hash = map_hash(keyed->key);
    chain(store, keyed);
    store->n_keyed++;
    return keyed;
}

static void drop(struct trace_store *store, struct keyed *keyed)
{
    struct keyed **link = slot_of(store, keyed->hash);

    while (*link != keyed)
        link = &(*link)->next;
    *link = keyed->next;
    store->n_keyed--;
    free(keyed);
}

static struct trace_user *add_user(struct trace_store *store, const struct key *key,
                                   const struct trace_identity *who)
{
    struct trace_user *user = add(store, key, sizeof(*user));

    user->who = *who;
    if (who->proof == TRACE_NAME)
        user->who.name = str_skip(user->keyed.key, user->keyed.key.n - who->name.n);
    user->tokens = INFINITY;
    list_init(&user->fresh);
    store->n_users++;
    return user;
}

static void drop_user(struct trace_store *store, struct trace_user *user)
{
    list_remove(&user->idle);
    store->n_users--;
    drop(store, &user->keyed);
}

struct trace_user *trace_store_enter(struct trace_store *store, const struct trace_identity *who)
{
    struct key key = user_key(who);
    struct trace_user *user = find(store, &key);

    if (!user) {
        if (store->n_users >= MOST_USERS)
            return NULL;
        user = add_user(store, &key, who);
    }
    list_remove(&user->idle);
    user->n_holds++;
    return user;
}

void trace_store_leave(struct trace_store *store, struct trace_user *user, int64_t now_ns)
{
    if (--user->n_holds)
        return;
    user->idle_since_ns = now_ns;
    list_append(&store->idle, &user->idle);
}

static struct trace_group *enter_group(struct trace_store *store, struct trace_user *user,
                                       uint32_t job_id)
{
    struct key key = group_key(user, job_id);
    struct trace_group *group = find(store, &key);

    if (!group) {
        group = add(store, &key, sizeof(*group));
        group->user = user;
        group->job_id = job_id;
        list_init(&group->fresh);
        list_append(&store->groups, &group->all);
        user->n_holds++;
    }
    group->n_holds++;
    return group;
}

static void leave_group(struct trace_store *store, struct trace_group *group, int64_t now_ns)
{
    struct trace_user *user = group->user;

    if (--group->n_holds)
        return;
    list_remove(&group->all);
    drop(store, &group->keyed);
    trace_store_leave(store, user, now_ns);
}

static void weigh(struct trace_store *store, struct trace_user *user)
{
    if (user->n_fresh)
        ranking_put(&store->weights, &user->weight, -(int64_t)user->n_fresh);
    else
        ranking_remove(&store->weights, &user->weight);
}

static struct trace_process *add_process(struct trace_store *store, struct trace_group *group,
                                         const struct key *key, size_t n_host)
{
    struct trace_process *process = add(store, key, sizeof(*process));

    process->group = group;
    process->host = str_skip(process->keyed.key, process->keyed.key.n - n_host);
    group->n_holds++;
    store->n_senders++;
    return process;
}

static void go_stale(struct trace_store *store, struct trace_process *process)
{
    struct trace_group *group = process->group;

    ranking_remove(&store->ends, &process->end);
    list_remove(&process->of_group);
    list_append(&store->stale, &process->of_user);
    group->n_fresh--;
    group->user->n_fresh--;
    weigh(store, group->user);
}

static void forget(struct trace_store *store, struct trace_process *process, int64_t now_ns)
{
    struct trace_group *group = process->group;

    if (process->end.place)
        go_stale(store, process);
    list_remove(&process->of_user);
    store->n_senders--;
    drop(store, &process->keyed);
    leave_group(store, group, now_ns);
}

static struct trace_process *oldest_stale(const struct trace_store *store)
{
    struct link *link = list_first(&store->stale);

    return link ? PART_OF(link, struct trace_process, of_user) : NULL;
}

static void end_what_is_due(struct trace_store *store, int64_t now_ns)
{
    struct ranked *end;

    while ((end = ranking_first(&store->ends)) && end->rank <= now_ns)
        go_stale(store, PART_OF(end, struct trace_process, end));
}

void trace_store_expire(struct trace_store *store, int64_t now_ns)
{
    struct trace_process *process;
    struct link *link;

    end_what_is_due(store, now_ns);
    while ((process = oldest_stale(store)) && process->ends_at_ns + remembered_ns <= now_ns)
        forget(store, process, now_ns);
    while ((link = list_first(&store->idle))) {
        struct trace_user *user = PART_OF(link, struct trace_user, idle);

        if (user->idle_since_ns + idle_ns > now_ns)
            return;
        drop_user(store, user);
    }
}

static struct trace_user *heaviest_user(const struct trace_store *store)
{
    struct ranked *first = ranking_first(&store->weights);

    return first ? PART_OF(first, struct trace_user, weight) : NULL;
}

/* Whatever is worth least: what is stale, or else the longest silent sender of the user who has
 * most. */
static void make_room(struct trace_store *store, int64_t now_ns)
{
    struct trace_process *process = oldest_stale(store);

    if (!process) {
        process = PART_OF(list_first(&heaviest_user(store)->fresh), struct trace_process, of_user);
        store->n_displaced++;
    }
    forget(store, process, now_ns);
}

bool trace_user_is_trusted(const struct trace_user *user)
{
    return user->who.proof == TRACE_ANYBODY || (user->who.proof == TRACE_UID && user->who.uid == 0);
}

/* For one more fresh sender in the group; a new one if `is_new`. */
static int check_room(const struct trace_store *store, const struct trace_group *group, bool is_new,
                      struct err *err)
{
    const struct trace_config *config = &store->config;
    const struct trace_user *user = group->user, *heaviest = heaviest_user(store);

    if (group->n_fresh >= config->max_senders_per_job)
        return err_set(err, ENOSPC, "%zu processes post for job %u already, and no more can",
                       group->n_fresh, group->job_id);
    if (user->n_fresh >= config->max_senders_per_user && !trace_user_is_trusted(user))
        return err_set(err, ENOSPC, "%zu of your processes post already, and no more can",
                       user->n_fresh);
    /* Others make room only for somebody who has less than they have. */
    if (is_new && store->n_senders >= config->max_senders && !oldest_stale(store) &&
        (!heaviest || heaviest->n_fresh <= user->n_fresh + 1))
        return err_set(err, ENOSPC, "%zu processes post already, and no more can",
                       store->n_senders);
    return 0;
}

/* In seconds: as told, or as long as it has been since the last post; 0 while unknown. */
static double period_of(const struct trace_process *process, const struct trace_body *body,
                        bool is_new, int64_t now_ns)
{
    double seconds = body->period_seconds;

    if (isnan(seconds))
        seconds = is_new ? 0 : (double)(now_ns - process->told_at_ns) / NS_PER_SEC;
    return fmin(seconds, longest_period_seconds);
}

static void refresh(struct trace_store *store, struct trace_process *process, int64_t life_ns,
                    int64_t now_ns)
{
    struct trace_group *group = process->group;

    if (!process->end.place) {
        process->fresh_since_ns = now_ns;
        list_append(&group->fresh, &process->of_group);
        group->n_fresh++;
        group->user->n_fresh++;
        weigh(store, group->user);
    }
    list_append(&group->user->fresh, &process->of_user);
    process->told_at_ns = now_ns;
    process->ends_at_ns = now_ns + life_ns;
    ranking_put(&store->ends, &process->end, process->ends_at_ns);
}

static int keep_in(struct trace_store *store, struct trace_group *group,
                   const struct trace_body *body, int64_t now_ns, struct err *err)
{
    struct key key = process_key(group, body);
    struct trace_process *process = find(store, &key);
    bool is_new = !process;
    int64_t life_ns;

    if (is_new || !process->end.place) {
        int code = check_room(store, group, is_new, err);

        if (code < 0)
            return code;
    }
    if (is_new) {
        if (store->n_senders >= store->config.max_senders)
            make_room(store, now_ns);
        process = add_process(store, group, &key, body->n_host);
    }
    life_ns = (int64_t)(periods_of_life * period_of(process, body, is_new, now_ns) * NS_PER_SEC);
    if (life_ns < store->config.life_ns)
        life_ns = store->config.life_ns;
    process->pid = body->pid;
    process->amounts = body->amounts;
    refresh(store, process, life_ns, now_ns);
    return 0;
}

int trace_store_keep(struct trace_store *store, struct trace_user *user,
                     const struct trace_body *body, int64_t now_ns, struct err *err)
{
    struct trace_group *group = enter_group(store, user, (uint32_t)body->job_id);
    int code = keep_in(store, group, body, now_ns, err);

    leave_group(store, group, now_ns);
    return code;
}

static void use_config(struct trace_store *store, const struct trace_config *config)
{
    store->config = *config;
    if (store->config.life_ns > longest_life_ns)
        store->config.life_ns = longest_life_ns;
}

void trace_store_init(struct trace_store *store, const struct trace_config *config)
{
    *store = (struct trace_store){ .n_slots = FIRST_SLOTS };
    use_config(store, config);
    store->slots = heap_alloc(FIRST_SLOTS * sizeof(*store->slots));
    list_init(&store->groups);
    list_init(&store->stale);
    list_init(&store->idle);
}

void trace_store_free(struct trace_store *store)
{
    for (size_t i = 0; i < store->n_slots; i++)
        while (store->slots[i])
            drop(store, store->slots[i]);
    free(store->slots);
    ranking_free(&store->ends);
    ranking_free(&store->weights);
}

void trace_store_tune(struct trace_store *store, const struct trace_config *config, int64_t now_ns)
{
    use_config(store, config);
    while (store->n_senders > config->max_senders)
        make_room(store, now_ns);
}
