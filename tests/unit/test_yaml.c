/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of base/yaml: configuration files. */
#include "test.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/yaml.h"
#include "files.h"

#include <fcntl.h>
#include <sys/stat.h>

struct fixture {
    struct arena arena;
    struct err err;
    struct yaml_node *root;
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

static void read_well(struct str text)
{
    int code = yaml_read_text(&fixture->arena, "web.yml", text, &fixture->root, &fixture->err);

    if (code)
        fail_msg("%d: %s", code, fixture->err.text);
}

static void assert_refused(struct str text, int code, const char *sentence)
{
    struct yaml_node *const untouched = (struct yaml_node *)&fixture->err;

    fixture->root = untouched;
    assert_int_equal(
        yaml_read_text(&fixture->arena, "web.yml", text, &fixture->root, &fixture->err), -code);
    assert_int_equal(fixture->err.code, code);
    assert_string_equal(fixture->err.text, sentence);
    assert_ptr_equal(fixture->root, untouched);
}

static struct yaml_node *member(struct yaml_node *mapping, const char *key)
{
    struct yaml_node *node = mapping->child;

    while (node && !str_eq(node->key, str_of(key)))
        node = node->next;
    if (!node)
        fail_msg("no member %s", key);
    return node;
}

TEST(a_document_becomes_a_tree_that_knows_its_lines)
{
    struct yaml_node *server, *users, *ciphers;

    read_well(STR("# who may ask\n"
                  "basic_auth_users:\n"
                  "  alice: $2b$10$abc\n"
                  "  bob:\n"
                  "    secret\n"
                  "tls_server_config: {cert_file: /etc/x.crt, empty: , text: \"\"}\n"
                  "ciphers:\n"
                  "  - A\n"
                  "  - [B, C]\n"));
    users = member(fixture->root, "basic_auth_users");
    assert_int_equal(users->kind, YAML_MAPPING);
    assert_int_equal(users->line, 2);
    assert_str(users->key, "basic_auth_users");
    assert_str(member(users, "alice")->text, "$2b$10$abc");
    assert_int_equal(member(users, "bob")->line, 4);
    assert_str(member(users, "bob")->text, "secret");

    server = member(fixture->root, "tls_server_config");
    assert_str(member(server, "cert_file")->text, "/etc/x.crt");
    assert_str(member(server, "empty")->text, "");
    assert_false(member(server, "empty")->quoted);
    assert_true(member(server, "text")->quoted);

    ciphers = member(fixture->root, "ciphers");
    assert_int_equal(ciphers->kind, YAML_LIST);
    assert_str(ciphers->child->text, "A");
    assert_int_equal(ciphers->child->line, 8);
    assert_str(ciphers->child->next->child->next->text, "C");
    assert_null(ciphers->child->next->next);
    assert_int_equal(ciphers->child->key.n, 0);
}

TEST(texts_are_ended_by_nul_for_use_as_paths)
{
    read_well(STR("file: 'x y'\nblock: |\n  1\n  2\nquoted: \"\\u00fc\"\n"));
    assert_string_equal(member(fixture->root, "file")->text.p, "x y");
    assert_string_equal(member(fixture->root, "block")->text.p, "1\n2\n");
    assert_string_equal(member(fixture->root, "quoted")->text.p, "ü");
}

TEST(nothing_is_an_empty_mapping)
{
    static const char *const nothings[] = { "",      "# only words\n",
                                            "---\n", "---\n...\n",
                                            "\n\n",  "\xef\xbb\xbf# byte order mark\n" };

    for (size_t i = 0; i < COUNT(nothings); i++) {
        read_well(str_of(nothings[i]));
        assert_int_equal(fixture->root->kind, YAML_MAPPING);
        assert_null(fixture->root->child);
    }
    read_well((struct str){ NULL, 0 });
    assert_null(fixture->root->child);
}

TEST(a_byte_order_mark_is_not_part_of_the_first_key)
{
    read_well(STR("\xef\xbb\xbf"
                  "a: b\n"));
    assert_str(member(fixture->root, "a")->text, "b");
}

TEST(a_key_twice_names_both_lines)
{
    assert_refused(STR("a: 1\nb: {x: 1}\n\"a\": 2\n"), EBADMSG,
                   "web.yml:3: key a is already given on line 1; remove one of the two");
    read_well(STR("a: {x: 1}\nb: {x: 1}\n"));
}

TEST(what_makes_one_value_stand_for_another_is_refused)
{
    assert_refused(STR("\na: &x 1\n"), EBADMSG,
                   "web.yml:2: anchors (&name) are not supported; remove it");
    assert_refused(STR("a: &x [1]\n"), EBADMSG,
                   "web.yml:1: anchors (&name) are not supported; remove it");
    assert_refused(STR("a: &x {b: c}\n"), EBADMSG,
                   "web.yml:1: anchors (&name) are not supported; remove it");
    assert_refused(STR("&x a: 1\n"), EBADMSG,
                   "web.yml:1: anchors (&name) are not supported; remove it");
    assert_refused(STR("b: 1\na: *x\n"), EBADMSG,
                   "web.yml:2: aliases (*name) are not supported; repeat the value");
    assert_refused(STR("a: !!str 1\n"), EBADMSG,
                   "web.yml:1: tags (!name) are not supported; remove it");
    assert_refused(STR("a: ! [1]\n"), EBADMSG,
                   "web.yml:1: tags (!name) are not supported; remove it");
}

TEST(one_document_is_all_there_may_be)
{
    assert_refused(STR("a: 1\n---\nb: 2\n"), EBADMSG,
                   "web.yml:2: a second document begins here; keep one document in the file");
}

TEST(a_key_is_a_name)
{
    assert_refused(STR("a: 1\n? [b]\n: 2\n"), EBADMSG,
                   "web.yml:2: a list or mapping can't be a key; write a name");
    assert_refused(STR("a: 1\n? {b: c}\n: 2\n"), EBADMSG,
                   "web.yml:2: a list or mapping can't be a key; write a name");
    assert_refused(STR("{? : 2}\n"), EBADMSG,
                   "web.yml:1: a key is empty; write a name before the colon");
}

TEST(broken_syntax_tells_line_column_and_what_it_was_part_of)
{
    assert_refused(STR("a:\n  - [1, 2\n  - 3\nb: 4\n"), EBADMSG,
                   "web.yml:4: did not find expected ',' or ']' at column 2, while parsing a flow "
                   "sequence that begins on line 2");
    assert_refused(STR("a:\n\tb: 2\n"), EBADMSG,
                   "web.yml:2: found character that cannot start any token at column 1; indent "
                   "with spaces, not tabs");
    assert_refused(STR("a: \"1\n"), EBADMSG,
                   "web.yml:2: found unexpected end of stream at column 1, while scanning a quoted "
                   "scalar that begins on line 1");
}

TEST(bytes_that_are_no_text_are_refused_with_their_line)
{
    assert_refused(STR("a: 1\nb: \xff\n"), EBADMSG,
                   "web.yml:2: invalid leading UTF-8 octet; the file must be UTF-8 text "
                   "without control characters");
    assert_refused(STR("a: 1\nb: 2\nc: \xc3"), EBADMSG,
                   "web.yml:3: incomplete UTF-8 octet sequence; the file must be "
                   "UTF-8 text without control characters");
    assert_refused(STR("a: \x01\n"), EBADMSG,
                   "web.yml:1: control characters are not allowed; the file must be UTF-8 "
                   "text without control characters");
    assert_refused(STR("a: \0\n"), EBADMSG,
                   "web.yml:1: control characters are not allowed; the file must be UTF-8 "
                   "text without control characters");
    assert_refused(STR("\n\n\xff\xfe"), EBADMSG,
                   "web.yml:3: invalid leading UTF-8 octet; the file must be UTF-8 text "
                   "without control characters");
    assert_refused(STR("\na: \"x\\0y\"\n"), EBADMSG,
                   "web.yml:2: a text holds a NUL character; remove it");
}

static void repeat(struct buf *buf, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        buf_text(buf, text);
}

TEST(depth_has_a_ceiling)
{
    struct buf text;

    buf_init(&text, 1 << 20);
    repeat(&text, "[", 32);
    repeat(&text, "]", 32);
    read_well(buf_str(&text));
    buf_reset(&text);
    repeat(&text, "[", 33);
    repeat(&text, "]", 33);
    assert_refused(buf_str(&text), EFBIG,
                   "web.yml:1: nested more than 32 levels deep; make it flatter");
    buf_free(&text);
}

TEST(number_of_values_has_a_ceiling)
{
    struct buf text;

    buf_init(&text, 1 << 20);
    repeat(&text, "- a\n", 99999);
    read_well(buf_str(&text));
    repeat(&text, "- a\n", 1);
    assert_refused(buf_str(&text), EFBIG,
                   "web.yml:100000: more than 100000 values; split the file or shorten it");
    buf_free(&text);
}

TEST(size_has_a_ceiling)
{
    struct buf text;

    buf_init(&text, 2 << 20);
    repeat(&text, "#", 1 << 20);
    read_well(buf_str(&text));
    repeat(&text, "#", 1);
    assert_refused(buf_str(&text), EFBIG,
                   "web.yml: larger than 1 MB; a configuration is smaller than that");
    buf_free(&text);
}

/* Each of these made some YAML reader quadratic, recursive or endless: with a megabyte such a one
 * has no end that anybody would wait for, or no stack left. */
TEST(a_megabyte_of_malice_is_answered_soon)
{
    static const char *const units[] = {
        "[",   "{",   "- ",      "? ",       "{a: ",       "[a,",        "a: ",    "\"",
        "|\n", "&",   "*a ",     "!",        "%",          "---\n",      "#",      " ",
        "\n",  "\t",  "a\n",     "- - a\n",  "{},",        "? a\n: b\n", "k: v\n", "\\",
        ":",   "'\n", "\"\\x41", ">-\n a\n", "- {a: b}\n", "\xc3\xbc",   "?\n",    ",",
    };
    struct buf text;

    buf_init(&text, 1 << 20);
    for (size_t i = 0; i < COUNT(units); i++) {
        buf_reset(&text);
        repeat(&text, units[i], (1 << 20) / strlen(units[i]));
        yaml_read_text(&fixture->arena, "web.yml", buf_str(&text), &fixture->root, &fixture->err);
        arena_clear(&fixture->arena);
    }
    buf_free(&text);
}

TEST(any_cut_of_a_document_is_read_or_refused)
{
    struct str whole = STR("a: {b: [1, 'x', \"\\u00fc\"], c: |\n"
                           " }\nd:\n  - e: &f g\n    ? h\n    : *f\n--- !t\n...\n%YAML 1.1\n");

    for (size_t n = 0; n <= whole.n; n++) {
        char *copy = heap_str(str_head(whole, n));

        yaml_read_text(&fixture->arena, "web.yml", (struct str){ copy, n }, &fixture->root, NULL);
        free(copy);
    }
}

TEST(a_hostile_name_or_key_is_escaped_in_the_sentence)
{
    assert_int_equal(yaml_read_text(&fixture->arena, "w\x1b[2J.yml",
                                    STR("\"a\\n\": 1\n\"a\\n\": 2"), &fixture->root, &fixture->err),
                     -EBADMSG);
    assert_string_equal(
        fixture->err.text,
        "w\\x1b[2J.yml:2: key a\\n is already given on line 1; remove one of the two");
}

TEST(a_file_is_read_by_its_name)
{
    const char *path = write_file("a.yml", "a: b\nc: [\n");
    char expected[100];

    assert_int_equal(yaml_read_file(&fixture->arena, path, &fixture->root, &fixture->err),
                     -EBADMSG);
    snprintf(expected, sizeof(expected), "%s:3: ", path);
    assert_contains(fixture->err.text, expected);
    assert_int_equal(truncate(path, 5), 0);
    assert_int_equal(yaml_read_file(&fixture->arena, path, &fixture->root, &fixture->err), 0);
    assert_str(member(fixture->root, "a")->text, "b");
    assert_int_equal(truncate(path, 3 << 20), 0);
    assert_int_equal(yaml_read_file(&fixture->arena, path, &fixture->root, &fixture->err), -EFBIG);
    assert_int_equal(yaml_read_file(&fixture->arena, "/dev/null", &fixture->root, &fixture->err),
                     0);
    assert_null(fixture->root->child);
}

TEST(a_file_that_cannot_be_read_says_why_and_what_to_do)
{
    const char *path = test_path("pipe");

    assert_int_equal(
        yaml_read_file(&fixture->arena, "/nowhere/web.yml", &fixture->root, &fixture->err),
        -ENOENT);
    assert_string_equal(fixture->err.text, "cannot read /nowhere/web.yml: No such file or "
                                           "directory; check the name, or create the file");
    assert_int_equal(yaml_read_file(&fixture->arena, "/tmp", &fixture->root, &fixture->err),
                     -EISDIR);
    assert_string_equal(fixture->err.text, "cannot read /tmp: Is a directory; name a file in it");

    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(yaml_read_file(&fixture->arena, path, &fixture->root, &fixture->err), -EINVAL);
    assert_contains(fixture->err.text, "it is a pipe; name a regular file");
}

TEST(an_unreadable_file_is_denied)
{
    const char *path = write_file("a.yml", "a: b\n");

    assert_int_equal(chmod(path, 0), 0);
    lower_capabilities();
    assert_int_equal(yaml_read_file(&fixture->arena, path, &fixture->root, &fixture->err), -EACCES);
    assert_contains(fixture->err.text,
                    "Permission denied; let the user that runs sonde read it (chmod, chgrp)");
}

TEST(null_is_what_is_not_quoted_and_empty_a_tilde_or_the_word)
{
    static const char *const nulls[] = { "a:", "a: ~", "a: null", "a: Null", "a: NULL" };
    static const char *const others[] = { "a: ''", "a: '~'", "a: \"null\"", "a: nul",
                                          "a: ~x", "a: []",  "a: {}",       "a: |\n  null" };

    for (size_t i = 0; i < COUNT(nulls); i++) {
        read_well(str_of(nulls[i]));
        assert_true(yaml_is_null(fixture->root->child));
    }
    for (size_t i = 0; i < COUNT(others); i++) {
        read_well(str_of(others[i]));
        assert_false(yaml_is_null(fixture->root->child));
    }
    read_well(STR("null\n"));
    assert_int_equal(fixture->root->kind, YAML_MAPPING);
}

TEST(a_truth_is_one_of_five_pairs_of_words)
{
    static const char *const words[] = { "false", "TRUE", "no", "Yes", "off",
                                         "on",    "f",    "T",  "0",   "1" };
    static const char *const others[] = { "", "2", "y", "truee", "tru", "01" };
    bool value;

    for (size_t i = 0; i < COUNT(words); i++) {
        assert_true(yaml_get_bool(str_of(words[i]), &value));
        assert_int_equal(value, i % 2);
    }
    for (size_t i = 0; i < COUNT(others); i++)
        assert_false(yaml_get_bool(str_of(others[i]), &value));
}
