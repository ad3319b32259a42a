/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sonde-mail: Slurm's MailProg (slurm.conf(5)). Keeps what slurmctld wants sent, for sonde report
 * --drain to send, and is done: slurmctld has few places for mail programs. */
#include "base/clock.h"
#include "base/option.h"
#include "base/quote.h"
#include "cmd/report_file.h"
#include "mail/spool.h"

enum { MOST_RECIPIENTS = 16 };

struct settings {
    struct str spool;
};

static const struct option options[] = {
    { "mail.spool", OPTION_STRING, offsetof(struct settings, spool), "DIRECTORY", MAIL_SPOOL, NULL,
      NULL, "Mail", "Where mails wait to be sent. It must exist." },
    { .name = NULL },
};

static const struct option_command command = {
    .name = "sonde-mail",
    .summary = "keep a mail of Slurm's until a report can be sent with it",
    .description =
        "Is what slurm.conf names as MailProg. It takes what slurmctld says in its environment of "
        "the job, writes it into a directory and exits; sonde report --drain waits until "
        "accounting "
        "knows of the job's end, and sends a report. Slurm calls it with no flags: the directory "
        "comes from the key mail.spool of " REPORT_FILE ", if that file exists.\n\n"
        "What follows -s is taken as it is: first the subject, then whom the mail is for, a user's "
        "name or an address, or several with commas between them.",
    .arguments = "-s SUBJECT RECIPIENT",
    .shares_file = true,
    .exit_status = "0 if the mail is kept; 1 if not, and standard error, which slurmctld logs, "
                   "tells why; 2 if a flag is wrong.",
    .options = options,
};

/* Where the flags end. What follows -s is other people's text, and never a flag. */
static int count_flags(int argc, char **argv)
{
    int n = 1;

    while (n < argc && strcmp(argv[n], "-s") != 0)
        n++;
    return n;
}

/* A file of settings that cannot be read must not cost a mail. */
static int parse(int argc, char **argv, struct arena *arena, struct settings *settings,
                 struct err *err)
{
    char *const none[] = { NULL };
    int longer_argc = argc;
    char **longer = report_file_argv(&longer_argc, argv, arena), **rest;
    int outcome = option_parse(&command, longer_argc, longer, none, arena, settings, &rest, err);

    if (outcome < 0 && longer != argv) {
        fprintf(stderr, "sonde-mail: %s; going on without that file\n", err->text);
        outcome = option_parse(&command, argc, argv, none, arena, settings, &rest, err);
    }
    if (outcome == OPTION_GO_ON && rest[0])
        return err_set(err, EINVAL, "\"%s\" was not expected before -s; see --help",
                       quote(str_of(rest[0])).text);
    return outcome;
}

static int keep(const struct settings *settings, const char *subject, const char *recipients)
{
    struct str rest = str_of(recipients);
    struct mail_entry entry;
    struct err err;
    int status = 0;

    mail_entry_of_environment(environ, subject, recipients, clock_wall(&clock_real) / NS_PER_SEC,
                              &entry);
    for (size_t n = 0; rest.p && n < MOST_RECIPIENTS; n++) {
        entry.to = str_trim(str_cut(&rest, ','));
        if (mail_spool_add(settings->spool.p, &entry, &err) == 0)
            continue;
        fprintf(stderr, "sonde-mail: a mail to %s is lost: %s\n", quote(entry.to).text, err.text);
        status = 1;
    }
    if (rest.p) {
        fprintf(stderr, "sonde-mail: mails to more than %d recipients are lost: %s\n",
                MOST_RECIPIENTS, quote(rest).text);
        status = 1;
    }
    return status;
}

int main(int argc, char **argv)
{
    struct arena arena = { 0 };
    struct settings settings;
    struct err err;
    int n_flags = count_flags(argc, argv), outcome, status = 0;
    char **flags = ARENA_ARRAY(&arena, char *, (size_t)n_flags + 1);

    memcpy(flags, argv, (size_t)n_flags * sizeof(*flags));
    outcome = parse(n_flags, flags, &arena, &settings, &err);
    if (outcome == OPTION_GO_ON && argc != n_flags + 3)
        outcome = err_set(&err, EINVAL,
                          "it is called as -s SUBJECT RECIPIENT, by slurmctld: name it as MailProg "
                          "in slurm.conf; see --help");
    if (outcome == OPTION_GO_ON)
        status = keep(&settings, argv[n_flags + 1], argv[n_flags + 2]);
    if (outcome < 0)
        fprintf(stderr, "sonde-mail: %s\n", err.text);
    arena_clear(&arena);
    return outcome < 0 ? 2 : status;
}
