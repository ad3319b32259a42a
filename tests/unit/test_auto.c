/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which door is chosen, and when another one is: on doors that open and shut at the test's word. */
#include "manual_clock.h"
#include "test.h"

#include "source/source.h"

enum { LIBSLURM, REST, JSON, CLI, DOORS };

struct stand_in {
    struct source source;
    int door;
};

/* What the doors do now; static, as they are opened by source_open_auto itself. */
static struct {
    bool is_missing;       /* probe says so */
    int code;              /* of a read: 0, or an errno */
    unsigned lacks;        /* KIND_BITs that it cannot tell */
    int64_t takes_ns;      /* before it answers, by the clock of open_with */
    unsigned reads;        /* so far */
    const char *words;     /* of what is missing; NULL: which door it is */
    bool needs_owners;     /* only at that depth is it there */
    int64_t last_patience; /* what the last read was given, ns */
    bool is_open;
    struct source *source;
} script[DOORS];

static struct manual_clock *passing; /* of open_with */

/* For a read: so long that what a busy machine takes of it is not seen. */
#define PATIENCE (8000 * NS_PER_SEC)

static int stand_in_read(struct source *source, enum kind kind, int64_t deadline_ns,
                         struct section **ret, char ret_warning[SOURCE_WARNING], struct err *err)
{
    int door = ((struct stand_in *)source)->door;

    (void)ret_warning;
    script[door].reads++;
    script[door].last_patience = deadline_ns - clock_mono(&clock_real);
    if (script[door].takes_ns)
        manual_clock_advance(passing, script[door].takes_ns);
    if (atomic_load(&source->cancelled))
        return err_set(err, ECANCELED, "cancelled");
    if (script[door].lacks & KIND_BIT(kind))
        return err_set(err, EOPNOTSUPP, "door %d cannot tell", door);
    if (script[door].code)
        return err_set(err, script[door].code, "door %d is shut", door);
    *ret = section_new(kind);
    return 0;
}

static void stand_in_close(struct source *source)
{
    script[((struct stand_in *)source)->door].is_open = false;
    free(source);
}

static int stand_in_probe(const struct source *source, struct err *err)
{
    int door = ((const struct stand_in *)source)->door;

    if (!script[door].is_missing && (!script[door].needs_owners || source->depth == SOURCE_OWNERS))
        return 0;
    return script[door].words ? err_set(err, ENOENT, "%s", script[door].words)
                              : err_set(err, ENOENT, "door %d is not there", door);
}

static void stand_in_tell(const struct source *source, struct source_about *about)
{
    snprintf(about->interface, sizeof(about->interface), "v%d",
             ((const struct stand_in *)source)->door);
}

static const struct source_class stand_in_classes[DOORS] = {
#define CLASS(word)                                                                                \
    {                                                                                              \
        .name = word, .kinds = (1u << KIND_TRACES) - 1, .read = stand_in_read,                     \
        .close = stand_in_close, .probe = stand_in_probe, .tell = stand_in_tell                    \
    }
    CLASS("libslurm"),
    CLASS("rest"),
    CLASS("json"),
    CLASS("cli"),
};

static int open_stand_in(int door, struct source **ret)
{
    struct stand_in *stand_in = heap_alloc(sizeof(*stand_in));

    stand_in->source.class = &stand_in_classes[door];
    stand_in->door = door;
    script[door].is_open = true;
    script[door].source = *ret = &stand_in->source;
    return 0;
}

#define OPENS(name, door)                                                                          \
    int source_open_##name(const struct source_settings *settings, const struct clock *clock,      \
                           struct source **ret, struct err *err)                                   \
    {                                                                                              \
        (void)settings;                                                                            \
        (void)clock;                                                                               \
        (void)err;                                                                                 \
        return open_stand_in(door, ret);                                                           \
    }

OPENS(libslurm, LIBSLURM)
OPENS(rest, REST)
OPENS(json, JSON)
OPENS(cli, CLI)

static void set_up(void)
{
    memset(script, 0, sizeof(script));
}

FIXTURE(set_up, NULL)

static struct source *open_auto(struct source_settings settings)
{
    struct source *source;
    struct err err;

    if (source_open_auto(&settings, &clock_real, &source, &err) < 0)
        fail_msg("%s", err.text);
    return source;
}

static struct source *open_with(struct manual_clock *clock, struct source_settings settings)
{
    struct source *source;
    struct err err;

    manual_clock_init(clock, 0, 0);
    passing = clock;
    if (source_open_auto(&settings, &clock->clock, &source, &err) < 0)
        fail_msg("%s", err.text);
    return source;
}

static const struct source_settings with_url = { .rest_url = STR_INIT("http://localhost:6820") };

static int read_within(struct source *source, enum kind kind, int64_t ns, struct err *err)
{
    char warning[SOURCE_WARNING] = "";
    struct section *section = NULL;
    int code =
        source->class->read(source, kind, clock_mono(&clock_real) + ns, &section, warning, err);

    if (code == 0)
        assert_int_equal(section->kind, kind);
    section_unref(section);
    return code;
}

static int read_kind(struct source *source, enum kind kind, struct err *err)
{
    return read_within(source, kind, PATIENCE, err);
}

static void assert_door(const struct source *source, const char *door, const char *reason)
{
    struct source_about about;

    source_tell(source, &about);
    assert_string_equal(about.door, door);
    assert_string_equal(about.reason, reason);
}

TEST(the_first_door_that_answers_is_taken_and_the_reason_said)
{
    struct source *source = open_auto(with_url);
    struct source_about about;
    struct err err;

    assert_door(source, "none", "");
    assert_int_equal(read_kind(source, KIND_NODES, &err), 0);
    assert_door(source, "libslurm", "first choice");
    source_tell(source, &about);
    assert_string_equal(about.interface, "v0");
    assert_int_equal(script[REST].reads + script[JSON].reads + script[CLI].reads, 0);
    source_close(source);
    for (int i = 0; i < DOORS; i++)
        assert_false(script[i].is_open);
}

TEST(what_nobody_wants_is_skipped_by_the_door_too)
{
    struct source *source = open_auto(with_url);
    struct err err;

    for (int depth = SOURCE_OWNERS; depth >= SOURCE_DETAILS; depth--) {
        source->depth = depth;
        assert_int_equal(read_kind(source, KIND_JOBS, &err), 0);
        assert_int_equal(script[LIBSLURM].source->depth, depth);
    }
    source_close(source);
}

TEST(a_door_is_probed_for_what_is_wanted_of_it)
{
    struct source *source = open_auto(with_url);
    struct err err;

    for (int door = LIBSLURM; door < JSON; door++)
        script[door].is_missing = true;
    script[JSON].needs_owners = script[CLI].needs_owners = true;
    assert_int_equal(source->class->probe(source, &err), -ENOENT);
    source->depth = SOURCE_OWNERS;
    assert_int_equal(source->class->probe(source, &err), 0);
    source_close(source);

    source = open_auto(with_url);
    assert_int_equal(read_kind(source, KIND_JOBS, &err), -ENOENT);
    source->depth = SOURCE_OWNERS;
    assert_int_equal(read_kind(source, KIND_JOBS, &err), 0);
    source_close(source);
}

TEST(doors_that_are_shut_or_missing_are_passed_and_named)
{
    struct source *source;
    struct err err;

    script[LIBSLURM].is_missing = true;
    script[REST].code = ECONNREFUSED;
    source = open_auto(with_url);
    assert_int_equal(read_kind(source, KIND_JOBS, &err), 0);
    assert_door(source, "json", "libslurm: door 0 is not there; rest: door 1 is shut");
    assert_int_equal(script[LIBSLURM].reads, 0);
    source_close(source);
}

TEST(rest_needs_a_url_and_a_prefix_needs_commands)
{
    struct source *source = open_auto((struct source_settings){ .prefix = STR_INIT("ssh a") });
    struct err err;

    assert_int_equal(read_kind(source, KIND_JOBS, &err), 0);
    assert_door(source, "json",
                "libslurm: --slurm.prefix is for commands; rest: there is no --slurm.rest-url");
    source_close(source);
}

TEST(when_no_door_opens_the_error_names_each)
{
    struct source *source;
    struct err err;

    for (int i = 0; i < DOORS; i++)
        script[i].code = EREMOTEIO;
    script[LIBSLURM].is_missing = true;
    source = open_auto((struct source_settings){ 0 });
    assert_int_equal(read_kind(source, KIND_JOBS, &err), -EREMOTEIO);
    assert_string_equal(err.text, "no Slurm interface works. libslurm: door 0 is not there; rest: "
                                  "there is no --slurm.rest-url; json: door 2 is shut; cli: door 3 "
                                  "is shut");
    assert_door(source, "none", "");
    script[CLI].code = 0;
    assert_int_equal(read_kind(source, KIND_JOBS, &err), 0);
    assert_door(source, "cli",
                "libslurm: door 0 is not there; rest: there is no --slurm.rest-url; json: door 2 "
                "is shut");
    source_close(source);
}

TEST(where_there_is_no_slurm_a_simulated_cluster_is_offered_once)
{
    struct source *source;
    struct err err;

    for (int i = 0; i < DOORS; i++)
        script[i].is_missing = true;
    script[LIBSLURM].words = "no sonde-libslurm-RELEASE in /usr/local/libexec/sonde "
                             "(built with Slurm's headers)";
    source = open_auto((struct source_settings){ 0 });
    assert_int_equal(source->class->probe(source, &err), -ENOENT);
    assert_string_equal(err.text, "door 3 is not there; --demo shows a simulated cluster");
    assert_int_equal(read_kind(source, KIND_JOBS, &err), -ENOENT);
    assert_string_equal(err.text,
                        "no Slurm interface works. libslurm: no sonde-libslurm-RELEASE in "
                        "/usr/local/libexec/sonde (built with Slurm's headers); rest: there is no "
                        "--slurm.rest-url; json: door 2 is not there; cli: door 3 is not there; "
                        "--demo shows a simulated cluster");
    script[CLI].is_missing = false;
    assert_int_equal(read_kind(source, KIND_JOBS, &err), 0);
    assert_door(source, "cli",
                "libslurm: no sonde-libslurm-RELEASE in /usr/local/libexec/sonde (built with "
                "Slurm's headers); rest: there is no --slurm.rest-url; json: door 2 is not there");
    source_close(source);
}

TEST(what_is_cut_off_is_seen_to_be)
{
    struct source *source;
    struct err err;

    for (int door = LIBSLURM; door < JSON; door++) {
        script[door].is_missing = true;
        script[door].words = "nothing was found in /a/rather/long/directory/of/this/site, where "
                             "it should have bääään for long";
    }
    source = open_auto(with_url);
    assert_int_equal(read_kind(source, KIND_JOBS, &err), 0);
    assert_door(source, "json",
                "libslurm: nothing was found in /a/rather/long/directory/of/this/site, where it "
                "should have bä…; rest: nothing was found in /a/rather/long/directory/of/this/"
                "site, where it should have bä…");
    source_close(source);
}

TEST(a_door_is_left_when_it_keeps_failing_and_not_before)
{
    struct source *source = open_auto((struct source_settings){ 0 });
    struct err err;

    assert_int_equal(read_kind(source, KIND_JOBS, &err), 0);
    script[LIBSLURM].code = EPIPE;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(read_kind(source, KIND_JOBS, &err), -EPIPE);
        assert_door(source, "libslurm", "first choice");
    }
    assert_int_equal(read_kind(source, KIND_JOBS, &err), 0);
    assert_door(source, "json", "libslurm: door 0 is shut; rest: there is no --slurm.rest-url");
    assert_int_equal(read_kind(source, KIND_NODES, &err), 0);
    assert_int_equal(script[JSON].reads, 2);
    source_close(source);
}

TEST(a_door_that_answers_one_kind_and_not_the_next_is_left_at_once)
{
    struct source *source = open_auto((struct source_settings){ 0 });
    struct err err;

    script[LIBSLURM].is_missing = true;
    assert_int_equal(read_kind(source, KIND_CONFIG, &err), 0);
    script[JSON].code = EBADMSG;
    assert_int_equal(read_kind(source, KIND_NODES, &err), 0);
    assert_door(source, "cli",
                "libslurm: door 0 is not there; rest: there is no --slurm.rest-url; json: door 2 "
                "is shut");
    source_close(source);
}

TEST(a_better_door_is_taken_again_soon_after_it_works)
{
    struct manual_clock clock;
    struct source *source;
    struct err err;

    manual_clock_init(&clock, 0, 0);
    script[LIBSLURM].code = EPIPE;
    if (source_open_auto(&(struct source_settings){ 0 }, &clock.clock, &source, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(read_kind(source, KIND_JOBS, &err), 0);
    assert_int_equal(read_kind(source, KIND_JOBS, &err), 0);
    assert_int_equal(script[LIBSLURM].reads, 1);
    manual_clock_advance(&clock, 10 * NS_PER_SEC);
    assert_int_equal(read_kind(source, KIND_JOBS, &err), 0);
    assert_int_equal(script[LIBSLURM].reads, 2);
    manual_clock_advance(&clock, 10 * NS_PER_SEC);
    assert_int_equal(read_kind(source, KIND_JOBS, &err), 0);
    assert_int_equal(script[LIBSLURM].reads, 2);
    script[LIBSLURM].code = 0;
    manual_clock_advance(&clock, 10 * NS_PER_SEC);
    assert_int_equal(read_kind(source, KIND_SHARES, &err), 0);
    assert_int_equal(script[LIBSLURM].reads, 2);
    assert_int_equal(read_kind(source, KIND_NODES, &err), 0);
    assert_door(source, "libslurm", "it works again");
    source_close(source);
    manual_clock_destroy(&clock);
}

TEST(a_trial_of_a_better_door_takes_a_tenth_of_the_deadline_or_a_second)
{
    static const int64_t cases[][2] = {
        { PATIENCE, PATIENCE / 10 },
        { 5 * NS_PER_SEC, NS_PER_SEC },
        { NS_PER_SEC / 2, NS_PER_SEC / 2 },
    };
    struct manual_clock clock;
    struct source *source = open_with(&clock, (struct source_settings){ 0 });
    struct err err;

    script[LIBSLURM].code = ETIMEDOUT;
    assert_int_equal(read_kind(source, KIND_JOBS, &err), 0);
    for (size_t i = 0; i < COUNT(cases); i++) {
        unsigned before = script[LIBSLURM].reads;

        manual_clock_advance(&clock, 320 * NS_PER_SEC);
        assert_int_equal(read_within(source, KIND_JOBS, cases[i][0], &err), 0);
        assert_int_equal(script[LIBSLURM].reads, before + 1);
        assert_true(script[LIBSLURM].last_patience <= cases[i][1]);
        /* What a busy machine takes of the others would be seen. */
        if (cases[i][0] == PATIENCE)
            assert_true(script[LIBSLURM].last_patience > cases[i][1] / 8 * 7);
    }
    source_close(source);
    manual_clock_destroy(&clock);
}

TEST(a_controller_that_is_down_moves_nothing_and_its_error_is_the_doors_own)
{
    struct source *source = open_auto((struct source_settings){ 0 });
    struct err err;

    assert_int_equal(read_kind(source, KIND_JOBS, &err), 0);
    for (int i = 0; i < DOORS; i++)
        script[i].code = EREMOTEIO;
    for (int i = 0; i < 7; i++) {
        assert_int_equal(read_kind(source, KIND_JOBS, &err), -EREMOTEIO);
        assert_string_equal(err.text, "door 0 is shut");
    }
    assert_door(source, "libslurm", "first choice");
    assert_int_equal(script[CLI].reads, 2);
    for (int i = 0; i < DOORS; i++)
        script[i].code = 0;
    assert_int_equal(read_kind(source, KIND_JOBS, &err), 0);
    assert_door(source, "libslurm", "first choice");
    source_close(source);
}

TEST(what_a_door_cannot_tell_is_asked_of_the_next_and_nothing_else)
{
    struct source *source = open_auto(with_url);
    struct err err;

    script[LIBSLURM].is_missing = true;
    script[REST].lacks = KIND_BIT(KIND_SHARES);
    assert_int_equal(read_kind(source, KIND_JOBS, &err), 0);
    assert_int_equal(read_kind(source, KIND_SHARES, &err), 0);
    assert_int_equal(read_kind(source, KIND_SHARES, &err), 0);
    assert_int_equal(read_kind(source, KIND_JOBS, &err), 0);
    assert_door(source, "rest", "libslurm: door 0 is not there");
    assert_int_equal(script[REST].reads, 3);
    assert_int_equal(script[JSON].reads, 2);
    script[JSON].code = script[CLI].code = ENOENT;
    for (int i = 0; i < 3; i++)
        assert_int_equal(read_kind(source, KIND_SHARES, &err), -ENOENT);
    assert_int_equal(read_kind(source, KIND_SHARES, &err), -EOPNOTSUPP);
    source_close(source);
}

TEST(a_door_that_hangs_leaves_time_to_the_others)
{
    struct source *source = open_auto(with_url);
    struct err err;

    for (int i = 0; i < DOORS; i++)
        script[i].code = ETIMEDOUT;
    assert_int_equal(read_kind(source, KIND_JOBS, &err), -ETIMEDOUT);
    assert_in_range((uint64_t)script[LIBSLURM].last_patience, PATIENCE / 8, PATIENCE / 4);
    assert_in_range((uint64_t)script[CLI].last_patience, PATIENCE / 8 * 7, PATIENCE);
    source_close(source);
}

TEST(while_slurm_is_down_the_door_in_use_has_all_the_time_but_when_others_are_tried)
{
    static const bool is_shared[] = { false, false, true, false, false, true };
    struct source *source = open_auto(with_url);
    struct err err;

    assert_int_equal(read_kind(source, KIND_JOBS, &err), 0);
    for (int i = 0; i < DOORS; i++)
        script[i].code = ETIMEDOUT;
    for (size_t i = 0; i < COUNT(is_shared); i++) {
        assert_int_equal(read_kind(source, KIND_JOBS, &err), -ETIMEDOUT);
        assert_int_equal(script[LIBSLURM].last_patience < PATIENCE / 8 * 3, is_shared[i]);
    }
    source_close(source);
}

TEST(json_that_takes_long_gives_way_to_text)
{
    struct manual_clock clock;
    struct source *source = open_with(&clock, (struct source_settings){ 0 });
    struct source_about about;
    struct err err;

    script[LIBSLURM].is_missing = true;
    assert_int_equal(read_kind(source, KIND_NODES, &err), 0);
    script[JSON].takes_ns = 21 * NS_PER_SEC / 10;
    assert_int_equal(read_kind(source, KIND_JOBS, &err), 0);
    source_tell(source, &about);
    assert_string_equal(about.door, "cli");
    assert_non_null(strstr(about.reason, "json: a look at the jobs took 2.1 s"));
    assert_int_equal(read_kind(source, KIND_JOBS, &err), 0);
    assert_int_equal(script[JSON].reads, 2);
    source_close(source);
    manual_clock_destroy(&clock);
}

TEST(json_comes_back_if_the_text_cannot_be_had)
{
    struct manual_clock clock;
    struct source *source = open_with(&clock, (struct source_settings){ 0 });
    struct err err;

    script[LIBSLURM].is_missing = true;
    script[JSON].takes_ns = 21 * NS_PER_SEC / 10;
    assert_int_equal(read_kind(source, KIND_NODES, &err), 0);
    assert_int_equal(read_kind(source, KIND_JOBS, &err), 0);
    script[CLI].code = EBADMSG;
    for (int i = 0; i < 2; i++)
        assert_int_equal(read_kind(source, KIND_JOBS, &err), -EBADMSG);
    assert_int_equal(read_kind(source, KIND_JOBS, &err), 0);
    assert_int_equal(read_kind(source, KIND_JOBS, &err), 0);
    assert_int_equal(script[CLI].reads, 3);
    source_close(source);
    manual_clock_destroy(&clock);
}

TEST(json_does_not_pay_for_a_better_door_that_hangs)
{
    struct manual_clock clock;
    struct source *source = open_with(&clock, (struct source_settings){ 0 });
    struct source_about about;
    struct err err;

    script[LIBSLURM].code = ETIMEDOUT;
    assert_int_equal(read_kind(source, KIND_JOBS, &err), 0);
    script[LIBSLURM].takes_ns = 21 * NS_PER_SEC / 10;
    manual_clock_advance(&clock, 10 * NS_PER_SEC);
    assert_int_equal(read_kind(source, KIND_JOBS, &err), 0);
    assert_int_equal(script[LIBSLURM].reads, 2);
    source_tell(source, &about);
    assert_string_equal(about.door, "json");
    source_close(source);
    manual_clock_destroy(&clock);
}

TEST(a_better_door_that_fails_again_is_left_at_once_and_tried_less_often)
{
    struct manual_clock clock;
    struct source *source = open_with(&clock, (struct source_settings){ 0 });
    static const struct {
        int64_t seconds;
        unsigned reads;
    } trials[] = { { 10, 2 }, { 10, 0 }, { 10, 2 }, { 30, 0 }, { 10, 2 } };
    struct err err;

    script[LIBSLURM].lacks = KIND_BIT(KIND_JOBS);
    assert_int_equal(read_kind(source, KIND_NODES, &err), 0);
    assert_int_equal(read_kind(source, KIND_JOBS, &err), 0);
    /* Fails for the jobs, works for the nodes. */
    for (size_t i = 0; i < COUNT(trials); i++) {
        unsigned before = script[LIBSLURM].reads;

        manual_clock_advance(&clock, trials[i].seconds * NS_PER_SEC);
        assert_int_equal(read_kind(source, KIND_NODES, &err), 0);
        assert_int_equal(read_kind(source, KIND_JOBS, &err), 0);
        assert_int_equal(script[LIBSLURM].reads - before, trials[i].reads);
    }
    /* It works for good, */
    script[LIBSLURM].lacks = 0;
    manual_clock_advance(&clock, 320 * NS_PER_SEC);
    assert_int_equal(read_kind(source, KIND_NODES, &err), 0);
    assert_door(source, "libslurm", "it works again");
    /* but not for the jobs after all. */
    script[LIBSLURM].code = EPIPE;
    assert_int_equal(read_kind(source, KIND_JOBS, &err), 0);
    /* Long afterwards, all is forgiven. */
    script[LIBSLURM].code = 0;
    manual_clock_advance(&clock, 320 * NS_PER_SEC);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(read_kind(source, KIND_JOBS, &err), 0);
        manual_clock_advance(&clock, 320 * NS_PER_SEC);
    }
    script[LIBSLURM].code = EPIPE;
    for (int i = 0; i < 2; i++)
        assert_int_equal(read_kind(source, KIND_JOBS, &err), -EPIPE);
    assert_int_equal(read_kind(source, KIND_JOBS, &err), 0);
    script[LIBSLURM].code = 0;
    manual_clock_advance(&clock, 10 * NS_PER_SEC);
    assert_int_equal(read_kind(source, KIND_JOBS, &err), 0);
    assert_door(source, "libslurm", "it works again");
    assert_int_equal(read_kind(source, KIND_NODES, &err), 0);
    assert_in_range((uint64_t)script[LIBSLURM].last_patience, PATIENCE / 8 * 7, PATIENCE);
    source_close(source);
    manual_clock_destroy(&clock);
}

TEST(what_was_asked_of_another_door_goes_back_to_the_one_for_all)
{
    struct manual_clock clock;
    struct source *source = open_with(&clock, with_url);
    struct err err;

    script[LIBSLURM].is_missing = true;
    script[REST].lacks = KIND_BIT(KIND_SHARES);
    assert_int_equal(read_kind(source, KIND_JOBS, &err), 0);
    assert_int_equal(read_kind(source, KIND_SHARES, &err), 0);
    script[REST].lacks = 0;
    script[REST].code = EREMOTEIO;
    manual_clock_advance(&clock, 320 * NS_PER_SEC);
    assert_int_equal(read_kind(source, KIND_SHARES, &err), 0);
    assert_int_equal(script[REST].reads, 3);
    assert_int_equal(script[JSON].reads, 2);
    script[REST].code = 0;
    assert_int_equal(read_kind(source, KIND_SHARES, &err), 0);
    assert_int_equal(script[JSON].reads, 3);
    manual_clock_advance(&clock, 320 * NS_PER_SEC);
    assert_int_equal(read_kind(source, KIND_SHARES, &err), 0);
    assert_int_equal(read_kind(source, KIND_SHARES, &err), 0);
    assert_int_equal(script[JSON].reads, 3);
    source_close(source);
    manual_clock_destroy(&clock);
}

TEST(a_better_door_that_is_slow_is_better_than_none)
{
    struct source *source;
    struct err err;

    script[LIBSLURM].is_missing = true;
    script[REST].code = script[JSON].code = ETIMEDOUT;
    source = open_auto(with_url);
    assert_int_equal(read_kind(source, KIND_JOBS, &err), 0);
    script[REST].code = 0; /* it has not been tried again yet */
    script[CLI].code = ENOENT;
    for (int i = 0; i < 2; i++)
        assert_int_equal(read_kind(source, KIND_JOBS, &err), -ENOENT);
    assert_int_equal(read_kind(source, KIND_JOBS, &err), 0);
    assert_in_range((uint64_t)script[REST].last_patience, PATIENCE / 8 * 3, PATIENCE / 2);
    assert_door(source, "rest", "libslurm: door 0 is not there");
    source_close(source);
}

TEST(who_cancels_it_cancels_every_door)
{
    struct source *source = open_auto(with_url);
    struct err err;

    source_cancel(source);
    for (int i = 0; i < DOORS; i++)
        assert_true(atomic_load(&script[i].source->cancelled));
    assert_int_equal(read_kind(source, KIND_JOBS, &err), -ECANCELED);
    assert_int_equal(script[REST].reads, 0);
    source_close(source);
}
