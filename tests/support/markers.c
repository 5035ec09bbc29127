/* SPDX-License-Identifier: MIT */
#include "support/markers.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "decoder.h"
#include "internal/sys.h"
#include "internal/util.h"

static int see_process(void *data, const struct decoded_process *process)
{
	struct markers *m = data;

	if (process->process != m->processes)
		return -EILSEQ;
	m->process = reallocarray(m->process, m->processes + 1, sizeof(*m->process));
	if (!m->process)
		return -ENOMEM;
	m->process[m->processes].pid = process->pid;
	m->process[m->processes++].counted = !process->absent;
	return 0;
}

static int see_marker(void *data, const struct record_marker *marker)
{
	struct markers *m = data;
	struct marker_seen *seen;

	if (m->count == m->room) {
		m->room = MAX(2 * m->room, (size_t)256);
		m->marker = reallocarray(m->marker, m->room, sizeof(*m->marker));
	}
	if (!m->marker || marker->process >= m->processes)
		return -EILSEQ;
	seen = &m->marker[m->count++];
	*seen = (struct marker_seen){
		.pid = m->process[marker->process].pid,
		.counted = m->process[marker->process].counted,
		.kind = marker->kind,
		.flags = marker->flags,
	};
	snprintf(seen->name, sizeof(seen->name), "%s", marker->name);
	return 0;
}

static int see_loss(void *data, uint64_t time_ns, const char *what, uint64_t count)
{
	struct markers *m = data;

	(void)time_ns;
	(void)what;
	m->lost += count;
	return 0;
}

static int see_summary(void *data, const struct decoded_summary *summary)
{
	struct markers *m = data;

	m->complete = summary->complete;
	return 0;
}

struct markers *markers_read(const char *file)
{
	const struct decoder_ops ops = {
		.process = see_process,
		.marker = see_marker,
		.loss = see_loss,
		.summary = see_summary,
	};
	struct markers *m = calloc(1, sizeof(*m));
	int fd = sys_open(file, O_RDONLY, 0), err;
	struct decoder *d;

	assert_non_null(m);
	assert_int_equal(decoder_open(&ops, m, &d), 0);
	err = fd < 0 ? fd : decoder_feed_fd(d, fd);
	decoder_close(d);
	sys_close(fd);
	if (err < 0)
		fail_msg("%s: %s", file, strerror(-err));
	return m;
}

struct markers *markers_free(struct markers *m)
{
	if (!m)
		return NULL;
	free(m->marker);
	free(m->process);
	free(m);
	return NULL;
}

size_t markers_count(const struct markers *m, const char *name)
{
	size_t count = 0;

	for (size_t i = 0; i < m->count; i++)
		count += str_eq(m->marker[i].name, name);
	return count;
}

size_t markers_flagged(const struct markers *m, const char *name, uint8_t flags)
{
	size_t count = 0;

	for (size_t i = 0; i < m->count; i++)
		count += str_eq(m->marker[i].name, name) && m->marker[i].flags & flags;
	return count;
}
