/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of base/shell: words for a shell. */
#include "test.h"

#include "base/shell.h"
#include "base/spawn.h"

static int collect(void *ctx, struct str piece, struct err *err)
{
    (void)err;
    buf_put(ctx, piece);
    return 0;
}

static const char *const shells[] = { "sh", "dash", "bash", "ksh", "zsh", "tcsh", "fish" };

/* What that shell makes of the word, between angle brackets. */
static void hear(const char *shell, struct str word, struct buf *heard)
{
    struct buf line;
    const char *argv[] = { shell, "-c", NULL, NULL };
    struct spawn spawn = {
        .argv = argv,
        .deadline_ns = clock_mono(&clock_real) + TEST_DEADLINE,
        .max_output = 1 << 20,
        .sink = collect,
        .ctx = heard,
    };
    struct spawn_result result;
    struct err err = { 0 };

    buf_init(&line, 1 << 16);
    buf_text(&line, "exec printf '<%s>' ");
    shell_word(&line, word);
    argv[2] = line.p;
    buf_reset(heard);
    if (spawn_run(&spawn, &result, &err) < 0)
        fail_msg("%s: %s", shell, err.text);
    buf_free(&line);
}

static void assert_heard(const char *shell, struct str word)
{
    struct buf heard, wanted;

    buf_init(&heard, 1 << 16);
    buf_init(&wanted, 1 << 16);
    hear(shell, word, &heard);
    buf_printf(&wanted, "<%.*s>", STR_ARG(word));
    if (!str_eq(buf_str(&heard), buf_str(&wanted)))
        fail_msg("%s heard %s, not %s", shell, heard.p, wanted.p);
    buf_free(&heard);
    buf_free(&wanted);
}

TEST(every_shell_hears_the_same_word)
{
    static const char *const words[] = {
        "",
        "plain",
        "two  words ",
        "it's 'quoted'",
        "'",
        "''\\''",
        "say \"hi\"",
        "back\\slash\\",
        "\\n \\t \\'",
        "history!! !echo !$ a!b!",
        "$HOME ${x} `id` $(id)",
        "*?[a-z]{1,2}~ ~root",
        "; & | > < # % ^ = ( )",
        "tab\there\r",
        "café 日本",
        "-n",
    };

    for (size_t i = 0; i < COUNT(shells); i++)
        for (size_t k = 0; spawn_exists(shells[i]) && k < COUNT(words); k++)
            assert_heard(shells[i], str_of(words[k]));
}

TEST(a_newline_is_heard_by_all_but_csh)
{
    for (size_t i = 0; i < COUNT(shells); i++)
        if (spawn_exists(shells[i]) && !str_eq(str_of(shells[i]), STR("tcsh")))
            assert_heard(shells[i], STR("first\nsecond\n\n"));
}

TEST(every_byte_is_heard)
{
    char bytes[255];

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)(i + 1);
    assert_heard("sh", (struct str){ bytes, sizeof(bytes) });
}
