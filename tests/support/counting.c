/* SPDX-License-Identifier: MIT */
#include "support/counting.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "internal/sys.h"
#include "internal/util.h"
#include "readers/perf_unit.h"
#include "support/proc.h"

struct reader_env counting_env(const char *events)
{
	return (struct reader_env){ .proc_root = "/proc", .sys_root = "/sys", .events = events };
}

struct order {
	char what;
	int pages;
};

__attribute__((no_sanitize("address"))) void touch_pages(int pages)
{
	size_t bytes = (size_t)pages * 4096;
	volatile char *area =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == 0 || area == MAP_FAILED)
		return;
	madvise((void *)area, bytes, MADV_NOHUGEPAGE);
	for (int i = 0; i < pages; i++)
		area[(size_t)i * 4096] = 1;
	munmap((void *)area, bytes);
}

static void touch_in_children(int pages)
{
	for (int i = 0; i < 2; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			touch_pages(pages);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
}

static void *touch_in_thread(void *pages)
{
	touch_pages(*(int *)pages);
	return NULL;
}

void worker_obey(int orders, int answers)
{
	struct order order;
	pthread_t thread;

	while (read(orders, &order, sizeof(order)) == sizeof(order)) {
		if (order.what == 'c')
			touch_in_children(order.pages);
		else if (order.what == 't' &&
			 pthread_create(&thread, NULL, touch_in_thread, &order.pages) == 0)
			pthread_join(thread, NULL);
		else
			touch_pages(order.pages);
		if (write(answers, "", 1) != 1)
			break;
	}
}

struct worker worker_start(void)
{
	int orders[2], answers[2];
	struct worker w;

	assert_int_equal(pipe2(orders, O_CLOEXEC), 0);
	assert_int_equal(pipe2(answers, O_CLOEXEC), 0);
	w.pid = fork();
	assert_true(w.pid >= 0);
	if (w.pid == 0) {
		close(orders[1]);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		worker_obey(orders[0], answers[1]);
		_exit(0);
	}
	close(orders[0]);
	close(answers[1]);
	w.orders = orders[1];
	w.answers = answers[0];
	return w;
}

void worker_order(const struct worker *w, char what, int pages)
{
	struct order order = { what, pages };
	char answer;

	assert_int_equal(write(w->orders, &order, sizeof(order)), sizeof(order));
	assert_int_equal(read(w->answers, &answer, 1), 1);
}

void worker_end(struct worker *w)
{
	close(w->orders);
	close(w->answers);
	waitpid(w->pid, NULL, 0);
}

struct reader *counting_open(const struct reader_env *env, pid_t pid, bool enable_on_exec)
{
	struct reader_target target = { .env = env, .pid = pid, .enable_on_exec = enable_on_exec };
	char reason[READER_REASON_ROOM] = "";
	struct reader *r = NULL;

	if (perf_reader.open(&target, &r, reason) < 0)
		print_message("%s\n", reason);
	assert_non_null(r);
	return r;
}

struct metric_list counting_described(const struct reader *r)
{
	struct metric_list list = { 0 };

	assert_int_equal(perf_reader.describe(r, &list), 0);
	return list;
}

const struct metric *counting_metric(const struct metric_list *list, const char *name)
{
	for (size_t i = 0; i < list->count; i++)
		if (str_eq(list->metric[i].name, name))
			return &list->metric[i];
	return NULL;
}

uint64_t counting_value(struct reader *r, const char *name)
{
	struct metric_list list = counting_described(r);
	const struct metric *m = counting_metric(&list, name);
	uint64_t values[64], value;

	assert_non_null(m);
	assert_true(metric_list_values(&list) <= ARRAY_SIZE(values));
	assert_int_equal(perf_reader.read(r, values), 0);
	value = values[m - list.metric];
	metric_list_clear(&list);
	return value;
}

bool counting_can(struct perf_event_attr attr)
{
	struct perf_group group = { .count = 1, .counter[0].attr = attr };
	struct perf_where where = { .pid = 0, .cpu = -1 };
	struct perf_unit unit;

	if (perf_unit_open(&group, &where, &unit) < 0)
		return false;
	perf_unit_close(&unit);
	return true;
}

bool counting_has_pmu(void)
{
	return counting_can(
		(struct perf_event_attr){ .type = PERF_TYPE_HARDWARE, .exclude_kernel = 1 });
}
