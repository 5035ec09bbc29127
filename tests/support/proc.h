/* SPDX-License-Identifier: MIT */
/* Programs, files and folders for tests over real processes. */
#ifndef SUPPORT_PROC_H
#define SUPPORT_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Where things are; the Makefile gives absolute paths as BUILD_DIR and SOURCE_DIR. */
#define JPHASE     BUILD_DIR "/jphase"
#define LIBJPHASE  BUILD_DIR "/libjphase.so"
#define TARGET(n)  BUILD_DIR "/targets/" n
#define EXAMPLE(n) BUILD_DIR "/examples/" n
#define FIXTURE(n) SOURCE_DIR "/tests/fixtures/" n

#define RUN_WORDS      64
#define RUN_TIMEOUT_MS 60000

/*
 * A program, what it gets and what came of it.  The program is found in PATH,
 * leads a process group of its own, and has no descriptors but 0 to 2.
 */
struct child {
	const char *argv[RUN_WORDS]; /* ends with NULL */
	const char *env[RUN_WORDS];  /* "NAME=value" sets, "NAME" takes out; ends with NULL */
	const char *cwd;             /* NULL: the test's */
	const char *input;           /* standard input; NULL: /dev/null */
	size_t input_bytes;          /* 0: input is a string */
	unsigned int timeout_ms;     /* 0: RUN_TIMEOUT_MS; then its process group is killed */

	pid_t pid;
	int pipe_in, pipe_out, pipe_err; /* ours, between run_start() and run_finish() */
	int status;                      /* as wait() gives it */
	int code; /* as a shell gives it: 128 + N after signal N, 127: not executed */
	bool timed_out;
	char *out, *err; /* all that came until nobody held the pipe; a NUL follows */
	size_t out_bytes, err_bytes;
};

/*
 * Runs it to its end and until its output ends, which a process that it left
 * behind may delay.  0, or -errno if it could not be started.  Whatever the
 * struct held of a run before is freed.
 */
int run_program(struct child *r);

/* The first and the second half of it, for a test that does something in between. */
int run_start(struct child *r);
void run_finish(struct child *r);

/* The same for `sh -c` and that text. */
int run_shell(struct child *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Frees the output; the rest stays for another run. */
void run_clear(struct child *r);

/* Is there such a program in PATH? */
bool have_program(const char *name);

/* A new empty folder, to be freed; the test fails without one. */
char *tmpdir_make(void);
/* Removes it with all it holds, frees it, returns NULL.  Takes NULL. */
char *tmpdir_remove(char *dir);

/* A whole file and a NUL after it, to be freed; NULL: cannot be read. */
char *file_read(const char *path, size_t *ret_bytes);
/* 0 or -errno. */
int file_write(const char *path, const void *data, size_t bytes);

/* A formatted string, to be freed; never NULL. */
char *text_make(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The programs under test are built with the address sanitizer, as this one is. */
#if defined(__SANITIZE_ADDRESS__)
#define HAVE_ASAN 1
#elif defined(__has_feature)
#define HAVE_ASAN __has_feature(address_sanitizer)
#else
#define HAVE_ASAN 0
#endif

/* For a test that a sanitizer's runtime keeps from running. */
#define skip_with_asan(why)                                                                        \
	do {                                                                                       \
		if (HAVE_ASAN)                                                                     \
			skip_because("the address sanitizer " why);                                \
	} while (0)

/* For a test that counts pages: those of the thread sanitizer's own come with them. */
#if defined(__SANITIZE_THREAD__)
#define HAVE_TSAN 1
#elif defined(__has_feature)
#define HAVE_TSAN __has_feature(thread_sanitizer)
#else
#define HAVE_TSAN 0
#endif

#define skip_with_tsan()                                                                           \
	do {                                                                                       \
		if (HAVE_TSAN)                                                                     \
			skip_because("the thread sanitizer touches pages of its own");             \
	} while (0)

/* Prints why, then skips the test that calls it. */
#define skip_because(...)                                                                          \
	do {                                                                                       \
		print_message("skipped: " __VA_ARGS__);                                            \
		print_message("\n");                                                               \
		skip();                                                                            \
	} while (0)

#endif
