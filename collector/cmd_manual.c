/* SPDX-License-Identifier: MIT */
/* The man page and the completion, made of the commands' option tables. */
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "config.h"
#include "internal/util.h"
#include "log.h"

/* Text between the options; already in the man page's language. */
struct section {
	const char *title;
	const char *text;
};

static const struct section before[] = {
	{ "DESCRIPTION",
		"A program says where its phases begin:\n"
		".PP\n.nf\n.RS\njoule_phase(\"warmup\");\njoule_phase(\"solve\");\n.RE\n.fi\n.PP\n"
		"and\n.B jphase\nmeasures what each phase cost: time, CPU time, hardware counters, "
		"page faults, context switches, memory and I/O.\n"
		"Nothing is compiled into the program: it includes\n.I jphase/jphase.h\n"
		"or only declares\n.BR \"void joule_phase(const char *)\" ;\n"
		"without jphase the calls do nothing.\n"
		".PP\n"
		"There are two ways to measure.\n.B jphase run\n"
		"starts a program and counts from its first instruction.\n"
		"With\n.I LD_PRELOAD=libjphase.so\n"
		"in the environment of a program it is measured without another command; the "
		"options are then variables.\n"
		".PP\n"
		"A value that could not be counted is shown as not counted, with the reason, and "
		"never as 0.\n" },
};

static const struct section after[] = {
	{ "OPTIONS FILE",
		"A file for\n.B \\-\\-config\nholds lines of the form\n"
		".I option = value\n"
		"with the long names of the options of\n.BR \"jphase run\" .\n"
		"A # begins a comment; values with spaces at their ends or with # are put in "
		"quotes.\n"
		"The command line wins over variables, and these over the file.\n"
		".PP\n"
		"Times are written as 10ms, 1.5s, 250us, 100ns or 0; a plain number means "
		"milliseconds.\n"
		"In numbers k is 1024 and M is 1024 times that.\n" },
	{ "CALLS",
		"They are declared in\n.IR jphase/jphase.h ,\n"
		"may be called from any thread and any signal handler, and do nothing in a program "
		"that is not measured.\n"
		".TP\n.BI \"void joule_phase(const char *\" name )\n"
		"The process's phase ends and the next one begins.\n"
		".TP\n.BI \"void joule_begin(const char *\" name \"), joule_end(const char *\" name )\n"
		"Around a region of the calling thread.\n"
		"Regions nest; a null pointer ends the innermost one.\n"
		".TP\n.BI \"void joule_mark(const char *\" name )\n"
		"Something happened now.\n"
		".TP\n.BI \"void joule_value(const char *\" name \", double \" amount )\n"
		"So much work was done in the phase and in the thread's innermost region.\n"
		".TP\n.B int joule_active(void)\n"
		"1 while the program is measured.\n" },
	{ "SIGNS IN REPORTS",
		".TP\n.B \\-\nThe value was not counted, or the phase could not be resolved.\n"
		".TP\n.B ~\nThe value is scaled: its counter shared the processor with others.\n"
		".TP\n.B ?\nToo short for what is shown: mostly the cost of the markers, or shorter "
		"than the step in which the counter moves.\n"
		".TP\n.B !\nRead late, by more than a tenth of its time.\n"
		".TP\n.B +\nHolds the work of unresolved phases beside it.\n"
		".TP\n.B *\nA sum without those in which the value was not counted.\n"
		".PP\nThe lines below the table say why, and\n.B \\-\\-quality\ntells it of each value.\n" },
	{ "EXIT STATUS",
		".B jphase run\nends with the status of the program, or with 128 plus the number "
		"of the signal that ended it, and with\n"
		".TP\n125\nif jphase itself failed and the program was not started,\n"
		".TP\n126\nif the program cannot be executed,\n"
		".TP\n127\nif there is no such program.\n"
		".PP\nThe other commands end with 0, with 1 if they could not do what was asked, "
		"or with 2 if the command line was wrong.\n" },
	{ "FILES",
		".TP\n.I jphase\\-NAME\\-PID.msgpack\n"
		"The recording of a program NAME, in its working directory.\n"
		"It is a stream of msgpack objects, and the first one names the columns of the "
		"others.\n"
		"Everything up to the last 100 ms is there whatever happens to the collector.\n" },
	{ "EXAMPLES", ".TP\n.B jphase run \\-\\- ./app \\-n 5\nMeasure a program.\n"
		      ".TP\n.B LD_PRELOAD=libjphase.so ./app\nThe same without a parent process.\n"
		      ".TP\n.B jphase run \\-e cycles,instructions:u \\-o a.msgpack \\-\\- ./app\n"
		      "Choose events and the recording's name.\n"
		      ".TP\n.B jphase run \\-\\-signal RTMIN+3=warmup \\-\\- sh script.sh\n"
		      "Let a script mark its phases with\n.BR \"kill \\-RTMIN+3 $$\" .\n"
		      ".TP\n.B jphase run \\-\\-token\\-pattern \\-\\- python3 \\-u app.py\n"
		      "Let tokens such as __SOLVE__ in its output begin phases.\n"
		      ".TP\n.B jphase attach 1234\nMeasure a program that is running.\n"
		      ".TP\n.B jphase mark \\-\\-pid 1234 solve\nBegin a phase of it.\n"
		      ".TP\n.B jphase report \\-\\-format csv a.msgpack\nThe values as CSV.\n" },
	{ "NOTES",
		"Standard signals, and real-time signals that are sent by\n.BR kill (1)\n"
		"while the queue of signals is full, merge in the kernel without a trace: of "
		"several markers one arrives.\n"
		".PP\n"
		"A static program, and one for another C library, cannot be preloaded; it is "
		"measured as one phase, or as those that\n.B jphase mark\nmakes.\n"
		".PP\n"
		"With\n.B \\-\\-token\\-pattern\nthe program writes to a pipe, and gets SIGPIPE if\n"
		".B jphase run\nis killed.\n"
		"The kernel takes the counters of a set-user-ID program away when it starts.\n"
		".PP\n"
		"The first marker of a forked child may cost it two or three page faults.\n"
		".PP\n"
		"In exact mode the first region waits for some 20 ms while the kernel sets the "
		"probe up.\n"
		"Without root the mode takes a probe on the library that an administrator has "
		"defined once, as\n.B jphase/marker\nin tracefs\\(aqs\n.IR uprobe_events ,\n"
		"and whose\n.I id\nmay be read;\n.B jphase doctor\nprints the lines, with the "
		"offset.\n"
		"The probe is used and never removed.\n"
		"Without tracefs 32 threads can be sampled.\n" },
	{ "SEE ALSO", ".BR perf\\-stat (1),\n.BR perf_event_open (2),\n.BR cgroups (7),\n"
		      ".BR ld.so (8)\n" },
};

static const struct {
	const char *name;
	const char *text;
} variables[] = {
	{ "JPHASE_COLLECTOR",
		"The program that LD_PRELOAD=libjphase.so starts, in place of the jphase that "
		"belongs to the library." },
	{ "JPHASE_REGISTER",
		"With never in the environment of a program it is not measured by itself and "
		"its markers are ignored." },
	{ "JPHASE_SESSION", "Set by jphase in the programs that a measured program starts." },
	{ "JPHASE_TOLD",
		"Set by jphase in process 1 when it has said that it cannot be measured this way." },
	{ "NO_COLOR", "Reports have no colours if it is set." },
};

/* One piece of text with what the man page's language would take for its own. */
static void roff(const char *text)
{
	if (*text == '.' || *text == '\'')
		fputs("\\&", stdout);
	for (; *text; text++) {
		if (*text == '\\')
			fputs("\\e", stdout);
		else if (*text == '-')
			fputs("\\-", stdout);
		else if (*text == '`')
			fputs("\\(ga", stdout);
		else
			putchar(*text);
	}
}

static void roff_line(const char *macro, const char *text)
{
	fputs(macro, stdout);
	roff(text);
	putchar('\n');
}

static void man_option(const struct opt *o)
{
	fputs(".TP\n", stdout);
	if (o->letter)
		printf("\\fB\\-%c\\fR, ", o->letter);
	fputs("\\fB\\-\\-", stdout);
	roff(o->name);
	fputs("\\fR", stdout);
	if (o->arg) {
		fputs(" \\fI", stdout);
		roff(o->arg);
		fputs("\\fR", stdout);
	}
	putchar('\n');
	roff_line("", o->help);
}

static void man_sections(const struct section *sections, size_t count)
{
	for (size_t i = 0; i < count; i++)
		printf(".SH %s\n%s", sections[i].title, sections[i].text);
}

static void man_synopsis(void)
{
	puts(".SH SYNOPSIS\n.nf");
	for (size_t i = 0; commands[i]; i++) {
		if (commands[i]->hidden)
			continue;
		fputs("\\fBjphase ", stdout);
		roff(commands[i]->name);
		fputs("\\fR ", stdout);
		roff_line("", commands[i]->usage);
	}
	puts("LD_PRELOAD=libjphase.so \\fIPROGRAM\\fR [\\fIARGUMENT\\fR]...\n.fi");
}

static void man_commands(void)
{
	puts(".SH COMMANDS");
	for (size_t i = 0; commands[i]; i++) {
		if (commands[i]->hidden)
			continue;
		roff_line(".SS jphase ", commands[i]->name);
		roff(commands[i]->summary);
		puts(".");
		for (const struct opt *o = commands[i]->opts; o && o->name; o++)
			if (command_takes(commands[i], o))
				man_option(o);
	}
}

static void man_environment(void)
{
	puts(".SH ENVIRONMENT");
	for (const struct opt *o = config_opts; o->name; o++) {
		if (!o->env)
			continue;
		printf(".TP\n.B %s\nThe same as \\fB\\-\\-%s\\fR%s.\n", o->env, o->name,
			o->type == OPT_TYPE_FLAG ? " if it is 1" : "");
	}
	for (size_t i = 0; i < ARRAY_SIZE(variables); i++) {
		printf(".TP\n.B %s\n", variables[i].name);
		roff_line("", variables[i].text);
	}
}

static void print_man(void)
{
	printf(".TH JPHASE 1 \"\" \"jphase %s\" \"User Commands\"\n"
	       ".SH NAME\njphase \\- measure what each phase of a program costs\n",
		JPHASE_VERSION);
	man_synopsis();
	man_sections(before, ARRAY_SIZE(before));
	man_commands();
	man_environment();
	man_sections(after, ARRAY_SIZE(after));
}

static void bash_names(const struct opt *o, const char *between)
{
	if (o->letter)
		printf("-%c%s", o->letter, between);
	printf("--%s", o->name);
}

/* What may follow the option, as lines of the case over the word before. */
static void bash_values(const struct opt *o)
{
	bool file = o->arg && strstr(o->arg, "FILE");

	if (!o->choices && !o->words && !file)
		return;
	fputs("\t\t", stdout);
	bash_names(o, " | ");
	fputs(file ? ") files=1" : ") choices=\"", stdout);
	if (o->words)
		fputs(o->words, stdout);
	for (size_t i = 0; o->choices && o->choices[i]; i++)
		printf("%s%s", i ? " " : "", o->choices[i]);
	puts(file ? " ;;" : "\" ;;");
}

static void bash_command(const struct command *command)
{
	printf("\t%s)\n\t\toptions='--help", command->name);
	for (const struct opt *o = command->opts; o && o->name; o++)
		if (!str_eq(o->name, "help") && command_takes(command, o))
			printf(" --%s", o->name);
	fputs("'\n\t\tvalued='", stdout);
	for (const struct opt *o = command->opts; o && o->name; o++) {
		if (o->type == OPT_TYPE_FLAG || o->type == OPT_TYPE_OPTIONAL)
			continue;
		putchar(' ');
		bash_names(o, " ");
	}
	printf(" '\n%s\t\tcase $prev in\n", command == &cmd_run ? "\t\tprogram=1\n" : "");
	for (const struct opt *o = command->opts; o && o->name; o++)
		bash_values(o);
	puts("\t\t*) ;;\n\t\tesac\n\t\t;;");
}

static const char bash_head[] =
	"# bash completion for jphase\n"
	"_jphase() {\n"
	"\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
	"\tlocal options='' valued=' ' choices='' files='' program='' i word\n"
	"\tCOMPREPLY=()\n"
	"\tif [[ $cur == '=' ]]; then\n"
	"\t\tcur=''\n"
	"\telif [[ $prev == '=' ]]; then\n"
	"\t\tprev=${COMP_WORDS[COMP_CWORD-2]}\n"
	"\tfi\n";

static const char bash_tail[] =
	"\t*) ;;\n"
	"\tesac\n"
	"\tif [[ $program ]]; then\n"
	"\t\tfor ((i = 2; i < COMP_CWORD; i++)); do\n"
	"\t\t\tword=${COMP_WORDS[i]}\n"
	"\t\t\tif [[ $word == -- ]]; then\n"
	"\t\t\t\t((i++))\n"
	"\t\t\t\tbreak\n"
	"\t\t\telif [[ ${COMP_WORDS[i+1]} == '=' ]]; then\n"
	"\t\t\t\t((i += 2))\n"
	"\t\t\telif [[ $valued == *\" $word \"* ]]; then\n"
	"\t\t\t\t((i++))\n"
	"\t\t\telif [[ $word != -* ]]; then\n"
	"\t\t\t\tbreak\n"
	"\t\t\tfi\n"
	"\t\tdone\n"
	"\t\tif ((i < COMP_CWORD)); then\n"
	"\t\t\tif declare -F _command_offset >/dev/null; then\n"
	"\t\t\t\t_command_offset \"$i\"\n"
	"\t\t\telse\n"
	"\t\t\t\tmapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
	"\t\t\tfi\n"
	"\t\t\treturn\n"
	"\t\tfi\n"
	"\tfi\n"
	"\tif [[ $choices ]]; then\n"
	"\t\tmapfile -t COMPREPLY < <(compgen -W \"$choices\" -- \"$cur\")\n"
	"\telif [[ $files ]]; then\n"
	"\t\tmapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
	"\telif [[ $valued == *\" $prev \"* ]]; then\n"
	"\t\treturn\n"
	"\telif [[ $cur == -* ]]; then\n"
	"\t\tmapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$cur\")\n"
	"\telif [[ $program ]]; then\n"
	"\t\tmapfile -t COMPREPLY < <(compgen -c -- \"$cur\")\n"
	"\telse\n"
	"\t\tmapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
	"\tfi\n"
	"}\n"
	"complete -o filenames -F _jphase jphase\n";

static void bash_words(void)
{
	for (size_t i = 0; commands[i]; i++)
		if (!commands[i]->hidden)
			printf("%s ", commands[i]->name);
}

static void print_bash(void)
{
	fputs(bash_head, stdout);
	fputs("\tif ((COMP_CWORD == 1)); then\n\t\tmapfile -t COMPREPLY < <(compgen -W '", stdout);
	bash_words();
	fputs("help --help --version' -- \"$cur\")\n\t\treturn\n\tfi\n\tcase ${COMP_WORDS[1]} in\n",
		stdout);
	fputs("\thelp) choices='", stdout);
	bash_words();
	puts("' ;;");
	for (size_t i = 0; commands[i]; i++)
		if (!commands[i]->hidden)
			bash_command(commands[i]);
	fputs(bash_tail, stdout);
}

static const struct {
	const char *name;
	void (*print)(void);
} formats[] = {
	{ "man", print_man },
	{ "bash", print_bash },
};

static int run(int argc, char **argv)
{
	for (size_t i = 0; argc == 2 && i < ARRAY_SIZE(formats); i++)
		if (str_eq(argv[1], formats[i].name)) {
			formats[i].print();
			return EXIT_OK;
		}
	say("manual needs one of: man, bash");
	return EXIT_USAGE;
}

const struct command cmd_manual = {
	.name = "manual",
	.usage = "man|bash",
	.summary = "Print the man page or the completion",
	.run = run,
	.hidden = true,
};
