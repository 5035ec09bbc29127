/* SPDX-License-Identifier: MIT */
/* What the user chose for a session, from options, variables and a file. */
#ifndef COLLECTOR_CONFIG_H
#define COLLECTOR_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "cli.h"

enum session_mode {
	MODE_AUTO, /* exact where it can be had, else sync */
	MODE_SYNC,
	MODE_ASYNC,
	MODE_EXACT,
};

/* Whose events perf counts. */
enum perf_scope {
	PERF_OF_PROCESS,
	PERF_OF_CGROUP,
};

struct config {
	const char *output;        /* NULL: jphase-NAME-PID.msgpack */
	const char *events;        /* NULL: the default ones */
	const char *sources;       /* NULL: all */
	const char *signals;       /* NULL: none */
	const char *token_pattern; /* NULL: standard output is not looked at */
	const char *user;          /* NULL: who called sudo */
	const char *file;          /* --config */
	const char *powercap_root; /* NULL: /sys/class/powercap */
	uint64_t idle_ns;          /* 0: no idle baseline */
	const char *cgroup;        /* "create", "create=NAME" or a path; NULL: the program's own */
	const char *cgroup_root;   /* NULL: where cgroup v2 is mounted */
	const char *cpus;          /* NULL: all; of a group's perf counters */
	int mode;                  /* enum session_mode */
	int scope;                 /* enum perf_scope */
	uint64_t poll_ns;
	uint64_t interval_ns;
	uint64_t ring;
	uint64_t grace_ns;
	bool cgroup_attach;
	bool reset_peak;
	bool fsync;
	bool no_calibrate;
	bool quiet;
	bool help;
};

/* The one configuration of this process and its options. */
extern struct config config;
extern const struct opt config_opts[];

/*
 * Sets config from the options file, the variables and the options of argv
 * (argv[0] is the command), the later winning, and checks it.  Returns the
 * index of the first word after the options, or -EINVAL with a sentence.
 */
int config_load(int argc, char **argv, char ret_error[CLI_ERROR_ROOM]);

/* The same from the variables alone; returns 0. */
int config_load_env(char ret_error[CLI_ERROR_ROOM]);

/* Are the values usable?  -EINVAL with a sentence. */
int config_check(char ret_error[CLI_ERROR_ROOM]);

/*
 * A variable JPHASE_... that means nothing and is spelled much like one that
 * does: true, with a sentence.
 */
bool config_misspelled(char ret_hint[CLI_ERROR_ROOM]);

/*
 * Puts every value that differs from its default into the environment and
 * takes the variables of the others out, so that config_load_env() in an
 * exec'ed process gives the same.
 */
int config_export(void);

/* The name of an option that was chosen and is for programs that jphase starts; NULL: none. */
const char *config_for_start(void);

extern const char *const mode_names[];
extern const char *const perf_scope_names[];

#endif
