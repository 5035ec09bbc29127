/* SPDX-License-Identifier: MIT */
#include "sigspec.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "internal/util.h"

static int realtime(const char *name, const char *base, int from, int direction)
{
	size_t n = strlen(base);
	char *end;
	long offset;

	if (strncasecmp(name, base, n) != 0)
		return 0;
	if (!name[n])
		return from;
	if (name[n] != (direction > 0 ? '+' : '-') || !isdigit((unsigned char)name[n + 1]))
		return 0;
	offset = strtol(name + n + 1, &end, 10);
	if (*end || offset > SIGRTMAX - SIGRTMIN)
		return 0;
	return from + direction * (int)offset;
}

int sigspec_number(const char *name)
{
	int number;
	char *end;

	if (strncasecmp(name, "SIG", 3) == 0)
		name += 3;
	if (isdigit((unsigned char)name[0])) {
		long n = strtol(name, &end, 10);

		return *end || n > SIGRTMAX ? 0 : (int)n;
	}
	number = realtime(name, "RTMIN", SIGRTMIN, 1);
	if (!number)
		number = realtime(name, "RTMAX", SIGRTMAX, -1);
	for (int i = 1; !number && i < SIGRTMIN; i++) {
		const char *abbreviation = sigabbrev_np(i);

		if (abbreviation && strcasecmp(abbreviation, name) == 0)
			number = i;
	}
	return number;
}

void sigspec_name(int number, char ret[SIGSPEC_NAME_ROOM])
{
	const char *abbreviation = sigabbrev_np(number);

	if (abbreviation)
		snprintf(ret, SIGSPEC_NAME_ROOM, "SIG%s", abbreviation);
	else if (number >= SIGRTMIN && number <= SIGRTMAX)
		snprintf(ret, SIGSPEC_NAME_ROOM, "SIGRTMIN+%d", number - SIGRTMIN);
	else
		snprintf(ret, SIGSPEC_NAME_ROOM, "signal %d", number);
}

int sigspec_merges(int number)
{
	return number < SIGRTMIN;
}

static bool can_be_caught(int number)
{
	/* 32 and 33 belong to the C library. */
	return number != SIGKILL && number != SIGSTOP && (number < 32 || number >= SIGRTMIN);
}

static int parse_one(char *entry, struct jphase_signal *ret, char ret_error[SIGSPEC_ERROR_ROOM])
{
	char *equals = strchr(entry, '=');
	int number;

	if (!equals || !equals[1] || equals == entry) {
		snprintf(ret_error, SIGSPEC_ERROR_ROOM,
			"\"%s\" is no signal marker; write SIGNAL=NAME, for example USR1=solve",
			entry);
		return -EINVAL;
	}
	*equals = '\0';
	number = sigspec_number(entry);
	if (number <= 0) {
		snprintf(ret_error, SIGSPEC_ERROR_ROOM,
			"no signal is called \"%s\"; write for example USR1 or RTMIN+3", entry);
		return -EINVAL;
	}
	if (!can_be_caught(number)) {
		snprintf(ret_error, SIGSPEC_ERROR_ROOM,
			"signal %s cannot be a marker: no program can handle it", entry);
		return -EINVAL;
	}
	if (strlen(equals + 1) >= JPHASE_SIGNAL_NAME) {
		snprintf(ret_error, SIGSPEC_ERROR_ROOM,
			"the name of signal marker %s is longer than %d bytes", entry,
			JPHASE_SIGNAL_NAME - 1);
		return -EINVAL;
	}
	ret->number = number;
	strcpy(ret->name, equals + 1);
	return 0;
}

static bool is_double(const struct jphase_signal *list, int count)
{
	for (int i = 0; i < count; i++)
		if (list[i].number == list[count].number)
			return true;
	return false;
}

int sigspec_parse(const char *text, struct jphase_signal ret[JPHASE_SIGNALS_MAX],
	char ret_error[SIGSPEC_ERROR_ROOM])
{
	char *copy = strdup(text), *rest = copy, *entry;
	int count = 0, err = 0;

	if (!copy)
		return -ENOMEM;
	while (err == 0 && (entry = strsep(&rest, ","))) {
		if (count == JPHASE_SIGNALS_MAX) {
			snprintf(ret_error, SIGSPEC_ERROR_ROOM, "more than %d signal markers",
				JPHASE_SIGNALS_MAX);
			err = -EINVAL;
			break;
		}
		err = parse_one(entry, &ret[count], ret_error);
		if (err == 0 && is_double(ret, count)) {
			snprintf(ret_error, SIGSPEC_ERROR_ROOM,
				"signal %d is chosen twice as a marker", ret[count].number);
			err = -EINVAL;
		}
		count++;
	}
	free(copy);
	return err < 0 ? err : count;
}
