package classify

import (
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

	tables   *tables
	file     *ruleset.File   // of the tool; nil when it is not known
	wrappers []*ruleset.File // of the wrappers, outermost first
}

// maxNesting bounds commands within commands.
const maxNesting = 8

// Read finds the tool behind wrappers and version suffixes and reads what its
// rules file says about the command line. It looks nothing up outside the
// built-in tables and compiles no expression, so it may be called before every
// run. An empty argv gives the zero Command with EffectUnknown.
func Read(argv []string) Command { return builtin().read(argv) }

func (t *tables) read(argv []string) Command {
	c := Command{Effect: EffectUnknown, tables: t}
	c.unwrap(argv)
	if len(c.Argv) == 0 {
		return c
	}
	c.Tool, c.file = t.find(c.Argv[0])
	for _, w := range c.wrappers {
		c.SecretFlags = append(c.SecretFlags, w.Secrets...)
	}
	if c.file != nil {
		c.describe(c.file, 0)
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
		c.Argv = inner
	}
}

// describe fills in what the tool's file says.
func (c *Command) describe(f *ruleset.File, depth int) {
	a := parseArguments(f, c.Argv)
	c.Subcommand = a.subcommand()
	c.SecretFlags = append(c.SecretFlags, f.Secrets...)
	c.StdoutErrors = f.StdoutErrors
	c.Effect = c.tables.effectOf(&a, depth)
	for i := range f.Remote {
		if ok, _ := a.match(&f.Remote[i].When); ok && !(f.Remote[i].ExceptRead && c.Effect == EffectRead) {
			c.RemoteExec = true
			return
		}
	}
}

// find looks a program up by its base name, then without .exe, then
// without its version (python3.11, clang-17, pip3). The name is the one that
// was found, or the base name.
func (t *tables) find(program string) (string, *ruleset.File) {
	base := path.Base(strings.ReplaceAll(program, `\`, "/"))
	name := strings.TrimSuffix(base, ".exe")
	for _, try := range [...]string{base, name, versionless(name), strings.TrimRight(versionless(name), "0123456789")} {
		if f := t.lookup(try); f != nil {
			return try, f
		}
	}
	return base, nil
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

// tables are the knowledge base: the files, and a sorted index of the tools'
// names.
type tables struct {
	files []ruleset.File
	names []toolName
}

type toolName struct {
	name string
	file int
}

// builtin returns the generated tables.
func builtin() *tables { return &tables{builtinFiles[:], builtinNames[:]} }
