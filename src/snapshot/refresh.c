/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Thread that polls a source on demand, with limits and back-off. */
#include "snapshot/refresh.h"

#include "base/thread.h"
#include "snapshot/bookings.h"
#include "snapshot/counters.h"
#include "snapshot/inventory.h"
#include "snapshot/starts.h"

/* What is known of one kind; guarded by the refresher's lock. */
struct kind_state {
    bool wanted;          /* somebody waits for a newer section or another format */
    int64_t wanted_since; /* the last of them came then: a look begun later will do */
    int64_t waited_since; /* the first one that needs a look; INT64_MAX: there is none */
    bool seen;            /* there has been a section, perhaps withdrawn since */
    int64_t looked_at;    /* monotonic, when the last look that has ended began */
    bool is_looking;      /* a look is under way, */
    int64_t looking_at;   /* since then */
    int64_t told_at;      /* monotonic, when the last one ended */
    int64_t took_ns;      /* the last one, if it succeeded; else 0 */
    int64_t asked_at;     /* monotonic, when the newest section was asked for: its age */
    int64_t fresh_until;  /* counted from its arrival, so that a slow Slurm gets its pauses */
    unsigned failures;    /* in a row */
    int64_t backoff_until;
    struct err err; /* of the last failure */
};

static const unsigned urgent_kinds = KIND_BIT(KIND_NODES) | KIND_BIT(KIND_JOBS);

/* How often who waits in here looks whether it should still. */
static const int64_t patience_ns = 100 * NS_PER_MS;

/* The last thing that was logged of one sort, so that it is not logged at every look. */
struct said {
    char text[200];
    int64_t at;
};

struct refresher {
    struct refresh_config config;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t work;
    pthread_cond_t looked; /* a look has ended */
    bool stopping;
    unsigned formats;    /* FORMAT_BITs that were ever asked for */
    unsigned generation; /* of the tuning: grows when something else is to be rendered */
    struct snapshot *snapshot;
    struct kind_state kinds[KINDS];
    struct refresh_stats stats;  /* its ages are filled in when asked */
    int64_t answered_at;         /* monotonic, when the source last answered in time */
    int64_t paced_at;            /* monotonic, when what is wanted always was wanted last */
    int last_urgent, last_other; /* that were worked on; all that follows is the thread's own */
    unsigned urgent_in_a_row;
    struct inventory *inventory;
    struct bookings *bookings;
    struct starts *starts;
    struct counters *counters;
    struct said failure[KINDS], warning[KINDS], skipped[KINDS],
        ceiling[KINDS];  /* the thread's own */
    bool is_told[KINDS]; /* that it fails; likewise */
    const char *door;    /* that was chosen last; likewise */
    char interface[sizeof((struct source_about){ 0 }.interface)];
};

/* What a look brought, to be logged when no lock is held. */
struct outcome {
    enum kind kind;
    struct section *section; /* NULL: it failed, and err says how */
    struct edition *edition; /* made of it */
    struct err err;
    char warning[SOURCE_WARNING];
    struct source_about about;     /* the source, after it */
    bool has_new_bookings;         /* nodes should be looked at again */
    unsigned failures;             /* in a row: now, or before this success */
    double asked_seconds, seconds; /* until the answer was there; until it was rendered */
};

/* Nothing newer should or can be had now. */
static bool is_settled(const struct refresher *r, enum kind kind, int64_t now)
{
    const struct kind_state *state = &r->kinds[kind];

    return now < state->backoff_until || (state->seen && now < state->fresh_until);
}

static bool is_rendered(const struct refresher *r, enum kind kind, unsigned formats)
{
    const struct edition *edition = r->snapshot->editions[kind];

    return !edition || (edition->formats & formats) == formats;
}

static void want_kind(struct kind_state *state, int64_t since_ns)
{
    if (!state->wanted || state->wanted_since < since_ns)
        state->wanted_since = since_ns;
    state->wanted = true;
}

/* With the lock held. */
static bool want(struct refresher *r, unsigned kinds, enum metric_format format, int64_t since_ns)
{
    int64_t now = clock_mono(r->config.clock);
    bool ready = true;

    r->formats |= FORMAT_BIT(format);
    for (int kind = 0; kind < KINDS; kind++) {
        bool needs_look = !is_settled(r, kind, now) && r->kinds[kind].looked_at < since_ns;

        if (!(kinds & KIND_BIT(kind)))
            continue;
        r->stats.kinds[kind].asked = true;
        if (needs_look && now < r->kinds[kind].waited_since)
            r->kinds[kind].waited_since = now;
        if (needs_look || !is_rendered(r, kind, FORMAT_BIT(format))) {
            want_kind(&r->kinds[kind], since_ns);
            ready = false;
        }
    }
    if (!ready)
        pthread_cond_signal(&r->work);
    return ready;
}

bool refresher_want(struct refresher *refresher, unsigned kinds, enum metric_format format,
                    int64_t since_ns)
{
    bool ready;

    pthread_mutex_lock(&refresher->lock);
    ready = want(refresher, kinds, format, since_ns);
    pthread_mutex_unlock(&refresher->lock);
    return ready;
}

int64_t refresher_told_ns(struct refresher *refresher, unsigned kinds)
{
    int64_t last_ns = INT64_MIN;

    pthread_mutex_lock(&refresher->lock);
    for (int kind = 0; kind < KINDS; kind++)
        if (kinds & KIND_BIT(kind) && refresher->kinds[kind].told_at > last_ns)
            last_ns = refresher->kinds[kind].told_at;
    pthread_mutex_unlock(&refresher->lock);
    return last_ns;
}

int64_t refresher_patience(struct refresher *refresher, unsigned kinds, int64_t since_ns,
                           int64_t then_ns)
{
    int64_t until_ns = INT64_MIN;

    pthread_mutex_lock(&refresher->lock);
    for (int kind = 0; kind < KINDS; kind++) {
        const struct kind_state *state = &refresher->kinds[kind];
        bool is_older = state->is_looking && state->looking_at < since_ns;
        int64_t from_ns = is_older ? state->looking_at : then_ns;
        int64_t ns = 2 * state->took_ns > NS_PER_SEC ? 2 * state->took_ns : NS_PER_SEC;

        if (kinds & KIND_BIT(kind) && until_ns < from_ns + ns)
            until_ns = from_ns + ns;
    }
    pthread_mutex_unlock(&refresher->lock);
    return until_ns;
}

/* Takes the edition over; NULL withdraws. With the lock held. */
static void replace_edition(struct refresher *r, enum kind kind, struct edition *edition)
{
    struct snapshot *old = r->snapshot;

    r->snapshot = snapshot_with(old, kind, edition);
    snapshot_unref(old);
}

static bool is_stale(const struct refresher *r, enum kind kind, int64_t now)
{
    const struct kind_state *state = &r->kinds[kind];

    /* What is asked for rarely must not be withdrawn before anybody could have asked again. */
    int64_t rarely = 2 * r->config.tuning.poll_limit_ns[kind];
    int64_t limit = r->config.tuning.stale_limit_ns;

    return now - state->asked_at > (limit > rarely ? limit : rarely) && now >= state->fresh_until;
}

/* With the lock held, as the two that follow. */
static void withdraw_stale(struct refresher *r)
{
    int64_t now = clock_mono(r->config.clock);

    for (int kind = 0; kind < KINDS; kind++)
        if (r->snapshot->editions[kind] && is_stale(r, kind, now))
            replace_edition(r, kind, NULL);
}

static struct section *facts_of(const struct refresher *r, enum kind kind)
{
    const struct edition *edition = r->snapshot->editions[kind];

    return edition && edition->section ? section_ref(edition->section) : NULL;
}

static struct section *facts_or_why(struct refresher *r, enum kind kind, struct err *err)
{
    struct section *section;

    withdraw_stale(r);
    section = facts_of(r, kind);
    if (!section && r->kinds[kind].err.code)
        *err = r->kinds[kind].err;
    else if (!section)
        err_set(err, ETIMEDOUT, "Slurm has not told its %s in time", kind_name(kind));
    return section;
}

struct section *refresher_wait(struct refresher *refresher, enum kind kind, int64_t deadline_ns,
                               const atomic_bool *cancelled, struct err *err)
{
    const struct clock *clock = refresher->config.clock;
    int64_t since_ns = clock_mono(clock), now = since_ns;
    int64_t end_ns = now + deadline_ns - clock_mono(&clock_real);
    struct section *section = NULL;

    pthread_mutex_lock(&refresher->lock);
    while (!want(refresher, KIND_BIT(kind), METRIC_TEXT, since_ns) && now < end_ns &&
           !atomic_load(cancelled)) {
        int64_t until_ns = now + patience_ns < end_ns ? now + patience_ns : end_ns;

        clock_wait(clock, &refresher->looked, &refresher->lock, until_ns);
        now = clock_mono(clock);
    }
    if (atomic_load(cancelled))
        err_set(err, ECANCELED, "cancelled");
    else
        section = facts_or_why(refresher, kind, err);
    pthread_mutex_unlock(&refresher->lock);
    return section;
}

struct snapshot *refresher_snapshot(struct refresher *refresher)
{
    struct snapshot *snapshot;

    pthread_mutex_lock(&refresher->lock);
    withdraw_stale(refresher);
    snapshot = snapshot_ref(refresher->snapshot);
    pthread_mutex_unlock(&refresher->lock);
    return snapshot;
}

/* Kinds are asked for one after the other. While a source hangs, those whose turn has not come are
 * down as well: it has answered nothing for as long as one answer may take. */
static bool is_overdue(const struct refresher *r, enum kind kind, int64_t now)
{
    int64_t since = r->kinds[kind].waited_since;

    return now > since && now - since >= r->config.tuning.timeout_ns && r->answered_at < since;
}

void refresher_stats(struct refresher *refresher, struct refresh_stats *ret)
{
    int64_t now = clock_mono(refresher->config.clock);

    pthread_mutex_lock(&refresher->lock);
    *ret = refresher->stats;
    for (int kind = 0; kind < KINDS; kind++) {
        ret->kinds[kind].up &= !is_overdue(refresher, kind, now);
        ret->kinds[kind].age_seconds =
            refresher->kinds[kind].seen
                ? (double)(now - refresher->kinds[kind].asked_at) / NS_PER_SEC
                : -1;
    }
    pthread_mutex_unlock(&refresher->lock);
}

/* Whether what has been rendered would come out otherwise. */
static bool renders_otherwise(const struct publish_config *a, const struct publish_config *b)
{
    return a->collectors != b->collectors || a->max_segment != b->max_segment ||
           memcmp(a->excluded, b->excluded, sizeof(a->excluded)) != 0 ||
           !str_eq(a->const_labels, b->const_labels) || strcmp(a->prefix, b->prefix) != 0;
}

/* As if nobody had looked yet; what was seen stays. */
static void forget_look(struct kind_state *state)
{
    state->looked_at = state->fresh_until = INT64_MIN;
}

void refresher_tune(struct refresher *refresher, const struct refresh_tuning *tuning)
{
    struct refresh_tuning *ours = &refresher->config.tuning;

    pthread_mutex_lock(&refresher->lock);
    if (renders_otherwise(&ours->publish, &tuning->publish)) {
        refresher->generation++;
        for (int kind = 0; kind < KINDS; kind++)
            forget_look(&refresher->kinds[kind]);
    }
    *ours = *tuning;
    pthread_mutex_unlock(&refresher->lock);
}

void refresher_add_collectors(struct refresher *refresher, collector_set set)
{
    struct publish_config *ours = &refresher->config.tuning.publish;

    pthread_mutex_lock(&refresher->lock);
    if (set & ~ours->collectors) {
        ours->collectors |= set;
        refresher->generation++;
        for (int kind = 0; kind < KINDS; kind++)
            if (collector_kinds(set) & KIND_BIT(kind))
                forget_look(&refresher->kinds[kind]);
    }
    pthread_mutex_unlock(&refresher->lock);
}

static void count_error(struct refresh_stats *stats, enum kind kind, int code)
{
    const char *reason = err_reason(code);

    for (size_t i = 0; i < REFRESH_REASONS; i++) {
        if (!stats->kinds[kind].errors[i].reason)
            stats->kinds[kind].errors[i].reason = reason;
        if (stats->kinds[kind].errors[i].reason == reason) {
            stats->kinds[kind].errors[i].count++;
            return;
        }
    }
}

static int64_t backoff_ns(const struct refresh_tuning *tuning, enum kind kind, unsigned failures)
{
    int64_t most = tuning->poll_limit_ns[kind] > tuning->max_backoff_ns
                       ? tuning->poll_limit_ns[kind]
                       : tuning->max_backoff_ns;
    int64_t ns = tuning->retry_ns;

    for (unsigned i = 1; i < failures && ns < most; i++)
        ns *= 2;
    return ns < most ? ns : most;
}

static void note_failure(struct refresher *r, struct outcome *outcome)
{
    struct kind_state *state = &r->kinds[outcome->kind];

    outcome->failures = ++state->failures;
    state->backoff_until =
        clock_mono(r->config.clock) + backoff_ns(&r->config.tuning, outcome->kind, state->failures);
    state->took_ns = 0;
    state->err = outcome->err;
    count_error(&r->stats, outcome->kind, outcome->err.code);
    r->stats.kinds[outcome->kind].up = false;
    if (MOMENTARY_KINDS & KIND_BIT(outcome->kind) && r->snapshot->editions[outcome->kind])
        replace_edition(r, outcome->kind, NULL);
}

static void note_success(struct refresher *r, struct outcome *outcome)
{
    const struct section *section = outcome->section;
    struct kind_state *state = &r->kinds[outcome->kind];

    outcome->failures = state->failures;
    state->failures = 0;
    state->backoff_until = INT64_MIN;
    state->err = (struct err){ 0 };
    state->seen = true;
    state->asked_at = section->mono_ns;
    state->took_ns = clock_mono(r->config.clock) - state->looking_at;
    state->fresh_until =
        clock_mono(r->config.clock) + r->config.tuning.poll_limit_ns[outcome->kind];
    /* One that took all the time that it has may lack a part that did not come. */
    if (outcome->kind != KIND_TRACES && state->took_ns < r->config.tuning.timeout_ns)
        r->answered_at = clock_mono(r->config.clock);
    r->stats.kinds[outcome->kind].up = true;
    r->stats.kinds[outcome->kind].bytes += section->bytes_read;
    r->stats.kinds[outcome->kind].skipped += section->skipped;
    r->stats.kinds[outcome->kind].warnings += outcome->warning[0] != '\0';
    replace_edition(r, outcome->kind, edition_ref(outcome->edition));
}

static enum source_depth depth_of(const struct refresher *r, collector_set set)
{
    collector_set own = 0;

    for (size_t i = 0; collectors[i]; i++)
        if (r->config.source->class->kinds & KIND_BIT(collectors[i]->kind))
            own |= set & (collector_set)1 << i;
    if (collector_wants_details(own))
        return SOURCE_DETAILS;
    /* Traces stand beside what their jobs were allocated; a recorder keeps all. */
    return collector_kinds(own) & KIND_BIT(KIND_JOBS) || r->config.traces || r->config.noted
               ? SOURCE_PLAIN
               : SOURCE_OWNERS;
}

static int read_section(struct refresher *r, const struct refresh_tuning *tuning,
                        const struct section *jobs, struct outcome *outcome, struct section **ret)
{
    struct source *source = r->config.source;

    if (outcome->kind == KIND_TRACES) {
        *ret = r->config.traces(r->config.traces_ctx, jobs);
        return 0;
    }
    source->depth = depth_of(r, tuning->publish.collectors);
    return source->class->read(source, outcome->kind, clock_mono(&clock_real) + tuning->timeout_ns,
                               ret, outcome->warning, &outcome->err);
}

/* What only a look back can tell. */
static void add_history(struct refresher *r, struct section *section, struct outcome *outcome)
{
    inventory_note(r->inventory, section);
    outcome->has_new_bookings = bookings_note(r->bookings, section);
    if (section->kind == KIND_JOBS && r->config.waits)
        r->config.waits(r->config.waits_ctx, section);
    else if (section->kind == KIND_JOBS)
        starts_note(r->starts, section);
    else if (section->kind == KIND_DIAG)
        counters_note(r->counters, section);
}

/* Without the lock: asks the source and renders. */
static void look(struct refresher *r, const struct refresh_tuning *tuning, unsigned formats,
                 const struct section *jobs, struct outcome *outcome)
{
    int64_t wall = clock_wall(r->config.clock), mono = clock_mono(r->config.clock);
    struct section *section;
    int code = read_section(r, tuning, jobs, outcome, &section);

    outcome->asked_seconds = (double)(clock_mono(r->config.clock) - mono) / NS_PER_SEC;
    source_tell(r->config.source, &outcome->about);
    if (code < 0)
        return;
    section->wall_ns = wall;
    section->mono_ns = mono;
    if (section->kind == KIND_JOBS)
        keep_jobs(r->config.keep, section);
    add_history(r, section, outcome);
    outcome->section = section;
    outcome->edition = edition_new(&tuning->publish, section, formats);
}

/* With the lock held, which is let go while the source is asked. */
static void refresh(struct refresher *r, struct outcome *outcome)
{
    int64_t began = clock_mono(r->config.clock);
    struct refresh_tuning tuning = r->config.tuning;
    unsigned formats = r->formats;
    struct section *jobs = outcome->kind == KIND_TRACES ? facts_of(r, KIND_JOBS) : NULL;
    unsigned generation = r->generation;

    r->kinds[outcome->kind].is_looking = true;
    r->kinds[outcome->kind].looking_at = began;
    pthread_mutex_unlock(&r->lock);
    look(r, &tuning, formats, jobs, outcome);
    section_unref(jobs);
    pthread_mutex_lock(&r->lock);
    r->stats.about = outcome->about;
    r->stats.kinds[outcome->kind].looks++;
    r->stats.kinds[outcome->kind].last_seconds = outcome->asked_seconds;
    outcome->seconds = (double)(clock_mono(r->config.clock) - began) / NS_PER_SEC;
    histogram_add(&r->stats.kinds[outcome->kind].durations, outcome->seconds);
    r->kinds[outcome->kind].is_looking = false;
    r->kinds[outcome->kind].told_at = clock_mono(r->config.clock);
    r->kinds[outcome->kind].looked_at = began;
    if (outcome->edition)
        note_success(r, outcome);
    else if (outcome->err.code != ECANCELED)
        note_failure(r, outcome);
    /* It was made for what was wanted when it began. */
    if (generation != r->generation)
        forget_look(&r->kinds[outcome->kind]);
    if (outcome->has_new_bookings)
        forget_look(&r->kinds[KIND_NODES]);
}

/* What there is will do, but somebody wants it in another format. Likewise with the lock. */
static void render_more(struct refresher *r, enum kind kind)
{
    struct edition *old = edition_ref(r->snapshot->editions[kind]);
    unsigned formats = r->formats;
    struct edition *edition;

    pthread_mutex_unlock(&r->lock);
    edition = edition_convert(old, formats);
    pthread_mutex_lock(&r->lock);
    /* It may have been withdrawn meanwhile. */
    if (r->snapshot->editions[kind] == old)
        replace_edition(r, kind, edition);
    else
        edition_unref(edition);
    edition_unref(old);
}

/* The next after `last`, round and round, of those of the set that are wanted; KINDS if none is. */
static int wanted_after(const struct refresher *r, int last, unsigned set)
{
    for (int i = 1; i <= KINDS; i++) {
        int kind = (last + i) % KINDS;

        if (r->kinds[kind].wanted && KIND_BIT(kind) & set)
            return kind;
    }
    return KINDS;
}

/* Whose turn it is. Nodes and jobs go first, so that a command for something else that hangs does
 * not make them old; but after two of them one of the others has its turn, so that what is always
 * wanted keeps nothing else waiting. */
static int next_kind(struct refresher *r)
{
    int urgent = wanted_after(r, r->last_urgent, urgent_kinds);
    int other = wanted_after(r, r->last_other, ~urgent_kinds);

    if (urgent != KINDS && (other == KINDS || r->urgent_in_a_row < 2)) {
        r->urgent_in_a_row++;
        r->last_urgent = urgent;
        return urgent;
    }
    r->urgent_in_a_row = 0;
    if (other != KINDS)
        r->last_other = other;
    return other;
}

/* Does one thing that is wanted; false if there was none. */
static bool work_once(struct refresher *r, struct outcome *outcome)
{
    int kind = next_kind(r);

    if (kind == KINDS)
        return false;
    r->kinds[kind].wanted = false;
    outcome->kind = (enum kind)kind;
    if (!is_settled(r, kind, clock_mono(r->config.clock)) &&
        r->kinds[kind].looked_at < r->kinds[kind].wanted_since)
        refresh(r, outcome);
    else if (!is_rendered(r, kind, r->formats))
        render_more(r, kind);
    r->kinds[kind].waited_since = INT64_MAX;
    return true;
}

/* What stays the same is said once an hour; an empty text is forgotten silence. */
static bool is_news(const struct refresher *r, struct said *said, const char *text)
{
    int64_t now = clock_mono(r->config.clock);

    if (strncmp(said->text, text, sizeof(said->text) - 1) == 0 &&
        (!text[0] || now - said->at < 3600 * NS_PER_SEC))
        return false;
    snprintf(said->text, sizeof(said->text), "%.*s", (int)sizeof(said->text) - 1, text);
    said->at = now;
    return text[0] != '\0';
}

/* Whether another kind fails in the same words: then it is one trouble, and told. */
static bool is_told_of_another(const struct refresher *r, enum kind kind)
{
    for (int other = 0; other < KINDS; other++)
        if (other != (int)kind && r->is_told[other] &&
            strcmp(r->failure[other].text, r->failure[kind].text) == 0)
            return true;
    return false;
}

static void say_failure(struct refresher *r, const struct outcome *outcome)
{
    enum kind kind = outcome->kind;

    if (outcome->err.code == ECANCELED || outcome->err.code == EAGAIN ||
        !is_news(r, &r->failure[kind], outcome->err.text))
        return;
    if (is_told_of_another(r, kind))
        return;
    r->is_told[kind] = true;
    LOG(r->config.log, LOG_WARN, "source failed", LOG_STR("cluster", r->config.cluster),
        LOG_STR("source", r->config.source->class->name), LOG_STR("kind", kind_name(outcome->kind)),
        LOG_STR("error", outcome->err.text), LOG_INT("failures", outcome->failures));
}

/* Records that could not be read, and collectors that hit their ceiling. */
static void say_losses(struct refresher *r, const struct outcome *outcome)
{
    const struct section *section = outcome->section;
    char over[200] = "";

    /* What is said again has left out what it had before. */
    if (!section->same_as && is_news(r, &r->skipped[outcome->kind], section->skipped ? "some" : ""))
        LOG(r->config.log, LOG_WARN, "records that cannot be read are left out",
            LOG_STR("cluster", r->config.cluster), LOG_STR("source", r->config.source->class->name),
            LOG_STR("kind", kind_name(outcome->kind)), LOG_INT("records", section->skipped),
            LOG_VIEW("first", section->skipped_example));
    for (size_t i = 0; collectors[i]; i++) {
        size_t n = strlen(over);

        if (outcome->edition->collectors[i].is_over)
            snprintf(over + n, sizeof(over) - n, "%s%s", n ? "," : "", collectors[i]->name);
    }
    if (is_news(r, &r->ceiling[outcome->kind], over))
        LOG(r->config.log, LOG_ERROR,
            "collectors give more than fits in an answer and are left out",
            LOG_STR("cluster", r->config.cluster), LOG_STR("collectors", over));
}

static void say_success(struct refresher *r, const struct outcome *outcome)
{
    const char *source = r->config.source->class->name, *kind = kind_name(outcome->kind);

    is_news(r, &r->failure[outcome->kind], "");
    if (r->is_told[outcome->kind])
        LOG(r->config.log, LOG_INFO, "source works again", LOG_STR("cluster", r->config.cluster),
            LOG_STR("source", source), LOG_STR("kind", kind),
            LOG_INT("failures", outcome->failures));
    r->is_told[outcome->kind] = false;
    if (is_news(r, &r->warning[outcome->kind], outcome->warning))
        LOG(r->config.log, LOG_WARN, "source warns", LOG_STR("cluster", r->config.cluster),
            LOG_STR("source", source), LOG_STR("kind", kind), LOG_STR("warning", outcome->warning));
    say_losses(r, outcome);
    LOG(r->config.log, LOG_DEBUG, "source read", LOG_STR("cluster", r->config.cluster),
        LOG_STR("source", source), LOG_STR("kind", kind), LOG_DOUBLE("seconds", outcome->seconds),
        LOG_INT("bytes", outcome->section->bytes_read));
}

/* Which door was chosen, when there was a choice; and when another release is behind it. */
static void say_choice(struct refresher *r, const struct source_about *about)
{
    bool is_other = about->door != r->door && about->reason[0];
    bool is_newer = about->door == r->door && r->interface[0] && about->interface[0] &&
                    strcmp(about->interface, r->interface) != 0;

    if (!about->door) /* nobody was asked: it was rendered in another format */
        return;
    r->door = about->door;
    if (about->interface[0])
        memcpy(r->interface, about->interface, sizeof(r->interface));
    if (is_other || is_newer)
        LOG(r->config.log, LOG_INFO, "source chosen", LOG_STR("cluster", r->config.cluster),
            LOG_STR("source", about->door), LOG_STR("interface", about->interface),
            LOG_STR("reason", about->reason));
}

/* Wants what is always wanted, if it is time, and waits for somebody to want something. */
static void wait_for_work(struct refresher *r)
{
    const struct refresh_tuning *tuning = &r->config.tuning;
    int64_t now = clock_mono(r->config.clock);

    if (!tuning->pace_kinds) {
        pthread_cond_wait(&r->work, &r->lock);
        return;
    }
    if (now - r->paced_at >= tuning->pace_ns) {
        r->paced_at = now;
        if (!want(r, tuning->pace_kinds, METRIC_TEXT, now))
            return;
    }
    clock_wait(r->config.clock, &r->work, &r->lock, r->paced_at + tuning->pace_ns);
}

static void *refresher_main(void *arg)
{
    struct refresher *r = arg;

    pthread_mutex_lock(&r->lock);
    while (!r->stopping) {
        struct outcome outcome = { 0 };

        if (!work_once(r, &outcome)) {
            wait_for_work(r);
            continue;
        }
        pthread_cond_broadcast(&r->looked);
        pthread_mutex_unlock(&r->lock);
        r->config.changed(r->config.ctx);
        if (outcome.section && r->config.noted)
            r->config.noted(r->config.noted_ctx, outcome.section);
        say_choice(r, &outcome.about);
        if (outcome.edition)
            say_success(r, &outcome);
        else if (outcome.err.code)
            say_failure(r, &outcome);
        edition_unref(outcome.edition);
        section_unref(outcome.section);
        pthread_mutex_lock(&r->lock);
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

static void release(struct refresher *r)
{
    snapshot_unref(r->snapshot);
    inventory_free(r->inventory);
    bookings_free(r->bookings);
    starts_free(r->starts);
    counters_free(r->counters);
    pthread_mutex_destroy(&r->lock);
    pthread_cond_destroy(&r->work);
    pthread_cond_destroy(&r->looked);
    free(r);
}

int refresher_start(const struct refresh_config *config, struct refresher **ret, struct err *err)
{
    struct refresher *r = heap_alloc(sizeof(*r));
    int code;

    r->config = *config;
    pthread_mutex_init(&r->lock, NULL);
    clock_cond_init(&r->work);
    clock_cond_init(&r->looked);
    r->snapshot = snapshot_new();
    r->inventory = inventory_new();
    r->bookings = bookings_new();
    r->starts = starts_new();
    r->counters = counters_new();
    r->last_urgent = r->last_other = KINDS - 1;
    r->paced_at = INT64_MIN / 2;
    source_tell(config->source, &r->stats.about);
    r->answered_at = INT64_MIN;
    for (int kind = 0; kind < KINDS; kind++) {
        r->kinds[kind].looked_at = r->kinds[kind].told_at = INT64_MIN;
        r->kinds[kind].backoff_until = INT64_MIN;
        r->kinds[kind].waited_since = INT64_MAX;
    }
    code = thread_start(&r->thread, "refresher", refresher_main, r, err);
    if (code < 0) {
        release(r);
        return code;
    }
    *ret = r;
    return 0;
}

void refresher_end(struct refresher *refresher)
{
    if (!refresher)
        return;
    source_cancel(refresher->config.source);
    pthread_mutex_lock(&refresher->lock);
    refresher->stopping = true;
    pthread_cond_signal(&refresher->work);
    pthread_mutex_unlock(&refresher->lock);
}

struct refresher *refresher_stop(struct refresher *refresher)
{
    if (!refresher)
        return NULL;
    refresher_end(refresher);
    pthread_join(refresher->thread, NULL);
    release(refresher);
    return NULL;
}
