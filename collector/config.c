/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "internal/sys.h"
#include "internal/util.h"
#include "jphase/abi.h"
#include "token.h"

#define POLL_MIN_NS     (10 * NSEC_PER_USEC)
#define POLL_MAX_NS     NSEC_PER_SEC
#define INTERVAL_MIN_NS NSEC_PER_MSEC
#define INTERVAL_MAX_NS (3600 * NSEC_PER_SEC)
#define IDLE_MIN_NS     (10 * NSEC_PER_MSEC)
#define IDLE_MAX_NS     (60 * NSEC_PER_SEC)

const char *const mode_names[] = {
	[MODE_AUTO] = "auto",
	[MODE_SYNC] = "sync",
	[MODE_ASYNC] = "async",
	[MODE_EXACT] = "exact",
	NULL,
};

const char *const perf_scope_names[] = {
	[PERF_OF_PROCESS] = "process",
	[PERF_OF_CGROUP] = "cgroup",
	NULL,
};

/* The same fields with their defaults, for comparison. */
static const struct config defaults = {
	.mode = MODE_AUTO,
	.poll_ns = NSEC_PER_MSEC,
	.interval_ns = 10 * NSEC_PER_MSEC,
	.ring = JPHASE_RING_DEFAULT,
	.grace_ns = NSEC_PER_SEC,
};

struct config config = {
	.mode = MODE_AUTO,
	.poll_ns = NSEC_PER_MSEC,
	.interval_ns = 10 * NSEC_PER_MSEC,
	.ring = JPHASE_RING_DEFAULT,
	.grace_ns = NSEC_PER_SEC,
};

/* Where options that are given more than once are put together. */
static struct {
	char events[CLI_LIST_ROOM];
	char sources[CLI_LIST_ROOM];
	char signals[CLI_LIST_ROOM];
} lists;

const struct opt config_opts[] = {
	OPT_STR('o', "output", &config.output, "FILE",
		"write the recording here (default: jphase-NAME-PID.msgpack); an older recording "
		"of that name becomes FILE.old",
		"JPHASE_OUTPUT"),
	OPT_STR('e', "events", &config.events, "EVENTS",
		"count these events, separated by commas (jphase list shows them)", "JPHASE_EVENTS",
		.list = lists.events),
	OPT_STR(0, "sources", &config.sources, "LIST",
		"use these readers: perf, cgroup, procfs, energy or all; -NAME leaves one out "
		"(default: all)",
		"JPHASE_SOURCES", .list = lists.sources, .words = "all perf cgroup procfs energy"),
	OPT_CHOICE('m', "mode", &config.mode, mode_names, "MODE",
		"sync: a phase waits until its counters are read; async: it never waits; exact: as "
		"sync, and the kernel samples the counters of regions; auto: exact where it can be "
		"had, else sync (default)",
		"JPHASE_MODE"),
	OPT_TIME(0, "poll", &config.poll_ns, "TIME",
		"in async mode look for markers every TIME (default: 1ms); 0: when they come",
		"JPHASE_POLL"),
	OPT_TIME('i', "interval", &config.interval_ns, "TIME",
		"sample memory and other gauges every TIME (default: 10ms); 0: at phases only",
		"JPHASE_INTERVAL"),
	OPT_COUNT(0, "ring", &config.ring, "RECORDS",
		"room for markers on their way, a power of two (default: 4096)", "JPHASE_RING"),
	OPT_STR(0, "signal", &config.signals, "LIST",
		"let signals begin phases: RTMIN+3=warmup,USR1=solve", "JPHASE_SIGNALS",
		.starts = true),
	OPT_OPTIONAL(0, "token-pattern", &config.token_pattern, TOKEN_DEFAULT, "[REGEX]",
		"let lines of standard output begin phases: what the POSIX extended expression "
		"matches in them (default: " TOKEN_DEFAULT ")",
		"JPHASE_TOKEN_PATTERN", .starts = true),
	OPT_TIME(0, "grace", &config.grace_ns, "TIME",
		"after the program has ended wait this long for processes it left behind "
		"(default: 1s)",
		"JPHASE_GRACE"),
	OPT_STR(0, "cgroup", &config.cgroup, "WHERE",
		"create or create=NAME: run the program in a cgroup of its own, removed afterwards; "
		"PATH: read that cgroup (default: the one the program is in)",
		"JPHASE_CGROUP", .words = "create"),
	OPT_FLAG(0, "cgroup-attach", &config.cgroup_attach,
		"move the program into the cgroup that --cgroup PATH names",
		"JPHASE_CGROUP_ATTACH"),
	OPT_STR(0, "cgroup-root", &config.cgroup_root, "DIR",
		"look for cgroups in DIR (default: where cgroup v2 is mounted)",
		"JPHASE_CGROUP_ROOT"),
	OPT_CHOICE(0, "scope", &config.scope, perf_scope_names, "SCOPE",
		"what perf counts: process, and what it starts (default); cgroup: all in its cgroup",
		"JPHASE_SCOPE"),
	OPT_STR(0, "cpus", &config.cpus, "LIST",
		"with --scope cgroup: count on these CPUs only, as 0-3,8", "JPHASE_CPUS"),
	OPT_FLAG(0, "reset-peak", &config.reset_peak,
		"make proc_rss_peak the peak of each phase; the program then sees a smaller maximum "
		"in its own getrusage",
		"JPHASE_RESET_PEAK"),
	OPT_STR(0, "powercap-root", &config.powercap_root, "DIR",
		"read energy from the zones in DIR (default: the kernel's counters, else "
		"/sys/class/powercap)",
		"JPHASE_POWERCAP_ROOT"),
	OPT_TIME(0, "idle-baseline", &config.idle_ns, "TIME",
		"measure the energy of the idle machine for TIME before the program begins",
		"JPHASE_IDLE_BASELINE", .starts = true),
	OPT_FLAG(0, "no-calibrate", &config.no_calibrate,
		"do not measure at the end what a marker costs here", "JPHASE_NO_CALIBRATE"),
	OPT_FLAG(0, "fsync", &config.fsync,
		"force the recording to the disk, in case the machine crashes", "JPHASE_FSYNC"),
	OPT_STR('u', "user", &config.user, "NAME",
		"run the program as this user (default under sudo: who called it)", NULL,
		.words = "$(compgen -u)", .starts = true),
	OPT_STR(0, "config", &config.file, "FILE", "read options from lines `option = value`",
		NULL),
	OPT_FLAG('q', "quiet", &config.quiet, "say only what went wrong", "JPHASE_QUIET"),
	OPT_FLAG('h', "help", &config.help, "show this help", NULL),
	OPT_END,
};

__attribute__((format(printf, 2, 3))) static int fail(
	char ret_error[CLI_ERROR_ROOM], const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(ret_error, CLI_ERROR_ROOM, format, ap);
	va_end(ap);
	return -EINVAL;
}

static uint64_t next_power_of_two(uint64_t n)
{
	uint64_t power = JPHASE_RING_MIN;

	while (power < n && power < JPHASE_RING_MAX)
		power *= 2;
	return power;
}

static int check_texts(char ret_error[CLI_ERROR_ROOM])
{
	for (const struct opt *o = config_opts; o->name; o++)
		if (o->type == OPT_TYPE_STR && *o->dst.str && !**o->dst.str)
			return fail(ret_error, "option \"--%s\" is empty; it needs %s", o->name,
				o->arg);
	return 0;
}

static int check_output(char ret_error[CLI_ERROR_ROOM])
{
	if (!config.output || !str_eq(config.output, "-"))
		return 0;
	return fail(ret_error, "output \"-\": standard output is the program's; choose a file");
}

static int check_token_pattern(char ret_error[CLI_ERROR_ROOM])
{
	char reason[TOKEN_ERROR_ROOM];

	if (!config.token_pattern || token_check(config.token_pattern, reason) == 0)
		return 0;
	return fail(ret_error, "token-pattern \"%.60s\": %s", config.token_pattern, reason);
}

int config_check(char ret_error[CLI_ERROR_ROOM])
{
	uint64_t power = next_power_of_two(config.ring);

	if (config.ring != power)
		return fail(ret_error,
			"ring must be a power of two from %u to %u, such as %llu, not %llu",
			JPHASE_RING_MIN, JPHASE_RING_MAX, (unsigned long long)power,
			(unsigned long long)config.ring);
	if (config.poll_ns && (config.poll_ns < POLL_MIN_NS || config.poll_ns > POLL_MAX_NS))
		return fail(ret_error, "poll must be 0 or from 10us to 1s");
	if (config.interval_ns &&
		(config.interval_ns < INTERVAL_MIN_NS || config.interval_ns > INTERVAL_MAX_NS))
		return fail(ret_error, "interval must be 0 or from 1ms to 60min");
	if (config.idle_ns && (config.idle_ns < IDLE_MIN_NS || config.idle_ns > IDLE_MAX_NS))
		return fail(ret_error, "idle-baseline must be 0 or from 10ms to 60s");
	if (config.cgroup_attach && !config.cgroup)
		return fail(ret_error, "cgroup-attach needs to know where: add --cgroup PATH");
	if (config.cpus && config.scope != PERF_OF_CGROUP)
		return fail(ret_error, "cpus needs --scope cgroup: a process is counted wherever "
				       "it runs");
	if (check_token_pattern(ret_error) < 0 || check_output(ret_error) < 0)
		return -EINVAL;
	return check_texts(ret_error);
}

static int load_file(const char *path, char ret_error[CLI_ERROR_ROOM])
{
	int err;

	config = defaults;
	err = cli_parse_file(config_opts, path, ret_error);
	if (err < 0)
		return err;
	if (config.file || config.help)
		return fail(ret_error, "\"%.100s\": %s belongs on the command line", path,
			config.file ? "config" : "help");
	return 0;
}

int config_load(int argc, char **argv, char ret_error[CLI_ERROR_ROOM])
{
	int err;

	config = defaults;
	err = cli_parse(config_opts, argc, argv, ret_error);
	if (err < 0)
		return err;
	/* Weakest first: the file, the variables, the command line. */
	err = config.file ? load_file(config.file, ret_error) : 0;
	if (err < 0)
		return err;
	err = cli_parse_env(config_opts, ret_error);
	if (err < 0)
		return err;
	err = cli_parse(config_opts, argc, argv, ret_error);
	if (err < 0)
		return err;
	return config_check(ret_error) < 0 ? -EINVAL : err;
}

int config_load_env(char ret_error[CLI_ERROR_ROOM])
{
	int err;

	config = defaults;
	err = cli_parse_env(config_opts, ret_error);
	return err < 0 ? err : config_check(ret_error);
}

/* Those that are no options. */
static const char *const other_variables[] = { "SESSION", "COLLECTOR", "REGISTER", "TOLD" };

#define VARIABLE_PREFIX "JPHASE_"
#define VARIABLES_MAX   (CLI_OPTIONS_MAX + ARRAY_SIZE(other_variables) + 1)

/* Without the prefix, which all share; ends with NULL. */
static void list_variables(const char *names[VARIABLES_MAX])
{
	size_t n = 0;

	for (const struct opt *o = config_opts; o->name; o++)
		if (o->env)
			names[n++] = o->env + strlen(VARIABLE_PREFIX);
	for (size_t i = 0; i < ARRAY_SIZE(other_variables); i++)
		names[n++] = other_variables[i];
	names[n] = NULL;
}

static bool is_listed(const char *name, const char *const *names)
{
	while (*names && !str_eq(*names, name))
		names++;
	return *names;
}

bool config_misspelled(char ret_hint[CLI_ERROR_ROOM])
{
	const char *names[VARIABLES_MAX], *like;
	char name[64];

	list_variables(names);
	for (char **e = environ; *e; e++) {
		if (!str_starts(*e, VARIABLE_PREFIX))
			continue;
		snprintf(name, sizeof(name), "%s", *e + strlen(VARIABLE_PREFIX));
		name[strcspn(name, "=")] = '\0';
		like = is_listed(name, names) ? NULL : cli_suggest(name, names);
		if (!like)
			continue;
		snprintf(ret_hint, CLI_ERROR_ROOM,
			"the variable " VARIABLE_PREFIX
			"%s means nothing; did you mean " VARIABLE_PREFIX "%s?",
			name, like);
		return true;
	}
	return false;
}

static const void *default_of(const struct opt *o)
{
	size_t offset = (size_t)((const char *)o->dst.flag - (const char *)&config);

	return (const char *)&defaults + offset;
}

/* The value in words that the parsers read back; NULL: it is the default. */
static const char *export_value(const struct opt *o, char *buf, size_t room)
{
	const void *usual = default_of(o);

	switch (o->type) {
	case OPT_TYPE_FLAG:
		return *o->dst.flag == *(const bool *)usual ? NULL : *o->dst.flag ? "1" : "0";
	case OPT_TYPE_STR:
	case OPT_TYPE_OPTIONAL: return *o->dst.str;
	case OPT_TYPE_CHOICE:
		if (*o->dst.choice == *(const int *)usual)
			return NULL;
		return o->choices[*o->dst.choice];
	case OPT_TYPE_TIME:
		if (*o->dst.time_ns == *(const uint64_t *)usual)
			return NULL;
		snprintf(buf, room, "%lluns", (unsigned long long)*o->dst.time_ns);
		return buf;
	case OPT_TYPE_COUNT:
		if (*o->dst.count == *(const uint64_t *)usual)
			return NULL;
		snprintf(buf, room, "%llu", (unsigned long long)*o->dst.count);
		return buf;
	}
	return NULL;
}

const char *config_for_start(void)
{
	char buf[32];

	for (const struct opt *o = config_opts; o->name; o++)
		if (o->starts && export_value(o, buf, sizeof(buf)))
			return o->name;
	return NULL;
}

int config_export(void)
{
	char buf[32];

	for (const struct opt *o = config_opts; o->name; o++) {
		const char *value;
		int err;

		if (!o->env)
			continue;
		value = export_value(o, buf, sizeof(buf));
		err = SYS_RESULT(value ? setenv(o->env, value, 1) : unsetenv(o->env));
		if (err < 0)
			return err;
	}
	return 0;
}
