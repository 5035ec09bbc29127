/* SPDX-License-Identifier: MIT */
#include "support/measure.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>

#include "internal/util.h"

void wait_for_recording(const char *file)
{
	for (int i = 0; i < 1000; i++) {
		int fd = open(file, O_RDONLY | O_CLOEXEC);
		bool free_now = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) == 0;

		if (fd >= 0)
			close(fd);
		if (free_now)
			return;
		usleep(10000);
	}
	fail_msg("%s: still being written after 10 s, or never made", file);
}

static void append(const char **list, size_t room, const char *word)
{
	size_t n = 0;

	while (list[n])
		n++;
	assert_true(n + 1 < room);
	list[n] = word;
}

static void append_all(const char **list, size_t room, const char *const *words)
{
	for (; *words; words++)
		append(list, room, *words);
}

void measure(struct measured *m)
{
	struct child *c = &m->child;
	char *output = NULL;

	if (!m->dir)
		m->dir = tmpdir_make();
	free(m->file);
	m->file = text_make("%s/test.msgpack", m->dir);
	memset(c->argv, 0, sizeof(c->argv));
	memset(c->env, 0, sizeof(c->env));
	c->cwd = m->cwd ? m->cwd : m->dir;
	if (m->way == WAY_RUN) {
		const char *const start[] = { JPHASE, "run", "-q", "-o", m->file, NULL };

		append_all(c->argv, RUN_WORDS, start);
		append_all(c->argv, RUN_WORDS, m->options);
		append(c->argv, RUN_WORDS, "--");
	} else {
		output = text_make("JPHASE_OUTPUT=%s", m->file);
		append(c->env, RUN_WORDS, "LD_PRELOAD=" LIBJPHASE);
		append(c->env, RUN_WORDS, output);
	}
	append_all(c->argv, RUN_WORDS, m->argv);
	append_all(c->env, RUN_WORDS, m->env);
	assert_int_equal(run_program(c), 0);
	free(output);
	if (c->timed_out)
		fail_msg("%s did not end", m->argv[0]);
	wait_for_recording(m->file);
	measure_load(m);
}

void measure_load(struct measured *m)
{
	int fd, err;

	m->model = m->model ? model_close(m->model) : NULL;
	assert_int_equal(model_open(&m->model), 0);
	fd = open(m->file, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	err = model_read(m->model, fd, m->file);
	close(fd);
	if (err < 0)
		fail_msg("%s: cannot be read: %s; %s", m->file, strerror(-err), m->child.err);
	assert_int_equal(model_finish(m->model, BY_PHASE), 0);
}

void measure_clear(struct measured *m)
{
	if (m->model)
		model_close(m->model);
	run_clear(&m->child);
	free(m->file);
	tmpdir_remove(m->dir);
	*m = (struct measured){ .way = WAY_RUN };
}

size_t phase_count(const struct measured *m, const char *name)
{
	size_t count = 0;

	for (size_t i = 0; i < m->model->row_count; i++)
		count += str_eq(m->model->rows[i].name, name);
	return count;
}

const struct row *phase_at(const struct measured *m, const char *name, size_t n)
{
	for (size_t i = 0; i < m->model->row_count; i++)
		if (str_eq(m->model->rows[i].name, name) && n-- == 0)
			return &m->model->rows[i];
	fail_msg("no phase is called %s (standard error: %s)", name, m->child.err);
	return NULL;
}

struct value value_of(const struct measured *m, const struct row *row, const char *metric)
{
	for (size_t i = 0; i < m->model->column_count; i++)
		if (str_eq(m->model->columns[i].name, metric))
			return model_value(m->model, row, i);
	fail_msg("no metric is called %s", metric);
	return (struct value){ .state = VALUE_MISSING };
}

uint64_t counted(const struct measured *m, const struct row *row, const char *metric)
{
	struct value v = value_of(m, row, metric);

	if (v.state != VALUE_COUNTED)
		fail_msg("%s of %s was not counted: %s", metric, row->name,
			v.note ? v.note : "no reason");
	return v.number;
}

void need_perf(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_PAGE_FAULTS,
	};
	long fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0) {
		print_message("perf_event_open: %s; the test needs root or "
			      "perf_event_paranoid at most 1\n",
			strerror(errno));
		skip();
	}
	close((int)fd);
}
