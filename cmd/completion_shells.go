package cmd

// What the generated completions cannot do: what stands after "--" is another
// command's line, and that command's own completion is asked for it, where the
// shell makes that possible. In bash its package of completions is needed for
// that; without it commands and files are completed.

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

const bashWrapped = `
# What follows -- is another command's line: its own completion is asked.
__retryx_complete()
{
    local i
    for ((i = 1; i < COMP_CWORD; i++)); do
        if [[ ${COMP_WORDS[i]} == -- ]]; then
            __retryx_wrapped $((i + 1))
            return
        fi
    done
    __start_retryx
}

__retryx_wrapped()
{
    if declare -F _comp_command_offset >/dev/null 2>&1; then
        _comp_command_offset "$1"
    elif declare -F _command_offset >/dev/null 2>&1; then
        _command_offset "$1"
    elif ((COMP_CWORD == $1)); then
        local line
        COMPREPLY=()
        while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -c -- "${COMP_WORDS[COMP_CWORD]}")
    fi
}

# _filedir is of bash's package of completions; without it names are picked here.
# It is given endings, as yaml|yml|, or -d for directories alone.
__retryx_filedir()
{
    if declare -F _filedir >/dev/null 2>&1; then
        _filedir "$@"
        return
    fi
    local line endings=${1%|}
    [[ $(type -t compopt) == builtin ]] && compopt -o filenames
    while IFS= read -r line; do
        if [[ -d $line || -z $endings || $line =~ \.($endings)$ ]]; then COMPREPLY+=("$line"); fi
    done < <(compgen -f -- "$cur")
}
`

// What bash is to call where cobra's text names functions that may be missing, or
// our place in front of its own.
const (
	bashFiles, bashFilesOurs = "_filedir", "__retryx_filedir"
	bashStart, bashStartOurs = "-F __start_retryx retryx", "-F __retryx_complete retryx"
)

// bashWords stands in for a function of bash's package of completions: words are
// what blanks separate, so that = and : do not.
const (
	bashWordsCall = `    _get_comp_words_by_ref "$@" cur prev words cword`
	bashWords     = `    if declare -F _get_comp_words_by_ref >/dev/null 2>&1; then
        _get_comp_words_by_ref "$@" cur prev words cword
        return
    fi
    read -ra words <<<"${COMP_LINE:0:COMP_POINT}"
    [[ ${COMP_LINE:0:COMP_POINT} == *[[:space:]] ]] && words+=("")
    cword=$((${#words[@]} - 1))
    cur=${words[cword]}
    prev=${words[cword - 1]}`
)

const (
	zshStart   = "_retryx()\n{\n"
	zshWrapped = `    # What follows -- is another command's line: its own completion is asked.
    local -i dashes=${words[(ie)--]}
    if (( dashes < CURRENT )); then
        shift $dashes words
        (( CURRENT -= dashes ))
        _normal
        return
    fi

`
)

const fishWrapped = `
# What follows -- is another command's line: its own completion is asked.
function __retryx_wraps
    contains -- -- (commandline -opc)
end

function __retryx_wrapped
    set -l words (commandline -opc)
    set -l first (math (contains -i -- -- $words) + 1)
    set -l line
    if test $first -le (count $words)
        set line (string escape -- $words[$first..-1])
    end
    complete -C (string join ' ' -- $line (commandline -ct))
end

complete -c retryx -n __retryx_wraps -f -a '(__retryx_wrapped)'
`

// writeCompletions writes the completions for a shell.
func writeCompletions(root *cobra.Command, shell string, w io.Writer) error {
	var b bytes.Buffer
	text := b.String
	switch shell {
	case "bash":
		if err := root.GenBashCompletionV2(&b, true); err != nil {
			return err
		}
		if err := amended(w, text(), bashWordsCall, bashWords, bashFiles, bashFilesOurs, bashStart, bashStartOurs); err != nil {
			return err
		}
		_, err := io.WriteString(w, bashWrapped)
		return err
	case "zsh":
		if err := root.GenZshCompletion(&b); err != nil {
			return err
		}
		return amended(w, text(), zshStart, zshStart+zshWrapped)
	case "fish":
		if err := root.GenFishCompletion(&b, true); err != nil {
			return err
		}
		const ours, theirs = "-n 'not __retryx_requires_order", "-n 'not __retryx_wraps && not __retryx_requires_order"
		const kept, keptToo = "-n '__retryx_requires_order", "-n 'not __retryx_wraps && __retryx_requires_order"
		return amended(w, text()+fishWrapped, ours, theirs, kept, keptToo)
	default:
		return root.GenPowerShellCompletionWithDesc(w)
	}
}

// amended writes text with replacements, all of which must find something: the
// text is another project's, and a change there must not go unnoticed.
func amended(w io.Writer, text string, pairs ...string) error {
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			return fmt.Errorf("write completions: the generated ones have no %q any more", pairs[i])
		}
	}
	_, err := strings.NewReplacer(pairs...).WriteString(w, text)
	return err
}
