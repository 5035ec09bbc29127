/* SPDX-License-Identifier: MIT */
/* jphase report: shows recordings. */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "commands.h"
#include "internal/sys.h"
#include "internal/util.h"
#include "log.h"
#include "report/format.h"
#include "schema.h"

#define LOCK_WAIT_NS  (2 * NSEC_PER_SEC)
#define LOCK_RETRY_NS (5 * NSEC_PER_MSEC)
#define WIDTH_DEFAULT 80
#define WIDTH_LEAST   40
#define WIDTH_MOST    1000

static const struct report_format *const formats[] = { &table_format, &json_format, &csv_format,
	&csv_regions_format, &trace_format };
static const struct report_format *const stats_formats[] = { &stats_format, &stats_json_format,
	&stats_csv_format, NULL, NULL };
static const char *const format_names[] = { "table", "json", "csv", "csv-regions", "trace", NULL };
static const char *const by_names[] = { "phase", "name", "process", "thread", NULL };

static struct {
	int format;
	int by;
	bool all;
	bool quality;
	bool stats;
	bool no_null;
	bool compensate;
	const char *output;
} report;

static const struct opt report_opts[] = {
	OPT_CHOICE('f', "format", &report.format, format_names, "FORMAT",
		"table, json, csv (phases), csv-regions, or trace, which Perfetto shows as a "
		"timeline (default: table)",
		NULL),
	OPT_CHOICE('b', "by", &report.by, by_names, "WHAT",
		"one row per phase, name, process or thread (default: phase)", NULL),
	OPT_FLAG('a', "all", &report.all,
		"all metrics in the table or trace, not only the usual ones", NULL),
	OPT_FLAG(0, "quality", &report.quality,
		"in place of the table: how each boundary was taken, what markers cost, and how "
		"far each value can be trusted",
		NULL),
	OPT_FLAG('s', "stats", &report.stats,
		"in place of the table: how the phases, and the regions, of one name differ, over "
		"all FILEs; mean, standard deviation, least, median and greatest (table, json, csv)",
		NULL),
	OPT_FLAG(0, "compensate", &report.compensate,
		"take away from the counts of phases and regions, not from their times, what "
		"their markers cost, as measured at the end of the run",
		NULL),
	OPT_FLAG(0, "no-null", &report.no_null,
		"leave out values that were not counted (json, csv, trace)", NULL),
	OPT_STR('o', "output", &report.output, "FILE", "write there instead of standard output",
		NULL),
	OPT_END,
};

/* --- finding --- */

static bool is_recording_name(const char *name)
{
	size_t length = strlen(name);

	return length > strlen(".msgpack") &&
	       str_eq(name + length - strlen(".msgpack"), ".msgpack");
}

static bool is_recording(const char *name)
{
	int fd = sys_open(name, O_RDONLY | O_NONBLOCK, 0);
	bool recording = fd >= 0 && schema_begins(fd);

	sys_close(fd);
	return recording;
}

/* Its name, to be freed, or NULL. */
static char *newest_recording(void)
{
	DIR *dir = opendir(".");
	struct timespec newest = { 0, 0 };
	char *found = NULL;
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		struct stat st;
		char *name;

		if (!is_recording_name(entry->d_name) || stat(entry->d_name, &st) < 0 ||
			!S_ISREG(st.st_mode))
			continue;
		if (found && timespec_ns(&st.st_mtim) <= timespec_ns(&newest))
			continue;
		if (!is_recording(entry->d_name))
			continue;
		name = strdup(entry->d_name);
		if (!name)
			continue;
		free(found);
		found = name;
		newest = st.st_mtim;
	}
	if (dir)
		closedir(dir);
	return found;
}

/* --- reading --- */

/* The collector holds the lock until the recording is complete.  False: still held. */
static bool wait_for_lock(int fd)
{
	uint64_t deadline = now_ns() + LOCK_WAIT_NS;
	struct timespec pause = ns_timespec(LOCK_RETRY_NS);

	for (;;) {
		int err = SYS_RESULT(flock(fd, LOCK_SH | LOCK_NB));

		if (err != -EWOULDBLOCK && err != -EINTR)
			return true;
		if (now_ns() >= deadline)
			return false;
		nanosleep(&pause, NULL);
	}
}

static void say_failure(const char *file, int err)
{
	switch (err) {
	case -EBADMSG: say("%s is not a jphase recording", file); break;
	case -ENODATA: say("%s ends within its header: nothing was recorded", file); break;
	case -EPROTONOSUPPORT:
		say("%s was recorded by a later version of jphase; this one (%s) reads version %d",
			file, JPHASE_VERSION, SCHEMA_VERSION);
		break;
	case -EILSEQ:
		say("%s is damaged; the report shows what comes before the damage", file);
		break;
	default: say("cannot read %s: %s", file, strerror(-err)); break;
	}
}

static bool is_empty_file(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0;
}

static int read_file(struct model *m, const char *file)
{
	bool is_input = str_eq(file, "-");
	int fd = is_input ? STDIN_FILENO : sys_open(file, O_RDONLY, 0);
	bool locked;
	int err;

	if (fd < 0) {
		say("cannot read %s: %s", file, strerror(-fd));
		return fd;
	}
	locked = is_input || wait_for_lock(fd);
	err = model_read(m, fd, file);
	if (err == -EBADMSG && is_empty_file(fd)) {
		say("%s is empty: nothing was recorded", file);
		goto out;
	}
	if (err < 0)
		say_failure(file, err);
	else if (!locked)
		say("%s is still being written; the report shows what is there", file);
	else if (!m->runs[m->run_count - 1].complete)
		say("%s: recording is incomplete; the report shows what is there", file);
out:
	if (!is_input)
		sys_close(fd);
	return err;
}

/* Reads all that can be read; the status tells of the rest. */
static int read_files(struct model *m, int count, char **files)
{
	int status = EXIT_OK;

	for (int i = 0; i < count; i++)
		if (read_file(m, files[i]) < 0)
			status = EXIT_FAILED;
	return status;
}

static int read_newest(struct model *m)
{
	char *file = newest_recording();
	int status;

	if (!file) {
		say("no recording here (*.msgpack): name one, or make one with "
		    "`jphase run -- PROGRAM`");
		return EXIT_FAILED;
	}
	inform("%s", file);
	status = read_files(m, 1, &file);
	free(file);
	return status;
}

/* --- writing --- */

static unsigned terminal_width(int fd)
{
	const char *columns = getenv("COLUMNS");
	unsigned long width = columns ? strtoul(columns, NULL, 10) : 0;
	struct winsize size;

	if (width == 0 && ioctl(fd, TIOCGWINSZ, &size) == 0)
		width = size.ws_col;
	if (width == 0)
		width = WIDTH_DEFAULT;
	return (unsigned)MAX(MIN(width, (unsigned long)WIDTH_MOST), (unsigned long)WIDTH_LEAST);
}

static bool wants_colour(int fd)
{
	const char *no = getenv("NO_COLOR");

	return isatty(fd) && !(no && *no);
}

static int write_report(const struct model *m, FILE *out)
{
	const struct report_format *format = report.quality ? &quality_format
					     : report.stats ? stats_formats[report.format]
							    : formats[report.format];
	struct report_options options = {
		.by = (enum model_by)report.by,
		.all = report.all,
		.no_null = report.no_null,
		.colour = wants_colour(fileno(out)),
		.width = terminal_width(fileno(out)),
	};

	/* One thread writes here, and much. */
	__fsetlocking(out, FSETLOCKING_BYCALLER);
	if (format->render(m, &options, out) < 0) {
		say("out of memory: the report is not whole");
		return EXIT_FAILED;
	}
	errno = 0;
	if (fflush(out) == 0 && !ferror(out))
		return EXIT_OK;
	say("cannot write the report: %s", strerror(errno ? errno : EIO));
	/* Said once is enough. */
	__fpurge(out);
	clearerr(out);
	return EXIT_FAILED;
}

static int show(const struct model *m)
{
	FILE *out = stdout;
	int status;

	/* Who closes the pipe has seen enough: end without a word. */
	signal(SIGPIPE, SIG_DFL);
	if (report.output && is_recording(report.output)) {
		say("%s is a recording; it is not overwritten, choose another name with -o",
			report.output);
		return EXIT_FAILED;
	}
	if (report.output)
		out = fopen(report.output, "we");
	if (!out) {
		say("cannot write %s: %s", report.output, strerror(errno));
		return EXIT_FAILED;
	}
	status = write_report(m, out);
	if (report.output && fclose(out) != 0 && status == EXIT_OK) {
		say("cannot write %s: %s", report.output, strerror(errno));
		status = EXIT_FAILED;
	}
	return status;
}

static int run_report(int count, char **files)
{
	struct model *m;
	int status;
	int shown = EXIT_OK;

	if (model_open(&m) < 0) {
		say("out of memory");
		return EXIT_FAILED;
	}
	m->compensate = report.compensate;
	status = count ? read_files(m, count, files) : read_newest(m);
	if (m->run_count &&
		model_finish(m, report.stats ? BY_PHASE : (enum model_by)report.by) < 0) {
		say("out of memory");
		shown = EXIT_FAILED;
	} else if (m->run_count) {
		shown = show(m);
	}
	model_close(m);
	return shown != EXIT_OK ? shown : status;
}

/*
 * Options may stand behind files: `jphase report FILE --by name`.  Moves the
 * files to the front of argv + 1; returns how many, or -EINVAL.
 */
static int parse_words(int argc, char **argv, char error[CLI_ERROR_ROOM])
{
	bool options = true;
	int files = 0;
	int at = 0; /* the word before those that are still to be parsed */

	for (;;) {
		int words = options ? cli_parse(report_opts, argc - at, argv + at, error) : 1;

		if (words < 0)
			return words;
		options &= words == 1 || !str_eq(argv[at + words - 1], "--");
		at += words;
		if (at >= argc)
			break;
		argv[1 + files++] = argv[at];
	}
	return files;
}

/* False, with a word on it: what was chosen does not go together. */
static bool goes_together(void)
{
	const char *format = format_names[report.format], *by = by_names[report.by];

	if (report.quality && report.stats)
		say("--quality and --stats are two tables: choose one");
	else if (report.quality && formats[report.format] != &table_format)
		say("--quality is a table; %s has the quality of each value beside it", format);
	else if (report.stats && !stats_formats[report.format])
		say("--stats has no format %s; choose table, json or csv", format);
	else if (report.stats && report.by != BY_PHASE && report.by != BY_NAME)
		say("--stats has a row for each name; --by %s does not go with it", by);
	else if (formats[report.format] == &trace_format && report.by != BY_PHASE)
		say("a trace shows each phase at its time; --by %s puts several in one row", by);
	else
		return true;
	return false;
}

static int cmd_report_run(int argc, char **argv)
{
	char error[CLI_ERROR_ROOM];
	int files = parse_words(argc, argv, error);

	if (files < 0) {
		say("%s", error);
		return EXIT_USAGE;
	}
	if (!goes_together())
		return EXIT_USAGE;
	return run_report(files, argv + 1);
}

const struct command cmd_report = {
	.name = "report",
	.usage = "[options] [FILE...]",
	.summary = "Show what phases cost; without FILE, of the newest recording here",
	.opts = report_opts,
	.run = cmd_report_run,
};
