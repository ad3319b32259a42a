/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sonde report: what a job used, what it wasted, and what to write next time. */
#include "base/process.h"
#include "base/quote.h"
#include "cmd/report_mail.h"
#include "report/paper.h"
#include "report/table.h"

#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    OUTPUT_MAX = 256 << 20,
    CHART_WIDTH = 720, /* points */
    CHART_HEIGHT = 300,
    PNG_SCALE = 2,
};

static bool has_colour(struct str when)
{
    const char *no_colour = getenv("NO_COLOR"), *terminal = getenv("TERM");

    if (!str_eq(when, STR("auto")))
        return str_eq(when, STR("always"));
    return isatty(STDOUT_FILENO) && !(no_colour && *no_colour) && terminal &&
           strcmp(terminal, "dumb") != 0;
}

static bool has_unicode(void)
{
    locale_t locale = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
    bool has = locale && str_eq_nocase(str_of(nl_langinfo_l(CODESET, locale)), STR("UTF-8"));

    if (locale)
        freelocale(locale);
    return has;
}

static struct text_look look_of(const struct report_settings *settings)
{
    return (struct text_look){
        .has_colour = has_colour(settings->colour),
        .has_unicode = has_unicode(),
        .width = table_terminal_width(stdout),
    };
}

static bool wants_plots(const struct report_settings *settings)
{
    return settings->form != REPORT_TEXT && settings->form != REPORT_PETRICORE;
}

static int put_chart(const struct report_settings *settings, const struct job_facts *facts,
                     struct arena *arena, struct buf *to, struct err *err)
{
    struct chart chart;

    if (!job_chart(&chart, arena, facts, settings->which_chart, CHART_WIDTH, CHART_HEIGHT))
        return err_set(err, ENODATA, "there is nothing to draw%s%.*s",
                       facts->origin.why_no_series.n ? ": " : "",
                       STR_ARG(facts->origin.why_no_series));
    if (settings->is_png)
        return chart_png(to, &chart, PNG_SCALE, err);
    chart_svg(to, &chart, "");
    return 0;
}

static int put_report(const struct report_settings *settings, const struct job_report *report,
                      struct arena *arena, struct buf *to, struct err *err)
{
    const struct text_look look = look_of(settings);

    switch (settings->form) {
    case REPORT_JSON:
        report_json(to, report);
        return 0;
    case REPORT_HTML:
        report_html(to, report, HTML_PAGE);
        return 0;
    case REPORT_PDF:
        return report_pdf(to, report, err);
    case REPORT_CHART:
        return put_chart(settings, &report->facts, arena, to, err);
    case REPORT_PETRICORE:
        if (str_eq(settings->petricore, STR("mail")))
            petricore_mail(to, report);
        else
            petricore_usage(to, report);
        return 0;
    default:
        report_text(to, report, &look);
        return 0;
    }
}

static int write_out(FILE *to, const char *name, const struct buf *bytes, struct err *err)
{
    if (bytes->over)
        return err_set(err, EFBIG, "the report has more than %d MB", OUTPUT_MAX >> 20);
    if (fwrite(bytes->p, 1, bytes->n, to) != bytes->n || fflush(to) != 0)
        return err_set(err, errno ? errno : EIO, "cannot write %s: %s", name, err_words(errno));
    return 0;
}

static int write_file(const char *path, const struct buf *bytes, struct err *err)
{
    FILE *file = fopen(path, "we");
    int code;

    if (!file)
        return err_set(err, errno, "cannot write %s: %s", path, err_words(errno));
    code = write_out(file, path, bytes, err);
    if (fclose(file) != 0 && code == 0)
        code = err_set(err, errno, "cannot write %s: %s", path, err_words(errno));
    return code;
}

/* The command, and what it has done so far. */
struct command {
    const struct report_settings *settings;
    struct report_maker *maker;
    bool has_written;
};

static int write_report(struct command *command, const struct buf *bytes, struct err *err)
{
    struct str file = command->settings->pdf;

    if (file.n && !str_eq(file, STR("-")))
        return write_file(file.p, bytes, err);
    if (command->has_written && command->settings->form == REPORT_TEXT)
        putchar('\n');
    command->has_written = true;
    return write_out(stdout, "standard output", bytes, err);
}

static int report_array(struct command *command, const struct job_name *name, struct arena *arena,
                        struct buf *bytes, struct err *err)
{
    const struct text_look look = look_of(command->settings);
    struct array_report report;
    int code = report_make_array(command->maker, name, arena, &report, err);

    if (code < 0)
        return code;
    if (command->settings->form == REPORT_JSON)
        report_array_json(bytes, &report);
    else
        report_array_text(bytes, &report, &look);
    return write_report(command, bytes, err);
}

static int report_one(struct command *command, const struct job_name *name, struct arena *arena,
                      struct buf *bytes, struct err *err)
{
    const struct report_settings *settings = command->settings;
    struct job_report report = { 0 };
    int code = report_make(command->maker, name, wants_plots(settings), arena, &report, err);

    if (code < 0)
        return code;
    if (settings->form == REPORT_MAIL)
        return report_mail_send(command->maker, &report, arena, err);
    code = put_report(settings, &report, arena, bytes, err);
    return code < 0 ? code : write_report(command, bytes, err);
}

static int report_named(struct command *command, const struct job_name *name, struct err *err)
{
    struct arena arena = { 0 };
    struct buf bytes;
    int code;

    buf_init(&bytes, OUTPUT_MAX);
    code = command->settings->is_array ? report_array(command, name, &arena, &bytes, err)
                                       : report_one(command, name, &arena, &bytes, err);
    buf_free(&bytes);
    arena_clear(&arena);
    return code;
}

/* A mistake in the last name is told before the first is reported. */
static int read_names(char **texts, struct arena *arena, struct job_name **ret, size_t *ret_n,
                      struct err *err)
{
    size_t n = 0;
    int code = 0;

    while (texts[n])
        n++;
    *ret = ARENA_ARRAY(arena, struct job_name, n);
    *ret_n = n;
    for (size_t i = 0; i < n && code == 0; i++)
        code = job_name_read(str_of(texts[i]), &(*ret)[i], err);
    return code;
}

/* Where it was only looked for because it could be there, nobody misses it. */
static void tell_store_trouble(const struct report_maker *maker)
{
    const struct err *trouble = &maker->store_trouble;

    if (trouble->code && (trouble->code != ENOENT || maker->settings->has_store))
        fprintf(stderr, "sonde report: %s; going on with what sacct tells\n", trouble->text);
}

static int report_jobs(const struct report_settings *settings, struct report_maker *maker,
                       const struct job_name *names, size_t n)
{
    struct command command = { .settings = settings, .maker = maker };
    int status = 0;

    tell_store_trouble(maker);
    for (size_t i = 0; i < n; i++) {
        struct err err = { 0 };
        int code = report_named(&command, &names[i], &err);

        if (code == -EPIPE)
            return 1;
        if (code < 0) {
            fprintf(stderr, "sonde report: %s\n", err.text);
            status = 1;
        }
    }
    return status;
}

/* Bytes that are no text would only upset a terminal. */
static int check_terminal(const struct report_settings *settings, struct err *err)
{
    bool is_binary = str_eq(settings->pdf, STR("-")) || settings->is_png;

    if (is_binary && isatty(STDOUT_FILENO))
        return err_set(err, EINVAL,
                       "standard output is a terminal, which cannot show this: send it into a file "
                       "with >");
    return 0;
}

/* What to exit with, or -errno before anything was done. */
static int run(const struct report_settings *settings, char **texts, struct arena *arena,
               struct err *err)
{
    atomic_bool stopped = false;
    struct report_maker maker;
    struct job_name *names;
    size_t n;
    int code = read_names(texts, arena, &names, &n, err);

    if (code == 0)
        code = check_terminal(settings, err);
    if (code == 0)
        code = report_maker_open(&maker, settings, &stopped, err);
    if (code < 0)
        return code;
    code = settings->drains ? report_mail_drain(&maker, &stopped, err)
                            : report_jobs(settings, &maker, names, n);
    report_maker_close(&maker);
    return code;
}

int main(int argc, char **argv)
{
    struct report_settings settings = { 0 };
    struct arena arena = { 0 };
    struct err err = { 0 };
    char **names;
    int outcome, status = 0;

    process_keep_standard_fds();
    outcome = report_options_parse(argc, argv, &arena, &settings, &names, &err);
    if (outcome == OPTION_GO_ON)
        status = run(&settings, names, &arena, &err);
    if (outcome < 0 || status < 0) {
        fprintf(stderr, "sonde report: %s\n", err.text);
        status = outcome < 0 || status == -EINVAL ? 2 : 1;
    }
    arena_clear(&arena);
    return status;
}
