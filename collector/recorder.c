/* SPDX-License-Identifier: MIT */
#include "recorder.h"

#include <errno.h>
#include <msgpack.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "extent.h"
#include "internal/sys.h"
#include "internal/util.h"
#include "pack.h"
#include "schema.h"

#define WRITE_BYTES    (64u << 10)
#define WRITE_NS       (100 * NSEC_PER_MSEC)
#define IDLE_ROUNDS    10 /* after a second without a record the writer sleeps until one comes */
#define CLOSE_NS       NSEC_PER_SEC
/* What tells of losses and of the end finds room also when the backlog is full. */
#define RESERVED_BYTES (256u << 10)

/*
 * The marker thread packs into front; back and back_done belong to the writer.
 * lock guards all else, and is never held during a system call on the file.
 */
struct recorder {
	int fd;
	bool sync;
	bool regular;
	pthread_t writer;
	pthread_mutex_t lock;
	pthread_cond_t work;
	pthread_cond_t progress;
	msgpack_sbuffer front;
	msgpack_sbuffer back;
	msgpack_packer packer; /* into front */
	size_t back_done;      /* bytes of back that are in the file; the writer's */
	uint64_t packed_bytes;
	uint64_t left_bytes; /* of packed_bytes: written or given up */
	uint64_t dropped;
	int error;
	int hindrance; /* an error that may pass and has not yet */
	bool urgent;
	bool sleeping;
	bool stop;
	bool abandoned; /* nobody waits for the writer any more: it frees everything */
};

static void recorder_free(struct recorder *r)
{
	sys_close(r->fd);
	msgpack_sbuffer_destroy(&r->front);
	msgpack_sbuffer_destroy(&r->back);
	pthread_cond_destroy(&r->work);
	pthread_cond_destroy(&r->progress);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

/* --- the writer --- */

static bool error_may_pass(int err)
{
	return err == -ENOSPC || err == -EDQUOT || err == -EAGAIN || err == -ENOMEM;
}

/* The last end of a record within the first size bytes; *ret_count records end there. */
static size_t whole_records(const msgpack_sbuffer *buf, size_t size, uint64_t *ret_count)
{
	size_t at = 0;
	size_t bytes;

	*ret_count = 0;
	while (at < size && extent(buf->data + at, size - at, &bytes) == 0) {
		at += bytes;
		++*ret_count;
	}
	return at;
}

/*
 * Takes a record that was written in part out of the file again.  Where that
 * cannot be done (a pipe) the next attempt goes on in its middle.
 */
static void undo_partial(struct recorder *r)
{
	uint64_t count;
	size_t whole = whole_records(&r->back, r->back_done, &count);
	off_t end;

	if (!r->regular || whole == r->back_done)
		return;
	end = SYS_RESULT(lseek(r->fd, 0, SEEK_CUR));
	end -= (off_t)(r->back_done - whole);
	if (end < 0 || SYS_RESULT(ftruncate(r->fd, end)) < 0 ||
		SYS_RESULT(lseek(r->fd, end, SEEK_SET)) < 0) {
		r->regular = false;
		return;
	}
	r->back_done = whole;
}

static int back_write(struct recorder *r)
{
	int err;

	while (r->back_done < r->back.size) {
		ssize_t n = SYS_RESULT(
			write(r->fd, r->back.data + r->back_done, r->back.size - r->back_done));

		if (n == -EINTR)
			continue;
		if (n < 0) {
			undo_partial(r);
			return (int)n;
		}
		r->back_done += (size_t)n;
	}
	err = r->sync ? SYS_RESULT(fdatasync(r->fd)) : 0;
	return err == -EINVAL ? 0 : err; /* a pipe has nothing to sync */
}

static void wait_until(struct recorder *r, pthread_cond_t *cond, uint64_t deadline_ns)
{
	struct timespec ts = ns_timespec(deadline_ns);

	pthread_cond_timedwait(cond, &r->lock, &ts);
}

static bool writer_has_reason(const struct recorder *r)
{
	return r->stop || r->urgent || r->front.size >= WRITE_BYTES;
}

/* Returns when there is something to do. */
static void writer_wait(struct recorder *r)
{
	for (int idle = 0; !writer_has_reason(r); idle++) {
		uint64_t deadline = now_ns() + WRITE_NS;

		if (idle == IDLE_ROUNDS) {
			r->sleeping = true;
			pthread_cond_wait(&r->work, &r->lock);
			r->sleeping = false;
			idle = 0;
			continue;
		}
		while (!writer_has_reason(r) && now_ns() < deadline)
			wait_until(r, &r->work, deadline);
		if (r->front.size)
			return;
	}
}

/* Drops what is in memory, and everything later at once. */
static void writer_fail(struct recorder *r, int err)
{
	uint64_t all;
	uint64_t written;
	uint64_t waiting;

	whole_records(&r->back, r->back.size, &all);
	whole_records(&r->back, r->back_done, &written);
	whole_records(&r->front, r->front.size, &waiting);
	r->dropped += all - written + waiting;
	r->back_done = r->back.size = 0;
	r->front.size = 0;
	r->left_bytes = r->packed_bytes;
	r->error = err;
}

/* Returns false where a transient error asks for a pause. */
static bool writer_round(struct recorder *r)
{
	size_t before;
	int err;

	if (r->back_done == r->back.size) {
		msgpack_sbuffer taken = r->front;

		r->front = r->back;
		r->front.size = 0;
		r->back = taken;
		r->back_done = 0;
	}
	before = r->back_done;
	pthread_mutex_unlock(&r->lock);
	err = back_write(r);
	pthread_mutex_lock(&r->lock);

	r->left_bytes += r->back_done - before;
	r->hindrance = err;
	if (err < 0 && (!error_may_pass(err) || r->stop))
		writer_fail(r, err);
	if (r->front.size == 0 && r->back_done == r->back.size)
		r->urgent = false;
	pthread_cond_broadcast(&r->progress);
	return err == 0 || r->error;
}

static void *writer_main(void *data)
{
	struct recorder *r = data;
	bool abandoned;

	pthread_mutex_lock(&r->lock);
	for (;;) {
		writer_wait(r);
		while (r->front.size || r->back_done < r->back.size) {
			if (!writer_round(r) && !r->stop)
				wait_until(r, &r->work, now_ns() + WRITE_NS);
		}
		r->urgent = false;
		if (r->stop)
			break;
	}
	abandoned = r->abandoned;
	pthread_mutex_unlock(&r->lock);
	if (abandoned)
		recorder_free(r);
	return NULL;
}

/* --- life --- */

static int writer_start(struct recorder *r)
{
	sigset_t all;
	sigset_t old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&r->writer, NULL, writer_main, r);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return -err;
}

static void cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
}

/* Room for what comes between two writes: no marker has to wait for more. */
static int buffer_reserve(msgpack_sbuffer *buf)
{
	buf->data = malloc(2 * WRITE_BYTES);
	if (!buf->data)
		return -ENOMEM;
	buf->alloc = 2 * WRITE_BYTES;
	return 0;
}

int recorder_open(int fd, bool sync, struct recorder **ret)
{
	struct recorder *r;
	struct stat st;
	int err;

	r = calloc(1, sizeof(*r));
	if (!r) {
		sys_close(fd);
		return -ENOMEM;
	}
	r->fd = fd;
	r->sync = sync;
	pthread_mutex_init(&r->lock, NULL);
	cond_init(&r->work);
	cond_init(&r->progress);
	msgpack_sbuffer_init(&r->front);
	msgpack_sbuffer_init(&r->back);
	msgpack_packer_init(&r->packer, &r->front, msgpack_sbuffer_write);

	err = buffer_reserve(&r->front);
	if (err == 0)
		err = buffer_reserve(&r->back);
	if (err == 0)
		err = SYS_RESULT(fstat(fd, &st));
	if (err == 0) {
		r->regular = S_ISREG(st.st_mode);
		err = writer_start(r);
	}
	if (err < 0) {
		recorder_free(r);
		return err;
	}
	*ret = r;
	return 0;
}

uint64_t recorder_take_dropped(struct recorder *r)
{
	uint64_t dropped;

	pthread_mutex_lock(&r->lock);
	dropped = r->dropped;
	r->dropped = 0;
	pthread_mutex_unlock(&r->lock);
	return dropped;
}

int recorder_fd(const struct recorder *r)
{
	return r->fd;
}

int recorder_flush(struct recorder *r, uint64_t timeout_ns)
{
	uint64_t deadline = now_ns() + timeout_ns;
	uint64_t target;
	int err;

	pthread_mutex_lock(&r->lock);
	target = r->packed_bytes;
	r->urgent = r->left_bytes < target;
	pthread_cond_signal(&r->work);
	while (r->left_bytes < target && now_ns() < deadline)
		wait_until(r, &r->progress, deadline);
	err = r->error;
	if (!err && r->left_bytes < target)
		err = r->hindrance ? r->hindrance : -ETIMEDOUT;
	pthread_mutex_unlock(&r->lock);
	return err;
}

struct recorder *recorder_close(struct recorder *r)
{
	struct timespec deadline;

	if (!r)
		return NULL;
	recorder_flush(r, CLOSE_NS);

	pthread_mutex_lock(&r->lock);
	r->stop = true;
	pthread_cond_signal(&r->work);
	pthread_mutex_unlock(&r->lock);

	/* A write to a stalled disk cannot be called off. */
	clock_gettime(CLOCK_REALTIME, &deadline);
	deadline.tv_sec++;
	if (pthread_timedjoin_np(r->writer, NULL, &deadline) == 0) {
		recorder_free(r);
		return NULL;
	}
	pthread_mutex_lock(&r->lock);
	r->abandoned = true;
	pthread_detach(r->writer);
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

/* --- packing --- */

/*
 * The lock keeps the writer from exchanging the buffers in the middle of a
 * record; it holds it for that exchange alone.
 */
static msgpack_packer *record_begin(struct recorder *r, size_t *ret_mark)
{
	pthread_mutex_lock(&r->lock);
	*ret_mark = r->front.size;
	return &r->packer;
}

static int record_verdict(const struct recorder *r, size_t mark, size_t reserve)
{
	size_t added = r->front.size - mark;
	size_t bytes;

	if (r->error)
		return r->error;
	/* An object cut short by a lack of memory must not stay. */
	if (extent(r->front.data + mark, added, &bytes) < 0 || bytes != added)
		return -ENOMEM;
	if (r->packed_bytes - r->left_bytes + added > RECORDER_BACKLOG_BYTES + reserve)
		return -ENOBUFS;
	return 0;
}

/* Keeps the record, or takes it back whole and counts it. */
static int record_commit(struct recorder *r, size_t mark, size_t reserve)
{
	int err = record_verdict(r, mark, reserve);
	bool wake;

	if (err < 0) {
		r->front.size = mark;
		r->dropped++;
	} else {
		r->packed_bytes += r->front.size - mark;
	}
	wake = r->sleeping || (mark < WRITE_BYTES && r->front.size >= WRITE_BYTES);
	if (wake && err == 0)
		pthread_cond_signal(&r->work);
	pthread_mutex_unlock(&r->lock);
	return err;
}

/* A record's array, its number first. */
static msgpack_packer *record_open(struct recorder *r, enum schema_kind kind, size_t *ret_mark)
{
	msgpack_packer *pk = record_begin(r, ret_mark);

	msgpack_pack_array(pk, schema_columns(kind) + 1);
	msgpack_pack_uint64(pk, kind);
	return pk;
}

int recorder_header(struct recorder *r, const struct recorder_header *h)
{
	size_t mark;

	pack_header(record_begin(r, &mark), h);
	return record_commit(r, mark, 0);
}

int recorder_process(struct recorder *r, uint64_t time_ns, uint64_t process, pid_t pid,
	pid_t parent, const char *name, const char *how, const char *absent)
{
	size_t mark;
	msgpack_packer *pk = record_open(r, SCHEMA_PROCESS, &mark);

	msgpack_pack_uint64(pk, time_ns);
	msgpack_pack_uint64(pk, process);
	msgpack_pack_int64(pk, pid);
	msgpack_pack_int64(pk, parent);
	pack_text(pk, name);
	pack_text(pk, how);
	pack_text(pk, absent);
	return record_commit(r, mark, RESERVED_BYTES);
}

static void pack_kind(msgpack_packer *pk, uint8_t kind)
{
	const char *name = schema_marker_name(kind);

	if (name)
		pack_text(pk, name);
	else
		msgpack_pack_uint64(pk, kind);
}

int recorder_marker(struct recorder *r, const struct record_marker *m)
{
	size_t mark;
	msgpack_packer *pk = record_open(r, SCHEMA_MARKER, &mark);

	msgpack_pack_uint64(pk, m->time_ns);
	pack_number(pk, m->process, RECORD_NO_PROCESS);
	msgpack_pack_uint64(pk, m->tid);
	pack_kind(pk, m->kind);
	pack_text(pk, m->name);
	msgpack_pack_double(pk, m->value);
	msgpack_pack_uint64(pk, m->id);
	msgpack_pack_uint64(pk, m->flags);
	msgpack_pack_uint64(pk, m->took_ns);
	msgpack_pack_uint64(pk, m->done_ns);
	pack_number(pk, m->snapshot, 0);
	return record_commit(r, mark, 0);
}

/* What was read, and the times of its groups of events. */
static void pack_reading(msgpack_packer *pk, uint64_t begin_ns, uint64_t end_ns,
	const uint64_t *values, const struct metric_list *metrics)
{
	msgpack_pack_uint64(pk, begin_ns);
	msgpack_pack_uint64(pk, end_ns);
	pack_values(pk, values, metrics->count);
	pack_values(pk, values + metrics->count, 2 * metrics->groups);
}

int recorder_snapshot(struct recorder *r, uint64_t snapshot, uint64_t process, const char *reader,
	uint64_t begin_ns, uint64_t end_ns, const uint64_t *values,
	const struct metric_list *metrics)
{
	size_t mark;
	msgpack_packer *pk = record_open(r, SCHEMA_SNAPSHOT, &mark);

	msgpack_pack_uint64(pk, snapshot);
	pack_number(pk, process, RECORD_NO_PROCESS);
	pack_text(pk, reader);
	pack_reading(pk, begin_ns, end_ns, values, metrics);
	return record_commit(r, mark, 0);
}

int recorder_thread(struct recorder *r, uint64_t snapshot, uint64_t process, uint32_t tid,
	const char *reader, const char *how, uint64_t begin_ns, uint64_t end_ns,
	const uint64_t *values, const struct metric_list *metrics)
{
	size_t mark;
	msgpack_packer *pk = record_open(r, SCHEMA_THREAD, &mark);

	msgpack_pack_uint64(pk, snapshot);
	msgpack_pack_uint64(pk, process);
	msgpack_pack_uint32(pk, tid);
	pack_text(pk, reader);
	pack_text(pk, how);
	pack_reading(pk, begin_ns, end_ns, values, metrics);
	return record_commit(r, mark, 0);
}

int recorder_sample(struct recorder *r, uint64_t time_ns, uint64_t process, const char *reader,
	const uint64_t *values, const struct metric_list *metrics)
{
	size_t mark;
	msgpack_packer *pk = record_open(r, SCHEMA_SAMPLE, &mark);

	msgpack_pack_uint64(pk, time_ns);
	pack_number(pk, process, RECORD_NO_PROCESS);
	pack_text(pk, reader);
	pack_values(pk, values, metrics->count);
	return record_commit(r, mark, 0);
}

int recorder_loss(struct recorder *r, uint64_t time_ns, const char *what, uint64_t count)
{
	size_t mark;
	msgpack_packer *pk = record_open(r, SCHEMA_LOSS, &mark);

	msgpack_pack_uint64(pk, time_ns);
	pack_text(pk, what);
	msgpack_pack_uint64(pk, count);
	return record_commit(r, mark, RESERVED_BYTES);
}

int recorder_note(struct recorder *r, uint64_t time_ns, uint64_t process, const char *text)
{
	size_t mark;
	msgpack_packer *pk = record_open(r, SCHEMA_NOTE, &mark);

	msgpack_pack_uint64(pk, time_ns);
	pack_number(pk, process, RECORD_NO_PROCESS);
	pack_text(pk, text);
	return record_commit(r, mark, RESERVED_BYTES);
}

int recorder_exit(struct recorder *r, const struct record_exit *e)
{
	size_t mark;
	msgpack_packer *pk = record_open(r, SCHEMA_EXIT, &mark);

	msgpack_pack_uint64(pk, e->time_ns);
	pack_number(pk, e->process, RECORD_NO_PROCESS);
	pack_number(pk, (uint64_t)(int64_t)e->status, (uint64_t)(int64_t)RECORD_STATUS_UNKNOWN);
	pack_number(pk, e->user_us, VALUE_ABSENT);
	pack_number(pk, e->system_us, VALUE_ABSENT);
	pack_number(pk, e->peak_bytes, VALUE_ABSENT);
	pack_number(pk, e->snapshot, 0);
	return record_commit(r, mark, RESERVED_BYTES);
}

int recorder_summary(struct recorder *r, uint64_t time_ns, uint64_t markers, uint64_t lost,
	uint64_t processes, uint64_t snapshots, bool complete)
{
	size_t mark;
	msgpack_packer *pk = record_open(r, SCHEMA_SUMMARY, &mark);

	msgpack_pack_uint64(pk, time_ns);
	msgpack_pack_uint64(pk, markers);
	msgpack_pack_uint64(pk, lost);
	msgpack_pack_uint64(pk, processes);
	msgpack_pack_uint64(pk, snapshots);
	pack_bool(pk, complete);
	return record_commit(r, mark, RESERVED_BYTES);
}
