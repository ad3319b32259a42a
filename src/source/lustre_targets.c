/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Thread that reads the Lustre targets of this server. */
#include "source/lustre_targets.h"

#include "base/spawn.h"
#include "base/thread.h"
#include "source/job_stats.h"
#include "source/movers.h"
#include "source/subdirs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

enum {
    PIECE = 64 * 1024,
    TARGETS_MAX = 1024, /* of one server */
};

#define LONGEST_TEXT ((size_t)2 << 30) /* of one target's file, or of all that lctl prints */

static const int64_t grace_ns = NS_PER_SEC;
static const int64_t lctl_ns = 30 * NS_PER_SEC;

static const struct kind {
    const char *directory;
    const char *parameter; /* for lctl */
    bool is_mdt;
} kinds[] = {
    { "obdfilter", "obdfilter.*.job_stats", false },
    { "mdt", "mdt.*.job_stats", true },
};

/* Where Lustre has directories of its targets; which of them have a job_stats differs by release.
 */
static const struct place {
    bool is_sys;
    const char *path;
} places[] = {
    { false, "fs/lustre" },
    { true, "kernel/debug/lustre" },
    { true, "fs/lustre" },
};

struct target {
    char name[NAME_MAX + 1];
    const struct kind *kind;
    const struct place *place; /* of its file; NULL: it has none */
    bool is_read;
};

struct lustre_targets {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* asked, or ending, or ended */
    struct lustre_targets_config config;
    char *proc, *sys, *lctl; /* what the config points to */
    struct movers *movers;   /* the thread's own; NULL: there has been no target yet */
    pid_t stuck;             /* likewise: an lctl that does not end */

    bool is_asked, has_ended;
    int64_t asked_ns; /* when, if it is */
    atomic_bool is_ending;
    bool is_left_behind; /* the thread frees everything when it ends */
    struct lustre_use *latest;
    pthread_t thread;
};

/* A look that is under way. */
struct look {
    struct lustre_targets *of;
    struct lustre_use *use;
    struct target *targets;
    size_t n_targets, n_room;
    size_t n_closed;            /* directories of targets that may not be read */
    char denied[PATH_MAX + 64]; /* the first that may not; or empty */
    struct target *current; /* whose text is being read; NULL: none, or one that is not wanted */
    bool has_named;         /* lctl has, some target */
    struct job_stats_parser *parser;
};

/* --- finding --- */

__attribute__((format(printf, 2, 3))) static void say(struct look *look, const char *format, ...)
{
    va_list args;

    if (look->use->first_error[0])
        return;
    va_start(args, format);
    vsnprintf(look->use->first_error, sizeof(look->use->first_error), format, args);
    va_end(args);
}

static void note_denial(struct look *look, const char *path)
{
    if (!look->denied[0])
        snprintf(look->denied, sizeof(look->denied), "%s: %s", path, err_words(EACCES));
}

static struct target *find_target(const struct look *look, bool is_mdt, struct str name)
{
    for (size_t i = 0; i < look->n_targets; i++)
        if (look->targets[i].kind->is_mdt == is_mdt && str_eq(str_of(look->targets[i].name), name))
            return &look->targets[i];
    return NULL;
}

static struct target *add_target(struct look *look, const struct kind *kind, const char *name)
{
    struct target *target;

    if (look->n_targets == TARGETS_MAX) {
        say(look, "there are more than %d Lustre targets; the rest is left out", TARGETS_MAX);
        look->use->n_unread = 1; /* at least */
        return NULL;
    }
    look->targets =
        heap_grow(look->targets, look->n_targets, &look->n_room, sizeof(*look->targets));
    target = &look->targets[look->n_targets++];
    *target = (struct target){ .kind = kind };
    snprintf(target->name, sizeof(target->name), "%s", name);
    return target;
}

struct visit {
    struct look *look;
    const struct place *place;
    const struct kind *kind;
    char path[PATH_MAX]; /* of the directory of the kind */
    int fd;
};

static void visit_target(void *ctx, const char *name)
{
    const struct visit *visit = ctx;
    struct target *target = find_target(visit->look, visit->kind->is_mdt, str_of(name));
    char path[PATH_MAX];
    struct stat status;

    if (!target)
        target = add_target(visit->look, visit->kind, name);
    if (!target || target->place)
        return;
    snprintf(path, sizeof(path), "%s/job_stats", name);
    if (fstatat(visit->fd, path, &status, 0) == 0)
        target->place = visit->place;
    else if (errno == EACCES)
        note_denial(visit->look, visit->path);
}

static const char *root_of(const struct lustre_targets *targets, const struct place *place)
{
    return place->is_sys ? targets->sys : targets->proc;
}

static void search_kind(struct look *look, const struct place *place, const struct kind *kind,
                        int place_fd)
{
    struct visit visit = { .look = look, .place = place, .kind = kind };
    struct stat status;

    snprintf(visit.path, sizeof(visit.path), "%s/%s/%s", root_of(look->of, place), place->path,
             kind->directory);
    visit.fd = openat(place_fd, kind->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (visit.fd < 0 && errno == EACCES) {
        note_denial(look, visit.path);
        look->n_closed += fstatat(place_fd, kind->directory, &status, 0) == 0;
    }
    if (visit.fd < 0)
        return;
    subdirs_each(visit.fd, visit_target, &visit);
    close(visit.fd);
}

static void search_place(struct look *look, const struct place *place)
{
    char path[PATH_MAX];
    int fd;

    snprintf(path, sizeof(path), "%s/%s", root_of(look->of, place), place->path);
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno == EACCES)
        note_denial(look, path);
    if (fd < 0)
        return;
    for (size_t i = 0; i < COUNT(kinds); i++)
        search_kind(look, place, &kinds[i], fd);
    close(fd);
}

static int by_name(const void *a, const void *b)
{
    const struct target *one = a, *other = b;

    if (one->kind != other->kind)
        return one->kind < other->kind ? -1 : 1;
    return strcmp(one->name, other->name);
}

/* --- reading --- */

static void begin_target(struct look *look, struct target *target)
{
    look->current = target;
    movers_begin_target(look->of->movers, str_of(target->name), target->kind->is_mdt);
}

static void end_target(struct look *look)
{
    if (!look->current)
        return;
    movers_end_target(look->of->movers);
    look->current->is_read = true;
    look->current = NULL;
}

static int read_pieces(struct look *look, int fd, struct err *err)
{
    char *piece = heap_array(PIECE, 1);
    size_t n_read = 0;
    ssize_t n = 0;
    int code = 0;

    while (code == 0 && (n = read(fd, piece, PIECE)) > 0) {
        n_read += (size_t)n;
        job_stats_feed(look->parser, (struct str){ piece, (size_t)n });
        if (atomic_load(&look->of->is_ending))
            code = -ECANCELED;
        else if (n_read > LONGEST_TEXT)
            code = err_set(err, EFBIG, "it is longer than %zu bytes", LONGEST_TEXT);
    }
    if (n < 0)
        code = err_set(err, errno, "%s", err_words(errno));
    look->use->bytes_read += n_read;
    free(piece);
    return code;
}

static void read_target(struct look *look, struct target *target)
{
    const struct place *place = target->place;
    struct err err = { 0 };
    char path[PATH_MAX];
    int fd, code;

    snprintf(path, sizeof(path), "%s/%s/%s/%s/job_stats", root_of(look->of, place), place->path,
             target->kind->directory, target->name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        say(look, "%s: %s", path, err_words(errno));
        return;
    }
    job_stats_reset(look->parser);
    begin_target(look, target);
    code = read_pieces(look, fd, &err);
    close(fd);
    if (code < 0) {
        look->current = NULL;
        say(look, "%s: %s", path, err.text);
        return;
    }
    job_stats_finish(look->parser);
    end_target(look);
}

static void see_entry(void *ctx, const struct job_stats_entry *entry)
{
    const struct look *look = ctx;

    movers_see(look->of->movers, entry);
}

static void drop_parser(struct look *look)
{
    look->use->lines_left_out += job_stats_bad_lines(look->parser);
    look->parser = job_stats_parser_free(look->parser);
}

static void read_files(struct look *look)
{
    look->parser = job_stats_parser_new(see_entry, look);
    for (size_t i = 0; i < look->n_targets && !atomic_load(&look->of->is_ending); i++)
        if (look->targets[i].place)
            read_target(look, &look->targets[i]);
    drop_parser(look);
}

/* --- asking lctl, for targets that have no file --- */

/* What lctl prints of a target is one piece; of a second one it is not known which is right. */
static void see_printed_target(void *ctx, struct str name, bool is_mdt)
{
    struct look *look = ctx;
    struct target *target = find_target(look, is_mdt, name);

    look->has_named = true;
    end_target(look);
    if (target && !target->place && !target->is_read)
        begin_target(look, target);
}

static void see_printed_entry(void *ctx, const struct job_stats_entry *entry)
{
    const struct look *look = ctx;

    if (look->current)
        movers_see(look->of->movers, entry);
}

static int feed_printed(void *ctx, struct str piece, struct err *err)
{
    const struct look *look = ctx;

    (void)err;
    job_stats_feed(look->parser, piece);
    return 0;
}

/* Of a kind that the server does not have, lctl would say that it failed. */
static void list_parameters(const struct look *look, const char **argv)
{
    size_t n = 0;

    for (size_t i = 0; i < COUNT(kinds); i++) {
        bool is_wanted = false;

        for (size_t k = 0; k < look->n_targets && !is_wanted; k++)
            is_wanted = look->targets[k].kind == &kinds[i] && !look->targets[k].place;
        if (is_wanted)
            argv[n++] = kinds[i].parameter;
    }
}

static void ask_lctl(struct look *look)
{
    struct lustre_targets *targets = look->of;
    const char *argv[2 + COUNT(kinds) + 1] = { targets->lctl, "get_param" };
    const struct spawn spawn = {
        .argv = argv,
        .deadline_ns = clock_mono(&clock_real) + lctl_ns,
        .max_output = LONGEST_TEXT,
        .cancelled = &targets->is_ending,
        .stuck = &targets->stuck,
        .sink = feed_printed,
        .ctx = look,
    };
    struct spawn_result result = { 0 };
    struct err err;
    int code;

    list_parameters(look, argv + 2);
    look->parser = job_stats_parser_new(see_printed_entry, look);
    job_stats_tell_targets(look->parser, see_printed_target);
    code = spawn_run(&spawn, &result, &err);
    look->use->bytes_read += result.output_bytes;
    if (code < 0)
        say(look, "%s", err.text);
    if (code < 0 && result.status < 0) {
        look->current = NULL; /* it was stopped in the midst of that one */
    } else {
        job_stats_finish(look->parser);
        end_target(look);
    }
    drop_parser(look);
    if (code < 0)
        return;
    /* Of a target whose file is empty, because it is idle, lctl prints not even the name. */
    if (look->has_named || result.output_bytes == 0)
        for (size_t i = 0; i < look->n_targets; i++)
            look->targets[i].is_read |= !look->targets[i].place;
    else
        say(look, "what %s prints names no Lustre target", targets->lctl);
}

/* --- a look --- */

static const struct target *first_without_file(const struct look *look)
{
    for (size_t i = 0; i < look->n_targets; i++)
        if (!look->targets[i].place)
            return &look->targets[i];
    return NULL;
}

static void read_targets(struct look *look)
{
    struct lustre_targets *targets = look->of;
    const struct target *fileless;

    qsort(look->targets, look->n_targets, sizeof(*look->targets), by_name);
    if (!targets->movers)
        targets->movers =
            movers_new(targets->config.max_ids, targets->config.max_text_bytes, MOVERS_REMEMBERED);
    movers_begin_look(targets->movers, look->use);
    read_files(look);
    fileless = first_without_file(look);
    if (fileless && targets->lctl)
        ask_lctl(look);
    else if (fileless && look->denied[0])
        say(look, "the job_stats of the Lustre target %s cannot be looked for: %s", fileless->name,
            look->denied);
    else if (fileless)
        say(look, "the Lustre target %s has no job_stats", fileless->name);
    movers_end_look(targets->movers);
}

static struct lustre_use *take_look(struct lustre_targets *targets, int64_t mono_ns)
{
    int64_t began_ns = clock_mono(&clock_real);
    struct lustre_use *use = heap_alloc(sizeof(*use));
    struct look look = { .of = targets, .use = use };

    atomic_init(&use->refs, 1);
    use->mono_ns = mono_ns;
    symbols_init(&use->symbols, &use->arena);
    for (size_t i = 0; i < COUNT(places); i++)
        search_place(&look, &places[i]);
    if (look.n_targets)
        read_targets(&look);
    if (look.n_closed || !look.n_targets)
        say(&look, "%s", look.denied);
    use->n_targets = look.n_targets + look.n_closed;
    use->n_unread += look.n_closed;
    for (size_t i = 0; i < look.n_targets; i++)
        use->n_unread += !look.targets[i].is_read;
    use->seconds = (double)(clock_mono(&clock_real) - began_ns) / NS_PER_SEC;
    free(look.targets);
    return use;
}

static struct lustre_targets *destroy(struct lustre_targets *targets)
{
    lustre_use_unref(targets->latest);
    movers_free(targets->movers);
    pthread_cond_destroy(&targets->changed);
    pthread_mutex_destroy(&targets->lock);
    free(targets->proc);
    free(targets->sys);
    free(targets->lctl);
    free(targets);
    return NULL;
}

/* The lock is not held while something is read. Once the end has been asked for, the clock may be
 * no more. */
static void *look_when_asked(void *arg)
{
    struct lustre_targets *targets = arg;
    bool is_left_behind;

    pthread_mutex_lock(&targets->lock);
    while (!atomic_load(&targets->is_ending)) {
        struct lustre_use *use;
        int64_t mono_ns;

        if (!targets->is_asked) {
            pthread_cond_wait(&targets->changed, &targets->lock);
            continue;
        }
        mono_ns = clock_mono(targets->config.clock);
        pthread_mutex_unlock(&targets->lock);
        use = take_look(targets, mono_ns);
        pthread_mutex_lock(&targets->lock);
        targets->is_asked = false;
        lustre_use_unref(targets->latest);
        targets->latest = use;
    }
    targets->has_ended = true;
    is_left_behind = targets->is_left_behind;
    pthread_cond_broadcast(&targets->changed);
    pthread_mutex_unlock(&targets->lock);
    if (is_left_behind)
        destroy(targets);
    return NULL;
}

int lustre_targets_start(const struct lustre_targets_config *config, struct lustre_targets **ret,
                         struct err *err)
{
    struct lustre_targets *targets = heap_alloc(sizeof(*targets));
    int code;

    pthread_mutex_init(&targets->lock, NULL);
    clock_cond_init(&targets->changed);
    targets->proc = heap_str(str_of(config->proc));
    targets->sys = heap_str(str_of(config->sys));
    targets->lctl = config->lctl ? heap_str(str_of(config->lctl)) : NULL;
    targets->config = (struct lustre_targets_config){
        targets->proc,   targets->sys,           targets->lctl,
        config->max_ids, config->max_text_bytes, config->clock,
    };
    code = thread_start(&targets->thread, "lustre", look_when_asked, targets, err);
    if (code < 0) {
        destroy(targets);
        return code;
    }
    *ret = targets;
    return 0;
}

/* In real time, whatever the clock of the looks: a file that cannot be read does not know it. */
static bool await_end(struct lustre_targets *targets)
{
    int64_t deadline_ns = clock_mono(&clock_real) + grace_ns;
    bool in_time = true;

    while (!targets->has_ended && in_time)
        in_time = clock_wait(&clock_real, &targets->changed, &targets->lock, deadline_ns);
    return targets->has_ended;
}

struct lustre_targets *lustre_targets_stop(struct lustre_targets *targets)
{
    pthread_t thread;
    bool has_ended;

    if (!targets)
        return NULL;
    pthread_mutex_lock(&targets->lock);
    thread = targets->thread;
    atomic_store(&targets->is_ending, true);
    pthread_cond_broadcast(&targets->changed);
    has_ended = await_end(targets);
    targets->is_left_behind = !has_ended;
    pthread_mutex_unlock(&targets->lock);
    if (!has_ended) {
        pthread_detach(thread);
        return NULL;
    }
    pthread_join(thread, NULL);
    return destroy(targets);
}

void lustre_targets_ask(struct lustre_targets *targets)
{
    if (!targets)
        return;
    pthread_mutex_lock(&targets->lock);
    if (!targets->is_asked) {
        targets->is_asked = true;
        targets->asked_ns = clock_mono(targets->config.clock);
        pthread_cond_broadcast(&targets->changed);
    }
    pthread_mutex_unlock(&targets->lock);
}

struct lustre_use *lustre_targets_latest(struct lustre_targets *targets, int64_t max_age_ns)
{
    struct lustre_use *use = NULL;

    if (!targets)
        return NULL;
    pthread_mutex_lock(&targets->lock);
    if (targets->latest) {
        int64_t age_ns = clock_mono(targets->config.clock) - targets->latest->mono_ns;
        int64_t pause_ns = (int64_t)(2 * targets->latest->seconds * NS_PER_SEC);

        if (age_ns <= max_age_ns + pause_ns) {
            use = targets->latest;
            atomic_fetch_add(&use->refs, 1);
        }
    }
    pthread_mutex_unlock(&targets->lock);
    return use;
}

void lustre_targets_excuse(struct lustre_targets *targets)
{
    if (!targets)
        return;
    pthread_mutex_lock(&targets->lock);
    targets->asked_ns = clock_mono(targets->config.clock);
    pthread_mutex_unlock(&targets->lock);
}

int64_t lustre_targets_waits_ns(struct lustre_targets *targets)
{
    int64_t waits_ns = 0;

    if (!targets)
        return 0;
    pthread_mutex_lock(&targets->lock);
    if (targets->is_asked)
        waits_ns = clock_mono(targets->config.clock) - targets->asked_ns;
    pthread_mutex_unlock(&targets->lock);
    return waits_ns;
}
