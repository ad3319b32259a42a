/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of source/lustre_ids: job ids as Lustre writes them. */
#include "test.h"

#include "base/arena.h"
#include "source/lustre_ids.h"

/* What an id is expected to say. */
struct said {
    bool is_read;
    uint32_t job_id;     /* 0: none */
    int64_t user_id;     /* -1: none */
    const char *process; /* NULL: none */
};

#define UNREADABLE                                                                                 \
    {                                                                                              \
        .is_read = false                                                                           \
    }
#define JOB(id)                                                                                    \
    {                                                                                              \
        true, id, -1, NULL                                                                         \
    }
#define PROCESS(name, uid)                                                                         \
    {                                                                                              \
        true, 0, uid, name                                                                         \
    }

static void assert_said(struct str id, bool is_read, const struct lustre_parts *parts,
                        const struct said *said)
{
    if (is_read != said->is_read)
        fail_msg("\"%.*s\" is %s", STR_ARG(id), is_read ? "read" : "not read");
    if (!is_read)
        return;
    if (parts->has_job != (said->job_id != 0) ||
        (parts->has_job && parts->job_id != said->job_id) ||
        parts->has_user != (said->user_id >= 0) ||
        (parts->has_user && parts->user_id != said->user_id) ||
        !str_eq(parts->process, str_of(said->process)))
        fail_msg("\"%.*s\" is job %u (%d), user %u (%d), process \"%.*s\"", STR_ARG(id),
                 parts->job_id, parts->has_job, parts->user_id, parts->has_user,
                 STR_ARG(parts->process));
}

/* In memory of its own, so that reading past its end is found. */
static void assert_usual(struct str id, const struct said *said)
{
    char *copy = heap_array(id.n, 1);
    struct lustre_parts parts;
    bool is_read;

    memcpy(copy, id.p, id.n);
    id.p = copy;
    is_read = lustre_id_read(id, &parts);
    assert_said(id, is_read, &parts, said);
    free(copy);
}

TEST(digits_are_a_job_and_anything_else_a_name_and_a_user)
{
    static const struct {
        struct str id;
        struct said said;
    } cases[] = {
        { STR_INIT("1"), JOB(1) },
        { STR_INIT("26515966"), JOB(26515966) },
        { STR_INIT("4294967295"), JOB(UINT32_MAX) },
        { STR_INIT("00042"), JOB(42) },
        { STR_INIT("bash.1000"), PROCESS("bash", 1000) },
        { STR_INIT("bash.0"), PROCESS("bash", 0) },
        { STR_INIT("python3.11.1000"), PROCESS("python3.11", 1000) },
        { STR_INIT("123.1000"), PROCESS("123", 1000) },
        { STR_INIT(".1000"), PROCESS("", 1000) },
        { STR_INIT("..1000"), PROCESS(".", 1000) },
        { STR_INIT("kworker/u8:1 \"x\"\n.4294967295"),
          PROCESS("kworker/u8:1 \"x\"\n", UINT32_MAX) },
        { STR_INIT("a\0b.7"), { true, 0, 7, "a" } },
    };
    struct lustre_parts parts;

    for (size_t i = 0; i + 1 < COUNT(cases); i++)
        assert_usual(cases[i].id, &cases[i].said);
    assert_true(lustre_id_read(cases[COUNT(cases) - 1].id, &parts));
    assert_int_equal(parts.process.n, 3);
}

TEST(what_is_neither_is_not_read)
{
    static const struct str ids[] = {
        STR_INIT(""),
        STR_INIT("0"),
        STR_INIT("000"),
        STR_INIT("4294967296"),
        STR_INIT("18446744073709551617"),
        STR_INIT("99999999999999999999999999999999999999999"),
        STR_INIT("+1"),
        STR_INIT("-1"),
        STR_INIT(" 1"),
        STR_INIT("1 "),
        STR_INIT("bash"),
        STR_INIT("bash."),
        STR_INIT("bash.x"),
        STR_INIT("bash.1x"),
        STR_INIT("bash.-1"),
        STR_INIT("bash.+1"),
        STR_INIT("bash.4294967296"),
        STR_INIT("bash 1000"),
        STR_INIT("bash1000"),
        STR_INIT("."),
        STR_INIT("1."),
        STR_INIT("\xff\xff"),
    };
    const struct said unreadable = UNREADABLE;

    for (size_t i = 0; i < COUNT(ids); i++)
        assert_usual(ids[i], &unreadable);
}

static struct lustre_format *format_of(const char *text)
{
    struct lustre_format *format = NULL;
    struct err err = { 0 };

    if (lustre_format_new(str_of(text), &format, &err) < 0)
        fail_msg("%s", err.text);
    return format;
}

TEST(each_format_is_read_as_a_site_has_set_it)
{
    static const struct {
        const char *format, *id;
        struct said said;
    } cases[] = {
        { "%j", "123", JOB(123) },
        { "%j", "", UNREADABLE },
        { "%j", "0", UNREADABLE },
        { "%j", "4294967296", UNREADABLE },
        { "%j", "12a", UNREADABLE },
        { "%j", "bash.1000", UNREADABLE },
        { "%e.%u", "bash.1000", PROCESS("bash", 1000) },
        { "%e.%u", "python3.11.1000", PROCESS("python3.11", 1000) },
        { "%e.%u", ".1000", PROCESS("", 1000) },
        { "%e.%u", "bash.", UNREADABLE },
        { "%e.%u", "bash.x", UNREADABLE },
        { "%e.%u", "123", UNREADABLE },
        { "%e.%u", "a.5.6", PROCESS("a.5", 6) },
        { "%j:%e:%H", "123:python3:node1", { true, 123, -1, "python3" } },
        { "%j:%e:%H", "123:a:b:c:node1", { true, 123, -1, "a:b:c" } },
        { "%j:%e:%H", ":sshd:login-2", { true, 0, -1, "sshd" } },
        { "%j:%e:%H", "123:python3:", { true, 123, -1, "python3" } },
        { "%j:%e:%H", "123::", JOB(123) },
        { "%j:%e:%H", "123:python3", UNREADABLE },
        { "%j:%e:%H", "123:python3:node1.site", UNREADABLE },
        { "%j:%e:%H", "::node1", UNREADABLE },
        { "%j:%e:%h", "123:python3:node1.site", { true, 123, -1, "python3" } },
        { "%j.%u", "123.1000", { true, 123, 1000, NULL } },
        { "%j.%u", ".1000", { true, 0, 1000, NULL } },
        { "%j.%u", "bash.1000", UNREADABLE },
        { "%j.%u", "123.", UNREADABLE },
        { "%H:%e:%u", "node1:a:b:1000", PROCESS("a:b", 1000) },
        { "%H:%e:%u", "node1::1000", PROCESS("", 1000) },
        { "%H:%e:%u", "no/de:a:1000", UNREADABLE },
        { "%e.%h.%u", "sh.a.b.7", PROCESS("sh.a", 7) },
        { "%u:%g:%p:%j", "1000:100:4711:", { true, 0, 1000, NULL } },
        { "%u:%g:%p:%j", "1000:100:4711:5", { true, 5, 1000, NULL } },
        { "%u:%g:%p:%j", "1000::4711:5", UNREADABLE },
        { "job-%j", "job-5", JOB(5) },
        { "job-%j", "5", UNREADABLE },
        { "%h.%e", "node1.site.bash", { true, 0, -1, "bash" } },
        { "%h.%e", "node1.site.bash.", { true, 0, -1, "bash." } },
        { "%h.%e", "node1.", UNREADABLE },
        { "%h.%e.%u", "node1.site.bash..7", PROCESS("bash.", 7) },
        { "%h.%e.%u", "node1..7", PROCESS("", 7) },
        { "<%e>", "<a>b>", { true, 0, -1, "a>b" } },
        { "<%e>", "<a", UNREADABLE },
        { "\"%j:%e\"", "5:x", { true, 5, -1, "x" } },
        { "'%j:%e'", "5:x", { true, 5, -1, "x" } },
        { "\"%j\":%e", "\"5\":x", { true, 5, -1, "x" } },
        { "%j : %e", "5:x", { true, 5, -1, "x" } },
        /* Of a way that did not lead to the end, nothing is kept. */
        { "%e-%j-%H", "a--b-5", { true, 0, -1, "a" } },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct lustre_format *format = format_of(cases[i].format);
        struct lustre_parts parts;
        bool is_read = lustre_format_read(format, str_of(cases[i].id), &parts);

        assert_said(str_of(cases[i].id), is_read, &parts, &cases[i].said);
        lustre_format_free(format);
    }
}

TEST(a_format_that_could_not_be_read_back_is_refused)
{
    static const struct {
        const char *format, *because;
    } cases[] = {
        { "", "none of %j, %e and %u" },
        { "%H", "none of %j, %e and %u" },
        { "jobs", "none of %j, %e and %u" },
        { "%x.%u", "%x is no code" },
        { "%%j", "%% is no code" },
        { "%j%", "ends with a %" },
        { "%j:%j", "%j is there twice" },
        { "%j:%h:%H", "both name the host" },
        { "%j%e", "between %j and %e" },
        { "%e %u", "between %e and %u" },
        { "%j0:%u", "a digit stands beside %j" },
        { "%e.1%u", "a digit stands beside %u" },
        { "%\xff", "\\xff is no code" },
    };
    struct lustre_format *format = NULL;
    char endless[300];
    struct err err;

    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(lustre_format_new(str_of(cases[i].format), &format, &err), -EINVAL);
        assert_contains(err.text, cases[i].because);
        assert_contains(err.text, "no format of Lustre's job ids");
    }
    memset(endless, 'a', sizeof(endless));
    assert_int_equal(lustre_format_new((struct str){ endless, sizeof(endless) }, &format, &err),
                     -EINVAL);
    assert_null(format);
    assert_null(lustre_format_free(NULL));
}

TEST(an_id_that_is_too_long_is_of_no_format)
{
    struct lustre_format *format = format_of("%e.%u");
    struct lustre_parts parts;
    char id[257];

    memset(id, 'a', sizeof(id));
    memcpy(id + 252, ".1000", 5);
    assert_false(lustre_format_read(format, (struct str){ id, 257 }, &parts));
    assert_true(lustre_format_read(format, (struct str){ id, 256 }, &parts));
    assert_int_equal(parts.user_id, 100);
    assert_int_equal(parts.process.n, 252);
    lustre_format_free(format);
}
