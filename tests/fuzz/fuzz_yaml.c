/* SPDX-License-Identifier: GPL-2.0-or-later */
/* YAML as configuration: a tree keeps what base/yaml.h promises and, written out again, reads as
 * the same one; a refusal names its line. As the file of --config.file it never beats a flag. */
#include "base/buf.h"
#include "base/option.h"
#include "base/yaml.h"

#include "fuzz.h"

#include <sys/mman.h>

enum { LEVELS_MAX = 32, NODES_MAX = 100 * 1000, WRITTEN_MAX = 1 << 20 };

static void check_node(const struct yaml_node *node, size_t level, unsigned n_lines,
                       size_t *n_nodes)
{
    FUZZ_CHECK(++*n_nodes <= NODES_MAX);
    FUZZ_CHECK(node->line >= 1 && node->line <= n_lines, "%u of %u", node->line, n_lines);
    FUZZ_CHECK(node->kind == YAML_SCALAR || level < LEVELS_MAX);
    if (node->kind == YAML_SCALAR) {
        FUZZ_CHECK(!node->child);
        FUZZ_CHECK(strlen(node->text.p) == node->text.n);
    }
    for (const struct yaml_node *child = node->child; child; child = child->next) {
        FUZZ_CHECK((node->kind == YAML_MAPPING) == (child->key.n > 0));
        check_node(child, level + 1, n_lines, n_nodes);
    }
}

/* No key of a mapping comes twice. Quadratic, so only for small ones. */
static void check_members(const struct yaml_node *node)
{
    size_t n = 0;

    for (const struct yaml_node *child = node->child; child; child = child->next) {
        check_members(child);
        if (node->kind != YAML_MAPPING || n++ >= 100)
            continue;
        for (const struct yaml_node *before = node->child; before != child; before = before->next)
            FUZZ_CHECK(!str_eq(before->key, child->key));
    }
}

static uint32_t code_point(struct str character)
{
    static const unsigned char first_bits[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
    uint32_t value = (unsigned char)character.p[0] & first_bits[character.n];

    for (size_t i = 1; i < character.n; i++)
        value = value << 6 | ((unsigned char)character.p[i] & 0x3f);
    return value;
}

static void write_text(struct str text, struct buf *out)
{
    buf_byte(out, '"');
    for (size_t n; text.n; text = str_skip(text, n)) {
        n = str_utf8_len(text);
        FUZZ_CHECK(n);
        buf_printf(out, "\\U%08x", code_point(str_head(text, n)));
    }
    buf_byte(out, '"');
}

/* In one line. Keys have their question mark, without which they may not be long. */
static void write_node(const struct yaml_node *node, struct buf *out)
{
    if (node->kind == YAML_SCALAR) {
        write_text(node->text, out);
        return;
    }
    buf_byte(out, node->kind == YAML_LIST ? '[' : '{');
    for (const struct yaml_node *child = node->child; child; child = child->next) {
        if (node->kind == YAML_MAPPING) {
            buf_text(out, "? ");
            write_text(child->key, out);
            buf_text(out, " : ");
        }
        write_node(child, out);
        buf_text(out, ", ");
    }
    buf_byte(out, node->kind == YAML_LIST ? ']' : '}');
}

static bool is_same(const struct yaml_node *a, const struct yaml_node *b)
{
    if (a->kind != b->kind || !str_eq(a->key, b->key) || !str_eq(a->text, b->text))
        return false;
    for (a = a->child, b = b->child; a && b; a = a->next, b = b->next)
        if (!is_same(a, b))
            return false;
    return !a && !b;
}

static void check_rewritten(struct arena *arena, const struct yaml_node *root)
{
    struct yaml_node *again;
    struct buf written;
    struct err err;

    buf_init(&written, WRITTEN_MAX);
    write_node(root, &written);
    if (!written.over) {
        int code = yaml_read_text(arena, "written", buf_str(&written), &again, &err);

        FUZZ_CHECK(code == 0, "%s", err.text);
        FUZZ_CHECK(is_same(root, again));
    }
    buf_free(&written);
}

static void check_refusal(int code, const struct err *err, unsigned n_lines)
{
    char *end;
    unsigned long line;

    FUZZ_CHECK(code == -EBADMSG || code == -EFBIG, "%d", code);
    FUZZ_CHECK(err->code == -code);
    FUZZ_CHECK(str_starts(str_of(err->text), STR("input:")), "%s", err->text);
    line = strtoul(err->text + strlen("input:"), &end, 10);
    FUZZ_CHECK(line >= 1 && line <= n_lines && str_starts(str_of(end), STR(": ")), "%s", err->text);
}

/* libyaml also ends lines at U+0085, U+2028 and U+2029, and may name the one after the last. */
static unsigned count_lines(struct str text)
{
    unsigned n = 2;

    for (; text.n; text = str_skip(text, 1))
        n += text.p[0] == '\n' || text.p[0] == '\r' || str_starts(text, STR("\xc2\x85")) ||
             str_starts(text, STR("\xe2\x80\xa8")) || str_starts(text, STR("\xe2\x80\xa9"));
    return n;
}

/* Returns what yaml_read_text does. */
static int check_yaml(struct str text)
{
    struct arena arena = { 0 };
    struct yaml_node *root = NULL;
    struct err err = { 0 };
    unsigned n_lines = count_lines(text);
    int code = yaml_read_text(&arena, "input", text, &root, &err);

    if (code < 0) {
        FUZZ_CHECK(!root);
        check_refusal(code, &err, n_lines);
    } else {
        check_node(root, 0, n_lines, &(size_t){ 0 });
        check_members(root);
        check_rewritten(&arena, root);
    }
    arena_clear(&arena);
    return code;
}

struct settings {
    bool demo;
    struct str address, level;
    struct option_list commands;
    int64_t timeout_ns;
    uint64_t bytes, count;
};

#define ROW(row_name, row_type, member)                                                            \
    {                                                                                              \
        .name = row_name, .type = row_type, .offset = offsetof(struct settings, member),           \
        .choices = "debug info warn", .group = "All", .help = "One."                               \
    }

static const struct option options[] = {
    ROW("demo", OPTION_BOOL, demo),
    ROW("web.address", OPTION_STRING, address),
    ROW("address", OPTION_STRING, address),
    ROW("log.level", OPTION_CHOICE, level),
    ROW("web", OPTION_LIST, commands),
    ROW("web.timeout", OPTION_DURATION, timeout_ns),
    ROW("web.limit.bytes", OPTION_BYTES, bytes),
    ROW("count", OPTION_UINT, count),
    { .name = NULL },
};
static const struct option_command command = { .name = "fuzz", .options = options };

static int parse(struct arena *arena, const char *const *argv, struct settings *settings)
{
    struct err err = { 0 };
    char **rest;
    int argc = 0, code;

    while (argv[argc])
        argc++;
    code = option_parse(&command, argc, (char **)argv, NULL, arena, settings, &rest, &err);
    FUZZ_CHECK(code == OPTION_GO_ON || code == -EINVAL, "%d", code);
    FUZZ_CHECK(err.code == -code && !code == !err.text[0], "%s", err.text);
    return code;
}

static void check_settings(const struct settings *settings)
{
    FUZZ_CHECK(!settings->level.n || str_find_str(STR("debug info warn"), settings->level) < 15);
    FUZZ_CHECK(settings->timeout_ns >= 0);
    for (size_t i = 0; i < settings->commands.n; i++)
        FUZZ_CHECK(!settings->commands.items[i].p[settings->commands.items[i].n]);
}

static void check_flags_win(const struct settings *settings)
{
    FUZZ_CHECK(!settings->demo);
    FUZZ_CHECK(str_eq(settings->address, STR("here")));
    FUZZ_CHECK(settings->commands.n == 1 && str_eq(settings->commands.items[0], STR("one")));
    FUZZ_CHECK(settings->count == 7);
}

static void check_options(const char *flag, int yaml_code)
{
    const char *file_only[] = { "fuzz", flag, NULL };
    const char *with_flags[] = { "fuzz",      flag,        "--no-demo", "--address=here",
                                 "--web=one", "--count=7", NULL };
    struct settings settings;
    struct arena arena = { 0 };
    int code;

    code = parse(&arena, file_only, &settings);
    FUZZ_CHECK(yaml_code == 0 || code < 0);
    if (code == 0)
        check_settings(&settings);
    FUZZ_CHECK(parse(&arena, with_flags, &settings) == code);
    if (code == 0)
        check_flags_win(&settings);
    arena_clear(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = { (const char *)data, size };
    int yaml_code, fd;
    char flag[64];

    if (size > WRITTEN_MAX)
        return 0;
    yaml_code = check_yaml(text);
    fd = memfd_create("config", MFD_CLOEXEC);
    FUZZ_CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(flag, sizeof(flag), "--config.file=/proc/self/fd/%d", fd);
    check_options(flag, yaml_code);
    close(fd);
    return 0;
}
