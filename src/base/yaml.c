/* SPDX-License-Identifier: GPL-2.0-or-later */
/* https://yaml.org/spec/1.1/ is what libyaml reads; here only what a configuration needs of it. */
#include "base/yaml.h"

#include "base/buf.h"
#include "base/map.h"
#include "base/quote.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <yaml.h>

enum { MOST_BYTES = 1 << 20, MOST_LEVELS = 32, MOST_NODES = 100 * 1000 };

/* A list or mapping whose end has not come yet. */
struct level {
    struct yaml_node *node;
    struct yaml_node **tail; /* where its next member is linked */
    struct map members;      /* of a mapping: by key, to find one that comes twice */
    struct str key;          /* of a mapping: p set when a key waits for its value */
    unsigned key_line;
};

struct reader {
    yaml_parser_t parser;
    struct arena *arena;
    const char *name;
    struct str text;
    struct err *err;
    struct yaml_node *root;
    struct level levels[MOST_LEVELS];
    size_t depth, n_nodes;
};

static int refuse(struct reader *reader, int code, unsigned line, const char *sentence)
{
    return err_set(reader->err, code, "%s:%u: %s", quote(str_of(reader->name)).text, line,
                   sentence);
}

static struct str line_at(struct str text, size_t index)
{
    struct str line = { "", 0 };

    for (size_t i = 0; i <= index && text.p; i++)
        line = str_cut(&text, '\n');
    return line;
}

static bool is_indented_by_tab(struct str line)
{
    while (line.n && line.p[0] == ' ')
        line = str_skip(line, 1);
    return line.n && line.p[0] == '\t';
}

/* libyaml gives the place of a bad byte as an offset only. */
static int refuse_bytes(struct reader *reader)
{
    struct str before = str_head(reader->text, reader->parser.problem_offset);
    unsigned line = 1;
    char sentence[200];

    for (size_t i = 0; i < before.n; i++)
        line += before.p[i] == '\n';
    snprintf(sentence, sizeof(sentence),
             "%s; the file must be UTF-8 text without control characters", reader->parser.problem);
    return refuse(reader, EBADMSG, line, sentence);
}

static int refuse_syntax(struct reader *reader)
{
    const yaml_parser_t *parser = &reader->parser;
    size_t line = parser->problem_mark.line;
    char sentence[300], part_of[150] = "";

    if (parser->error == YAML_READER_ERROR)
        return refuse_bytes(reader);
    if (parser->error == YAML_MEMORY_ERROR)
        return err_set(reader->err, ENOMEM, "%s: out of memory", quote(str_of(reader->name)).text);
    if (parser->context && parser->context_mark.line != line)
        snprintf(part_of, sizeof(part_of), ", %s that begins on line %zu", parser->context,
                 parser->context_mark.line + 1);
    snprintf(sentence, sizeof(sentence), "%s at column %zu%s%s", parser->problem,
             parser->problem_mark.column + 1, part_of,
             is_indented_by_tab(line_at(reader->text, line)) ? "; indent with spaces, not tabs"
                                                             : "");
    return refuse(reader, EBADMSG, (unsigned)line + 1, sentence);
}

static struct level *innermost(struct reader *reader)
{
    return reader->depth ? &reader->levels[reader->depth - 1] : NULL;
}

static bool wants_key(const struct level *level)
{
    return level && level->node->kind == YAML_MAPPING && !level->key.p;
}

static int take_key(struct reader *reader, struct level *level, struct str key, unsigned line)
{
    size_t n = level->members.n;
    size_t index;

    if (!key.n)
        return refuse(reader, EBADMSG, line, "a key is empty; write a name before the colon");
    index = map_index(&level->members, key);
    if (level->members.n == n) {
        const struct yaml_node *first = level->members.entries[index].value;

        return err_set(reader->err, EBADMSG,
                       "%s:%u: key %s is already given on line %u; remove one of the two",
                       quote(str_of(reader->name)).text, line, quote(key).text, first->line);
    }
    level->key = level->members.entries[index].key;
    level->key_line = line;
    return 0;
}

/* Makes a node and links it where the document has it; NULL with the sentence set if it can't be.
 */
static struct yaml_node *add_node(struct reader *reader, enum yaml_kind kind, unsigned line)
{
    struct level *parent = innermost(reader);
    struct yaml_node *node;

    if (wants_key(parent)) {
        refuse(reader, EBADMSG, line, "a list or mapping can't be a key; write a name");
        return NULL;
    }
    if (++reader->n_nodes > MOST_NODES) {
        refuse(reader, EFBIG, line, "more than 100000 values; split the file or shorten it");
        return NULL;
    }
    node = ARENA_NEW(reader->arena, struct yaml_node);
    node->kind = kind;
    node->line = line;
    if (!parent) {
        reader->root = node;
        return node;
    }
    if (parent->key.p) {
        node->key = parent->key;
        node->line = parent->key_line;
        *map_get(&parent->members, parent->key) = node;
        parent->key = (struct str){ NULL, 0 };
    }
    *parent->tail = node;
    parent->tail = &node->next;
    return node;
}

static int on_scalar(struct reader *reader, const yaml_event_t *event, unsigned line)
{
    struct str text = { (const char *)event->data.scalar.value, event->data.scalar.length };
    struct level *level = innermost(reader);
    struct yaml_node *node;

    /* "\0" in double quotes: whoever uses the text as a path would see it cut. */
    if (str_find(text, '\0') < text.n)
        return refuse(reader, EBADMSG, line, "a text holds a NUL character; remove it");
    if (wants_key(level))
        return take_key(reader, level, text, line);
    node = add_node(reader, YAML_SCALAR, line);
    if (!node)
        return -reader->err->code;
    node->text = arena_str(reader->arena, text);
    node->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    return 0;
}

static int open_level(struct reader *reader, enum yaml_kind kind, unsigned line)
{
    struct yaml_node *node;
    struct level *level;

    if (reader->depth == MOST_LEVELS)
        return refuse(reader, EFBIG, line, "nested more than 32 levels deep; make it flatter");
    node = add_node(reader, kind, line);
    if (!node)
        return -reader->err->code;
    level = &reader->levels[reader->depth++];
    *level = (struct level){ .node = node, .tail = &node->child };
    map_init(&level->members, reader->arena);
    return 0;
}

static void close_level(struct reader *reader)
{
    map_free(&innermost(reader)->members);
    reader->depth--;
}

static int on_document(struct reader *reader, unsigned line)
{
    if (!reader->root)
        return 0;
    return refuse(reader, EBADMSG, line,
                  "a second document begins here; keep one document in the file");
}

/* What makes one node stand for another, or for a type of the writer's choice. */
static int check_plain(struct reader *reader, const yaml_char_t *anchor, const yaml_char_t *tag,
                       unsigned line)
{
    if (anchor)
        return refuse(reader, EBADMSG, line, "anchors (&name) are not supported; remove it");
    if (tag)
        return refuse(reader, EBADMSG, line, "tags (!name) are not supported; remove it");
    return 0;
}

static int on_event(struct reader *reader, const yaml_event_t *event)
{
    unsigned line = (unsigned)event->start_mark.line + 1;
    int code;

    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        return on_document(reader, line);
    case YAML_ALIAS_EVENT:
        return refuse(reader, EBADMSG, line, "aliases (*name) are not supported; repeat the value");
    case YAML_SCALAR_EVENT:
        code = check_plain(reader, event->data.scalar.anchor, event->data.scalar.tag, line);
        return code < 0 ? code : on_scalar(reader, event, line);
    case YAML_SEQUENCE_START_EVENT:
        code = check_plain(reader, event->data.sequence_start.anchor,
                           event->data.sequence_start.tag, line);
        return code < 0 ? code : open_level(reader, YAML_LIST, line);
    case YAML_MAPPING_START_EVENT:
        code = check_plain(reader, event->data.mapping_start.anchor, event->data.mapping_start.tag,
                           line);
        return code < 0 ? code : open_level(reader, YAML_MAPPING, line);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        close_level(reader);
        return 0;
    default:
        return 0;
    }
}

static int read_events(struct reader *reader)
{
    bool more = true;
    int code = 0;

    while (more && !code) {
        yaml_event_t event;

        if (!yaml_parser_parse(&reader->parser, &event))
            return refuse_syntax(reader);
        code = on_event(reader, &event);
        more = event.type != YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
    }
    return code;
}

int yaml_read_text(struct arena *arena, const char *name, struct str text, struct yaml_node **ret,
                   struct err *err)
{
    struct err unwanted;
    struct reader *reader;
    int code;

    if (text.n > MOST_BYTES)
        return err_set(err, EFBIG, "%s: larger than 1 MB; a configuration is smaller than that",
                       quote(str_of(name)).text);
    reader = heap_alloc(sizeof(*reader));
    reader->arena = arena;
    reader->name = name;
    reader->text = text;
    reader->err = err ? err : &unwanted;
    if (!yaml_parser_initialize(&reader->parser)) {
        free(reader);
        return err_set(err, ENOMEM, "%s: out of memory", quote(str_of(name)).text);
    }
    yaml_parser_set_encoding(&reader->parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&reader->parser, (const unsigned char *)(text.n ? text.p : ""),
                                 text.n);
    code = read_events(reader);
    while (reader->depth)
        close_level(reader);
    yaml_parser_delete(&reader->parser);
    if (!code && (!reader->root || yaml_is_null(reader->root))) {
        reader->root = ARENA_NEW(arena, struct yaml_node);
        reader->root->kind = YAML_MAPPING;
        reader->root->line = 1;
    }
    if (!code)
        *ret = reader->root;
    free(reader);
    return code;
}

static int refuse_file(const char *path, int code, struct err *err)
{
    static const struct {
        int code;
        const char *advice;
    } advices[] = {
        { ENOENT, "; check the name, or create the file" },
        { EACCES, "; let the user that runs sonde read it (chmod, chgrp)" },
        { EISDIR, "; name a file in it" },
    };
    const char *advice = "";

    for (size_t i = 0; i < COUNT(advices); i++)
        if (advices[i].code == code)
            advice = advices[i].advice;
    return err_set(err, code, "cannot read %s: %s%s", quote(str_of(path)).text, err_words(code),
                   advice);
}

static int read_all(int fd, struct buf *text)
{
    for (;;) {
        char *room = buf_room(text, 16 * 1024);
        ssize_t n;

        if (!room)
            return -EFBIG;
        n = read(fd, room, 16 * 1024);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            return 0;
        text->n += (size_t)n;
    }
}

int yaml_read_file(struct arena *arena, const char *path, struct yaml_node **ret, struct err *err)
{
    /* Not to wait for the writer of a pipe. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat status;
    struct buf text;
    int code;

    if (fd < 0)
        return refuse_file(path, errno, err);
    if (fstat(fd, &status) < 0 || S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode)) {
        close(fd);
        return err_set(err, EINVAL, "cannot read %s: it is a pipe; name a regular file",
                       quote(str_of(path)).text);
    }
    /* Enough for yaml_read_text to see that the ceiling is passed. */
    buf_init(&text, MOST_BYTES + 32 * 1024);
    code = read_all(fd, &text);
    close(fd);
    code = code < 0 && code != -EFBIG ? refuse_file(path, -code, err)
                                      : yaml_read_text(arena, path, buf_str(&text), ret, err);
    buf_free(&text);
    return code;
}

bool yaml_is_null(const struct yaml_node *node)
{
    return node->kind == YAML_SCALAR && !node->quoted &&
           (!node->text.n || str_eq(node->text, STR("~")) ||
            str_eq_nocase(node->text, STR("null")));
}

bool yaml_get_bool(struct str text, bool *ret)
{
    static const struct {
        struct str word;
        bool value;
    } words[] = {
        { STR_INIT("true"), true }, { STR_INIT("false"), false }, { STR_INIT("1"), true },
        { STR_INIT("0"), false },   { STR_INIT("yes"), true },    { STR_INIT("no"), false },
        { STR_INIT("on"), true },   { STR_INIT("off"), false },   { STR_INIT("t"), true },
        { STR_INIT("f"), false },
    };

    for (size_t i = 0; i < COUNT(words); i++) {
        if (str_eq_nocase(text, words[i].word)) {
            *ret = words[i].value;
            return true;
        }
    }
    return false;
}

int yaml_refuse(const struct yaml_node *node, const char *name, struct err *err, const char *format,
                ...)
{
    char sentence[300];
    va_list args;

    va_start(args, format);
    vsnprintf(sentence, sizeof(sentence), format, args);
    va_end(args);
    return err_set(err, EINVAL, "%s:%u: %s", quote(str_of(name)).text, node->line, sentence);
}
