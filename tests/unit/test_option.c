/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of base/option: flags, configuration files, help and man pages. */
#include "test.h"

#include "base/clock.h"
#include "base/option.h"
#include "base/spawn.h"
#include "base/yaml.h"
#include "files.h"

#include <fcntl.h>

struct settings {
    struct option_list listen;
    struct str telemetry_path, config, level;
    int64_t poll_limit_ns;
    uint64_t max_output_bytes, most_jobs;
    bool jobs, demo;
};

#define AT(field) offsetof(struct settings, field)

static const struct option options[] = {
    { .name = "web.listen-address",
      .type = OPTION_LIST,
      .offset = AT(listen),
      .value = "ADDRESS",
      .initial = ":9092",
      .env = "LISTEN",
      .group = "Web server",
      .help = "Address to serve on: HOST:PORT, :PORT or unix:PATH." },
    { .name = "web.telemetry-path",
      .type = OPTION_STRING,
      .offset = AT(telemetry_path),
      .value = "PATH",
      .initial = "/metrics",
      .group = "Web server",
      .help = "Where the metrics are." },
    { .name = "web.config.file",
      .type = OPTION_STRING,
      .offset = AT(config),
      .value = "FILE",
      .group = "Web server",
      .help = "TLS and passwords, in the format of \"exporter-toolkit\" \\ see its own page." },
    { .name = "slurm.poll-limit",
      .type = OPTION_DURATION,
      .offset = AT(poll_limit_ns),
      .initial = "10s",
      .env = "POLL_LIMIT",
      .group = "Slurm",
      .help = "Slurm is asked at most this often." },
    { .name = "slurm.max-output",
      .type = OPTION_BYTES,
      .offset = AT(max_output_bytes),
      .initial = "64M",
      .group = "Slurm",
      .help = "A command that prints more is stopped." },
    { .name = "collector.jobs",
      .type = OPTION_BOOL,
      .offset = AT(jobs),
      .initial = "true",
      .env = "COLLECT_JOBS",
      .group = "Collectors",
      .help = "Jobs by state." },
    { .name = "collector.jobs.most-series-of-single-jobs",
      .type = OPTION_UINT,
      .offset = AT(most_jobs),
      .initial = "10000",
      .group = "Collectors",
      .help = ".rc: series at most." },
    { .name = "log.level",
      .type = OPTION_CHOICE,
      .offset = AT(level),
      .value = "LEVEL",
      .initial = "info",
      .env = "LOGLEVEL",
      .choices = "debug info warn error",
      .group = "Logging",
      .help = "Least severe lines that are written." },
    { .name = "web.log-level",
      .type = OPTION_CHOICE,
      .offset = AT(level),
      .value = "LEVEL",
      .choices = "debug info warn error",
      .group = "Logging",
      .help = "Old name of --log.level." },
    { .name = "demo",
      .type = OPTION_BOOL,
      .offset = AT(demo),
      .group = "Logging",
      .help = "Show a simulated cluster." },
    { .name = NULL },
};

static const struct option_command exporter = {
    .name = "sonde exporter",
    .summary = "tell Prometheus what a Slurm cluster is doing",
    .description = "Asks Slurm for its jobs and nodes, at most once in a while however many ask, "
                   "and serves them.\n\nRuns unprivileged:\n.any user will do.",
    .options = options,
};

static const struct option_command report = {
    .name = "sonde report",
    .summary = "show how well a job used what it had",
    .description = "Shows a job.",
    .arguments = "JOBID…",
    .options = options,
};

struct fixture {
    struct arena arena;
    struct settings settings;
    struct err err;
    char **rest;
};

static struct fixture *fixture;

static void setup(void)
{
    fixture = heap_alloc(sizeof(struct fixture));
}

static void teardown(void)
{
    arena_clear(&fixture->arena);
    free(fixture);
}

FIXTURE(setup, teardown)

#define ARGS(...) ((const char *const[]){ __VA_ARGS__ __VA_OPT__(, ) NULL })
#define NO_ENV    ARGS()

static int parse_as(const struct option_command *command, const char *const *env,
                    const char *const *args)
{
    char *argv[32] = { (char *)(uintptr_t) "sonde" };
    int argc = 1;

    for (; args[argc - 1]; argc++)
        argv[argc] = (char *)(uintptr_t)args[argc - 1];
    memset(&fixture->settings, 0xa5, sizeof(fixture->settings));
    return option_parse(command, argc, argv, (char *const *)env, &fixture->arena,
                        &fixture->settings, &fixture->rest, &fixture->err);
}

static const struct settings *parse(const char *const *env, const char *const *args)
{
    int code = parse_as(&exporter, env, args);

    if (code)
        fail_msg("%d: %s", code, fixture->err.text);
    return &fixture->settings;
}

static void assert_refused(const char *const *env, const char *const *args, const char *sentence)
{
    fixture->rest = NULL;
    assert_int_equal(parse_as(&exporter, env, args), -EINVAL);
    assert_string_equal(fixture->err.text, sentence);
    assert_int_equal(fixture->err.code, EINVAL);
    assert_null(fixture->rest);
}

/* The configuration file; its name has no directory, so that sentences can be compared. */
static const char yml[] = "sonde.yml";

static void put_file(const char *text)
{
    write_file(yml, text);
    assert_int_equal(chdir(test_dir()), 0);
}

static void assert_file_refused(const char *text, const char *sentence)
{
    char expected[500];

    put_file(text);
    snprintf(expected, sizeof(expected), "%s%s", yml, sentence);
    assert_refused(NO_ENV, ARGS("--config.file", yml), expected);
}

static void assert_initial(const struct settings *settings)
{
    assert_int_equal(settings->listen.n, 1);
    assert_str(settings->listen.items[0], ":9092");
    assert_str(settings->telemetry_path, "/metrics");
    assert_str(settings->config, "");
    assert_str(settings->level, "info");
    assert_int_equal(settings->poll_limit_ns, 10 * NS_PER_SEC);
    assert_int_equal(settings->max_output_bytes, 64 << 20);
    assert_int_equal(settings->most_jobs, 10000);
    assert_true(settings->jobs);
    assert_false(settings->demo);
}

TEST(without_arguments_everything_has_its_initial_value)
{
    assert_initial(parse(NO_ENV, ARGS()));
    assert_initial(parse(NULL, ARGS()));
}

TEST(a_flag_takes_one_dash_or_two_and_its_value_either_way)
{
    const char *const *const forms[] = {
        ARGS("-slurm.poll-limit=5m"),
        ARGS("--slurm.poll-limit=5m"),
        ARGS("-slurm.poll-limit", "5m"),
        ARGS("--slurm.poll-limit", "5m"),
    };

    for (size_t i = 0; i < COUNT(forms); i++)
        assert_int_equal(parse(NO_ENV, forms[i])->poll_limit_ns, 300 * NS_PER_SEC);
}

TEST(each_type_is_read)
{
    const struct settings *settings = parse(
        NO_ENV, ARGS("--web.telemetry-path=/a=b", "--slurm.max-output=2G", "--log.level=DEBUG",
                     "--collector.jobs.most-series-of-single-jobs", "7"));

    assert_str(settings->telemetry_path, "/a=b");
    assert_int_equal(settings->max_output_bytes, UINT64_C(2) << 30);
    assert_str(settings->level, "debug");
    assert_int_equal(settings->most_jobs, 7);
}

TEST(a_switch_is_turned_on_and_off)
{
    assert_false(parse(NO_ENV, ARGS("--no-collector.jobs"))->jobs);
    assert_false(parse(NO_ENV, ARGS("-no-collector.jobs"))->jobs);
    assert_false(parse(NO_ENV, ARGS("--collector.jobs=false"))->jobs);
    assert_false(parse(NO_ENV, ARGS("--collector.jobs=F"))->jobs);
    assert_true(parse(NO_ENV, ARGS("--no-collector.jobs", "--collector.jobs"))->jobs);
    assert_true(parse(NO_ENV, ARGS("--demo"))->demo);
    assert_true(parse(NO_ENV, ARGS("--demo=1"))->demo);
    assert_false(parse(ARGS("COLLECT_JOBS=off"), ARGS())->jobs);
    assert_refused(NO_ENV, ARGS("--no-demo=true"), "flag --no-demo takes no value");
    assert_refused(NO_ENV, ARGS("--demo=maybe"), "--demo: \"maybe\" is neither true nor false");
}

TEST(the_last_of_several_flags_holds)
{
    const struct settings *settings =
        parse(NO_ENV, ARGS("--log.level=debug", "--web.telemetry-path=/x", "--log.level=error",
                           "--web.telemetry-path", ""));

    assert_str(settings->level, "error");
    assert_str(settings->telemetry_path, "");
}

TEST(a_list_is_replaced_and_then_collected)
{
    const struct settings *settings;

    settings = parse(NO_ENV, ARGS("--web.listen-address=:1", "--web.listen-address", ":2,x",
                                  "-web.listen-address=:3"));
    assert_int_equal(settings->listen.n, 3);
    assert_str(settings->listen.items[0], ":1");
    assert_str(settings->listen.items[1], ":2,x");
    assert_str(settings->listen.items[2], ":3");

    settings = parse(ARGS("LISTEN= :4 ,:5,, "), ARGS());
    assert_int_equal(settings->listen.n, 2);
    assert_str(settings->listen.items[0], ":4");
    assert_str(settings->listen.items[1], ":5");
    assert_int_equal(parse(ARGS("LISTEN=:4,:5"), ARGS("--web.listen-address=:6"))->listen.n, 1);
    assert_int_equal(parse(NO_ENV, ARGS("--web.listen-address="))->listen.n, 0);

    put_file("web.listen-address: [\":6\", ':7']\n");
    settings = parse(NO_ENV, ARGS("--config.file", yml));
    assert_int_equal(settings->listen.n, 2);
    assert_str(settings->listen.items[1], ":7");
    put_file("web.listen-address: :8,x\n");
    settings = parse(NO_ENV, ARGS("--config.file", yml));
    assert_int_equal(settings->listen.n, 1);
    assert_str(settings->listen.items[0], ":8,x");
    put_file("web.listen-address: []\n");
    assert_int_equal(parse(NO_ENV, ARGS("--config.file", yml))->listen.n, 0);
}

TEST(a_flag_beats_the_environment_which_beats_the_file)
{
    put_file("log.level: warn\nslurm.poll-limit: 20\n");

    assert_str(parse(NO_ENV, ARGS("--config.file", yml))->level, "warn");
    assert_int_equal(fixture->settings.poll_limit_ns, 20 * NS_PER_SEC);
    assert_str(parse(ARGS("LOGLEVEL=error"), ARGS("--config.file", yml))->level, "error");
    assert_str(
        parse(ARGS("LOGLEVEL=error"), ARGS("--log.level=debug", "--config.file", yml))->level,
        "debug");
}

TEST(an_empty_variable_counts_as_unset)
{
    assert_initial(parse(ARGS("LOGLEVEL=", "POLL_LIMIT=", "LISTEN=", "LOGLEVELS=x", "=x"), ARGS()));
}

TEST(keys_of_the_file_are_flat_or_nested)
{
    const struct settings *settings;

    put_file("# all of it\n"
             "web:\n"
             "  config.file: /etc/web.yml\n"
             "  telemetry-path: '/m'\n"
             "collector: {jobs: {most-series-of-single-jobs: 5}}\n"
             "collector.jobs: no\n"
             "log: {level: Error}\n"
             "demo: true\n");
    settings = parse(NO_ENV, ARGS("-config.file", yml));
    assert_str(settings->config, "/etc/web.yml");
    assert_str(settings->telemetry_path, "/m");
    assert_int_equal(settings->most_jobs, 5);
    assert_false(settings->jobs);
    assert_str(settings->level, "error");
    assert_true(settings->demo);
}

TEST(a_key_without_a_value_leaves_what_was)
{
    put_file("web:\nlog: {level: ~}\nslurm.poll-limit: null\ncollector.jobs:\n");
    assert_initial(parse(NO_ENV, ARGS("--config.file", yml)));
    put_file("web.telemetry-path: \"\"\n");
    assert_str(parse(NO_ENV, ARGS("--config.file", yml))->telemetry_path, "");
    put_file("");
    assert_initial(parse(NO_ENV, ARGS("--config.file", yml)));
    assert_initial(parse(NO_ENV, ARGS("--config.file=")));
}

TEST(rows_that_share_a_place_are_two_names_of_one_flag)
{
    assert_str(parse(NO_ENV, ARGS("--web.log-level=warn"))->level, "warn");
    assert_str(parse(NO_ENV, ARGS("--web.log-level=warn", "--log.level=error"))->level, "error");
    assert_file_refused("log.level: info\nweb.log-level: warn\n",
                        ":2: web.log-level: already given on line 1; remove one of the two");
}

TEST(an_unknown_flag_is_named_with_the_nearest)
{
    assert_refused(NO_ENV, ARGS("--web.listen-adress=:1"),
                   "unknown flag --web.listen-adress; did you mean --web.listen-address? See "
                   "--help");
    assert_refused(NO_ENV, ARGS("-level", "debug"),
                   "unknown flag --level; did you mean --log.level? See --help");
    assert_refused(NO_ENV, ARGS("--no-colector.jobs"),
                   "unknown flag --no-colector.jobs; did you mean --no-collector.jobs? See --help");
    assert_refused(NO_ENV, ARGS("--no-log.level"),
                   "unknown flag --no-log.level; did you mean --log.level? See --help");
    assert_refused(NO_ENV, ARGS("--hlep"), "unknown flag --hlep; did you mean --help? See --help");
    assert_refused(NO_ENV, ARGS("--config-file=x"),
                   "unknown flag --config-file; did you mean --config.file? See --help");
    assert_refused(NO_ENV, ARGS("--quux"), "unknown flag --quux; see --help for those there are");
    assert_refused(NO_ENV, ARGS("---=x"), "unknown flag ---; see --help for those there are");
}

TEST(hostile_arguments_are_cut_and_escaped_in_sentences)
{
    char long_text[5001], expected[300];

    memset(long_text, 'x', sizeof(long_text) - 1);
    long_text[sizeof(long_text) - 1] = '\0';
    assert_refused(NO_ENV, ARGS("--\x1b[2J\n"),
                   "unknown flag --\\x1b[2J\\n; see --help for those there are");
    snprintf(expected, sizeof(expected), "--demo: \"%.80s…\" is neither true nor false", long_text);
    memcpy(long_text, "--demo=", 7);
    memcpy(long_text + 7, expected + 9, 7);
    assert_refused(NO_ENV, ARGS(long_text), expected);
}

TEST(a_wrong_value_says_where_it_is_and_what_is_accepted)
{
    assert_refused(NO_ENV, ARGS("--log.level", "loud"),
                   "--log.level: \"loud\" is not one of: debug info warn error");
    assert_refused(ARGS("LOGLEVEL=in fo"), ARGS(),
                   "environment variable LOGLEVEL: \"in fo\" is not one of: debug info warn error");
    assert_refused(NO_ENV, ARGS("--slurm.poll-limit=soon"),
                   "--slurm.poll-limit: \"soon\" is not a duration; write a number with ms, s, m, "
                   "h, d, w or y, like 10s or 1h30m");
    assert_refused(NO_ENV, ARGS("--slurm.max-output=-1"),
                   "--slurm.max-output: \"-1\" is not a size; write a number of bytes, or one with "
                   "K, M, G or T, like 64M");
    assert_file_refused("\ncollector: {jobs: {most-series-of-single-jobs: 1.5}}\n",
                        ":2: collector.jobs.most-series-of-single-jobs: \"1.5\" is not a whole "
                        "number");
}

TEST(an_unknown_key_is_named_with_file_line_and_nearest)
{
    assert_file_refused("web:\n  telemetry-path: /\n  listen-adress: :1\n",
                        ":3: unknown key web.listen-adress; did you mean web.listen-address?");
    assert_file_refused("quux: {listen-address: x}\n",
                        ":1: unknown key quux; the keys are the names of the flags, see --help");
    assert_file_refused("config.file: other.yml\n",
                        ":1: unknown key config.file; did you mean web.config.file?");
    assert_file_refused("\"a\\eb\": 1\n",
                        ":1: unknown key a\\x1bb; the keys are the names of the flags, see --help");
}

TEST(the_file_of_another_command_is_read_for_what_both_have)
{
    struct option_command doctor = exporter;

    doctor.shares_file = true;
    put_file("quux: [a, b]\nweb:\n  unheard-of: {a: b}\n  telemetry-path: /t\ndemo: true\n");
    assert_int_equal(parse_as(&doctor, NO_ENV, ARGS("--config.file", yml)), 0);
    assert_str(fixture->settings.telemetry_path, "/t");
    assert_true(fixture->settings.demo);
    put_file("quux: 1\nlog.level: [info]\n");
    assert_int_equal(parse_as(&doctor, NO_ENV, ARGS("--config.file", yml)), -EINVAL);
    assert_contains(fixture->err.text, ":2: log.level: takes one value");
    assert_int_equal(parse_as(&doctor, NO_ENV, ARGS("--quux")), -EINVAL);
}

TEST(a_key_that_belongs_elsewhere_is_sent_there)
{
    static const struct option own[] = { { .name = "slurm.poll", .type = OPTION_BOOL, .offset = 0 },
                                         { .name = NULL } };
    const struct option_command command = {
        .name = "sonde", .elsewhere = options, .elsewhere_is = "it is for all", .options = own
    };

    put_file("slurm:\n  poll-limit: 3s\n");
    assert_int_equal(parse_as(&command, NO_ENV, ARGS("--config.file", yml)), -EINVAL);
    assert_contains(fixture->err.text, ":2: slurm.poll-limit does not belong here: it is for all");
}

TEST(what_was_given_is_told_whoever_gave_it_and_whatever_its_value)
{
    bool is_given[COUNT(options)] = { false };
    struct option_command command = exporter;

    command.is_given = is_given;
    put_file("web.telemetry-path: /metrics\ndemo:\n");
    assert_int_equal(
        parse_as(&command, ARGS("POLL_LIMIT=10s", "LISTEN="),
                 ARGS("--config.file", yml, "--no-collector.jobs", "--web.log-level=info")),
        0);
    for (size_t i = 0; i < COUNT(options); i++) {
        const char *name = options[i].name ? options[i].name : "";
        bool is_expected = strcmp(name, "web.telemetry-path") == 0 ||
                           strcmp(name, "slurm.poll-limit") == 0 ||
                           strcmp(name, "collector.jobs") == 0 || strcmp(name, "log.level") == 0;

        if (is_given[i] != is_expected)
            fail_msg("%s is told to be %sgiven", name, is_given[i] ? "" : "not ");
    }
}

TEST(a_file_of_the_wrong_shape_says_so)
{
    assert_file_refused("- a\n", ":1: write lines of the form KEY: VALUE");
    assert_file_refused("log.level: [info]\n", ":1: log.level: takes one value, not a list");
    assert_file_refused("log.level: {a: b}\n", ":1: log.level: takes a value, not a mapping");
    assert_file_refused("web: {listen-address: [':1',\n [x]]}\n",
                        ":2: web.listen-address: an item of the list is not a text");
    assert_file_refused("web: {listen-address: [':1',\n ~]}\n",
                        ":2: web.listen-address: an item of the list is not a text");
    assert_file_refused("web: info\n",
                        ":1: unknown key web; the keys are the names of the flags, see --help");
    assert_file_refused("log: {level: info}\nlog.level: info\n",
                        ":2: log.level: already given on line 1; remove one of the two");
    assert_file_refused("demo: true\ndemo: true\n",
                        ":2: key demo is already given on line 1; remove one of the two");
    assert_refused(NO_ENV, ARGS("--config.file=/nowhere.yml"),
                   "cannot read /nowhere.yml: No such file or directory; check the name, or create "
                   "the file");
}

TEST(a_missing_value_is_missed)
{
    assert_refused(NO_ENV, ARGS("--log.level"),
                   "flag --log.level needs a value; write --log.level=LEVEL");
    assert_refused(NO_ENV, ARGS("--slurm.poll-limit", "--no-collector.jobs"),
                   "flag --slurm.poll-limit needs a value; write --slurm.poll-limit=VALUE");
    assert_refused(NO_ENV, ARGS("--config.file", "--help"),
                   "flag --config.file needs a value; write --config.file=FILE");
    assert_str(parse(NO_ENV, ARGS("--web.telemetry-path", "-x"))->telemetry_path, "-x");
}

TEST(arguments_are_left_over_where_the_command_takes_them)
{
    assert_int_equal(
        parse_as(&report, NO_ENV, ARGS("1", "--demo", "-", "2", "--", "--log.level", "--", "3")),
        0);
    assert_true(fixture->settings.demo);
    assert_string_equal(fixture->rest[0], "1");
    assert_string_equal(fixture->rest[1], "-");
    assert_string_equal(fixture->rest[2], "2");
    assert_string_equal(fixture->rest[3], "--log.level");
    assert_string_equal(fixture->rest[4], "--");
    assert_string_equal(fixture->rest[5], "3");
    assert_null(fixture->rest[6]);
    parse(NO_ENV, ARGS("--"));
    assert_null(fixture->rest[0]);
}

static const struct option_command wrapper = {
    .name = "sonde run",
    .summary = "run a command",
    .description = "Runs a command.",
    .arguments = "COMMAND…",
    .takes_command = true,
    .end_flag = "cmd",
    .exit_status = "That of the command.\n\n127 if there is none.",
    .options = options,
};

TEST(the_flags_of_a_command_that_is_taken_are_its_own)
{
    const struct {
        const char *const *args;
        bool demo;
        const char *rest[4];
    } cases[] = {
        { ARGS("--demo", "ls", "--demo", "-l"), true, { "ls", "--demo", "-l" } },
        { ARGS("ls", "--demo"), false, { "ls", "--demo" } },
        { ARGS("ls", "--", "--cmd"), false, { "ls", "--", "--cmd" } },
        { ARGS("--demo", "--", "--demo", "ls"), true, { "--demo", "ls" } },
        { ARGS("--demo", "--cmd", "ls", "--demo"), true, { "ls", "--demo" } },
        { ARGS("-cmd", "--cmd"), false, { "--cmd" } },
        { ARGS("--web.telemetry-path", "/x", "ls", "-l"), false, { "ls", "-l" } },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(parse_as(&wrapper, NO_ENV, cases[i].args), 0);
        assert_int_equal(fixture->settings.demo, cases[i].demo);
        for (size_t k = 0; cases[i].rest[k] || fixture->rest[k]; k++)
            assert_str(str_of(fixture->rest[k]), cases[i].rest[k]);
    }
    assert_int_equal(parse_as(&wrapper, NO_ENV, ARGS("--log.level", "--cmd", "ls")), -EINVAL);
    assert_contains(fixture->err.text, "--log.level needs a value");
}

TEST(arguments_are_refused_where_the_command_takes_none)
{
    assert_refused(NO_ENV, ARGS("--demo", "x y"),
                   "unexpected argument \"x y\"; sonde exporter takes flags only, see --help");
    assert_refused(NO_ENV, ARGS("--", "--demo"),
                   "unexpected argument \"--demo\"; sonde exporter takes flags only, see --help");
    assert_refused(NO_ENV, ARGS("--collector.jobs", "false"),
                   "unexpected argument false; write --collector.jobs=false");
}

/* Standard output while `args` are parsed, as a heap text. */
static char *printed_with(const char *const *env, const char *const *args, int expected)
{
    FILE *file = tmpfile();
    int kept = dup(STDOUT_FILENO);
    char *text = heap_alloc(64 * 1024);
    int code;

    assert_non_null(file);
    fflush(stdout);
    dup2(fileno(file), STDOUT_FILENO);
    code = parse_as(&exporter, env, args);
    fflush(stdout);
    dup2(kept, STDOUT_FILENO);
    close(kept);
    rewind(file);
    text[fread(text, 1, 64 * 1024 - 1, file)] = '\0';
    fclose(file);
    assert_int_equal(code, expected);
    return text;
}

static char *printed(const char *const *args, int expected)
{
    return printed_with(ARGS("LOGLEVEL=wrong"), args, expected);
}

TEST(help_version_and_man_print_whatever_else_is_wrong)
{
    static const char *const begins[][2] = {
        { "--version", "sonde " SONDE_VERSION "\n" }, { "-version", "sonde " SONDE_VERSION "\n" },
        { "--help", "Usage: sonde exporter" },        { "-h", "Usage: sonde exporter" },
        { "-help", "Usage: sonde exporter" },         { "--man", ".TH SONDE" },
    };

    for (size_t i = 0; i < COUNT(begins); i++) {
        char *text = printed(ARGS(begins[i][0], "--bogus"), OPTION_EXIT_OK);

        if (!str_starts(str_of(text), str_of(begins[i][1])))
            fail_msg("%s prints %s", begins[i][0], text);
        free(text);
    }
}

TEST(the_settings_are_printed_with_where_each_comes_from)
{
    char expected[2000], *text;

    put_file("slurm.poll-limit: 90s\ndemo:\nweb:\n  telemetry-path: /file\n");
    text = printed_with(ARGS("LOGLEVEL=warn"),
                        ARGS("--config.print", "--config.file", yml, "--web.listen-address=:1",
                             "--web.telemetry-path=/flag",
                             "--web.listen-address=http://user:secret@host:2/path"),
                        OPTION_EXIT_OK);
    snprintf(expected, sizeof(expected),
             "# sonde exporter: what holds, and where it comes from.\n"
             "web.listen-address: [\":1\", \"http://user:***@host:2/path\"]  # flag\n"
             "web.telemetry-path: \"/flag\"  # flag\n"
             "web.config.file: \"\"  # default\n"
             "slurm.poll-limit: 90s  # %s:1\n"
             "slurm.max-output: 67108864  # default\n"
             "collector.jobs: true  # default\n"
             "collector.jobs.most-series-of-single-jobs: 10000  # default\n"
             "log.level: \"warn\"  # environment, LOGLEVEL\n"
             "demo: false  # default\n",
             yml);
    assert_string_equal(text, expected);
    free(text);
}

TEST(printed_settings_are_a_file_that_means_the_same)
{
    const struct option_origin origins[COUNT(options)] = { 0 };
    const struct settings *after;
    struct settings before;
    struct buf out;

    before = *parse(NO_ENV, ARGS("--web.listen-address=:1", "--slurm.poll-limit=1500ms", "--demo",
                                 "--web.telemetry-path=/a \"b\"\\c", "--no-collector.jobs"));
    buf_init(&out, 10000);
    option_print(&exporter, &before, origins, NULL, &out);
    put_file(out.p);
    buf_free(&out);
    after = parse(NO_ENV, ARGS("--config.file", yml));
    assert_true(option_list_equal(before.listen, after->listen));
    assert_str(after->telemetry_path, "/a \"b\"\\c");
    assert_int_equal(after->poll_limit_ns, 1500 * NS_PER_MS);
    assert_int_equal(after->max_output_bytes, before.max_output_bytes);
    assert_true(after->demo);
    assert_false(after->jobs);
}

static void complete(const struct option_command *command, void *settings, struct arena *arena)
{
    (void)arena;
    if (!option_is_given(command, "web.telemetry-path"))
        ((struct settings *)settings)->telemetry_path = STR("/computed");
    if (!option_is_given(command, "web.log-level"))
        ((struct settings *)settings)->level = STR("error");
}

TEST(what_nobody_gave_can_be_computed)
{
    bool is_given[COUNT(options)] = { false };
    struct option_command command = exporter;

    command.is_given = is_given;
    command.complete = complete;
    assert_int_equal(parse_as(&command, ARGS("LOGLEVEL=warn"), ARGS("--demo")), 0);
    assert_str(fixture->settings.telemetry_path, "/computed");
    assert_str(fixture->settings.level, "warn");
    assert_int_equal(parse_as(&command, NO_ENV, ARGS("--web.telemetry-path=/x")), 0);
    assert_str(fixture->settings.telemetry_path, "/x");
}

TEST(help_that_cannot_be_written_is_an_error)
{
    int kept = dup(STDOUT_FILENO);
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    int code;

    assert_true(full >= 0);
    fflush(stdout);
    dup2(full, STDOUT_FILENO);
    code = parse_as(&exporter, NO_ENV, ARGS("--help"));
    clearerr(stdout);
    dup2(kept, STDOUT_FILENO);
    close(kept);
    close(full);
    assert_int_equal(code, -EIO);
    assert_string_equal(fixture->err.text,
                        "cannot write to standard output: No space left on device");
}

TEST(parsing_again_reads_the_changed_file_and_forgets_the_rest)
{
    struct settings first;

    put_file("web.listen-address: [':1', ':2']\ndemo: true\n");
    first = *parse(NO_ENV, ARGS("--config.file", yml, "--log.level=warn"));
    put_file("slurm.poll-limit: 1h\n");
    parse(NO_ENV, ARGS("--config.file", yml, "--log.level=warn"));
    assert_int_equal(first.listen.n, 2);
    assert_str(first.listen.items[1], ":2");
    assert_int_equal(fixture->settings.listen.n, 1);
    assert_false(fixture->settings.demo);
    assert_int_equal(fixture->settings.poll_limit_ns, 3600 * NS_PER_SEC);
    assert_str(fixture->settings.level, "warn");
    put_file("slurm.poll-limit: never\n");
    assert_int_equal(parse_as(&exporter, NO_ENV, ARGS("--config.file", yml)), -EINVAL);
    assert_str(first.listen.items[0], ":1");
}

TEST(argv_is_copied_and_not_changed)
{
    char flag[] = "--web.telemetry-path=/abc";
    char name[] = "sonde", value[] = ":1", listen[] = "--web.listen-address";
    char *argv[] = { name, flag, listen, value, NULL };

    assert_int_equal(option_parse(&exporter, 4, argv, NULL, &fixture->arena, &fixture->settings,
                                  &fixture->rest, NULL),
                     0);
    assert_string_equal(flag, "--web.telemetry-path=/abc");
    memset(flag, 'x', sizeof(flag) - 1);
    memset(value, 'x', sizeof(value) - 1);
    assert_string_equal(fixture->settings.telemetry_path.p, "/abc");
    assert_str(fixture->settings.listen.items[0], ":1");
}

TEST(a_hundred_thousand_flags_cost_no_more_than_they_are)
{
    enum { N = 100 * 1000 };
    char flag[] = "--web.listen-address=:1";
    char **argv = heap_array(N + 1, sizeof(*argv));

    for (size_t i = 0; i < N; i++)
        argv[i] = flag;
    argv[N] = NULL;
    assert_int_equal(option_parse(&exporter, N, argv, NULL, &fixture->arena, &fixture->settings,
                                  &fixture->rest, &fixture->err),
                     0);
    assert_int_equal(fixture->settings.listen.n, N - 1);
    assert_str(fixture->settings.listen.items[N - 2], ":1");
    assert_true(fixture->arena.total_bytes < N * 200);
    free(argv);
}

TEST(an_initial_value_that_does_not_fit_its_type_is_found)
{
    static const struct option wrong[] = {
        { .name = "x", .type = OPTION_UINT, .offset = AT(most_jobs), .initial = "many" },
        { .name = NULL },
    };
    static const struct option_command command = { .name = "sonde x", .options = wrong };

    assert_int_equal(parse_as(&command, NO_ENV, ARGS()), -EINVAL);
    assert_string_equal(fixture->err.text, "initial value of --x: \"many\" is not a whole number");
}

static const char help[] =
    "Usage: sonde exporter [FLAG]…\n"
    "\n"
    "Asks Slurm for its jobs and nodes, at most once in a while however many ask, and\n"
    "serves them.\n"
    "\n"
    "Web server:\n"
    "  --web.listen-address=ADDRESS  Address to serve on: HOST:PORT, :PORT or\n"
    "                                unix:PATH. May be repeated. [default: :9092]\n"
    "                                [env: LISTEN]\n"
    "  --web.telemetry-path=PATH     Where the metrics are. [default: /metrics]\n"
    "  --web.config.file=FILE        TLS and passwords, in the format of\n"
    "                                \"exporter-toolkit\" \\ see its own page.\n"
    "\n"
    "Slurm:\n"
    "  --slurm.poll-limit=TIME       Slurm is asked at most this often.\n"
    "                                [default: 10s] [env: POLL_LIMIT]\n"
    "  --slurm.max-output=SIZE       A command that prints more is stopped.\n"
    "                                [default: 64M]\n"
    "\n"
    "Collectors:\n"
    "  --[no-]collector.jobs         Jobs by state. [default: true]\n"
    "                                [env: COLLECT_JOBS]\n"
    "  --collector.jobs.most-series-of-single-jobs=NUMBER\n"
    "                                .rc: series at most. [default: 10000]\n"
    "\n"
    "Logging:\n"
    "  --log.level=LEVEL             Least severe lines that are written.\n"
    "                                [one of: debug, info, warn, error]\n"
    "                                [default: info] [env: LOGLEVEL]\n"
    "  --web.log-level=LEVEL         Old name of --log.level.\n"
    "                                [one of: debug, info, warn, error]\n"
    "  --[no-]demo                   Show a simulated cluster.\n"
    "\n"
    "General:\n"
    "  --config.file=FILE            Read settings from this YAML file. Its keys are\n"
    "                                the names of the flags.\n"
    "  --config.print                Show all settings, in the form of that file, and\n"
    "                                where each comes from, and exit.\n"
    "  -h, --help                    Show this help and exit.\n"
    "  --version                     Show the version and exit.\n"
    "\n"
    "A flag takes one dash or two. It beats its environment variable, which beats the\n"
    "file of --config.file.\n";

TEST(help_is_grouped_aligned_and_no_wider_than_80_columns)
{
    struct buf out;

    buf_init(&out, 64 * 1024);
    option_help(&exporter, &out);
    assert_string_equal(out.p, help);
    for (struct str rest = buf_str(&out); rest.p;)
        assert_true(str_cut(&rest, '\n').n <= 80);
    buf_reset(&out);
    option_help(&report, &out);
    assert_contains(out.p, "Usage: sonde report [FLAG]… JOBID…\n");
    assert_null(strstr(out.p, "Once installed"));
    buf_free(&out);
}

static int collect(void *ctx, struct str piece, struct err *err)
{
    (void)err;
    buf_put(ctx, piece);
    return 0;
}

/* The page as groff shows it. */
static void format_man(const struct option_command *command, struct buf *out)
{
    const char *path = test_path("page");
    const char *const argv[] = { "groff", "-man", "-Tutf8", "-ww", "-P-cbou", path, NULL };
    struct spawn spawn = { .argv = argv,
                           .deadline_ns = clock_mono(&clock_real) + TEST_DEADLINE,
                           .max_output = 1 << 20,
                           .sink = collect,
                           .ctx = out };
    struct spawn_result result;
    struct buf page;
    int code;

    buf_init(&page, 1 << 20);
    option_man(command, &page);
    write_bytes(path, buf_str(&page));
    buf_free(&page);
    code = spawn_run(&spawn, &result, &fixture->err);
    if (code)
        fail_msg("%s", fixture->err.text);
    assert_string_equal(result.warning, "");
}

TEST(the_man_page_is_accepted_by_groff_and_shows_every_character)
{
    static const char *const parts[] = {
        "sonde-exporter - tell Prometheus",
        "\nSYNOPSIS\n       sonde exporter [FLAG]...\n",
        ".any user will do.",
        "   Web server\n       --web.listen-address=ADDRESS\n",
        "\"exporter-toolkit\" \\ see its\n",
        "              .rc: series at most. Default: 10000.",
        "error. Default: info. Environment: LOGLEVEL.\n",
        "       --[no-]collector.jobs\n",
        "\nENVIRONMENT\n",
        "       LISTEN As --web.listen-address, items separated by commas.\n",
        "\nFILES\n",
        "\n       web.listen-address: ADDRESS\n       web:\n         listen-address: ADDRESS\n",
        "\n       web.listen-address: [\":9092\"]\n       web.telemetry-path: \"/metrics\"\n",
        "\nEXIT STATUS\n",
        "\n       sonde(1), slurm(1)\n",
    };
    struct buf out;

    need("groff");
    buf_init(&out, 1 << 20);
    format_man(&exporter, &out);
    for (size_t i = 0; i < COUNT(parts); i++)
        if (str_find_str(buf_str(&out), str_of(parts[i])) == out.n)
            fail_msg("the page lacks \"%s\"", parts[i]);
    buf_reset(&out);
    format_man(&report, &out);
    assert_contains(out.p, "sonde report [FLAG]... JOBID...\n");
    buf_reset(&out);
    format_man(&wrapper, &out);
    assert_contains(out.p, "That of the command.\n\n       127 if there is none.\n");
    assert_int_equal(str_find_str(buf_str(&out), STR("what it was told")), out.n);
    buf_free(&out);
}

TEST(the_file_in_the_man_page_is_the_initial_settings)
{
    struct buf page, yaml;
    struct str example;

    buf_init(&page, 1 << 20);
    buf_init(&yaml, 1 << 20);
    option_man(&exporter, &page);
    example = str_skip(buf_str(&page), str_find_str(buf_str(&page), STR("the file would be:\n")));
    example = str_skip(example, str_find_str(example, STR(".EX\n")) + 4);
    example = str_head(example, str_find_str(example, STR(".EE\n")));
    assert_true(example.n > 0);
    while (example.n) {
        size_t n = str_find(example, '\\');

        buf_put(&yaml, str_head(example, n));
        example = str_skip(example, n);
        if (str_starts(example, STR("\\-")))
            buf_byte(&yaml, '-');
        else if (str_starts(example, STR("\\(dq")))
            buf_byte(&yaml, '"');
        else if (example.n)
            fail_msg("unexpected %.5s", example.p);
        example = str_skip(example, str_starts(example, STR("\\(dq")) ? 4 : 2);
    }
    put_file(yaml.p);
    assert_initial(parse(NO_ENV, ARGS("--config.file", yml)));
    buf_free(&page);
    buf_free(&yaml);
}

struct letter_settings {
    int64_t timer_ns;
    struct str file;
};

static const struct option letter_options[] = {
    { .name = "timer",
      .type = OPTION_DURATION,
      .offset = offsetof(struct letter_settings, timer_ns),
      .value = "SECONDS",
      .initial = "15s",
      .help = "How often." },
    { .name = "t",
      .type = OPTION_DURATION,
      .offset = offsetof(struct letter_settings, timer_ns),
      .value = "SECONDS" },
    { .name = "blacklist",
      .type = OPTION_STRING,
      .offset = offsetof(struct letter_settings, file),
      .value = "FILE",
      .help = "Whom not." },
    { .name = "b",
      .type = OPTION_STRING,
      .offset = offsetof(struct letter_settings, file),
      .value = "FILE" },
    { .name = NULL },
};

static const struct option_command with_letters = {
    .name = "sonde agent",
    .summary = "watch jobs",
    .description = "Watches jobs.",
    .options = letter_options,
};

static int parse_letters(struct letter_settings *settings, const char *const *args)
{
    char *argv[8] = { (char *)(uintptr_t) "sonde" };
    int argc = 1;

    for (; args[argc - 1]; argc++)
        argv[argc] = (char *)(uintptr_t)args[argc - 1];
    return option_parse(&with_letters, argc, argv, NULL, &fixture->arena, settings, &fixture->rest,
                        &fixture->err);
}

TEST(a_letter_is_short_for_a_flag)
{
    const char *const *const forms[] = {
        ARGS("-t", "5", "-b", "/etc/x=y"),
        ARGS("-t=5", "-b=/etc/x=y"),
        ARGS("-t5", "-b/etc/x=y"),
        ARGS("--timer=5s", "--blacklist", "/etc/x=y"),
    };
    struct letter_settings settings;

    for (size_t i = 0; i < COUNT(forms); i++) {
        assert_int_equal(parse_letters(&settings, forms[i]), OPTION_GO_ON);
        assert_int_equal(settings.timer_ns, 5 * NS_PER_SEC);
        assert_str(settings.file, "/etc/x=y");
    }
}

TEST(a_mistake_with_a_letter_is_told_in_its_own_words)
{
    static const struct {
        const char *args[2], *sentence;
    } rows[] = {
        { { "-t" }, "flag -t needs a value; write -t=SECONDS" },
        { { "-t", "soon" }, "-t: \"soon\" is not a duration" },
        { { "-t5x" }, "-t: \"5x\" is not a duration" },
        { { "-tymer=5" }, "unknown flag --tymer; did you mean --timer?" },
        { { "--t5" }, "unknown flag --t5" },
        { { "-c5" }, "unknown flag --c5" },
    };
    struct letter_settings settings;

    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_int_equal(parse_letters(&settings, ARGS(rows[i].args[0], rows[i].args[1])), -EINVAL);
        assert_contains(fixture->err.text, rows[i].sentence);
    }
}

TEST(a_letter_is_shown_with_its_flag)
{
    struct buf text;

    buf_init(&text, 1 << 16);
    option_help(&with_letters, &text);
    assert_contains(text.p, "  -t, --timer=SECONDS   How often. [default: 15s]\n");
    assert_contains(text.p, "  -b, --blacklist=FILE  Whom not.\n");
    assert_int_equal(str_find_str(buf_str(&text), STR("--t=")), text.n);
    buf_reset(&text);
    option_man(&with_letters, &text);
    assert_contains(text.p, "\\fB\\-t, \\-\\-timer\\fP=\\fISECONDS\\fP\n");
    buf_free(&text);
}
