/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Looks up user and group names on a thread, with a cache. */
#include "base/users.h"

#include "base/arena.h"
#include "base/map.h"
#include "base/thread.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>

enum {
    MOST_QUESTIONS = 4096,
    MOST_ENTRIES = 65536,
    FIRST_ENTRIES = 64,
    MOST_SPARED = 1024,
    N_CHAINS = 16384,
    LONGEST_RECORD = 8 << 20, /* a group lists all its members */
};

static const int64_t known_ns = 3600 * NS_PER_SEC;
static const int64_t unknown_ns = 60 * NS_PER_SEC;

enum kind { USER, OWN_GROUP };

struct question {
    enum kind kind;
    unsigned id;
};

struct entry {
    struct question question;
    uint32_t next;             /* in its chain: index + 1, 0 = last */
    bool is_asked;             /* waits in the queue or is being looked up */
    bool is_number;            /* the name is that of a group without one */
    int64_t ends_ns;           /* when it has to be asked for again */
    char name[USERS_NAME_MAX]; /* empty while unknown */
};

struct users {
    pthread_mutex_t lock;
    pthread_cond_t asked, answered;
    struct users_lookup lookup;
    const struct clock *clock;

    struct entry *entries; /* filled in turn; when all are used, the oldest is forgotten */
    uint32_t n_entries, cap_entries, oldest;
    uint32_t chains[N_CHAINS]; /* index + 1 of the first entry, 0 = none */

    struct question queue[MOST_QUESTIONS]; /* a ring */
    uint64_t n_asked, n_taken, n_answered; /* since the beginning */

    pthread_t thread;
    bool has_thread, is_ending;
    bool is_left_behind; /* the thread frees everything when it ends */
};

static uint32_t *chain_of(struct users *users, struct question question)
{
    return &users->chains[map_hash((struct str){ (const char *)&question, sizeof(question) }) %
                          N_CHAINS];
}

static struct entry *find_entry(struct users *users, struct question question)
{
    for (uint32_t at = *chain_of(users, question); at; at = users->entries[at - 1].next) {
        struct entry *entry = &users->entries[at - 1];

        if (entry->question.kind == question.kind && entry->question.id == question.id)
            return entry;
    }
    return NULL;
}

static void unchain(struct users *users, uint32_t index)
{
    uint32_t *link = chain_of(users, users->entries[index].question);

    while (*link != index + 1)
        link = &users->entries[*link - 1].next;
    *link = users->entries[index].next;
}

static void grow_entries(struct users *users)
{
    users->cap_entries = users->cap_entries ? users->cap_entries * 2 : FIRST_ENTRIES;
    users->entries = heap_resize(users->entries, users->cap_entries, sizeof(*users->entries));
}

/* The oldest, but before it one of the next that has no name: numbers can be made up. */
static uint32_t choose_victim(struct users *users)
{
    uint32_t oldest = users->oldest;

    for (uint32_t i = 1; i < MOST_SPARED && users->entries[oldest].name[0]; i++) {
        uint32_t other = (oldest + i) % MOST_ENTRIES;

        if (!users->entries[other].name[0] && !users->entries[other].is_asked)
            return other;
    }
    users->oldest = (oldest + 1) % MOST_ENTRIES;
    return oldest;
}

static struct entry *add_entry(struct users *users, struct question question)
{
    uint32_t *chain = chain_of(users, question);
    uint32_t index = users->n_entries;

    if (users->n_entries < MOST_ENTRIES) {
        if (users->n_entries == users->cap_entries)
            grow_entries(users);
        users->n_entries++;
    } else {
        index = choose_victim(users);
        unchain(users, index);
    }
    users->entries[index] = (struct entry){ .question = question, .next = *chain };
    *chain = index + 1;
    return &users->entries[index];
}

static void keep_answer(struct users *users, struct question question, bool is_found,
                        const char *name)
{
    struct entry *entry = find_entry(users, question);

    /* It may have been forgotten while the directory was thinking. */
    if (!entry)
        entry = add_entry(users, question);
    /* A directory that is away often says "no such user": a name that is known stays. */
    if (is_found || (name[0] && (entry->is_number || !entry->name[0]))) {
        memcpy(entry->name, name, USERS_NAME_MAX);
        entry->is_number = !is_found;
    }
    entry->ends_ns = clock_mono(users->clock) + (is_found ? known_ns : unknown_ns);
    entry->is_asked = false;
}

/* Whether there is a name. Without one the answer is empty, or the number of a user's group. The
 * lock is not held here, and only here does this thread wait for anybody. */
static bool look_up(const struct users_lookup *lookup, struct question question,
                    char name[USERS_NAME_MAX])
{
    gid_t group = 0;
    bool is_found;

    if (question.kind == OWN_GROUP && !lookup->own_group(lookup->ctx, question.id, &group))
        return false;
    is_found = question.kind == USER ? lookup->user(lookup->ctx, question.id, name)
                                     : lookup->group(lookup->ctx, group, name);
    name[is_found ? USERS_NAME_MAX - 1 : 0] = '\0';
    if (name[0])
        return true;
    if (question.kind == OWN_GROUP)
        snprintf(name, USERS_NAME_MAX, "%u", group);
    return false;
}

static struct users *destroy(struct users *users)
{
    pthread_cond_destroy(&users->asked);
    pthread_cond_destroy(&users->answered);
    pthread_mutex_destroy(&users->lock);
    free(users->entries);
    free(users);
    return NULL;
}

static void *answer_questions(void *arg)
{
    struct users *users = arg;
    bool is_left_behind;

    /* Modules of the C library run here, with answers from the network. */
    thread_set_capabilities(0);
    pthread_mutex_lock(&users->lock);
    while (!users->is_ending) {
        char name[USERS_NAME_MAX] = "";
        struct question question;
        bool is_found;

        if (users->n_taken == users->n_asked) {
            pthread_cond_wait(&users->asked, &users->lock);
            continue;
        }
        question = users->queue[users->n_taken++ % MOST_QUESTIONS];
        pthread_mutex_unlock(&users->lock);
        is_found = look_up(&users->lookup, question, name);
        pthread_mutex_lock(&users->lock);
        if (!users->is_ending)
            keep_answer(users, question, is_found, name);
        users->n_answered++;
        pthread_cond_broadcast(&users->answered);
    }
    is_left_behind = users->is_left_behind;
    pthread_mutex_unlock(&users->lock);
    if (is_left_behind)
        destroy(users);
    return NULL;
}

struct users *users_new(const struct users_lookup *lookup, const struct clock *clock)
{
    struct users *users = heap_alloc(sizeof(*users));

    pthread_mutex_init(&users->lock, NULL);
    clock_cond_init(&users->asked);
    clock_cond_init(&users->answered);
    users->lookup = *lookup;
    users->clock = clock;
    /* Where no thread can be made, numbers stay numbers. */
    users->has_thread =
        thread_start(&users->thread, "resolver", answer_questions, users, NULL) == 0;
    return users;
}

struct users *users_free(struct users *users)
{
    pthread_t thread;
    bool is_busy;

    if (!users)
        return NULL;
    if (!users->has_thread)
        return destroy(users);
    pthread_mutex_lock(&users->lock);
    thread = users->thread;
    is_busy = users->n_taken > users->n_answered;
    users->is_ending = true;
    users->is_left_behind = is_busy;
    pthread_cond_signal(&users->asked);
    pthread_mutex_unlock(&users->lock);
    if (is_busy) {
        pthread_detach(thread);
        return NULL;
    }
    pthread_join(thread, NULL);
    return destroy(users);
}

static void ask(struct users *users, struct question question, struct entry *entry)
{
    if (!users->has_thread || users->n_asked - users->n_taken == MOST_QUESTIONS)
        return;
    if (!entry)
        entry = add_entry(users, question);
    entry->is_asked = true;
    users->queue[users->n_asked++ % MOST_QUESTIONS] = question;
    pthread_cond_signal(&users->asked);
}

static bool name_of(struct users *users, struct question question, char name[USERS_NAME_MAX])
{
    struct entry *entry;
    bool is_known;

    pthread_mutex_lock(&users->lock);
    entry = find_entry(users, question);
    is_known = entry && entry->name[0];
    if (is_known)
        memcpy(name, entry->name, USERS_NAME_MAX);
    if (!entry || (!entry->is_asked && clock_mono(users->clock) >= entry->ends_ns))
        ask(users, question, entry);
    pthread_mutex_unlock(&users->lock);
    if (!is_known && question.kind == OWN_GROUP)
        name[0] = '\0';
    else if (!is_known)
        snprintf(name, USERS_NAME_MAX, "%u", question.id);
    return is_known;
}

bool users_user(struct users *users, uid_t uid, char name[USERS_NAME_MAX])
{
    return name_of(users, (struct question){ USER, uid }, name);
}

bool users_own_group(struct users *users, uid_t uid, char name[USERS_NAME_MAX])
{
    return name_of(users, (struct question){ OWN_GROUP, uid }, name);
}

bool users_settle(struct users *users, int64_t deadline_ns)
{
    uint64_t goal;
    bool in_time = true, is_settled;

    pthread_mutex_lock(&users->lock);
    goal = users->n_asked;
    while (users->n_answered < goal && in_time)
        in_time = clock_wait(users->clock, &users->answered, &users->lock, deadline_ns);
    is_settled = users->n_answered >= goal;
    pthread_mutex_unlock(&users->lock);
    return is_settled;
}

int users_find(const char *name, uid_t *ret)
{
    char text[4096];
    struct passwd entry, *found = NULL;
    int code = getpwnam_r(name, &entry, text, sizeof(text), &found);

    if (found) {
        *ret = found->pw_uid;
        return 0;
    }
    /* getpwnam(3) lists what means "not found" beside 0. */
    return code == 0 || code == ENOENT || code == ESRCH || code == EBADF || code == EPERM ? -ENOENT
                                                                                          : -code;
}

/* Either of what is asked for may be NULL. */
static bool find_record(uid_t uid, char *name, gid_t *group)
{
    struct passwd record, *found = NULL;
    int code = ERANGE;

    for (size_t size = 4096; code == ERANGE && size <= LONGEST_RECORD; size *= 4) {
        char *text = heap_array(size, 1);

        code = getpwuid_r(uid, &record, text, size, &found);
        if (code == 0 && found && name)
            snprintf(name, USERS_NAME_MAX, "%s", record.pw_name);
        if (code == 0 && found && group)
            *group = record.pw_gid;
        free(text);
    }
    return code == 0 && found;
}

static bool system_user(void *ctx, uid_t uid, char name[USERS_NAME_MAX])
{
    (void)ctx;
    return find_record(uid, name, NULL);
}

static bool system_group(void *ctx, gid_t gid, char name[USERS_NAME_MAX])
{
    struct group record, *found = NULL;
    int code = ERANGE;

    (void)ctx;
    for (size_t size = 4096; code == ERANGE && size <= LONGEST_RECORD; size *= 4) {
        char *text = heap_array(size, 1);

        code = getgrgid_r(gid, &record, text, size, &found);
        if (code == 0 && found)
            snprintf(name, USERS_NAME_MAX, "%s", record.gr_name);
        free(text);
    }
    return code == 0 && found;
}

static bool system_own_group(void *ctx, uid_t uid, gid_t *ret)
{
    (void)ctx;
    return find_record(uid, NULL, ret);
}

const struct users_lookup users_system = { system_user, system_group, system_own_group, NULL };
