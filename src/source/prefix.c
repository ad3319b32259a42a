/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is sent to the other side, and what it means when it does not arrive: ssh(1), DIAGNOSTICS.
 */
#include "source/prefix.h"

#include "base/arena.h"
#include "base/num.h"
#include "base/quote.h"
#include "base/shell.h"

enum {
    LINE_MAX_BYTES = 100 * 1000, /* the kernel takes 128 KiB as one argument */
    NAME_MAX_BYTES = 200,
    ID_MAX_BYTES = 64 * 1024, /* with a greeting */
    SSH_FAILED = 255,         /* with this ssh says that it was not the command that failed */
    NOT_FOUND = 127,          /* POSIX, of a shell and of timeout */
    NO_SECRET = 125,          /* ours */
    GRACE_SECONDS = 2,        /* what is left running there is ended this long after our deadline */
};

#define MARK "sonde:begin"

/* What to do about what ssh says. */
static const struct {
    struct str words;
    const char *advice;
} advices[] = {
    { STR_INIT("Host key verification failed"),
      "log in there once by hand as the user of this process, or add its key to known_hosts" },
    { STR_INIT("Permission denied"),
      "the user of this process needs a key that is taken there without a password" },
    { STR_INIT("Connection refused"), "is sshd running there, and the port right?" },
    { STR_INIT("Could not resolve"), "is its name right?" },
    { STR_INIT("timed out"), "is the host up, and the way to it open?" },
    { STR_INIT("No route to host"), "is the host up, and the way to it open?" },
    { STR_INIT("password is required"), "sudoers(5) must let the user of this process do it" },
};

int prefix_parse(struct str prefix, char ***ret, struct err *err)
{
    *ret = prefix.n ? spawn_split(prefix) : NULL;
    if (prefix.n && !*ret)
        return err_set(err, EINVAL,
                       "the prefix \"%s\" is not a command line: it is empty or a quote is not "
                       "closed",
                       quote(prefix).text);
    return 0;
}

/* A word of the inner shell's. csh has no way to hand on a newline, so there is a variable for it.
 */
static void put_word(struct buf *to, struct str word)
{
    for (struct str rest = word; rest.p;) {
        shell_word(to, str_cut(&rest, '\n'));
        if (rest.p)
            buf_text(to, "\"$n\"");
    }
}

/* The login shell's files may have set what would change the answer. Values with blanks come as
 * several words; a word that looks like such a variable is at worst none. */
static void put_unset(struct buf *to, const char *const *env)
{
    buf_text(to, "set -f;for v in $(env);do v=${v%%=*};case $v in *[!A-Za-z0-9_]*);;");
    for (; *env; env++)
        if (!strchr(*env, '='))
            buf_printf(to, "%s)unset $v;;", *env);
    buf_text(to, "esac;done;");
}

static void put_environment(struct buf *to, const char *const *env)
{
    put_unset(to, env);
    for (; *env; env++) {
        struct str value = str_of(*env);
        struct str name = str_cut(&value, '=');

        if (!value.p)
            continue;
        buf_printf(to, "export %.*s=", STR_ARG(name));
        put_word(to, value);
        buf_byte(to, ';');
    }
}

/* read is built into the shell: what comes on standard input is no process's argument. */
static void put_secret(struct buf *to, const char *secret)
{
    struct str name = str_head(str_of(secret), strcspn(secret, "="));

    buf_printf(to,
               "IFS= read -r %.*s||{ echo \"nothing comes through standard input; docker and "
               "kubectl need -i\" >&2;exit %d;};export %.*s;",
               STR_ARG(name), NO_SECRET, STR_ARG(name));
}

/* What cannot be stopped from here, once the connection is gone, stops itself. sdiag and sshare
 * exit with ssh's own status, and of what ended by a signal ssh tells no other. */
static void put_command(struct buf *to, const char *const *argv, int seconds)
{
    buf_text(to, "set --");
    for (; *argv; argv++) {
        buf_byte(to, ' ');
        put_word(to, str_of(*argv));
    }
    buf_printf(to,
               ";command -v timeout >/dev/null&&set -- timeout -s KILL %d \"$@\";"
               "\"$@\" </dev/null;s=$?;[ $s -ne %d ]||s=%d;exit $s",
               seconds, SSH_FAILED, SSH_FAILED - 1);
}

/* For whatever login shell is there: all but the first words are for sh. */
static void put_line(struct buf *to, const struct spawn *spawn, const char *secret)
{
    int64_t left_ns = spawn->deadline_ns - clock_mono(&clock_real);
    struct buf script;

    buf_init(&script, LINE_MAX_BYTES);
    buf_text(&script, "n=$(printf \"\\n.\");n=${n%.};");
    put_environment(&script, spawn->env);
    buf_text(&script, "echo " MARK ";echo " MARK " >&2;");
    if (secret)
        put_secret(&script, secret);
    put_command(&script, spawn->argv,
                GRACE_SECONDS + (left_ns > 0 ? (int)(left_ns / NS_PER_SEC) : 0));
    buf_text(to, "exec sh -c ");
    shell_word(to, buf_str(&script));
    to->over = to->over || script.over;
    buf_free(&script);
}

/* The prefix, then the line. */
static const char **make_argv(char *const *prefix, const char *line)
{
    const char **argv;
    size_t n = 0;

    while (prefix[n])
        n++;
    argv = heap_array(n + 2, sizeof(*argv));
    memcpy(argv, prefix, n * sizeof(*argv));
    argv[n] = line;
    argv[n + 1] = NULL;
    return argv;
}

/* As a sentence names it. */
static struct quote spoken(char *const *prefix)
{
    struct buf line;
    struct quote words;

    buf_init(&line, LINE_MAX_BYTES);
    for (size_t i = 0; prefix[i]; i++)
        buf_printf(&line, "%s%s", i ? " " : "", prefix[i]);
    words = quote(buf_str(&line));
    buf_free(&line);
    return words;
}

static struct str last_line(const char *text)
{
    const char *newline = strrchr(text, '\n');

    return str_of(newline ? newline + 1 : text);
}

static int unreachable(char *const *prefix, const struct spawn_result *result, int code,
                       struct err *err)
{
    const char *advice =
        "does it work by hand, as the user of this process, with \"true\" behind it?";
    struct str said = str_of(result->warning);

    for (size_t i = 0; i < COUNT(advices); i++)
        if (str_find_str(said, advices[i].words) < said.n)
            advice = advices[i].advice;
    return err_set(err, code, "\"%s\" %s: %s; %s", spoken(prefix).text,
                   result->begun ? "lost its connection" : "does not get as far as a shell",
                   said.n ? quote(last_line(result->warning)).text : "it said nothing", advice);
}

/* Of what has gone wrong, what is the connection's or the other side's. */
static int judge(char *const *prefix, const struct spawn *spawn, const struct spawn_result *result,
                 int code, struct err *err)
{
    if (code == -EREMOTEIO && result->begun && result->status == NOT_FOUND)
        return err_set(err, ENOENT,
                       "%s is not to be found there; name its place on that side with "
                       "--slurm.bin-path",
                       spawn->argv[0]);
    if (code == 0 ? !result->begun
                  : code == -EREMOTEIO && (!result->begun || result->status == SSH_FAILED))
        return unreachable(prefix, result, EHOSTUNREACH, err);
    if (code == -ETIMEDOUT && !result->begun && !(spawn->stuck && *spawn->stuck))
        return unreachable(prefix, result, ETIMEDOUT, err);
    return code;
}

int prefix_run(char *const *prefix, const struct spawn *spawn, const char *secret,
               struct spawn_result *ret, struct err *err)
{
    struct spawn far = *spawn;
    struct buf line, name, input;
    const char **argv;
    int code;

    buf_init(&line, LINE_MAX_BYTES);
    buf_init(&name, NAME_MAX_BYTES);
    buf_init(&input, SPAWN_INPUT_MAX);
    put_line(&line, spawn, secret);
    if (secret)
        buf_printf(&input, "%s\n", secret + strcspn(secret, "=") + 1);
    buf_printf(&name, "%s through \"%s\"", quote(str_of(spawn->argv[0])).text, spoken(prefix).text);
    far.argv = argv = make_argv(prefix, line.p);
    far.env = NULL;
    far.name = name.p;
    far.input = buf_str(&input);
    far.mark = STR(MARK "\n");
    if (line.over || input.over) {
        *ret = (struct spawn_result){ .status = -1 };
        code = err_set(err, E2BIG, "the command line for %s is too long", spawn->argv[0]);
    } else {
        code = spawn_run(&far, ret, err);
        code = judge(prefix, spawn, ret, code, err);
    }
    free(argv);
    buf_free(&line);
    buf_free(&name);
    buf_free(&input);
    return code;
}

static int collect(void *ctx, struct str piece, struct err *err)
{
    (void)err;
    buf_put(ctx, piece);
    return 0;
}

int prefix_user_id(char *const *prefix, int64_t deadline_ns, const atomic_bool *cancelled,
                   pid_t *stuck, uint32_t *ret, struct err *err)
{
    static const char *const argv[] = { "id", "-u", NULL };
    static const char *const env[] = { NULL };
    struct buf answer;
    const struct spawn spawn = {
        .argv = argv,
        .env = env,
        .deadline_ns = deadline_ns,
        .max_output = ID_MAX_BYTES,
        .cancelled = cancelled,
        .stuck = stuck,
        .sink = collect,
        .ctx = &answer,
    };
    struct spawn_result result;
    uint64_t id;
    int code;

    buf_init(&answer, ID_MAX_BYTES);
    code = prefix_run(prefix, &spawn, NULL, &result, err);
    if (code == 0 && (!num_get_u64(str_trim(buf_str(&answer)), &id) || id >= UINT32_MAX))
        code = err_set(err, EBADMSG, "\"id -u\" there says \"%s\"", quote(buf_str(&answer)).text);
    if (code == 0)
        *ret = (uint32_t)id;
    buf_free(&answer);
    return code;
}
