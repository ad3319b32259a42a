/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Packs and unpacks the long texts of a store. */
#include "store/rest.h"

#include "store/short_deflate.h"
#include "store/sqlite.h"

#include <zlib.h>

/* Names of fields that a byte stands for, 1 and up: a name itself begins with a space or something
 * that comes after it. Stores are full of these bytes: a name keeps its place, another is added
 * behind, up to 31. */
static const struct str known_names[] = {
    STR_INIT("AdminComment"),  STR_INIT("AllocNode"),       STR_INIT("AssocID"),
    STR_INIT("Comment"),       STR_INIT("Constraints"),     STR_INIT("Container"),
    STR_INIT("DBIndex"),       STR_INIT("DerivedExitCode"), STR_INIT("Extra"),
    STR_INIT("FailedNode"),    STR_INIT("Flags"),           STR_INIT("GID"),
    STR_INIT("Group"),         STR_INIT("Licenses"),        STR_INIT("McsLabel"),
    STR_INIT("Planned"),       STR_INIT("QOSREQ"),          STR_INIT("ReqCPUFreqGov"),
    STR_INIT("ReqCPUFreqMax"), STR_INIT("ReqCPUFreqMin"),   STR_INIT("ReservationId"),
    STR_INIT("SLUID"),         STR_INIT("StdErr"),          STR_INIT("StdIn"),
    STR_INIT("StdOut"),        STR_INIT("SubmitLine"),      STR_INIT("SystemComment"),
    STR_INIT("WCKey"),         STR_INIT("WorkDir"),
};

/* What texts have in common: deflate finds it here, what is most common last. Stores are full of
 * texts that were packed with these: they never change; another one gets another number. */
#define NUL "\0"
static const char jobs_dictionary[] =
    "/network/scratch/ /lustre/ /gpfs/ /project/ /projects/ /work/ /scratch/ /users/ /data/ "
    "--dependency=afterok: --exclusive --requeue --chdir= --export=ALL --ntasks-per-node= "
    "--ntasks= --nodes= --wrap=python train.py --config --mail-type= --constraint= --array=0- "
    "--qos=normal --account= --partition= --output=logs/%x-%j.out --error=logs/%x-%j.err "
    "--job-name= --time=24:00:00 --cpus-per-task= --mem= --gpus= --gres=gpu: submit.sh run.sh" NUL
    "\010"
    "0:0" NUL "\013SchedMain,StartReceived" NUL "\014"
    "1000" NUL "\020"
    "00:00:01" NUL "\021normal" NUL "\022Unknown" NUL "\023Unknown" NUL "\024Unknown" NUL
    "\027/home/logs/slurm-%A_%a.err" NUL "\030/dev/null" NUL "\031/home/logs/slurm-%A_%a.out" NUL
    "\010"
    "0:0" NUL "\013SchedBackfill,StartReceived" NUL "\014"
    "1" NUL "\023Unknown" NUL "\024Unknown" NUL "\027/home/slurm-%j.out" NUL "\030/dev/null" NUL
    "\031/home/slurm-%j.out" NUL "\032sbatch --" NUL "\035/home/" NUL
    ",gres/gpu:a100=1,gres/gpu:h100=8,gres/gpu:v100=4,gres/gpu=4,mem=32G,node=1" NUL
    "cpu=8,mem=32G,node=1,billing=8" NUL "billing=16,cpu=16,mem=64G,node=1" NUL "\002login1" NUL
    "\003";

static const char documents_dictionary[] =
    "{\"uid\":1000,\"user\":\"\",\"account\":\"\",\"allocated\":{\"cpus\":,\"memory_bytes\":,"
    "\"gpus\":},\"cpu_seconds\":,\"user_seconds\":,\"system_seconds\":,\"throttled_seconds\":0,"
    "\"periods\":0,\"throttled_periods\":0,\"memory_peak_bytes\":,\"limit_hits\":0,"
    "\"oom_kills\":0,\"page_faults\":,\"major_page_faults\":0,\"pids_peak\":,"
    "\"pressure_seconds\":{\"cpu_some\":0,\"cpu_full\":0,\"memory_some\":0,\"memory_full\":0,"
    "\"io_some\":0,\"io_full\":0},\"io\":{\"read_bytes\":,\"write_bytes\":,\"read_chars\":,"
    "\"write_chars\":,\"reads\":,\"writes\":},\"devices\":[{\"name\":\"sda\",\"read_bytes\":"
    ",\"write_bytes\":,\"reads\":,\"writes\":}],\"processes_peak\":,\"threads_peak\":,"
    "\"files_peak\":,\"names\":[{\"name\":\"python\",\"cpu_seconds\":}],\"gpus\":[{\"id\":\"0\","
    "\"model\":\"NVIDIA A100\",\"memory_peak_bytes\":,\"energy_joules\":}],\"steps\":[{\"id\":"
    "\"batch\",\"cpu_seconds\":";

_Static_assert(sizeof(jobs_dictionary) <= SHORT_DICTIONARY_MAX &&
                   sizeof(documents_dictionary) <= SHORT_DICTIONARY_MAX,
               "they fit");
static const struct str dictionaries[] = {
    [REST_JOBS] = { jobs_dictionary, sizeof(jobs_dictionary) - 1 },
    [REST_DOCUMENTS] = { documents_dictionary, sizeof(documents_dictionary) - 1 },
};

enum { HEAD_MAX = 4 };

struct packer {
    struct short_deflate short_deflates[COUNT(dictionaries)];
    z_stream stream; /* for texts that are not short */
};

struct packer *packer_new(void)
{
    struct packer *packer = heap_alloc(sizeof(*packer));

    for (size_t i = REST_JOBS; i < COUNT(dictionaries); i++)
        short_deflate_init(&packer->short_deflates[i], dictionaries[i]);
    if (deflateInit2(&packer->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, MAX_MEM_LEVEL,
                     Z_DEFAULT_STRATEGY) != Z_OK)
        abort(); /* the heap is exhausted, or zlib is not what it was built for */
    return packer;
}

struct packer *packer_free(struct packer *packer)
{
    if (packer)
        deflateEnd(&packer->stream);
    free(packer);
    return NULL;
}

static size_t put_head(char *to, int dictionary, size_t length)
{
    size_t n = 0;

    to[n++] = (char)dictionary;
    for (; length > 0x7f; length >>= 7)
        to[n++] = (char)(length | 0x80);
    to[n++] = (char)length;
    return n;
}

/* The length of what it wrote, or 0 if that would not be shorter. */
static size_t deflate_text(struct packer *packer, enum rest_dictionary number, struct str text,
                           char *to)
{
    struct str dictionary = dictionaries[number];
    z_stream *stream = &packer->stream;

    if (text.n <= SHORT_DEFLATE_MAX)
        return short_deflate(&packer->short_deflates[number], text, to, text.n);
    if (deflateReset(stream) != Z_OK ||
        deflateSetDictionary(stream, (const Bytef *)dictionary.p, (uInt)dictionary.n) != Z_OK)
        return 0;
    stream->next_in = (Bytef *)(uintptr_t)text.p;
    stream->avail_in = (uInt)text.n;
    stream->next_out = (Bytef *)to;
    stream->avail_out = (uInt)text.n;
    return deflate(stream, Z_FINISH) == Z_STREAM_END ? text.n - stream->avail_out : 0;
}

void rest_pack(struct packer *packer, enum rest_dictionary dictionary, struct str text,
               struct buf *out)
{
    char *to = buf_room(out, text.n + 1 + HEAD_MAX);
    size_t head, n;

    if (!to)
        return;
    head = put_head(to, (int)dictionary, text.n);
    n = deflate_text(packer, dictionary, text, to + head);
    if (!n) {
        put_head(to, REST_PLAIN, text.n);
        if (text.n)
            memcpy(to + head, text.p, text.n);
        n = text.n;
    }
    out->n += head + n;
    buf_end(out);
}

/* Cuts the head off; false if there is none. */
static bool take_head(struct str *packed, int *ret_dictionary, size_t *ret_length)
{
    size_t length = 0;

    if (packed->n < 2)
        return false;
    *ret_dictionary = (unsigned char)packed->p[0];
    for (size_t i = 1; i < packed->n && i < HEAD_MAX; i++) {
        length |= (size_t)(packed->p[i] & 0x7f) << 7 * (i - 1);
        if (packed->p[i] & 0x80)
            continue;
        *packed = str_skip(*packed, i + 1);
        *ret_length = length;
        return length <= REST_MAX;
    }
    return false;
}

static bool inflate_text(struct str dictionary, struct str packed, char *to, size_t length)
{
    z_stream stream = { .next_in = (Bytef *)(uintptr_t)packed.p,
                        .avail_in = (uInt)packed.n,
                        .next_out = (Bytef *)to,
                        .avail_out = (uInt)length };
    bool is_whole;

    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
        return false;
    is_whole =
        inflateSetDictionary(&stream, (const Bytef *)dictionary.p, (uInt)dictionary.n) == Z_OK &&
        inflate(&stream, Z_FINISH) == Z_STREAM_END && stream.avail_out == 0;
    inflateEnd(&stream);
    return is_whole;
}

static int cannot_unpack(struct err *err)
{
    return err_set(err, EBADMSG,
                   "a packed text in the store cannot be read: it is damaged, or a newer sonde "
                   "wrote it");
}

int rest_unpack(struct str packed, struct arena *arena, struct str *ret, struct err *err)
{
    int number;
    size_t length;
    char *to;

    if (!take_head(&packed, &number, &length) || packed.n > REST_MAX)
        return cannot_unpack(err);
    if (number == REST_PLAIN && packed.n == length) {
        *ret = arena_str(arena, packed);
        return 0;
    }
    if (number == REST_PLAIN || number >= (int)COUNT(dictionaries))
        return cannot_unpack(err);
    to = arena_alloc(arena, length + 1);
    if (!inflate_text(dictionaries[number], packed, to, length))
        return cannot_unpack(err);
    *ret = (struct str){ to, length };
    return 0;
}

static bool put_text(struct buf *out, struct str text)
{
    text = db_fit(text, REST_VALUE_MAX);
    if (out->n + text.n + 1 > REST_MAX)
        return false;
    buf_put(out, text);
    buf_byte(out, '\0');
    return true;
}

/* A name that begins with a control character would be taken for one that is known. */
static bool has_both(const struct record_extra *extra)
{
    return extra->name.n && (unsigned char)extra->name.p[0] >= ' ' && extra->value.n &&
           extra->value.p[0];
}

static int compare_texts(struct str a, struct str b)
{
    int order = memcmp(a.p, b.p, a.n < b.n ? a.n : b.n);

    return order ? order : (a.n > b.n) - (a.n < b.n);
}

/* By name, whoever tells them: the same fields are the same text. Returns how many. */
static size_t sort_extras(const struct job_record *record, const struct record_extra **to)
{
    size_t n = 0;

    for (size_t i = 0; i < record->n_extra && n < REST_EXTRAS_MAX; i++) {
        const struct record_extra *extra = &record->extra[i];
        size_t at = n;

        if (!has_both(extra))
            continue;
        for (; at && compare_texts(to[at - 1]->name, extra->name) > 0; at--)
            to[at] = to[at - 1];
        to[at] = extra;
        n++;
    }
    return n;
}

static bool put_name(struct buf *out, struct str name)
{
    for (size_t i = 0; i < COUNT(known_names); i++) {
        if (str_eq(name, known_names[i])) {
            buf_byte(out, (char)(i + 1));
            return true;
        }
    }
    return put_text(out, name);
}

void rest_encode(const struct job_record *record, struct buf *out)
{
    const struct record_extra *extras[REST_EXTRAS_MAX];
    size_t n_extras = sort_extras(record, extras);

    if (!record->tres.n && !record->tres_requested.n && !n_extras)
        return;
    put_text(out, record->tres);
    put_text(out, record->tres_requested);
    for (size_t i = 0; i < n_extras; i++) {
        size_t n = out->n;

        if (!put_name(out, extras[i]->name) || !put_text(out, extras[i]->value))
            out->n = n;
    }
}

static struct str cut_text(struct str *rest)
{
    struct str text = str_cut(rest, '\0');

    return text.n ? text : STR("");
}

static struct str cut_name(struct str *rest)
{
    size_t code = rest->n ? (unsigned char)rest->p[0] : 0;

    if (!code || code >= ' ')
        return cut_text(rest);
    *rest = str_skip(*rest, 1);
    return code <= COUNT(known_names) ? known_names[code - 1] : STR("");
}

static size_t count_texts(struct str rest)
{
    size_t n = 0;

    for (size_t i = 0; i < rest.n; i++)
        n += rest.p[i] == '\0';
    return n;
}

int rest_decode(struct str packed, struct arena *arena, struct job_record *record, struct err *err)
{
    struct record_extra *extra;
    struct str rest = STR("");
    size_t n = 0, most;
    int r = packed.n ? rest_unpack(packed, arena, &rest, err) : 0;

    if (r < 0)
        return r;
    record->tres = cut_text(&rest);
    record->tres_requested = cut_text(&rest);
    most = count_texts(rest);
    most = most < REST_EXTRAS_MAX ? most : REST_EXTRAS_MAX;
    extra = ARENA_ARRAY(arena, struct record_extra, most);
    while (rest.p && n < most) {
        extra[n].name = cut_name(&rest);
        extra[n].value = cut_text(&rest);
        n += extra[n].name.n && extra[n].value.n;
    }
    record->extra = extra;
    record->n_extra = n;
    return 0;
}
