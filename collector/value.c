/* SPDX-License-Identifier: MIT */
/* Times and numbers as people write them. */
#include "cli.h"

#include <errno.h>
#include <string.h>

#include "internal/util.h"

struct scale {
	const char *suffix;
	uint64_t factor;
};

static const struct scale time_scales[] = {
	{ "", NSEC_PER_MSEC },
	{ "ns", 1 },
	{ "us", NSEC_PER_USEC },
	{ "µs", NSEC_PER_USEC },
	{ "ms", NSEC_PER_MSEC },
	{ "s", NSEC_PER_SEC },
	{ "min", 60 * NSEC_PER_SEC },
	{ NULL, 0 },
};

static const struct scale count_scales[] = {
	{ "", 1 },
	{ "k", 1u << 10 },
	{ "K", 1u << 10 },
	{ "M", 1u << 20 },
	{ "G", 1u << 30 },
	{ NULL, 0 },
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Digits after the point; one that is worth less than 1 must be 0. */
static int parse_fraction(const char **text, uint64_t factor, uint64_t *ret)
{
	uint64_t value = 0;
	uint64_t worth = factor;
	const char *s = *text;

	if (!is_digit(*s))
		return -EINVAL;
	for (; is_digit(*s); s++) {
		if (worth < 10 && *s != '0')
			return -EINVAL;
		worth /= 10;
		value += worth * (uint64_t)(*s - '0');
	}
	*text = s;
	*ret = value;
	return 0;
}

static const struct scale *find_scale(const struct scale *scales, const char *number)
{
	const char *suffix = number + strspn(number, "0123456789.");

	for (; scales->suffix; scales++)
		if (str_eq(scales->suffix, suffix))
			return scales;
	return NULL;
}

static int parse_scaled(const char *text, const struct scale *scales, uint64_t *ret)
{
	const struct scale *scale = find_scale(scales, text);
	uint64_t value = 0;
	uint64_t fraction = 0;

	if (!scale || !is_digit(*text))
		return -EINVAL;
	for (; is_digit(*text); text++)
		if (__builtin_mul_overflow(value, 10, &value) ||
			__builtin_add_overflow(value, (uint64_t)(*text - '0'), &value))
			return -ERANGE;
	if (*text == '.') {
		int err;

		text++;
		err = parse_fraction(&text, scale->factor, &fraction);
		if (err < 0)
			return err;
	}
	if (!str_eq(text, scale->suffix))
		return -EINVAL;
	if (__builtin_mul_overflow(value, scale->factor, &value) ||
		__builtin_add_overflow(value, fraction, &value) || value > INT64_MAX)
		return -ERANGE;
	*ret = value;
	return 0;
}

int parse_time(const char *text, uint64_t *ret_ns)
{
	return parse_scaled(text, time_scales, ret_ns);
}

int parse_count(const char *text, uint64_t *ret)
{
	if (strchr(text, '.'))
		return -EINVAL;
	return parse_scaled(text, count_scales, ret);
}
