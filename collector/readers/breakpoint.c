/* SPDX-License-Identifier: MIT */
#include "readers/breakpoint.h"

#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <stdlib.h>
#include <string.h>

#include "internal/util.h"
#include "readers/reason.h"

#define PREFIX     "mem:"
#define LENGTH_MAX 8
#define SYNTAX     "it is written mem:0xADDRESS[/LENGTH][:ACCESS]"

static const struct {
	char letter;
	uint32_t type;
} accesses[] = {
	{ 'r', HW_BREAKPOINT_R },
	{ 'w', HW_BREAKPOINT_W },
	{ 'x', HW_BREAKPOINT_X },
};

bool breakpoint_is_meant(const char *name)
{
	return str_starts(name, PREFIX);
}

/* Moves *at over the number.  False: there is none, or it is too large. */
static bool take_number(const char **at, uint64_t *ret)
{
	char *end;

	if (**at < '0' || **at > '9')
		return false;
	errno = 0;
	*ret = strtoull(*at, &end, str_starts(*at, "0x") ? 16 : 10);
	*at = end;
	return errno == 0;
}

/* None is 0, which cannot be chosen. */
static bool take_length(const char **at, uint64_t *ret)
{
	*ret = 0;
	if (**at != '/')
		return true;
	(*at)++;
	return take_number(at, ret) && *ret;
}

/* 0: not all of it are letters of an access, once each. */
static uint32_t access_of(const char *letters)
{
	uint32_t all = 0;

	for (; *letters; letters++) {
		uint32_t type = 0;

		for (size_t i = 0; i < ARRAY_SIZE(accesses); i++)
			if (accesses[i].letter == *letters)
				type = accesses[i].type;
		if (!type || all & type)
			return 0;
		all |= type;
	}
	return all;
}

int breakpoint_parse(
	const char *name, struct perf_event_attr *ret, char ret_reason[READER_REASON_ROOM])
{
	const char *at = name + strlen(PREFIX);
	uint64_t address, length;
	uint32_t access = HW_BREAKPOINT_RW;

	if (!take_number(&at, &address) || !take_length(&at, &length) || (*at && *at != ':')) {
		reason_set(ret_reason, SYNTAX);
		return -EINVAL;
	}
	if (*at == ':')
		access = access_of(at + 1);
	if (!access) {
		reason_set(ret_reason,
			"\"%.40s\" is no access; r (read), w (write), x (execute) and rw are",
			at + 1);
		return -EINVAL;
	}
	if (length > LENGTH_MAX) {
		reason_set(ret_reason, "no processor watches more than %d bytes", LENGTH_MAX);
		return -EINVAL;
	}
	if (!length)
		length = access & HW_BREAKPOINT_X ? sizeof(long) : HW_BREAKPOINT_LEN_4;
	/* arm64 would leave out, without a word, what lies behind it. */
	if (!(access & HW_BREAKPOINT_X) && address % LENGTH_MAX + length > LENGTH_MAX) {
		reason_set(ret_reason,
			"no processor watches bytes on both sides of a multiple of %d", LENGTH_MAX);
		return -EINVAL;
	}
	*ret = (struct perf_event_attr){
		.type = PERF_TYPE_BREAKPOINT,
		.bp_type = access,
		.bp_addr = address,
		.bp_len = length,
	};
	return 0;
}

const char *breakpoint_refusal(int err)
{
	switch (err) {
	case -EINVAL: return "the processor cannot watch this in that way";
	case -ENOSPC: return "the processor has no more breakpoints";
	default: return NULL;
	}
}
