package cmd

// topic is a section of the manual in words; its paragraphs are for somebody who
// knows timeout and nohup and asks what is different here.
type topic struct {
	title      string
	paragraphs []string
}

func manTopics() []topic {
	return []topic{
		{"TIME", []string{
			"A duration has a unit: 500ms, 10s, 2m, 1h30m. --timeout limits one attempt, --max-elapsed the whole run with its waits, and --deadline names the end of this run and of every retryx below it. Whatever reaches its limit gets TERM and, --kill-after later, KILL; the status is 124. A wait that could not end in time is not begun.",
			"After failure n the wait is delay times multiplier to the power of n-1, at most --max-delay, spread by --jitter. A wait that the failing side states, as in Retry-After, is kept up to --max-retry-after; a longer one ends the run.",
		}},
		{"SIGNALS", []string{
			"Signals are passed on to the command, each once. INT, TERM, HUP and QUIT also end the run: a wait is left at once, no attempt follows, and a command that goes on for --kill-after gets KILL. A later INT, TERM or QUIT brings KILL after 200 ms; what comes within 100 ms of the first is the same event, as terminals and timeout(1) send doubles.",
			"INT and HUP that are ignored when retryx starts stay ignored, by both; any other signal is as usual. So under nohup(1) a run outlives its terminal, and a background job of sh is not ended by ^C.",
			"In a terminal the command shares the process group of retryx, and ^C and ^Z reach both as they would without retryx. Elsewhere the command gets a group of its own, and signals and limits reach everything in it.",
			"No further attempt is made when nobody waits for the result any more: the parent process is gone, or whoever read standard output is. --on-orphan changes that; under nohup it is off.",
		}},
		{"OUTCOME", []string{
			"The last line on standard error is JSON. Its outcome is success, retryable_failure (it may work later), hard_failure (it will not by itself), cancelled or abandoned (nobody waited any more). Its reason says why: attempts_exhausted, budget_denied, deadline_exceeded, permanent and so on; an unknown reason means failure. --outcome puts it elsewhere, --quiet leaves it out after a success at the first attempt.",
			"Every outcome is also a line of the journal, which history lists, stats counts and report sums up. Secrets in arguments and messages are hidden in both.",
		}},
		{"HINTS", []string{
			"A command that knows better appends lines to the file that RETRYX_HINT names: class=transient, retry_after=30s, reason=my_reason, stop=true. The last of a kind counts.",
		}},
		{"CONFIGURATION", []string{
			"Nearly every option is a key of the configuration, with _ for -, as max_attempts. The user's file stands above the machine's, the file of --config or RETRYX_CONFIG above both, variables above files, options above all. profiles: holds sets of options for --profile, budgets: the parameters of budgets, rules: rules. Nothing is read from the working directory. retryx config init writes a file to start from, config show says what is in force and where it came from.",
		}},
		{"LIMITS", []string{
			"What a command does on another machine cannot be ended from here: an ssh, docker run or kubectl exec that was timed out may go on there, which is why such a failure counts as ambiguous. What calls setsid is out of reach. In a terminal a limit reaches the command, not what it started.",
			"Standard input that is a pipe can be read once: when an attempt has used it up there is no retry, unless --stdin replay keeps it. Output that was already passed on cannot be taken back; --stdout commit passes on only a success's.",
			"Do not loop around retryx: each invocation has a free first attempt, and the budget would bound nothing.",
		}},
	}
}

// manualWidth is how long a line of the page is, before it is escaped.
const manualWidth = 72
