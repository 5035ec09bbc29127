/* SPDX-License-Identifier: MIT */
/*
 * Options as tables.  One entry is the parser, the variable, the config file's
 * key, --help, the completion and the man page.
 */
#ifndef COLLECTOR_CLI_H
#define COLLECTOR_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum opt_type {
	OPT_TYPE_FLAG,
	OPT_TYPE_STR,
	OPT_TYPE_TIME,   /* "10ms", "1s", "500us", "0"; a plain number is ms */
	OPT_TYPE_COUNT,  /* a decimal number, with k or M */
	OPT_TYPE_CHOICE, /* index into choices */
	/*
	 * A text, or nothing: then it is the default.  On a command line the next
	 * word is taken for it if that is no option and not the last one.
	 */
	OPT_TYPE_OPTIONAL,
};

union opt_dst {
	bool *flag;
	const char **str;
	uint64_t *time_ns;
	uint64_t *count;
	int *choice;
};

struct opt {
	char letter; /* 0: none */
	const char *name;
	enum opt_type type;
	union opt_dst dst;
	const char *arg; /* how help calls the argument */
	const char *help;
	const char *env;            /* the variable of the same meaning, or NULL */
	const char *const *choices; /* ends with NULL */
	const char *usual;          /* of OPT_TYPE_OPTIONAL: without a value */
	const char *words;          /* for the completion: what may follow; a shell's expression */
	char *list;                 /* given again it adds to the list, here: CLI_LIST_ROOM */
	bool starts;                /* only for a program that jphase starts */
};

/* What else an entry says may follow: OPT_FLAG(..., .starts = true). */
#define OPT_FLAG(l, n, d, h, e, ...)                                                               \
	{                                                                                          \
		.letter = (l), .name = (n), .type = OPT_TYPE_FLAG, .dst.flag = (d), .help = (h),   \
		.env = (e), ##__VA_ARGS__                                                          \
	}
#define OPT_STR(l, n, d, a, h, e, ...)                                                             \
	{                                                                                          \
		.letter = (l), .name = (n), .type = OPT_TYPE_STR, .dst.str = (d), .arg = (a),      \
		.help = (h), .env = (e), ##__VA_ARGS__                                             \
	}
#define OPT_TIME(l, n, d, a, h, e, ...)                                                            \
	{                                                                                          \
		.letter = (l), .name = (n), .type = OPT_TYPE_TIME, .dst.time_ns = (d), .arg = (a), \
		.help = (h), .env = (e), ##__VA_ARGS__                                             \
	}
#define OPT_COUNT(l, n, d, a, h, e, ...)                                                           \
	{                                                                                          \
		.letter = (l), .name = (n), .type = OPT_TYPE_COUNT, .dst.count = (d), .arg = (a),  \
		.help = (h), .env = (e), ##__VA_ARGS__                                             \
	}
#define OPT_CHOICE(l, n, d, c, a, h, e, ...)                                                       \
	{                                                                                          \
		.letter = (l), .name = (n), .type = OPT_TYPE_CHOICE, .dst.choice = (d),            \
		.choices = (c), .arg = (a), .help = (h), .env = (e), ##__VA_ARGS__                 \
	}
#define OPT_OPTIONAL(l, n, d, u, a, h, e, ...)                                                     \
	{                                                                                          \
		.letter = (l), .name = (n), .type = OPT_TYPE_OPTIONAL, .dst.str = (d),             \
		.usual = (u), .arg = (a), .help = (h), .env = (e), ##__VA_ARGS__                   \
	}
#define OPT_END                                                                                    \
	{                                                                                          \
		.name = NULL                                                                       \
	}

#define CLI_ERROR_ROOM  256
#define CLI_OPTIONS_MAX 64 /* in one table */
#define CLI_LIST_ROOM   4096

/*
 * Parses argv[1..] as far as it is options; "--" ends them, and so does the
 * first other word.  Returns the index of the first word after the options, or
 * -EINVAL with a sentence in ret_error.  Strings point into argv, those of
 * lists perhaps into the option's room.
 */
int cli_parse(const struct opt *opts, int argc, char **argv, char ret_error[CLI_ERROR_ROOM]);

/* True if --help (or -h, unless it means something else) is among those options. */
bool cli_asks_help(const struct opt *opts, int argc, char **argv);

/* Sets what the environment's variables say; an empty one says nothing.  -EINVAL as above. */
int cli_parse_env(const struct opt *opts, char ret_error[CLI_ERROR_ROOM]);

/*
 * Sets what a file of lines `option = value` says; '#' begins a comment.
 * Strings are copied and live as long as the program.
 */
int cli_parse_file(const struct opt *opts, const char *path, char ret_error[CLI_ERROR_ROOM]);

/* The same for text in memory, which it cuts up; strings point into it.  name is for messages. */
int cli_parse_text(
	const struct opt *opts, const char *name, char *text, char ret_error[CLI_ERROR_ROOM]);

/* "0", "10ms", "1.5s", "250us", "100ns"; a plain number is ms.  -EINVAL, -ERANGE. */
int parse_time(const char *text, uint64_t *ret_ns);
/* "4096", "64k", "1M": k is 1024.  -EINVAL, -ERANGE. */
int parse_count(const char *text, uint64_t *ret);

/* Two columns, wrapped to 80; starts: with those for programs that jphase starts. */
void cli_help(FILE *out, const struct opt *opts, bool starts);
/* One such line of something else. */
void cli_help_line(FILE *out, const char *left, const char *text);

/* The name in names (ends with NULL) that is most like word, or NULL if none is. */
const char *cli_suggest(const char *word, const char *const *names);

#endif
