/* SPDX-License-Identifier: MIT */
/* What jphase doctor looks at. */
#ifndef COLLECTOR_DOCTOR_H
#define COLLECTOR_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>

#include "readers/reader.h"

enum health {
	HEALTH_OK,
	HEALTH_LIMITED, /* jphase works and counts less */
	HEALTH_MISSING, /* something is not counted at all */
};

#define FINDING_TEXT_ROOM 512
#define FINDING_FIX_ROOM  4096

struct finding {
	enum health health;
	char text[FINDING_TEXT_ROOM];
	char fix[FINDING_FIX_ROOM]; /* lines to be copied; "" where there is nothing to do */
};

typedef void doctor_check(const struct reader_env *env, struct finding *ret);

struct check {
	const char *what; /* at most 15 letters */
	doctor_check *check;
};

/* Each ends with a NULL. */
extern const struct check doctor_perf_checks[];
extern const struct check doctor_cgroup_checks[];
extern const struct check doctor_energy_checks[];

void finding_set(struct finding *f, enum health health, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* One more line to be copied; one that finds no room is left out. */
void finding_fix(struct finding *f, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The path of this program, for commands that name it. */
const char *own_program(void);

/* A number in a file below a root; -ENOENT or another error. */
int doctor_number(const char *root, const char *file, long *ret);
/* The field of /proc/self/status, as text; false: there is none. */
bool doctor_status(const struct reader_env *env, const char *field, char *ret, size_t room);

#endif
