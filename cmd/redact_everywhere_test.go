package cmd_test

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// planted is in each secret of plantedLines.
const planted = "hunter2xyzzy"

// plantedLines are command lines that hold a secret in one of the many ways.
// Each is a shell's command: what is left of it when quotes are gone is argv.
func plantedLines() []string {
	return []string{
		"mysql -pmypassword-SECRET-token db",
		"sshpass -pSECRET ssh h 'mysql -pSECRETxyz db'",
		"sh -c 'cd / && mysql --user=root -pSECRET'",
		"env PGPASSWORD=SECRET A=B psql -c 'select 1'",
		"curl -sSfu bob:SECRET -H 'X-Thing: SECRET' http://u:SECRET@127.0.0.1:9/?access_token=SECRET",
		"sh -c 'nmcli dev wifi connect home password SECRET'",
		"'curl -u bob:SECRET http://127.0.0.1:9/'",
		"'curl -u bob:SECRET'",
		"kubectl create secret generic x --from-literal=foo=SECRET",
		"sh -c \"curl -b 'sid=SECRET; a=b' http://127.0.0.1:9/\"",
	}
}

// Nothing that retryx says, stores or passes on holds a secret of the command
// line, not even where the command itself prints it.
func TestNoSecretOfTheCommandLineIsToldAnywhere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bin := filepath.Join(dir, "bin")
	for _, tool := range []string{"mysql", "sshpass", "psql", "curl", "nmcli", "kubectl"} {
		// "child" begins the lines of the command itself, which pass as they are.
		program := filepath.Join(bin, tool)
		writeFile(t, program, []byte("#!/bin/sh\necho \"child: $* $PGPASSWORD\" | tee /dev/stderr\nexit 1\n"))
		if err := os.Chmod(program, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	environ := surroundings(dir, "GITHUB_ACTIONS=true", "GITHUB_STEP_SUMMARY="+filepath.Join(dir, "summary.md"), "RETRYX_RUN_ID=planted")
	environ[0] = "PATH=" + bin + ":" + os.Getenv("PATH")
	run := func(line string) string {
		shell := exec.Command("sh", "-c", line)
		shell.Dir, shell.Env = dir, environ
		var said bytes.Buffer
		shell.Stdout, shell.Stderr = &said, &said
		_ = shell.Run()
		return said.String()
	}
	for n, line := range plantedLines() {
		line = strings.ReplaceAll(line, "SECRET", planted)
		commands := []string{
			"retryx -v -n 2 --effect read --retry-stderr child: --outcome out.json --before-retry 'cat >>hooks.json' --on-outcome 'cat >>hooks.json' -- " + line,
			"retryx --correct 'cat >>hooks.json; exit 3' --rule 'correctable: exit=1' -- " + line,
			"retryx plan -- " + line,
			"retryx classify --rule 'config: stderr=child:' -- " + line + " <said",
		}
		if n%3 > 0 && !strings.HasPrefix(line, "'") {
			commands = commands[:1]
		}
		for _, command := range commands {
			writeFile(t, filepath.Join(dir, "said"), []byte("child: "+line))
			said := run(command)
			if strings.Contains(command, "-v -n 2") && !strings.HasPrefix(line, "'") && !strings.Contains(said, "retryx: attempt 1 of 2 failed: child: ") {
				t.Errorf("%s\nsays %s, want a line on the retry with the evidence", command, said)
			}
			for own := range strings.Lines(said) {
				if !strings.HasPrefix(own, "child:") && strings.Contains(own, planted) {
					t.Errorf("%s\nsays %s", command, own)
				}
			}
		}
	}
	for _, reader := range []string{"history", "history --format json", "report --format markdown", "report --format json", "stats --format prometheus"} {
		if said := run("retryx " + reader); strings.Contains(said, planted) || said == "" {
			t.Errorf("retryx %s says %q, want something without %s", reader, said, planted)
		}
	}
	settings := "RETRYX_RECONCILE='mysql -p" + planted + " -e \"select 1\"' RETRYX_ON_OUTCOME='curl -u a:" + planted + " http://h/' retryx config show"
	for _, asked := range []string{settings, settings + " --format json"} {
		if said := run(asked); strings.Contains(said, planted) || strings.Count(said, "***") < 2 {
			t.Errorf("%s says %s, want both secrets hidden", asked, said)
		}
	}
	noFileHolds(t, dir, "outcomes.jsonl", "out.json", "hooks.json", "summary.md")
}

// noFileHolds looks through everything in dir but the tools themselves, in which
// the named files must be, with something hidden in them.
func noFileHolds(t *testing.T, dir string, names ...string) {
	t.Helper()
	hiding := map[string]bool{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "said" {
			return err
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte(planted)) {
			t.Errorf("%s holds a secret: %s", path, text)
		}
		hiding[d.Name()] = hiding[d.Name()] || bytes.Contains(text, []byte("***"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !hiding[name] {
			t.Errorf("nothing is hidden in %s, want its secrets hidden there", name)
		}
	}
}
