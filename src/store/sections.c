/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What clusters last told of themselves, as documents: the reading and the writing side. */
#include "store/query.h"
#include "store/reader.h"
#include "store/writer.h"

#include <stdlib.h>
#include <zlib.h>

enum { PIECE = 32 * 1024 }; /* is inflated at once */

/* At most once a minute, and may be long: what is fast is better than what is small. */
static int pack(struct str document, struct buf *out, struct err *err)
{
    uLongf n = compressBound((uLong)document.n);
    char *to;

    if (document.n > STORE_SECTION_MAX)
        return err_set(err, EFBIG, "it has more than %d bytes", STORE_SECTION_MAX);
    buf_init(out, n);
    to = buf_room(out, n);
    if (compress2((Bytef *)to, &n, (const Bytef *)document.p, (uLong)document.n, Z_BEST_SPEED) !=
        Z_OK)
        abort(); /* the heap is exhausted, or zlib is not what it was built for */
    out->n = n;
    buf_end(out);
    return 0;
}

static int put(struct store *store, int64_t cluster, const char *kind, int64_t time,
               struct str packed, struct err *err)
{
    sqlite3_stmt *statement;
    int r = store_use(store, packed.n ? SQL_PUT_SECTION : SQL_TOUCH_SECTION, &statement, err);

    if (r < 0)
        return r;
    db_bind_i64(statement, 1, cluster);
    db_bind_text(statement, 2, str_of(kind));
    db_bind_i64(statement, 3, time);
    if (packed.n)
        db_bind_blob(statement, 4, packed);
    return db_run(statement, err);
}

int store_put_section(struct store *store, struct str cluster, const char *kind, int64_t time,
                      struct str document, struct err *err)
{
    struct store_cluster *of;
    struct buf packed = { 0 };
    int r = store_cluster(store, cluster, &of, err);

    if (r == 0 && document.n) {
        r = pack(document, &packed, err);
        if (r < 0)
            err_prefix(err, "the %s of the cluster", kind);
    }
    if (r == 0)
        r = put(store, of->id, kind, time, buf_str(&packed), err);
    buf_free(&packed);
    return r;
}

static int cannot_unpack(const struct store_reader *reader, struct err *err)
{
    return err_set(err, EBADMSG,
                   "the store %s: what a cluster told of itself cannot be read: it is damaged, or "
                   "a newer sonde wrote it",
                   reader->path);
}

/* Nobody knows how long it is until it is read. */
static bool inflate_all(z_stream *stream, struct buf *out)
{
    char piece[PIECE];
    int code = Z_OK;

    while (code == Z_OK && !out->over) {
        stream->next_out = (Bytef *)piece;
        stream->avail_out = sizeof(piece);
        code = inflate(stream, Z_NO_FLUSH);
        buf_put(out, (struct str){ piece, sizeof(piece) - stream->avail_out });
    }
    return code == Z_STREAM_END && !out->over;
}

static int unpack(struct store_reader *reader, struct str packed, struct arena *arena,
                  struct str *ret, struct err *err)
{
    z_stream stream = { .next_in = (Bytef *)(uintptr_t)packed.p, .avail_in = (uInt)packed.n };
    struct buf out;
    bool is_whole;

    if (inflateInit(&stream) != Z_OK)
        return cannot_unpack(reader, err);
    buf_init(&out, STORE_SECTION_MAX);
    is_whole = inflate_all(&stream, &out);
    inflateEnd(&stream);
    if (!is_whole) {
        buf_free(&out);
        return cannot_unpack(reader, err);
    }
    *ret = buf_str(&out);
    arena_adopt(arena, out.p);
    return 0;
}

int store_section(struct store_reader *reader, struct str cluster, const char *kind,
                  int64_t known_time, struct arena *arena, int64_t *ret_time, struct str *ret,
                  struct err *err)
{
    static const char sql[] =
        "SELECT time, CASE WHEN time <> ?3 THEN document END FROM section"
        " WHERE cluster = (SELECT id FROM cluster WHERE name = ?1) AND kind = ?2";
    sqlite3_stmt *statement = NULL;
    int r = reader_begin(reader, err);

    if (r < 0)
        return r;
    *ret_time = 0;
    *ret = STR("");
    r = reader_prepare(reader, sql, &statement, err);
    if (r == 0) {
        db_bind_text(statement, 1, cluster);
        db_bind_text(statement, 2, str_of(kind));
        db_bind_i64(statement, 3, known_time);
        r = reader_step(reader, statement, err);
    }
    if (r > 0) {
        *ret_time = db_i64(statement, 0, 0);
        r = *ret_time == known_time ? 0 : unpack(reader, db_blob(statement, 1), arena, ret, err);
    }
    sqlite3_finalize(statement);
    reader_end(reader);
    return r;
}

int store_looks(struct store_reader *reader, struct arena *arena, struct look_row **ret,
                size_t *ret_n, struct err *err)
{
    static const char sql[] = "SELECT name, (SELECT value FROM mark WHERE cluster = c.id"
                              " AND mark.name = 'jobs_seen') FROM cluster AS c ORDER BY name";
    struct look_row *rows = NULL;
    size_t n = 0, room = 0;
    sqlite3_stmt *statement = NULL;
    int r = reader_begin(reader, err);

    if (r < 0)
        return r;
    r = reader_prepare(reader, sql, &statement, err);
    while (r >= 0 && (r = reader_step(reader, statement, err)) > 0) {
        rows = heap_grow(rows, n, &room, sizeof(*rows));
        rows[n++] =
            (struct look_row){ arena_str(arena, db_text(statement, 0)), db_i64(statement, 1, 0) };
    }
    sqlite3_finalize(statement);
    reader_end(reader);
    arena_adopt(arena, rows);
    *ret = rows;
    *ret_n = n;
    return r;
}

/* SQLite's own number is of one opening. */
int store_reader_version(struct store_reader *reader, int64_t *ret, struct err *err)
{
    int64_t version = 0;
    int r = reader_begin(reader, err);

    if (r < 0)
        return r;
    r = db_get_i64(reader->db, "PRAGMA data_version", &version, err);
    reader_end(reader);
    *ret = (int64_t)reader->n_opened << 32 | version;
    return r;
}
