/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the profile plugin in a slurmstepd tells of its step, one datagram at a time: the format is
 * that of text_message (src/plugin/text.h). Whatever the bytes are, they are survived: a head that
 * is not understood has the whole message refused, further down a line that is not is passed over,
 * for a newer plugin may have more to tell. Nothing is allocated. */
#ifndef SONDE_SOURCE_PROFILE_MESSAGE_H
#define SONDE_SOURCE_PROFILE_MESSAGE_H

#include "base/err.h"
#include "model/profile.h"
#include "model/usage.h"

enum {
    PROFILE_MESSAGE_BYTES = 16384, /* of a datagram; a longer one is refused */
    PROFILE_EVERY_SECONDS = 10,    /* where the message does not say */
    PROFILE_EVERY_MOST = 86400,
};

/* `at` keeps the place: to be given on with each question, and changed by it. */
struct profile_message {
    struct profile_id id;
    struct profile_labels labels;
    unsigned every_seconds; /* when to expect the next one */
    bool is_end;            /* the step is over: nothing follows */
    struct {
        struct str rest;
        bool has_dataset; /* one of a kind that is known */
        enum profile_kind kind;
        uint32_t task;
    } at;
};

/* Reads the head. -EINVAL: it is no such message, or one of its names is too long or has control
 * characters; -EPROTO: a version that nobody here understands. The message must outlive `ret`. */
int profile_message_read(struct str text, struct profile_message *ret, struct err *err);

struct profile_sample {
    enum profile_kind kind;
    uint32_t task; /* of PROFILE_OF_TASK; 0 otherwise */
    const struct profile_metric *metric;
    struct str sensor; /* into the message; empty: has none */
    double value;      /* finite */
};

/* The next number; false: there are no more. */
bool profile_message_next(struct profile_message *message, struct profile_sample *ret);

#endif
