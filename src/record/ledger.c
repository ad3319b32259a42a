/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opens the store for the recorder and writes to it in rounds. */
#include "record/ledger.h"

#include "record/changes.h"
#include "record/request.h"
#include "record/seen.h"
#include "source/record.h"
#include "store/lock.h"

#include <unistd.h>

enum {
    MOST_CHANGED = 10000, /* of a cluster in one transaction, which then takes half a second */
    MOST_PRUNED = 500,
    LOOK_SECONDS = 60, /* that the queue was looked at is written that often, if nothing else is */
};

/* A section as it will be kept. It is written anew only if it tells something else. */
struct written_section {
    uint64_t hash; /* of what it tells; 0: there is none */
    struct buf document;
};

struct ledger {
    char *url;
    bool is_simulated;
    struct store *store; /* NULL: not open */
    int lock;            /* a descriptor, while it is open */
    size_t n_clusters;
    struct changes **changes;    /* of each cluster, as the next */
    bool *knows_open;            /* what the store has as not ended is among the changes */
    struct changes_found *found; /* in this round */
    struct written_section (*to_keep)[KINDS]; /* likewise */
    uint64_t (*kept)[KINDS];                  /* hashes of those that the store has */
    int64_t *looked;                          /* when the queue was, as far as that is written */
    struct arena waits_arena;                 /* what follows is in it */
    struct ledger_waits {
        bool is_known;
        struct partition_wait *wait;
        size_t n;
    } * waits;

    /* What is being written, to tell what the store does not take. */
    struct request *at_request;
    struct changed_job *at_job;
    struct round_cluster *at_nodes;
    struct section **at_kept;
};

struct ledger *ledger_new(struct str url, bool is_simulated, size_t n_clusters)
{
    struct ledger *ledger = heap_alloc(sizeof(*ledger));

    ledger->url = heap_str(url);
    ledger->lock = -1;
    ledger->is_simulated = is_simulated;
    ledger->n_clusters = n_clusters;
    ledger->found = heap_alloc(n_clusters * sizeof(*ledger->found));
    ledger->knows_open = heap_alloc(n_clusters * sizeof(*ledger->knows_open));
    ledger->kept = heap_alloc(n_clusters * sizeof(*ledger->kept));
    ledger->to_keep = heap_alloc(n_clusters * sizeof(*ledger->to_keep));
    ledger->looked = heap_alloc(n_clusters * sizeof(*ledger->looked));
    ledger->waits = heap_alloc(n_clusters * sizeof(*ledger->waits));
    ledger->changes = heap_alloc(n_clusters * sizeof(struct changes *));
    for (size_t i = 0; i < n_clusters; i++)
        ledger->changes[i] = changes_new();
    return ledger;
}

static void close_store(struct ledger *ledger)
{
    ledger->store = store_close(ledger->store);
    if (ledger->lock >= 0)
        close(ledger->lock);
    ledger->lock = -1;
}

struct ledger *ledger_free(struct ledger *ledger)
{
    if (ledger) {
        close_store(ledger);
        for (size_t i = 0; i < ledger->n_clusters; i++)
            changes_free(ledger->changes[i]);
        free(ledger->changes);
        free(ledger->knows_open);
        free(ledger->kept);
        free(ledger->to_keep);
        free(ledger->looked);
        free(ledger->waits);
        arena_clear(&ledger->waits_arena);
        free(ledger->found);
        free(ledger->url);
        free(ledger);
    }
    return NULL;
}

static int open_locked(struct ledger *ledger, struct err *err)
{
    char path[STORE_PATH_MAX];
    int code = store_path(str_of(ledger->url), path, err);

    if (code == 0)
        code = store_lock(path, &ledger->lock, err);
    if (code == 0)
        code = store_open(str_of(ledger->url), ledger->is_simulated, &ledger->store, err);
    if (code < 0)
        close_store(ledger);
    return code;
}

int ledger_open(struct ledger *ledger, bool *ret_was_gone, struct err *err)
{
    *ret_was_gone = ledger->store && !store_is_there(ledger->store);
    if (*ret_was_gone)
        close_store(ledger);
    if (ledger->store)
        return 0;
    /* It may be another one, put there meanwhile. */
    for (size_t i = 0; i < ledger->n_clusters; i++) {
        changes_forget(ledger->changes[i]);
        ledger->knows_open[i] = false;
        ledger->looked[i] = 0;
        memset(ledger->kept[i], 0, sizeof(ledger->kept[i]));
    }
    return open_locked(ledger, err);
}

int ledger_newest(struct ledger *ledger, int64_t *ret, struct err *err)
{
    return store_newest_seen(ledger->store, ret, err);
}

/* What is open can be written once there is room again, or once another lets go of it. */
static int give_up(struct ledger *ledger, int code)
{
    store_rollback(ledger->store);
    if (code != -ENOSPC && code != -EBUSY)
        close_store(ledger);
    return code;
}

/* What was seen before this process began may have gone since. */
static int recall_open(struct ledger *ledger, size_t cluster, struct str name, struct err *err)
{
    struct run_name *runs;
    size_t n;
    int code;

    if (ledger->knows_open[cluster])
        return 0;
    code = store_list_open(ledger->store, name, &runs, &n, err);
    if (code < 0)
        return code;
    for (size_t i = 0; i < n; i++)
        changes_add(ledger->changes[cluster], runs[i]);
    free(runs);
    ledger->knows_open[cluster] = true;
    return 0;
}

static int64_t look_time(const struct round_cluster *cluster)
{
    return cluster->jobs->wall_ns / NS_PER_SEC;
}

/* A queue in which nothing happens is not one that nobody looks at. */
static bool is_look_due(const struct ledger *ledger, size_t i, const struct round_cluster *cluster)
{
    return cluster->jobs && (look_time(cluster) < ledger->looked[i] ||
                             look_time(cluster) >= ledger->looked[i] + LOOK_SECONDS);
}

static void write_down(struct ledger *ledger, size_t cluster, const struct section *section)
{
    const struct record_about about = {
        .kind = section->kind,
        .door = "recorder",
        .is_simulated = ledger->is_simulated,
        .wall_ns = section->wall_ns,
    };
    struct written_section *to_keep = &ledger->to_keep[cluster][section->kind];
    size_t begin;

    buf_init(&to_keep->document, STORE_SECTION_MAX);
    begin = record_put(&to_keep->document, section, &about);
    to_keep->hash = map_hash(str_skip(buf_str(&to_keep->document), begin)) | 1;
}

static bool write_down_all(struct ledger *ledger, size_t i, const struct round_cluster *cluster)
{
    bool is_any = false;

    for (int kind = 0; kind < KINDS; kind++) {
        if (!cluster->kept[kind])
            continue;
        write_down(ledger, i, cluster->kept[kind]);
        is_any = true;
    }
    return is_any;
}

static void forget_written(struct ledger *ledger)
{
    for (size_t i = 0; i < ledger->n_clusters; i++) {
        for (int kind = 0; kind < KINDS; kind++) {
            buf_free(&ledger->to_keep[i][kind].document);
            ledger->to_keep[i][kind].hash = 0;
        }
    }
}

static int find_changes(struct ledger *ledger, struct round *round, struct err *err)
{
    for (size_t i = 0; i < ledger->n_clusters; i++) {
        struct round_cluster *cluster = &round->clusters[i];
        struct changes_found *found = &ledger->found[i];
        int code = cluster->jobs ? recall_open(ledger, i, cluster->name, err) : 0;

        if (code < 0)
            return code;
        *found = (struct changes_found){ .is_all = true };
        if (cluster->jobs)
            changes_find(ledger->changes[i], cluster->jobs, MOST_CHANGED, found);
        cluster->has_more = !found->is_all;
        round->unchanged += found->unchanged;
        round->skipped += found->skipped;
        round->is_written |= found->n || found->n_gone || cluster->nodes;
        round->is_written |= is_look_due(ledger, i, cluster);
        round->is_written |= write_down_all(ledger, i, cluster);
    }
    for (struct link *link = list_first(&round->requests); link;
         link = list_next(&round->requests, link))
        round->is_written |= PART_OF(link, struct request, link)->is_written;
    return 0;
}

static int run_requests(struct ledger *ledger, struct round *round, struct err *err)
{
    for (struct link *link = list_first(&round->requests); link;
         link = list_next(&round->requests, link)) {
        struct request *request = PART_OF(link, struct request, link);
        size_t cluster = request->batch.cluster;
        int code;

        ledger->at_request = request;
        code = request->run(request, ledger->store, round->clusters[cluster].name,
                            ledger->changes[cluster], err);
        if (code < 0)
            return code;
        round->jobs += request->batch.n_jobs;
        round->finals += request->batch.n_finals;
    }
    ledger->at_request = NULL;
    return 0;
}

/* When the look was. The store takes nothing that is older than what it has: where the clock has
 * gone back, looks are as of the newest that there was, until it has caught up. */
static int time_of_look(struct ledger *ledger, const struct round_cluster *cluster, int64_t *ret,
                        struct err *err)
{
    int64_t wall = look_time(cluster), newest = 0;
    int code = store_open_seen(ledger->store, cluster->name, &newest, err);

    *ret = wall > newest ? wall : newest;
    return code;
}

static int put_jobs(struct ledger *ledger, const struct round_cluster *cluster,
                    const struct changes_found *found, uint64_t *jobs, struct err *err)
{
    int64_t as_of;
    int r;

    if (!cluster->jobs)
        return 0;
    r = time_of_look(ledger, cluster, &as_of, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < found->n; i++) {
        struct changed_job *changed = &found->job[i];
        struct job job = changes_job(cluster->jobs, changed);
        struct seen_job seen;
        int code;

        if (changed->is_refused)
            continue;
        ledger->at_job = changed;
        seen_job(cluster->jobs, &job, as_of, &seen);
        code = store_put_job(ledger->store, cluster->name, &seen.record, err);
        if (code < 0)
            return code;
        ++*jobs;
    }
    ledger->at_job = NULL;
    return store_put_look(ledger->store, cluster->name, as_of, found->gone, found->n_gone, err);
}

static int put_nodes(struct ledger *ledger, struct round_cluster *cluster, struct err *err)
{
    struct arena arena = { 0 };
    int code;

    if (!cluster->nodes)
        return 0;
    ledger->at_nodes = cluster;
    code = store_put_nodes(ledger->store, cluster->name, cluster->nodes->wall_ns / NS_PER_SEC,
                           seen_nodes(cluster->nodes, &arena), cluster->nodes->nodes.n, err);
    arena_clear(&arena);
    if (code < 0)
        return code;
    ledger->at_nodes = NULL;
    return 0;
}

static int put_kept(struct ledger *ledger, size_t i, struct round_cluster *cluster, struct err *err)
{
    for (int kind = 0; kind < KINDS; kind++) {
        const struct written_section *to_keep = &ledger->to_keep[i][kind];
        bool is_same = to_keep->hash == ledger->kept[i][kind];
        int code;

        if (!cluster->kept[kind])
            continue;
        ledger->at_kept = &cluster->kept[kind];
        if (to_keep->document.over)
            return err_set(err, EFBIG, "the %s of the cluster take more than %d bytes",
                           kind_name((enum kind)kind), STORE_SECTION_MAX);
        code = store_put_section(ledger->store, cluster->name, kind_name((enum kind)kind),
                                 cluster->kept[kind]->wall_ns / NS_PER_SEC,
                                 is_same ? STR("") : buf_str(&to_keep->document), err);
        if (code < 0)
            return code;
    }
    ledger->at_kept = NULL;
    return 0;
}

static int put_sections(struct ledger *ledger, struct round *round, struct err *err)
{
    int code = 0;

    for (size_t i = 0; i < ledger->n_clusters && code >= 0; i++) {
        code = put_jobs(ledger, &round->clusters[i], &ledger->found[i], &round->jobs, err);
        if (code >= 0)
            code = put_nodes(ledger, &round->clusters[i], err);
        if (code >= 0)
            code = put_kept(ledger, i, &round->clusters[i], err);
    }
    return code;
}

static int transact(struct ledger *ledger, struct round *round, struct err *err)
{
    int code = store_begin(ledger->store, err);

    round->jobs = round->finals = 0;
    ledger->at_request = NULL;
    ledger->at_job = NULL;
    ledger->at_nodes = NULL;
    ledger->at_kept = NULL;
    if (code >= 0)
        code = run_requests(ledger, round, err);
    if (code >= 0)
        code = put_sections(ledger, round, err);
    if (code >= 0)
        code = store_commit(ledger->store, err);
    /* What was written into a file that nobody can find is not kept. */
    if (code >= 0 && !store_is_there(ledger->store))
        code = err_set(err, ENOENT, "%s has gone while it was written", ledger->url);
    return code;
}

/* A record that no store takes. Anything else, such as a lack of memory, is a failure of the store:
 * all of the round is written again. */
static bool is_of_record(int code)
{
    return code == -EFBIG || code == -EINVAL;
}

/* The store works but does not take one thing: what else there is must not suffer for it. False if
 * it cannot be told which it is. */
static bool leave_out(struct ledger *ledger, struct round *round, const struct err *err)
{
    if (ledger->at_request) {
        ledger->at_request->code = -err->code;
        ledger->at_request->err = *err;
        list_append(&round->refused, &ledger->at_request->link);
    } else if (ledger->at_job) {
        ledger->at_job->is_refused = true;
    } else if (ledger->at_nodes) {
        ledger->at_nodes->nodes = NULL;
    } else if (ledger->at_kept) {
        *ledger->at_kept = NULL;
    } else {
        return false;
    }
    store_rollback(ledger->store);
    round->refusals++;
    round->refusal = *err;
    return true;
}

static void keep_found(struct ledger *ledger, const struct round *round)
{
    for (size_t i = 0; i < ledger->n_clusters; i++) {
        const struct round_cluster *cluster = &round->clusters[i];

        if (cluster->jobs)
            changes_keep(ledger->changes[i], cluster->jobs, &ledger->found[i]);
        if (cluster->jobs && round->is_written)
            ledger->looked[i] = look_time(cluster);
        for (int kind = 0; kind < KINDS; kind++)
            if (cluster->kept[kind])
                ledger->kept[i][kind] = ledger->to_keep[i][kind].hash;
    }
}

static int read_waits(struct ledger *ledger, const struct round *round, struct err *err)
{
    int code = 0;

    arena_clear(&ledger->waits_arena);
    memset(ledger->waits, 0, ledger->n_clusters * sizeof(*ledger->waits));
    for (size_t i = 0; i < ledger->n_clusters && code >= 0; i++) {
        struct ledger_waits *waits = &ledger->waits[i];

        if (!round->clusters[i].name.n)
            continue;
        code = store_waits(ledger->store, round->clusters[i].name, &ledger->waits_arena,
                           &waits->wait, &waits->n, err);
        waits->is_known = code >= 0;
    }
    return code;
}

bool ledger_waits(const struct ledger *ledger, size_t cluster, const struct partition_wait **ret,
                  size_t *ret_n)
{
    *ret = ledger->waits[cluster].wait;
    *ret_n = ledger->waits[cluster].n;
    return ledger->waits[cluster].is_known;
}

int ledger_write(struct ledger *ledger, struct round *round, struct err *err)
{
    int code = ledger_open(ledger, &round->was_gone, err);

    if (code < 0)
        return code;
    code = find_changes(ledger, round, err);
    if (code >= 0 && (round->is_written || list_first(&round->requests)))
        do
            code = transact(ledger, round, err);
        while (is_of_record(code) && leave_out(ledger, round, err));
    if (code >= 0 && round->is_written)
        code = read_waits(ledger, round, err);
    if (code >= 0) {
        keep_found(ledger, round);
        round->dropped = store_take_dropped(ledger->store);
    }
    forget_written(ledger);
    return code < 0 ? give_up(ledger, code) : 0;
}

int ledger_prune(struct ledger *ledger, struct str cluster, const struct store_retention *retention,
                 struct store_pruned *ret, struct err *err)
{
    int code = store_begin(ledger->store, err);

    if (code >= 0)
        code = store_prune(ledger->store, cluster, retention, MOST_PRUNED, ret, err);
    if (code >= 0)
        code = store_commit(ledger->store, err);
    return code < 0 ? give_up(ledger, code) : 0;
}

int ledger_tidy(struct ledger *ledger, struct store_size *ret, struct err *err)
{
    int code = store_tidy(ledger->store, err);

    if (code >= 0)
        code = store_begin(ledger->store, err);
    if (code >= 0)
        code = store_size(ledger->store, ret, err);
    if (code >= 0)
        code = store_commit(ledger->store, err);
    return code < 0 ? give_up(ledger, code) : 0;
}
