/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "internal/util.h"
#include "support/proc.h"

static char error[CLI_ERROR_ROOM];

static int load(const char *const *words)
{
	char *argv[16] = { (char *)(uintptr_t) "run" };
	int argc = 1;

	memset(error, 0, sizeof(error));
	for (; *words; words++)
		argv[argc++] = (char *)(uintptr_t)*words;
	return config_load(argc, argv, error);
}

#define LOAD(...) load((const char *const[]){ __VA_ARGS__, NULL })

#define assert_refused(call, sentence)                                                             \
	do {                                                                                       \
		assert_int_equal(call, -EINVAL);                                                   \
		assert_string_equal(error, sentence);                                              \
	} while (0)

static int clear_variables(void **state)
{
	(void)state;
	for (const struct opt *o = config_opts; o->name; o++)
		if (o->env)
			unsetenv(o->env);
	return 0;
}

static void defaults_are_those_of_the_manual(void **state)
{
	(void)state;
	assert_int_equal(LOAD("app", "--mode"), 1);
	assert_int_equal(config.mode, MODE_AUTO);
	assert_int_equal(config.poll_ns, 1000000);
	assert_int_equal(config.interval_ns, 10000000);
	assert_int_equal(config.ring, 4096);
	assert_int_equal(config.grace_ns, 1000000000);
	assert_false(config.fsync);
	assert_false(config.quiet);
	assert_null(config.output);
	assert_null(config.events);
	assert_null(config.sources);
	assert_null(config.signals);
	assert_null(config.user);
}

static void lists_that_are_given_again_grow(void **state)
{
	static char much[CLI_LIST_ROOM - 2];

	(void)state;
	setenv("JPHASE_EVENTS", "task-clock", 1);
	assert_int_equal(LOAD("-e", "cycles", "--events=instructions:u", "-e", "r11", "app"), 6);
	assert_string_equal(config.events, "cycles,instructions:u,r11");
	assert_int_equal(LOAD("app"), 1);
	assert_string_equal(config.events, "task-clock");
	assert_int_equal(LOAD("-o", "first", "-o", "second", "app"), 5);
	assert_string_equal(config.output, "second");
	memset(much, 'x', sizeof(much) - 1);
	assert_int_equal(LOAD("-e", much, "-e", ""), 5);
	assert_int_equal(LOAD("-e", much, "-e", "yy"), -EINVAL);
	clear_variables(NULL);
}

static const struct {
	const char *option, *variable;
} variables[] = {
	{ "output", "JPHASE_OUTPUT" },
	{ "events", "JPHASE_EVENTS" },
	{ "sources", "JPHASE_SOURCES" },
	{ "mode", "JPHASE_MODE" },
	{ "poll", "JPHASE_POLL" },
	{ "interval", "JPHASE_INTERVAL" },
	{ "ring", "JPHASE_RING" },
	{ "signal", "JPHASE_SIGNALS" },
	{ "grace", "JPHASE_GRACE" },
	{ "cgroup", "JPHASE_CGROUP" },
	{ "cgroup-attach", "JPHASE_CGROUP_ATTACH" },
	{ "cgroup-root", "JPHASE_CGROUP_ROOT" },
	{ "scope", "JPHASE_SCOPE" },
	{ "cpus", "JPHASE_CPUS" },
	{ "reset-peak", "JPHASE_RESET_PEAK" },
	{ "powercap-root", "JPHASE_POWERCAP_ROOT" },
	{ "idle-baseline", "JPHASE_IDLE_BASELINE" },
	{ "token-pattern", "JPHASE_TOKEN_PATTERN" },
	{ "no-calibrate", "JPHASE_NO_CALIBRATE" },
	{ "fsync", "JPHASE_FSYNC" },
	{ "quiet", "JPHASE_QUIET" },
	{ "user", NULL },
	{ "config", NULL },
	{ "help", NULL },
};

static const struct opt *find(const char *name)
{
	const struct opt *o = config_opts;

	while (o->name && !str_eq(o->name, name))
		o++;
	return o;
}

static void every_option_has_its_variable(void **state)
{
	size_t count = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(variables); i++) {
		const struct opt *o = find(variables[i].option);

		assert_non_null(o->name);
		if (variables[i].variable)
			assert_string_equal(o->env, variables[i].variable);
		else
			assert_null(o->env);
	}
	while (config_opts[count].name)
		count++;
	assert_int_equal(count, ARRAY_SIZE(variables));
}

static void command_line_wins_over_variable_over_file(void **state)
{
	char *dir = tmpdir_make();
	char *path = text_make("%s/options", dir);
	static const char text[] = "mode = async\npoll = 2ms\nring = 128\nquiet = yes\n";

	(void)state;
	assert_int_equal(file_write(path, text, strlen(text)), 0);
	setenv("JPHASE_POLL", "3ms", 1);
	setenv("JPHASE_RING", "256", 1);
	assert_int_equal(LOAD("--ring", "512", "--config", path, "app"), 5);
	assert_int_equal(config.mode, MODE_ASYNC);
	assert_int_equal(config.poll_ns, 3000000);
	assert_int_equal(config.ring, 512);
	assert_true(config.quiet);

	free(path);
	tmpdir_remove(dir);
}

static void a_file_cannot_ask_for_another_or_for_help(void **state)
{
	char *dir = tmpdir_make();
	char *path = text_make("%s/options", dir);
	char *sentence = text_make("\"%s\": config belongs on the command line", path);

	(void)state;
	assert_int_equal(file_write(path, "config = x\n", 11), 0);
	assert_refused(LOAD("--config", path), sentence);
	assert_int_equal(file_write(path, "help = yes\n", 11), 0);
	assert_int_equal(LOAD("--config", path), -EINVAL);

	free(sentence);
	free(path);
	tmpdir_remove(dir);
}

static void a_ring_is_a_power_of_two_within_limits(void **state)
{
	(void)state;
	assert_int_equal(LOAD("--ring=64"), 2);
	assert_int_equal(LOAD("--ring=1M"), 2);
	assert_refused(LOAD("--ring=1000"),
		"ring must be a power of two from 64 to 1048576, such as 1024, not 1000");
	assert_refused(LOAD("--ring=32"),
		"ring must be a power of two from 64 to 1048576, such as 64, not 32");
	assert_refused(LOAD("--ring=2M"),
		"ring must be a power of two from 64 to 1048576, such as 1048576, not 2097152");
	assert_refused(LOAD("--ring=0"),
		"ring must be a power of two from 64 to 1048576, such as 64, not 0");
}

static void times_have_limits(void **state)
{
	(void)state;
	assert_int_equal(LOAD("--poll=0", "--interval=0"), 3);
	assert_int_equal(LOAD("--poll=10us", "--interval=1ms"), 3);
	assert_refused(LOAD("--poll=1us"), "poll must be 0 or from 10us to 1s");
	assert_refused(LOAD("--poll=2s"), "poll must be 0 or from 10us to 1s");
	assert_refused(LOAD("--interval=1us"), "interval must be 0 or from 1ms to 60min");
}

static void an_empty_text_is_refused(void **state)
{
	(void)state;
	assert_refused(LOAD("-e", ""), "option \"--events\" is empty; it needs EVENTS");
	assert_refused(LOAD("--output="), "option \"--output\" is empty; it needs FILE");
}

static void a_bad_variable_is_named(void **state)
{
	(void)state;
	setenv("JPHASE_MODE", "spin", 1);
	assert_refused(config_load_env(error),
		"JPHASE_MODE: \"spin\" is not one of auto, sync, async, exact");
}

static void what_is_exported_is_loaded_again(void **state)
{
	(void)state;
	assert_int_equal(LOAD("-oa b", "-ecycles", "--sources=perf", "--mode=async", "--poll=1.5ms",
				 "--interval=0", "--ring=64", "--signal=USR1=x", "--grace=7ns",
				 "--fsync", "-q", "--user=me"),
		13);
	assert_int_equal(config_export(), 0);
	assert_string_equal(getenv("JPHASE_POLL"), "1500000ns");

	assert_int_equal(config_load_env(error), 0);
	assert_string_equal(config.output, "a b");
	assert_string_equal(config.events, "cycles");
	assert_string_equal(config.sources, "perf");
	assert_int_equal(config.mode, MODE_ASYNC);
	assert_int_equal(config.poll_ns, 1500000);
	assert_int_equal(config.interval_ns, 0);
	assert_int_equal(config.ring, 64);
	assert_string_equal(config.signals, "USR1=x");
	assert_int_equal(config.grace_ns, 7);
	assert_true(config.fsync);
	assert_true(config.quiet);
	assert_null(config.user);
}

static void a_default_takes_its_variable_away(void **state)
{
	(void)state;
	setenv("JPHASE_MODE", "async", 1);
	setenv("JPHASE_QUIET", "yes", 1);
	assert_int_equal(LOAD("--mode=auto", "--quiet=no"), 3);
	assert_int_equal(config_export(), 0);
	for (const struct opt *o = config_opts; o->name; o++)
		assert_true(!o->env || !getenv(o->env));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(defaults_are_those_of_the_manual, clear_variables),
		cmocka_unit_test_setup(every_option_has_its_variable, clear_variables),
		cmocka_unit_test_setup(command_line_wins_over_variable_over_file, clear_variables),
		cmocka_unit_test_setup(a_file_cannot_ask_for_another_or_for_help, clear_variables),
		cmocka_unit_test_setup(a_ring_is_a_power_of_two_within_limits, clear_variables),
		cmocka_unit_test_setup(times_have_limits, clear_variables),
		cmocka_unit_test_setup(an_empty_text_is_refused, clear_variables),
		cmocka_unit_test_setup(lists_that_are_given_again_grow, clear_variables),
		cmocka_unit_test_setup(a_bad_variable_is_named, clear_variables),
		cmocka_unit_test_setup(what_is_exported_is_loaded_again, clear_variables),
		cmocka_unit_test_setup(a_default_takes_its_variable_away, clear_variables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
