/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Slurm through its library, in a process of its own: the helper sonde-libslurm-RELEASE, of which
 * there may be one for each release of Slurm. Which it is depends on the libslurm that this machine
 * has: the newest that starts is taken. */
#include "source/helper.h"
#include "source/cli.h"
#include "source/wire.h"

#include <dirent.h>

enum {
    CANDIDATES_MAX = 32,
    PATH_LENGTH = 4096,
    NAME_LENGTH = 64,
};

static const int64_t whole_ns = 60 * NS_PER_SEC; /* how long "no change" is believed */

#define HELPER "sonde-libslurm-"

struct libslurm {
    struct source source;
    char *conf;      /* "SLURM_CONF=…", or NULL */
    char *directory; /* of the helpers */
    size_t max_answer;
    struct helper_process process;
    char program[NAME_LENGTH]; /* the one that runs, or ran last */
    char shunned[NAME_LENGTH]; /* one that has told nothing at all: others are tried before it */
    bool is_proven;            /* it has told something since it was started */
    bool has_answered;         /* the last question, be it with an error */
    char version[40];          /* of Slurm, as it says */
    struct kept {
        struct section *section; /* what was told last, or NULL */
        int64_t last_update;     /* of Slurm, 0 if there is none */
        int64_t asked_ns;        /* monotonic, when all of it was told */
    } kept[KINDS];
};

static bool is_helper(const char *name)
{
    size_t prefix = sizeof(HELPER) - 1;

    return strncmp(name, HELPER, prefix) == 0 && strlen(name) < NAME_LENGTH && name[prefix] &&
           strspn(name + prefix, "0123456789.") == strlen(name + prefix);
}

static int newest_first(const void *a, const void *b)
{
    return strverscmp(b, a);
}

/* The helpers that there are, the newest release first. */
static size_t find_helpers(const struct libslurm *libslurm, char names[][NAME_LENGTH])
{
    DIR *directory = opendir(libslurm->directory);
    struct dirent *entry;
    size_t n = 0;

    while (directory && n < CANDIDATES_MAX && (entry = readdir(directory)))
        if (is_helper(entry->d_name))
            snprintf(names[n++], NAME_LENGTH, "%.*s", NAME_LENGTH - 1, entry->d_name);
    if (directory)
        closedir(directory);
    qsort(names, n, NAME_LENGTH, newest_first);
    return n;
}

static int nobody(const struct libslurm *libslurm, struct err *err)
{
    return err_set(err, ENOENT, "no " HELPER "RELEASE in %s (built with Slurm's headers)",
                   libslurm->directory);
}

static void forget_kept(struct libslurm *libslurm)
{
    for (size_t kind = 0; kind < KINDS; kind++) {
        section_unref(libslurm->kept[kind].section);
        libslurm->kept[kind] = (struct kept){ 0 };
    }
}

static int feed(void *ctx, struct str piece, struct err *err)
{
    struct answer *answer = ctx;
    int code = answer_feed(answer, piece, err);

    return code < 0 ? code : wire_told(answer) != WIRE_NOTHING;
}

/* The first thing that it says, before it asks Slurm anything. */
static int read_hello(struct libslurm *libslurm, const struct helper_limits *limits,
                      struct err *err)
{
    struct section *section = section_new(KIND_CONFIG);
    struct answer *answer = answer_new(&answer_wire, section, libslurm->max_answer);
    uint64_t bytes = 0;
    int code = helper_ask(&libslurm->process, STR(""), limits, feed, answer, &bytes, err);

    if (code == 0 && wire_told(answer) != WIRE_HELLO)
        code = err_set(err, EBADMSG, "it does not speak as a helper of sonde does");
    if (code == 0)
        snprintf(libslurm->version, sizeof(libslurm->version), "%s", wire_text(answer).p);
    else
        helper_stop(&libslurm->process);
    answer_free(answer);
    section_unref(section);
    return code;
}

static bool says(struct str text, const char *words)
{
    return str_find_str(text, str_of(words)) < text.n;
}

/* What it has said, without its name, with which Slurm begins each line. */
static struct str own_words(struct libslurm *libslurm)
{
    struct str said = helper_said(&libslurm->process);

    if (str_starts(said, str_of(libslurm->program)))
        said = str_skip(said, strlen(libslurm->program) + strlen(": "));
    return said;
}

static int start_one(struct libslurm *libslurm, const char *name,
                     const struct helper_limits *limits, struct err *err)
{
    char path[PATH_LENGTH];
    int code;

    forget_kept(libslurm);
    libslurm->version[0] = '\0';
    libslurm->has_answered = false;
    snprintf(path, sizeof(path), "%s/%s", libslurm->directory, name);
    code = helper_start(&libslurm->process, path, libslurm->conf, err);
    if (code < 0)
        return code;
    snprintf(libslurm->program, sizeof(libslurm->program), "%s", name);
    libslurm->is_proven = false;
    code = read_hello(libslurm, limits, err);
    if (code == -EPIPE)
        err->code = EREMOTEIO;
    if (code < 0 && says(own_words(libslurm), "shared librar"))
        err_prefix(err, "install the helper that was built for this machine's Slurm");
    return code < 0 ? err_prefix(err, "%s does not start", name) : 0;
}

/* What is kept is worth asking about: Slurm is asked for what has changed since. A clock that has
 * gone back would make everything seem old. */
static int64_t since(const struct libslurm *libslurm, enum kind kind)
{
    const struct kept *kept = &libslurm->kept[kind];
    int64_t now = clock_wall(&clock_real) / NS_PER_SEC;

    return kept->section && kept->last_update && kept->last_update <= now &&
                   clock_mono(&clock_real) - kept->asked_ns < whole_ns
               ? kept->last_update
               : 0;
}

/* What follows these words, or nothing. */
static struct str words_after(struct str text, const char *words)
{
    size_t at = str_find_str(text, str_of(words));

    return at < text.n ? str_skip(text, at + strlen(words)) : STR("");
}

/* "24.11" of "24.11.5" */
static struct str release_of(struct str version)
{
    size_t year = str_find(version, '.') + 1;

    return str_head(version, year + str_find(str_skip(version, year), '.'));
}

/* Whether what it has said shows that it is of another release than the Slurm of this host: its
 * plugins, or a slurm.conf with options that are newer. The words name munge where the plugin of
 * munge is the first to be refused. */
static bool explain_release(struct libslurm *libslurm, struct err *err)
{
    struct str said = own_words(libslurm), key = words_after(said, "unrecognized key: ");
    struct str plugin = words_after(said, "ncompatible Slurm plugin ");
    struct str path = str_cut(&plugin, ' '), version = words_after(plugin, "version (");

    version = str_head(version, str_find(version, ')'));
    if (path.n && version.n)
        err_set(err, EPROTO,
                "it is built for Slurm %s, but %.*s is of Slurm %.*s; install " HELPER "%.*s",
                libslurm->version, STR_ARG(path), STR_ARG(version), STR_ARG(release_of(version)));
    else if (key.n)
        err_set(err, EPROTO,
                "it is built for Slurm %s, which has no option %.*s, but slurm.conf has; install "
                "the helper of the cluster's release",
                libslurm->version, STR_ARG(str_head(key, str_find(key, ' '))));
    return (path.n && version.n) || key.n;
}

/* Says what the administrator can do about one that has died or was killed. */
static int explain(struct libslurm *libslurm, int code, int64_t began, int64_t deadline_ns,
                   struct err *err)
{
    struct str said = own_words(libslurm);
    const char *advice = NULL;

    if (code == -EPIPE && explain_release(libslurm, err))
        return err_prefix(err, "%s", libslurm->program);
    if (says(said, "slurm.conf") || says(said, "onfiguration file") || says(said, "fetch_config"))
        advice = "libslurm cannot read slurm.conf; name it with --slurm.conf";
    else if (says(said, "munge"))
        advice = "is munge running here?";
    else if (says(said, "ncompatible") || says(said, "plugin"))
        advice = "libslurm and its plugins are not of one release";
    else if (code == -ETIMEDOUT)
        advice = "is slurmctld busy or down, and munge running?";
    else if (code == -EFBIG)
        advice = "cannot keep its answer";
    if (code == -ETIMEDOUT && said.n)
        err_set(err, ETIMEDOUT, "%.*s", STR_ARG(str_head(said, 160)));
    if (code == -ETIMEDOUT)
        err_prefix(err, "no answer within --slurm.timeout (%d s), %s",
                   (int)((deadline_ns - began + NS_PER_SEC - 1) / NS_PER_SEC), advice);
    else if (advice)
        err_prefix(err, "%s", advice);
    err_prefix(err, "%s", libslurm->program);
    if (code == -EPIPE)
        err->code = EREMOTEIO;
    return -err->code;
}

/* Asks a helper that runs. */
static int ask(struct libslurm *libslurm, enum kind kind, const struct helper_limits *limits,
               struct answer *answer, struct err *err)
{
    struct wire_request request = { kind, since(libslurm, kind) };
    struct buf question;
    int code;

    buf_init(&question, 256);
    wire_put_request(&question, request);
    helper_forget(&libslurm->process);
    code = helper_ask(&libslurm->process, buf_str(&question), limits, feed, answer,
                      &answer->section->bytes_read, err);
    buf_free(&question);
    return code;
}

static void keep(struct libslurm *libslurm, enum kind kind, const struct answer *answer)
{
    struct kept *kept = &libslurm->kept[kind];

    section_unref(kept->section);
    *kept = (struct kept){ 0 };
    if (wire_last_update(answer) > 0)
        *kept = (struct kept){ section_ref(answer->section), wire_last_update(answer),
                               clock_mono(&clock_real) };
}

static void warn(struct libslurm *libslurm, const struct section *section, struct str trouble,
                 char ret_warning[SOURCE_WARNING])
{
    struct err err = { .code = EREMOTEIO };

    snprintf(ret_warning, SOURCE_WARNING, "%.*s", STR_ARG(helper_said(&libslurm->process)));
    snprintf(err.text, sizeof(err.text), "%.*s", STR_ARG(trouble));
    if (section->kind == KIND_CONFIG)
        config_warn(section, trouble.n ? &err : NULL, ret_warning);
    if (section->kind == KIND_SHARES && !section->shares.n)
        snprintf(ret_warning, SOURCE_WARNING,
                 "slurmctld tells of no association: this cluster keeps none, without slurmdbd, or "
                 "PrivateData hides all; --no-collector.fairshare stops asking");
}

/* To a user whom it does not know, and from whom PrivateData hides something, slurmctld answers
 * with an error; 22.05 cannot read its own. */
static void advise(struct libslurm *libslurm, enum kind kind, struct err *err)
{
    if (explain_release(libslurm, err) || err->code == EPROTO)
        err_prefix(err, "%s", libslurm->program);
    else if ((kind == KIND_SHARES || kind == KIND_ASSOCIATIONS) &&
             says(own_words(libslurm), "Malformed RPC"))
        err_prefix(err, "PrivateData hides the limits from a user whom Slurm does not know; "
                        "sacctmgr add user makes him known");
}

/* One answer, into a new section. */
static int converse(struct libslurm *libslurm, enum kind kind, const struct helper_limits *limits,
                    struct section **ret, char ret_warning[SOURCE_WARNING], struct err *err)
{
    int64_t began = clock_mono(&clock_real);
    struct section *section = section_new(kind);
    struct answer *answer = answer_new(&answer_wire, section, libslurm->max_answer);
    int code = ask(libslurm, kind, limits, answer, err);

    libslurm->has_answered = code == 0;
    if (code < 0) {
        code = explain(libslurm, code, began, limits->deadline_ns, err);
    } else {
        code = answer->class->end(answer, err);
        if (code < 0)
            advise(libslurm, kind, err);
        code = code < 0 ? -err->code : 0;
        /* The next one reads slurm.conf again, and may be of another release. */
        if (code < 0 && code != -EACCES)
            helper_stop(&libslurm->process);
    }
    if (code == 0) {
        libslurm->is_proven = true;
        libslurm->shunned[0] = '\0';
    }
    if (code == 0 && wire_told(answer) == WIRE_SECTION) {
        keep(libslurm, kind, answer);
        warn(libslurm, section, wire_text(answer), ret_warning);
        *ret = section_ref(section);
    } else if (code == 0 && wire_told(answer) == WIRE_UNCHANGED && libslurm->kept[kind].section) {
        *ret = section_again(libslurm->kept[kind].section);
        (*ret)->bytes_read = section->bytes_read;
    } else if (code == 0) {
        code = err_set(err, EBADMSG, "%s answers what was not asked", libslurm->program);
        helper_stop(&libslurm->process);
    }
    answer_free(answer);
    section_unref(section);
    return code;
}

/* Whether a helper of another release may succeed: this one does not start, has died, or slurmctld
 * does not understand it. */
static bool is_worth_another(const struct libslurm *libslurm, int code)
{
    static const int final[] = { 0, ECANCELED, ETIMEDOUT, EFBIG };

    for (size_t i = 0; i < COUNT(final); i++)
        if (code == -final[i])
            return false;
    return code == -EPROTO || !libslurm->has_answered;
}

/* How much an error tells, of those of several helpers: most where the helper is the right one. */
static int weight_of(const struct libslurm *libslurm, int code)
{
    return !libslurm->version[0] ? 1 : code == -EPROTO ? 2 : 3;
}

/* Starts the helpers one after the other until one answers. The error is that of the one that came
 * furthest, of several the newest. */
static int read_first(struct libslurm *libslurm, enum kind kind, const struct helper_limits *limits,
                      struct section **ret, char ret_warning[SOURCE_WARNING], struct err *err)
{
    char names[CANDIDATES_MAX + 1][NAME_LENGTH], version[sizeof(libslurm->version)] = "";
    size_t n = find_helpers(libslurm, names);
    int code = -ENOENT, weight = 0;
    struct err best = { 0 };

    if (n == 0)
        return nobody(libslurm, err);
    libslurm->has_answered = false;
    for (size_t i = 0; i < 2 * n && is_worth_another(libslurm, code); i++) {
        const char *name = names[i % n];

        if ((strcmp(name, libslurm->shunned) == 0) != (i >= n))
            continue;
        code = start_one(libslurm, name, limits, err);
        if (code == 0)
            code = converse(libslurm, kind, limits, ret, ret_warning, err);
        if (code < 0 && weight_of(libslurm, code) > weight) {
            weight = weight_of(libslurm, code);
            best = *err;
            memcpy(version, libslurm->version, sizeof(version));
        }
    }
    if (is_worth_another(libslurm, code)) {
        *err = best;
        memcpy(libslurm->version, version, sizeof(version));
        code = -err->code;
    }
    return code;
}

static int libslurm_read(struct source *source, enum kind kind, int64_t deadline_ns,
                         struct section **ret, char ret_warning[SOURCE_WARNING], struct err *err)
{
    struct libslurm *libslurm = (struct libslurm *)source;
    struct helper_limits limits = { deadline_ns, &source->cancelled };
    int code;

    ret_warning[0] = '\0';
    if (helper_is_there(&libslurm->process))
        code = converse(libslurm, kind, &limits, ret, ret_warning, err);
    else
        code = read_first(libslurm, kind, &limits, ret, ret_warning, err);
    /* It may be of a release that this cluster is not of. */
    if (code < 0 && !libslurm->process.pid && !libslurm->is_proven)
        snprintf(libslurm->shunned, sizeof(libslurm->shunned), "%s", libslurm->program);
    return code;
}

static int libslurm_probe(const struct source *source, struct err *err)
{
    const struct libslurm *libslurm = (const struct libslurm *)source;
    char names[CANDIDATES_MAX + 1][NAME_LENGTH];

    return find_helpers(libslurm, names) ? 0 : nobody(libslurm, err);
}

static void libslurm_tell(const struct source *source, struct source_about *about)
{
    const struct libslurm *libslurm = (const struct libslurm *)source;

    snprintf(about->interface, sizeof(about->interface), "%s", libslurm->version);
}

static void libslurm_close(struct source *source)
{
    struct libslurm *libslurm = (struct libslurm *)source;

    helper_stop(&libslurm->process);
    forget_kept(libslurm);
    free(libslurm->conf);
    free(libslurm->directory);
    free(libslurm);
}

static const struct source_class libslurm_class = {
    .name = "libslurm",
    .kinds = KIND_BIT(KIND_JOBS) | KIND_BIT(KIND_NODES) | KIND_BIT(KIND_RESERVATIONS) |
             KIND_BIT(KIND_LICENSES) | KIND_BIT(KIND_DIAG) | KIND_BIT(KIND_SHARES) |
             KIND_BIT(KIND_ASSOCIATIONS) | KIND_BIT(KIND_CONFIG),
    .read = libslurm_read,
    .close = libslurm_close,
    .probe = libslurm_probe,
    .tell = libslurm_tell,
};

/* Where the running program is. */
static char *own_directory(void)
{
    char path[PATH_LENGTH];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path));
    struct str directory = { path, n > 0 ? (size_t)n : 0 };

    while (directory.n && path[directory.n - 1] != '/')
        directory.n--;
    return heap_str(directory.n ? str_head(directory, directory.n - 1) : STR("."));
}

int source_open_libslurm(const struct source_settings *settings, const struct clock *clock,
                         struct source **ret, struct err *err)
{
    struct libslurm *libslurm;

    if (source_details(settings).n)
        return err_set(err, EINVAL, "the source libslurm takes no settings after a colon");
    libslurm = heap_alloc(sizeof(*libslurm));
    libslurm->source.class = &libslurm_class;
    libslurm->source.clock = clock;
    libslurm->max_answer = settings->max_answer;
    libslurm->directory = settings->helper_dir.n ? heap_str(settings->helper_dir) : own_directory();
    if (settings->conf.n) {
        struct buf setting;

        buf_init(&setting, PATH_LENGTH);
        buf_text(&setting, "SLURM_CONF=");
        buf_put(&setting, settings->conf);
        libslurm->conf = heap_str(buf_str(&setting));
        buf_free(&setting);
    }
    *ret = &libslurm->source;
    return 0;
}
