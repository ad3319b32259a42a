/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The first door into Slurm that works, and the next one when it keeps failing. Each kind of thing
 * has a door of its own: what the chosen one cannot tell is asked of the next that can. */
#include "base/buf.h"
#include "source/source.h"

enum {
    FAILURES_MAX = 3,        /* in a row, before the next door is tried */
    RETRY_SECONDS = 10,      /* before a better door is tried again, doubled each time it fails, */
    RETRY_MAX_SECONDS = 320, /* up to this; one that has worked for longer begins anew */
    TRIAL_PART = 10,         /* such a trial may take one part in so many of the deadline, */
    TRIAL_SECONDS = 1,       /* but at least this, while another door works */
    COSTLY_SECONDS = 2,      /* a look at the jobs that takes longer is left to a cheaper door */
};

/* In the order in which they are tried. */
static const struct door {
    const char *name;
    int (*open)(const struct source_settings *settings, const struct clock *clock,
                struct source **ret, struct err *err);
    bool is_costly; /* the next one gives the same for a tenth of the work: docs/performance.md */
} doors[] = {
    { "libslurm", source_open_libslurm, false },
    { "rest", source_open_rest, false },
    { "json", source_open_json, true },
    { "cli", source_open_cli, false },
};

enum { DOORS = COUNT(doors), NONE = DOORS };

struct auto_source {
    struct source source;
    struct {
        struct source *source; /* NULL: it is not to be had here */
        struct err err;        /* why not, or what went wrong the last time */
        int64_t retry_at;      /* monotonic */
        int64_t retry_ns;
        bool is_given_up; /* it works, but costs too much: only if the cheaper one fails */
    } doors[DOORS];
    int door; /* for jobs and nodes, and what has no other; NONE at first */
    char reason[SOURCE_WARNING];
    struct {
        int door; /* NONE: as all */
        unsigned failures;
        bool is_on_trial; /* its door has not answered it yet: one failure will do */
        int64_t retry_at; /* when the one for all is asked again; monotonic */
    } kinds[KINDS];
};

static const unsigned urgent_kinds = KIND_BIT(KIND_NODES) | KIND_BIT(KIND_JOBS);

/* What deadlines are counted by. */
static int64_t now_ns(void)
{
    return clock_mono(&clock_real);
}

static int door_of(const struct auto_source *all, enum kind kind)
{
    return all->kinds[kind].door != NONE ? all->kinds[kind].door : all->door;
}

/* Before a door is asked, or asked whether it could be. */
static void set_depth(const struct auto_source *all)
{
    for (int i = 0; i < DOORS; i++)
        if (all->doors[i].source)
            all->doors[i].source->depth = all->source.depth;
}

/* Whether there is any use in asking it. Looked at each time: Slurm may be installed meanwhile. */
static bool is_open(struct auto_source *all, int door, enum kind kind)
{
    const struct source *source = all->doors[door].source;

    return source && source->class->kinds & KIND_BIT(kind) &&
           (!source->class->probe || source->class->probe(source, &all->doors[door].err) == 0);
}

/* Asks that door, and keeps in mind what went wrong there. */
static int ask(struct auto_source *all, int door, enum kind kind, int64_t deadline_ns,
               struct section **ret, char ret_warning[SOURCE_WARNING], struct err *err)
{
    struct source *source = all->doors[door].source;
    int code;

    code = source->class->read(source, kind, deadline_ns, ret, ret_warning, err);
    if (code < 0)
        all->doors[door].err = *err;
    return code;
}

/* What is said of the first n doors, `most` bytes of each. */
static void put_reasons(const struct auto_source *all, int n, size_t most, char *to, size_t room)
{
    struct buf text;

    buf_init(&text, (size_t)n * (most + 32));
    for (int i = 0; i < n; i++) {
        buf_printf(&text, "%s%s: ", i ? "; " : "", doors[i].name);
        buf_cut(&text, str_of(all->doors[i].err.text), most);
    }
    snprintf(to, room, "%s", buf_str(&text).p);
    buf_free(&text);
}

/* What is said of the doors before this one. */
static void explain(struct auto_source *all, int door, const char *word)
{
    if (door == 0)
        snprintf(all->reason, sizeof(all->reason), "%s", word);
    else
        put_reasons(all, door, 85, all->reason, sizeof(all->reason));
}

static void put_off(struct auto_source *all, int door)
{
    int64_t now = clock_mono(all->source.clock), most = RETRY_MAX_SECONDS * NS_PER_SEC;
    int64_t *ns = &all->doors[door].retry_ns;

    *ns = *ns && now - all->doors[door].retry_at < most ? 2 * *ns : RETRY_SECONDS * NS_PER_SEC;
    if (*ns > most)
        *ns = most;
    all->doors[door].retry_at = now + *ns;
}

/* It has just answered for that kind. */
static void take(struct auto_source *all, int door, enum kind kind, const char *word)
{
    if (!(KIND_BIT(kind) & urgent_kinds) && all->door != NONE) {
        all->kinds[kind].door = door == all->door ? NONE : door;
        all->kinds[kind].retry_at = clock_mono(all->source.clock) + RETRY_MAX_SECONDS * NS_PER_SEC;
        return;
    }
    for (int i = 0; i < door; i++)
        put_off(all, i);
    all->door = door;
    for (int i = 0; i < KINDS; i++) {
        all->kinds[i].door = NONE;
        all->kinds[i].failures = 0;
        all->kinds[i].is_on_trial = i != (int)kind;
    }
    explain(all, door, word);
}

/* Those from `next` on, but for that one, may still have their turn. */
static int64_t share(struct auto_source *all, int next, int except, enum kind kind,
                     int64_t deadline_ns)
{
    int64_t now = now_ns();
    int rest = 1;

    for (int i = next; i < DOORS; i++)
        rest += i != except && is_open(all, i, kind);
    return now + (deadline_ns - now) / rest;
}

/* The first that answers, but for that one; the error of the last one that was asked if none does.
 */
static int search(struct auto_source *all, int except, enum kind kind, int64_t deadline_ns,
                  struct section **ret, char ret_warning[SOURCE_WARNING], struct err *err)
{
    const char *word = all->door == NONE ? "first choice" : "it works again";
    int code = -ENOENT;

    for (int door = 0; door < DOORS; door++) {
        if (door == except || !is_open(all, door, kind))
            continue;
        code = ask(all, door, kind, share(all, door + 1, except, kind, deadline_ns), ret,
                   ret_warning, err);
        if (code == 0)
            take(all, door, kind, word);
        if (code == 0 || code == -ECANCELED)
            return code;
    }
    return code;
}

/* A slow Slurm, for which the deadline was raised, is slow through the better door as well. */
static int64_t trial_deadline(int64_t deadline_ns)
{
    int64_t now = now_ns(), least = TRIAL_SECONDS * NS_PER_SEC;
    int64_t trial = (deadline_ns - now) / TRIAL_PART;

    if (trial < least)
        trial = least;
    return now + trial < deadline_ns ? now + trial : deadline_ns;
}

/* Those before the one in use, when it is time to. */
static bool find_better(struct auto_source *all, enum kind kind, int64_t deadline_ns,
                        struct section **ret, char ret_warning[SOURCE_WARNING])
{
    for (int door = 0; door < all->door && KIND_BIT(kind) & urgent_kinds; door++) {
        struct err err = { 0 };

        if (clock_mono(all->source.clock) < all->doors[door].retry_at ||
            all->doors[door].is_given_up || !is_open(all, door, kind))
            continue;
        if (ask(all, door, kind, trial_deadline(deadline_ns), ret, ret_warning, &err) == 0) {
            take(all, door, kind, "it works again");
            return true;
        }
        put_off(all, door);
    }
    return false;
}

/* Who has no Slurm may want to look all the same; who has one wants to know what is wrong. */
static const char *hint_of(int code)
{
    return code == -ENOENT ? "; --demo shows a simulated cluster" : "";
}

static int no_door(const struct auto_source *all, int code, struct err *err)
{
    char text[sizeof(err->text)];

    put_reasons(all, DOORS, 150, text, sizeof(text));
    return err_set(err, -code, "no Slurm interface works. %s%s", text, hint_of(code));
}

static int fall(struct auto_source *all, int door, enum kind kind, int64_t deadline_ns,
                struct section **ret, char ret_warning[SOURCE_WARNING], struct err *err)
{
    struct err first = *err;
    int code = search(all, door, kind, deadline_ns, ret, ret_warning, err);

    if (code < 0) {
        *err = first;
        code = -first.code;
        all->kinds[kind].door = NONE;
    }
    return code;
}

static void mind_cost(struct auto_source *all, enum kind kind, int64_t began)
{
    int door = all->door;
    double seconds = (double)(clock_mono(all->source.clock) - began) / NS_PER_SEC;

    if (kind != KIND_JOBS || !doors[door].is_costly || seconds < COSTLY_SECONDS ||
        all->doors[door].is_given_up || !is_open(all, door + 1, kind))
        return;
    err_set(&all->doors[door].err, ETIMEDOUT, "a look at the jobs took %.1f s", seconds);
    all->doors[door].is_given_up = true;
    take(all, door + 1, kind, "");
}

/* What the door for all could not tell, it may by now: after an upgrade, say. */
static void reconsider(struct auto_source *all, enum kind kind)
{
    if (all->kinds[kind].door == NONE || clock_mono(all->source.clock) < all->kinds[kind].retry_at)
        return;
    all->kinds[kind].door = NONE;
    all->kinds[kind].is_on_trial = true;
}

static int auto_read(struct source *source, enum kind kind, int64_t deadline_ns,
                     struct section **ret, char ret_warning[SOURCE_WARNING], struct err *err)
{
    struct auto_source *all = (struct auto_source *)source;
    unsigned *failures = &all->kinds[kind].failures;
    int64_t began, patience = deadline_ns;
    bool was_on_trial;
    int door, code;

    set_depth(all);
    if (all->door == NONE) {
        code = search(all, NONE, kind, deadline_ns, ret, ret_warning, err);
        return code < 0 && code != -ECANCELED ? no_door(all, code, err) : code;
    }
    if (find_better(all, kind, deadline_ns, ret, ret_warning))
        return 0;
    reconsider(all, kind);
    door = door_of(all, kind);
    /* One that hangs must leave some time to the others. */
    if ((*failures + 1) % FAILURES_MAX == 0)
        patience = share(all, 0, door, kind, deadline_ns);
    was_on_trial = all->kinds[kind].is_on_trial;
    all->kinds[kind].is_on_trial = false;
    began = clock_mono(all->source.clock);
    code = ask(all, door, kind, patience, ret, ret_warning, err);
    if (code == 0) {
        *failures = 0;
        mind_cost(all, kind, began);
        return 0;
    }
    if (code == -ECANCELED)
        return code;
    if (code == -EOPNOTSUPP || ++*failures % FAILURES_MAX == 0 || was_on_trial)
        code = fall(all, door, kind, deadline_ns, ret, ret_warning, err);
    return code;
}

static void auto_cancel(struct source *source)
{
    struct auto_source *all = (struct auto_source *)source;

    for (int i = 0; i < DOORS; i++)
        if (all->doors[i].source)
            source_cancel(all->doors[i].source);
}

static void auto_tell(const struct source *source, struct source_about *about)
{
    const struct auto_source *all = (const struct auto_source *)source;

    about->door = "none";
    if (all->door == NONE)
        return;
    source_tell(all->doors[all->door].source, about);
    memcpy(about->reason, all->reason, sizeof(about->reason));
}

static int auto_probe(const struct source *source, struct err *err)
{
    const struct auto_source *all = (const struct auto_source *)source;
    struct err why = { 0 };

    set_depth(all);
    for (int i = 0; i < DOORS; i++) {
        const struct source *door = all->doors[i].source;

        if (door && (!door->class->probe || door->class->probe(door, &why) == 0))
            return 0;
    }
    return why.code ? err_set(err, why.code, "%.400s%s", why.text, hint_of(-why.code)) : 0;
}

static void auto_close(struct source *source)
{
    struct auto_source *all = (struct auto_source *)source;

    for (int i = 0; i < DOORS; i++)
        source_close(all->doors[i].source);
    free(all);
}

static const struct source_class auto_class = {
    .name = "auto",
    .kinds = KIND_BIT(KIND_JOBS) | KIND_BIT(KIND_NODES) | KIND_BIT(KIND_RESERVATIONS) |
             KIND_BIT(KIND_LICENSES) | KIND_BIT(KIND_DIAG) | KIND_BIT(KIND_SHARES) |
             KIND_BIT(KIND_ASSOCIATIONS) | KIND_BIT(KIND_CONFIG),
    .read = auto_read,
    .cancel = auto_cancel,
    .close = auto_close,
    .probe = auto_probe,
    .tell = auto_tell,
};

/* Whether there is any use in trying it, as far as the settings tell. */
static int consider(const struct source_settings *settings, int door, struct err *err)
{
    if (doors[door].open == source_open_libslurm && settings->prefix.n)
        return err_set(err, EINVAL, "--slurm.prefix is for commands");
    if (doors[door].open == source_open_rest && !settings->rest_url.n)
        return err_set(err, EINVAL, "there is no --slurm.rest-url");
    return 0;
}

int source_open_auto(const struct source_settings *settings, const struct clock *clock,
                     struct source **ret, struct err *err)
{
    struct auto_source *all = heap_alloc(sizeof(*all));
    int code = 0;

    all->source.class = &auto_class;
    all->source.clock = clock;
    all->door = NONE;
    for (int kind = 0; kind < KINDS; kind++)
        all->kinds[kind].door = NONE;
    for (int i = 0; i < DOORS && code == 0; i++)
        if (consider(settings, i, &all->doors[i].err) == 0)
            code = doors[i].open(settings, clock, &all->doors[i].source, err);
    if (code < 0) {
        auto_close(&all->source);
        return code;
    }
    *ret = &all->source;
    return 0;
}
