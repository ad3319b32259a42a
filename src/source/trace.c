/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The lock, the rates, whose job it is, and the sums; who posts is in trace_store.c, what a post
 * says in trace_body.c. */
#include "source/trace.h"

#include "model/hostlist.h"
#include "source/trace_store.h"

#include <math.h>

/* Posts that come together, such as those of a job's tasks, may use what this time allows. */
static const double burst_seconds = 10;

const char *const trace_refusal_words[TRACE_REFUSALS] = {
    [TRACE_GARBLED] = "garbled",     [TRACE_UNPROVED] = "unproved", [TRACE_DENIED] = "denied",
    [TRACE_TOO_OFTEN] = "too_often", [TRACE_TOO_MANY] = "too_many",
};

/* The records of a section of jobs by their ids. */
struct known_jobs {
    struct section *section; /* NULL: none */
    uint32_t *slots;         /* index + 1 of a record, 0: free */
    unsigned bits;           /* there are 2^bits of them */
    uint64_t multiplier;
};

struct trace {
    const struct clock *clock;
    pthread_mutex_t lock; /* of the next two; the HTTP thread does not take it */
    struct trace_store store;
    struct known_jobs known;
    pthread_mutex_t rate_lock; /* of the next three, for no longer than a sum takes */
    double tokens;             /* posts that may come at once */
    int64_t tokens_at_ns;
    unsigned max_posts_per_second;
    atomic_size_t n_fresh;
    _Atomic uint64_t n_posts, n_displaced, n_refused[TRACE_REFUSALS];
};

struct trace *trace_new(const struct trace_config *config)
{
    struct trace *trace = heap_alloc(sizeof(*trace));

    trace->clock = config->clock;
    pthread_mutex_init(&trace->lock, NULL);
    trace_store_init(&trace->store, config);
    pthread_mutex_init(&trace->rate_lock, NULL);
    trace->tokens = INFINITY;
    trace->max_posts_per_second = config->max_posts_per_second;
    /* Multiply-shift (Dietzfelbinger and others): ids that collide can't be chosen by somebody who
     * does not know the multiplier. */
    trace->known.multiplier = map_hash(STR("job ids")) | 1;
    return trace;
}

static void forget_jobs(struct known_jobs *known)
{
    free(known->slots);
    known->slots = NULL;
    known->section = section_unref(known->section);
}

struct trace *trace_free(struct trace *trace)
{
    if (trace) {
        forget_jobs(&trace->known);
        trace_store_free(&trace->store);
        pthread_mutex_destroy(&trace->rate_lock);
        pthread_mutex_destroy(&trace->lock);
        free(trace);
    }
    return NULL;
}

/* Brings everything up to date. Under the lock. */
static int64_t begin(struct trace *trace)
{
    int64_t now;

    pthread_mutex_lock(&trace->lock);
    now = clock_mono(trace->clock);
    trace_store_expire(&trace->store, now);
    return now;
}

static void end(struct trace *trace)
{
    atomic_store(&trace->n_fresh, trace->store.ends.n);
    atomic_store(&trace->n_displaced, trace->store.n_displaced);
    pthread_mutex_unlock(&trace->lock);
}

void trace_tune(struct trace *trace, const struct trace_config *config)
{
    int64_t now = begin(trace);

    trace_store_tune(&trace->store, config, now);
    end(trace);
    pthread_mutex_lock(&trace->rate_lock);
    trace->max_posts_per_second = config->max_posts_per_second;
    pthread_mutex_unlock(&trace->rate_lock);
}

static uint32_t *job_slot(const struct known_jobs *known, uint32_t id)
{
    size_t mask = ((size_t)1 << known->bits) - 1;
    size_t i = (size_t)(id * known->multiplier >> (64 - known->bits));

    while (known->slots[i] && known->section->jobs.job[known->slots[i] - 1].id != id)
        i = (i + 1) & mask;
    return &known->slots[i];
}

/* Tasks of an array that wait have one id together: any of them will do, but for one that runs. */
static void know_job(struct known_jobs *known, uint32_t index)
{
    const struct job *job = &known->section->jobs.job[index];
    uint32_t *slot = job_slot(known, job->id);

    if (!*slot || job_holds_resources(job->state))
        *slot = index + 1;
}

/* Holds on to the section until another takes its place, or nothing is traced any more. */
static void learn_jobs(struct known_jobs *known, const struct section *jobs)
{
    if (known->section == jobs)
        return;
    forget_jobs(known);
    if (!jobs)
        return;
    known->section = section_ref((struct section *)(uintptr_t)jobs);
    for (known->bits = 4; (size_t)1 << known->bits < 2 * jobs->jobs.n;)
        known->bits++;
    known->slots = heap_alloc(((size_t)1 << known->bits) * sizeof(*known->slots));
    for (size_t i = 0; i < jobs->jobs.n; i++)
        know_job(known, (uint32_t)i);
}

static const struct job *find_job(const struct known_jobs *known, uint32_t id)
{
    uint32_t slot = known->section ? *job_slot(known, id) : 0;

    return slot ? &known->section->jobs.job[slot - 1] : NULL;
}

enum claim {
    CLAIM_TRUE,
    CLAIM_FALSE,
    CLAIM_OPEN, /* the job is not in the queue, or its owner's name is still being looked up */
};

static enum claim as_claim(bool is_true)
{
    return is_true ? CLAIM_TRUE : CLAIM_FALSE;
}

/* A user without a name is called by his number, here and by Slurm. */
static enum claim judge_by_name(struct users *users, uint32_t uid, struct str owner)
{
    char name[USERS_NAME_MAX];
    bool is_name;

    if (!users)
        return CLAIM_OPEN;
    is_name = users_user(users, uid, name);
    if (str_eq(str_of(name), owner))
        return CLAIM_TRUE;
    return is_name ? CLAIM_FALSE : CLAIM_OPEN;
}

/* Whether the job is the user's. */
static enum claim judge(const struct trace *trace, const struct trace_user *user,
                        const struct job *job)
{
    struct str owner;

    if (!job)
        return CLAIM_OPEN;
    if (trace_user_is_trusted(user))
        return CLAIM_TRUE;
    owner = section_text(trace->known.section, job->user);
    if (user->who.proof == TRACE_NAME)
        return owner.n ? as_claim(str_eq(user->who.name, owner)) : CLAIM_OPEN;
    if (job->user_id != MODEL_UNKNOWN_U32)
        return as_claim(user->who.uid == job->user_id);
    return judge_by_name(trace->store.config.users, user->who.uid, owner);
}

static bool take_token(double *tokens, int64_t *at_ns, unsigned per_second, int64_t now)
{
    *tokens = fmin(*tokens + (double)(now - *at_ns) / NS_PER_SEC * per_second,
                   burst_seconds * per_second);
    *at_ns = now;
    if (*tokens < 1)
        return false;
    --*tokens;
    return true;
}

static bool is_within_rate_of_all(struct trace *trace)
{
    bool is_within;

    pthread_mutex_lock(&trace->rate_lock);
    is_within = take_token(&trace->tokens, &trace->tokens_at_ns, trace->max_posts_per_second,
                           clock_mono(trace->clock));
    pthread_mutex_unlock(&trace->rate_lock);
    return is_within;
}

static bool is_within_rates(struct trace *trace, struct trace_user *user, bool is_admitted,
                            int64_t now)
{
    unsigned per_second = trace->store.config.max_posts_per_second_per_user;

    if (!trace_user_is_trusted(user) &&
        !take_token(&user->tokens, &user->tokens_at_ns, per_second, now))
        return false;
    return is_admitted || is_within_rate_of_all(trace);
}

static int refuse_rate(struct err *err)
{
    return err_set(err, EBUSY, "too many posts, try again in a second");
}

int trace_admit(struct trace *trace, struct err *err)
{
    if (is_within_rate_of_all(trace))
        return 0;
    trace_refuse(trace, TRACE_TOO_OFTEN);
    return refuse_rate(err);
}

void trace_readmit(struct trace *trace)
{
    pthread_mutex_lock(&trace->rate_lock);
    trace->tokens++;
    pthread_mutex_unlock(&trace->rate_lock);
}

static int keep(struct trace *trace, struct trace_user *user, const struct trace_body *body,
                const struct section *jobs, int64_t now, struct err *err)
{
    uint32_t id = (uint32_t)body->job_id;
    enum claim claim;
    int code;

    learn_jobs(&trace->known, jobs);
    claim = judge(trace, user, find_job(&trace->known, id));
    if (claim == CLAIM_FALSE)
        return err_set(err, EACCES, "job %u is not yours", id);
    code = trace_store_keep(&trace->store, user, body, now, err);
    return code < 0 ? code : claim == CLAIM_OPEN;
}

static int post(struct trace *trace, const struct trace_identity *who, int body_code,
                const struct trace_body *body, const struct section *jobs, struct err *err)
{
    int64_t now = begin(trace);
    struct trace_user *user = trace_store_enter(&trace->store, who);
    int code = body_code;

    if (!user || !is_within_rates(trace, user, who->is_admitted, now))
        code = refuse_rate(err);
    else if (code == 0)
        code = keep(trace, user, body, jobs, now, err);
    if (user)
        trace_store_leave(&trace->store, user, now);
    end(trace);
    return code;
}

static enum trace_refusal refusal_of(int code)
{
    switch (-code) {
    case EACCES:
        return TRACE_DENIED;
    case EBUSY:
        return TRACE_TOO_OFTEN;
    case ENOSPC:
        return TRACE_TOO_MANY;
    default:
        return TRACE_GARBLED;
    }
}

int trace_post(struct trace *trace, struct str text, const struct trace_identity *who,
               const struct section *jobs, struct err *err)
{
    struct trace_body body;
    int code;

    if (who->proof == TRACE_NAME && who->name.n > TRACE_NAME_MAX) {
        code = err_set(err, EACCES, "nobody who has a job has so long a name");
    } else {
        code = trace_body_read(text, &body, err);
        code = post(trace, who, code, &body, jobs, err);
    }
    if (code < 0)
        trace_refuse(trace, refusal_of(code));
    else
        atomic_fetch_add(&trace->n_posts, 1);
    return code;
}

/* What a job's sums are made of. */
struct part {
    const struct job *job;
    const struct trace_group *group;
};

static int compare_parts(const void *a, const void *b)
{
    uint32_t x = ((const struct part *)a)->job->id, y = ((const struct part *)b)->job->id;

    return (x > y) - (x < y);
}

/* Whatever is fresh and true, by job. */
static struct part *find_parts(struct trace *trace, size_t *ret_n, size_t *ret_senders)
{
    const struct list *groups = &trace->store.groups;
    struct part *parts = NULL;
    size_t n = 0, n_room = 0, n_senders = 0;

    for (struct link *link = list_first(groups); link; link = list_next(groups, link)) {
        const struct trace_group *group = PART_OF(link, struct trace_group, all);
        const struct job *job = group->n_fresh ? find_job(&trace->known, group->job_id) : NULL;

        if (judge(trace, group->user, job) != CLAIM_TRUE)
            continue;
        parts = heap_grow(parts, n, &n_room, sizeof(*parts));
        parts[n++] = (struct part){ job, group };
        n_senders += group->n_fresh;
    }
    if (n)
        qsort(parts, n, sizeof(*parts), compare_parts);
    *ret_n = n;
    *ret_senders = n_senders;
    return parts;
}

static void add_amount(double *sum, double amount)
{
    if (!isnan(amount))
        *sum = isnan(*sum) ? amount : *sum + amount;
}

static void add_amounts(struct traced_job *job, const struct trace_amounts *amounts)
{
    add_amount(&job->cpu_percent, amounts->cpu_percent);
    add_amount(&job->memory_bytes, amounts->memory_bytes);
    add_amount(&job->read_bytes, amounts->read_bytes);
    add_amount(&job->write_bytes, amounts->write_bytes);
    add_amount(&job->threads, amounts->threads);
}

/* A host as its senders call it. */
struct named_host {
    struct traced_host host;
    int64_t since_ns; /* that of its senders which has posted longest */
    bool is_node;     /* of the job */
};

/* A section while it is filled. */
struct sums {
    struct section *section;
    uint32_t *place;          /* by symbol of a host: index + 1 of its last named_host */
    struct named_host *named; /* of all jobs so far, … */
    size_t n_named, first;    /* … and where those of this one begin */
};

static void add_host(struct sums *sums, const struct trace_process *process)
{
    symbol host = symbols_put(&sums->section->symbols, process->host);
    uint32_t place = sums->place[host];
    int64_t pid = (int64_t)process->pid, since_ns = process->fresh_since_ns;

    if (place > sums->first) {
        struct named_host *known = &sums->named[place - 1];

        known->host.pid = pid < known->host.pid ? pid : known->host.pid;
        known->since_ns = since_ns < known->since_ns ? since_ns : known->since_ns;
        return;
    }
    sums->named[sums->n_named++] = (struct named_host){ { host, pid }, since_ns, false };
    sums->place[host] = (uint32_t)sums->n_named;
}

static void add_group(struct sums *sums, struct traced_job *job, const struct trace_group *group)
{
    for (struct link *link = list_first(&group->fresh); link;
         link = list_next(&group->fresh, link)) {
        const struct trace_process *process = PART_OF(link, struct trace_process, of_group);

        add_amounts(job, &process->amounts);
        if (!isnan(process->pid))
            add_host(sums, process);
    }
}

/* A job that posts has its processes, and so its resources, also where the section is so old that
 * the job still waits in it. */
static struct traced_job *begin_job(struct sums *sums, const struct section *jobs,
                                    const struct job *from)
{
    struct traces *traces = &sums->section->traces;
    struct traced_job *job = &traces->job[traces->n++];

    *job = (struct traced_job){
        .id = from->id,
        .user = symbols_put(&sums->section->symbols, section_text(jobs, from->user)),
        .cpu_percent = NAN,
        .memory_bytes = NAN,
        .read_bytes = NAN,
        .write_bytes = NAN,
        .threads = NAN,
        .allocated_cpus = from->cpus,
        .allocated_memory_bytes = from->memory_bytes,
        .first_host = (uint32_t)traces->n_hosts,
    };
    sums->first = sums->n_named;
    return job;
}

static int compare_hosts(const void *a, const void *b, void *arg)
{
    struct str x = section_text(arg, ((const struct traced_host *)a)->name);
    struct str y = section_text(arg, ((const struct traced_host *)b)->name);
    int order = memcmp(x.p, y.p, x.n < y.n ? x.n : y.n);

    return order ? order : (x.n > y.n) - (x.n < y.n);
}

static int compare_preference(const void *a, const void *b, void *arg)
{
    const struct named_host *x = a, *y = b;

    if (x->is_node != y->is_node)
        return x->is_node ? -1 : 1;
    if (x->since_ns != y->since_ns)
        return x->since_ns < y->since_ns ? -1 : 1;
    return compare_hosts(&x->host, &y->host, arg);
}

static struct str short_name(struct str host)
{
    return str_cut(&host, '.');
}

/* Slurm and the host itself may differ on whether its name has a domain. */
static void mark_nodes(struct sums *sums, const struct section *jobs, const struct job *from,
                       size_t n_nodes)
{
    struct hostlist nodes = { 0 };
    struct arena arena = { 0 };
    struct map names;

    map_init(&names, &arena);
    if (hostlist_expand(section_text(jobs, from->nodes), &arena, n_nodes, &nodes, NULL) == 0)
        for (size_t i = 0; i < nodes.n; i++)
            map_put(&names, short_name(nodes.hosts[i]));
    for (size_t i = sums->first; i < sums->n_named; i++) {
        struct str name = section_text(sums->section, sums->named[i].host.name);

        sums->named[i].is_node = map_get(&names, short_name(name)) != NULL;
    }
    map_free(&names);
    arena_clear(&arena);
}

/* A job may call its hosts what it likes, and each name is a series: there are no more of them than
 * the job has nodes. */
static void end_job(struct sums *sums, struct traced_job *job, const struct section *jobs,
                    const struct job *from)
{
    struct traces *traces = &sums->section->traces;
    struct named_host *named = sums->named + sums->first;
    size_t n = sums->n_named - sums->first;
    bool is_unknown = from->node_count == 0 || from->node_count == MODEL_UNKNOWN_U32;
    size_t n_nodes = is_unknown ? 1 : from->node_count;

    if (n > n_nodes) {
        mark_nodes(sums, jobs, from, n_nodes);
        qsort_r(named, n, sizeof(*named), compare_preference, sums->section);
        n = n_nodes;
    }
    for (size_t i = 0; i < n; i++)
        traces->host[traces->n_hosts++] = named[i].host;
    job->n_hosts = (uint32_t)n;
    qsort_r(traces->host + job->first_host, n, sizeof(*traces->host), compare_hosts, sums->section);
}

static void add_up(struct section *section, const struct section *jobs, const struct part *parts,
                   size_t n_parts, size_t n_senders)
{
    struct traces *traces = &section->traces;
    struct sums sums = {
        .section = section,
        .place = heap_alloc((1 + n_parts + n_senders) * sizeof(*sums.place)),
        .named = heap_alloc((1 + n_senders) * sizeof(*sums.named)),
    };

    traces->job = ARENA_ARRAY(&section->arena, struct traced_job, n_parts);
    traces->host = ARENA_ARRAY(&section->arena, struct traced_host, n_senders);
    for (size_t i = 0; i < n_parts;) {
        const struct job *from = parts[i].job;
        struct traced_job *job = begin_job(&sums, jobs, from);

        for (; i < n_parts && parts[i].job->id == job->id; i++)
            add_group(&sums, job, parts[i].group);
        end_job(&sums, job, jobs, from);
    }
    free(sums.named);
    free(sums.place);
}

struct section *trace_section(struct trace *trace, const struct section *jobs)
{
    struct section *section = section_new(KIND_TRACES);
    size_t n_parts, n_senders;
    struct part *parts;

    section->mono_ns = begin(trace);
    section->wall_ns = clock_wall(trace->clock);
    learn_jobs(&trace->known, trace->store.ends.n ? jobs : NULL);
    parts = find_parts(trace, &n_parts, &n_senders);
    add_up(section, jobs, parts, n_parts, n_senders);
    end(trace);
    free(parts);
    return section;
}

void trace_refuse(struct trace *trace, enum trace_refusal why)
{
    atomic_fetch_add(&trace->n_refused[why], 1);
}

void trace_stats(struct trace *trace, struct trace_stats *ret)
{
    *ret = (struct trace_stats){
        .senders = atomic_load(&trace->n_fresh),
        .posts = atomic_load(&trace->n_posts),
        .displaced = atomic_load(&trace->n_displaced),
    };
    for (size_t i = 0; i < TRACE_REFUSALS; i++)
        ret->refused[i] = atomic_load(&trace->n_refused[i]);
}
