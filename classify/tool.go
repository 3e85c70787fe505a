package classify

import (
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/retryx/retryx/classify/internal/ruleset"
)

// Command is what a command line says about itself.
type Command struct {
	Tool         string   // base name of the program behind all wrappers, without a version
	Subcommand   string   // "push", "s3 cp"; empty when the tool has none or is not known
	Effect       Effect   // EffectUnknown when the tool or the subcommand is not known
	SecretFlags  []string // flags whose value must not be shown
	Argv         []string // the command behind the wrappers
	RemoteExec   bool     // ended here, it may go on elsewhere
	StdoutErrors bool     // known to print errors on stdout
	File         string   // name of the built-in rules file, the prefix of its rules' ids; "" when the tool is not known

	tables   *tables
	file     *ruleset.File   // of the tool; nil when it is not known
	wrappers []*ruleset.File // of the wrappers, outermost first
	saves    bool            // a shell sends its output to a file
}

// maxNesting bounds commands within commands.
const maxNesting = 8

// Read finds the tool behind wrappers and version suffixes and reads what its
// rules file says about the command line. It looks nothing up outside the
// built-in tables and compiles no expression, so it may be called before every
// run. An empty argv gives the zero Command with EffectUnknown.
func Read(argv []string) Command { return builtin().read(argv) }

// ReadWith is Read with rules files of the user's. What one of them says about
// the tool at hand (effects, remote, values, secrets, subcommands) comes before
// what the built-in file says; lists add up.
func ReadWith(argv []string, files []Rules) Command {
	t := builtin()
	t.users = files
	return t.read(argv)
}

func (t *tables) read(argv []string) Command {
	c := Command{Effect: EffectUnknown, tables: t}
	c.unwrap(argv)
	if len(c.Argv) == 0 {
		return c
	}
	c.Tool, c.file = t.find(c.Argv[0])
	if c.file != nil {
		c.File = c.file.Name
	}
	for _, w := range c.wrappers {
		c.SecretFlags = append(c.SecretFlags, w.Secrets...)
	}
	if f := t.described(c.Tool, c.file); f != nil {
		c.describe(f)
	} else {
		c.Effect = t.undescribedEffect(c.Argv, 0)
	}
	if c.saves {
		c.Effect = saving(c.Effect)
	}
	return c
}

// unwrap takes wrappers off argv, remembering those that have rules of their
// own: sudo may ask for a password, timeout may run out.
func (c *Command) unwrap(argv []string) {
	c.Argv = argv
	for range maxNesting {
		inner := c.tables.wrapped(c.Argv)
		if len(inner) == 0 {
			return
		}
		if _, f := c.tables.find(c.Argv[0]); f != nil {
			c.wrappers = append(c.wrappers, f)
		}
		c.saves = c.saves || saves(shellLineOf(c.Argv))
		c.Argv = inner
	}
}

// describe fills in what the tool's file says.
func (c *Command) describe(f *ruleset.File) {
	a := parseArguments(f, c.Argv)
	c.Subcommand = a.subcommand()
	c.SecretFlags = append(c.SecretFlags, f.Secrets...)
	c.StdoutErrors = f.StdoutErrors
	c.Effect = c.tables.effectOf(&a, 0)
	for i := range f.Remote {
		harmless := f.Remote[i].ExceptRead && c.Effect == EffectRead
		if ok, _ := a.match(&f.Remote[i].When); ok && !harmless {
			c.RemoteExec = true
			return
		}
	}
}

// find looks a program up by its base name, then without .exe, then
// without its version (python3.11, clang-17, pip3). The name is the one that
// was found, or the base name.
func (t *tables) find(program string) (string, *ruleset.File) {
	for try := range programNames(program) {
		if f := t.lookup(try); f != nil || t.isUsers(try) {
			return try, f
		}
	}
	return baseName(program), nil
}

// programNames yields the names that a program may be known by.
func programNames(program string) iter.Seq[string] {
	return func(yield func(string) bool) {
		base := baseName(program)
		name := strings.TrimSuffix(base, ".exe")
		bare := versionless(name)
		_ = yield(base) && yield(name) && yield(bare) && yield(strings.TrimRight(bare, "0123456789"))
	}
}

func baseName(program string) string { return path.Base(strings.ReplaceAll(program, `\`, "/")) }

// isUsers reports whether a file of the user's is about the program.
func (t *tables) isUsers(name string) bool {
	return slices.ContainsFunc(t.users, func(f Rules) bool { return about(&f, name) })
}

// Concerns reports whether the rules of a user's file are asked about c.
func (c *Command) Concerns(f Rules) bool { return f.Generic || about(&f, c.Tool) }

func about(f *Rules, tool string) bool {
	return !f.Generic && (f.Name == tool || slices.Contains(f.Names, tool))
}

// described joins what the user's files and the built-in one say about a tool;
// nil when none does.
func (t *tables) described(tool string, builtin *ruleset.File) *ruleset.File {
	if !t.isUsers(tool) {
		return builtin
	}
	var all ruleset.File
	for i := range t.users {
		if about(&t.users[i], tool) {
			describeMore(&all, &t.users[i])
		}
	}
	if builtin != nil {
		describeMore(&all, builtin)
	}
	return &all
}

func describeMore(all, f *ruleset.File) {
	all.Values = append(all.Values, f.Values...)
	all.Secrets = append(all.Secrets, f.Secrets...)
	all.Remote = append(all.Remote, f.Remote...)
	all.Effects = append(all.Effects, f.Effects...)
	if all.Depth == 0 {
		all.Depth = f.Depth
	}
	all.LongDash = all.LongDash || f.LongDash
	all.StdoutErrors = all.StdoutErrors || f.StdoutErrors
}

// versionless cuts "3.11" to "3" in python3.11 and "-17" in clang-17.
func versionless(name string) string {
	bare := strings.TrimRight(name, "0123456789.")
	if cut, found := strings.CutSuffix(bare, "-"); found && bare != name {
		return cut
	}
	version := name[len(bare):]
	if major, _, found := strings.Cut(version, "."); found {
		return bare + major
	}
	return bare
}

func (t *tables) lookup(name string) *ruleset.File {
	i, found := slices.BinarySearchFunc(t.names, name, func(e toolName, name string) int {
		return strings.Compare(e.name, name)
	})
	if !found {
		return nil
	}
	return &t.files[t.names[i].file]
}

// tables are the knowledge base: the files, a sorted index of the tools' names,
// and the files of the user's.
type tables struct {
	files []ruleset.File
	names []toolName
	users []Rules
}

type toolName struct {
	name string
	file int
}

// builtin returns the generated tables.
func builtin() *tables { return &tables{files: builtinFiles[:], names: builtinNames[:]} }
