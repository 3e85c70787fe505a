package classify

import (
	"slices"
	"strings"
)

// What a command does to the world decides whether repeating it is safe:
//
//   - a write that is not declared idempotent and may have been applied when it
//     failed is ambiguous, and so is one of which nothing is known;
//   - a command that runs on elsewhere after its client was ended is ambiguous
//     when retryx ended the client;
//   - of a command of which nothing is known, a write that its own output names
//     (a POST, an INSERT) is ambiguous by the rules of sent.yaml;
//   - everything else keeps its class.
//
// What the user declares (an effect, idempotence) outweighs what argv and the
// output show.

// Effect is what a command does to the world.
type Effect string

// The effects.
const (
	EffectRead       Effect = "read"
	EffectRepeatable Effect = "repeatable" // a write whose repetition changes nothing
	EffectWrite      Effect = "write"
	EffectUnknown    Effect = "unknown"
)

// effectOf returns the effect of a command line by its tool's file, and by the
// verbs in it where the file says nothing.
func (t *tables) effectOf(a *arguments, depth int) Effect {
	for i := range a.file.Effects {
		e := &a.file.Effects[i]
		ok, phrase := a.match(&e.When)
		if !ok {
			continue
		}
		if e.Effect != "inner" {
			return Effect(e.Effect)
		}
		if inner := a.inner(phrase, e.After); len(inner) > 0 {
			return t.innerEffect(inner, depth)
		}
	}
	return t.undescribedEffect(a.argv, depth)
}

// undescribedEffect is the effect of a command of which no file knows: what a
// shell's line does, or what the verbs say.
func (t *tables) undescribedEffect(argv []string, depth int) Effect {
	if line := shellLineOf(argv); line != "" {
		return t.lineEffect(line, depth)
	}
	return verbEffect(argv)
}

// innerEffect reads a command that the tool will run somewhere else. One
// argument, and one that has words of a shell in it, is a line for the far
// side's shell.
func (t *tables) innerEffect(argv []string, depth int) Effect {
	if len(argv) == 1 || slices.ContainsFunc(argv, ofShell) {
		return t.lineEffect(strings.Join(argv, " "), depth)
	}
	return t.commandEffect(argv, depth)
}

// ofShell reports whether an argument means something to a shell: &&, >>, >file.
func ofShell(word string) bool {
	return separator(word) > 0 || redirection(word) > 0 && !strings.ContainsAny(word, " \t\n")
}

// saving returns the effect of a command with this one that writes to a file as
// well.
func saving(e Effect) Effect {
	if e == EffectRead {
		return EffectUnknown
	}
	return e
}

func (t *tables) commandEffect(argv []string, depth int) Effect {
	if depth > maxNesting {
		return EffectUnknown
	}
	c := Command{tables: t}
	c.unwrap(argv)
	if len(c.Argv) == 0 {
		return EffectUnknown
	}
	var e Effect
	if f := t.described(t.find(c.Argv[0])); f != nil {
		a := parseArguments(f, c.Argv)
		e = t.effectOf(&a, depth+1)
	} else {
		e = t.undescribedEffect(c.Argv, depth+1)
	}
	if c.saves {
		e = saving(e)
	}
	return e
}

// lineEffect is the effect of a shell line: of its commands the one that does
// most. A line that cannot be taken apart has an unknown one.
func (t *tables) lineEffect(line string, depth int) Effect {
	commands, saves := commandsOf(line)
	if len(commands) == 0 || depth > maxNesting {
		return EffectUnknown
	}
	most := EffectRead
	for _, argv := range commands {
		most = graver(most, t.commandEffect(argv, depth+1))
	}
	if saves {
		most = saving(most)
	}
	return most
}

// graver returns the effect of two commands together.
func graver(a, b Effect) Effect {
	for _, e := range [...]Effect{EffectWrite, EffectUnknown, EffectRepeatable} {
		if a == e || b == e {
			return e
		}
	}
	return EffectRead
}

// afterEffect turns the class of a built-in rule into the class for a command
// with this effect.
func afterEffect(class Class, maybeApplied bool, e Effect, idempotent bool) Class {
	if e != EffectWrite || idempotent {
		return class
	}
	if class == Unknown || class == Transient && maybeApplied {
		return Ambiguous
	}
	return class
}

// afterTimeout is the class of an attempt that retryx ended for its time.
func afterTimeout(c *Command, o *Options, e Effect) Class {
	declared := o.Idempotent || o.Effect == EffectRead || o.Effect == EffectRepeatable
	if c.RemoteExec && !declared {
		return Ambiguous
	}
	return afterEffect(Transient, true, e, o.Idempotent)
}
