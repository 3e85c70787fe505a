package classify_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/retryx/retryx/classify"
)

func TestReadFindsTheTool(t *testing.T) {
	for _, tc := range []struct {
		argv []string
		tool string
	}{
		{[]string{"curl", "x"}, "curl"},
		{[]string{"/usr/bin/curl", "x"}, "curl"},
		{[]string{`C:\bin\curl.exe`, "x"}, "curl"},
		{[]string{"python3.11", "x.py"}, "python3"},
		{[]string{"pip3.11", "install", "x"}, "pip3"},
		{[]string{"psql-15"}, "psql"},
		{[]string{"./deploy-1.2.sh"}, "deploy-1.2.sh"},
		{[]string{"sudo", "-u", "app", "-E", "curl", "x"}, "curl"},
		{[]string{"sudo", "A=1", "curl", "x"}, "curl"},
		{[]string{"env", "-i", "A=1", "B=2", "curl", "x"}, "curl"},
		{[]string{"env", "-S", "npm publish"}, "npm"},
		{[]string{"env", "-S", "npm", "publish"}, "npm"},
		{[]string{"env", "-iS", "A=1 curl -d x", "h"}, "curl"},
		{[]string{"env", "-u", "S", "-vScurl -d x", "h"}, "curl"},
		{[]string{"env", "--split-string=-u A B=2 curl", "h"}, "curl"},
		{[]string{"env", "--split-string", "curl h|x"}, "curl"},
		{[]string{"env", "-S"}, "env"},
		{[]string{"env", "curl", "-S", "npm publish"}, "curl"},
		{[]string{"timeout", "-k", "5", "30", "curl", "x"}, "curl"},
		{[]string{"sudo", "-iu", "postgres", "psql", "-c", "x"}, "psql"},
		{[]string{"sudo", "-nuapp", "curl", "x"}, "curl"},
		{[]string{"flock", "-xw", "10", "l", "curl", "x"}, "curl"},
		{[]string{"flock", "-xw10", "l", "curl", "x"}, "curl"},
		{[]string{"timeout", "-vk", "5", "10", "curl", "x"}, "curl"},
		{[]string{"strace", "-fo", "out", "curl", "x"}, "curl"},
		{[]string{"nice", "-n", "10", "ionice", "-c", "3", "nohup", "git", "fetch"}, "git"},
		{[]string{"stdbuf", "-oL", "curl", "x"}, "curl"},
		{[]string{"xvfb-run", "-a", "curl", "x"}, "curl"},
		{[]string{"flock", "-n", "l", "curl", "x"}, "curl"},
		{[]string{"flock", "l", "psql", "-c", "ls x"}, "psql"},
		{[]string{"flock", "-w", "-c", "l", "curl", "-c", "jar", "x"}, "curl"},
		{[]string{"flock", "l", "rsync", "-avzc", "a/", "h:b/"}, "rsync"},
		{[]string{"flock", "l", "-c", "curl -c jar x"}, "curl"},
		{[]string{"flock", "-n", "l", "--command", "curl x"}, "curl"},
		{[]string{"flock", "-xc", "curl x", "l"}, "curl"},
		{[]string{"runuser", "-u", "app", "--", "psql", "-c", "ls x"}, "psql"},
		{[]string{"runuser", "-uapp", "psql", "-c", "ls x"}, "psql"},
		{[]string{"runuser", "--user=app", "psql", "-c", "ls x"}, "psql"},
		{[]string{"runuser", "-l", "app", "-c", "curl x"}, "curl"},
		{[]string{"runuser", "-g", "web", "app", "-c", "curl x"}, "curl"},
		{[]string{"su", "-", "app", "-c", "curl x"}, "curl"},
		{[]string{"sg", "docker", "-c", "curl x"}, "curl"},
		{[]string{"cpulimit", "-l", "50", "--", "curl", "x"}, "curl"},
		{[]string{"singularity", "exec", "-B", "/d", "x.sif", "curl", "x"}, "curl"},
		{[]string{"script", "-qec", "curl x", "/dev/null"}, "curl"},
		{[]string{"retryx", "-n", "3", "--", "curl", "x"}, "curl"},
		{[]string{"retryx", "-n", "3", "curl", "x"}, "curl"},
		{[]string{"python3", "-m", "pip", "install", "x"}, "pip"},
		{[]string{"python3", "-m", "mymodule"}, "python3"},
		{[]string{"python3", "x.py", "-m", "pip"}, "python3"},
		{[]string{"uv", "run", "--with", "x", "curl"}, "curl"},
		{[]string{"npx", "--yes", "-p", "x", "jest@29", "--ci"}, "jest"},
		{[]string{"npm", "exec", "--", "jest"}, "jest"},
		{[]string{"npm", "install"}, "npm"},
		{[]string{"sh", "-c", "curl -fsS 'http://x/a b'"}, "curl"},
		{[]string{"bash", "-euo", "pipefail", "-c", "git push"}, "git"},
		{[]string{"bash", "-c", "exec curl x"}, "curl"},
		{[]string{"sh", "-c", "A=1 curl $URL >out"}, "curl"},
		{[]string{"sh", "-c", "curl x | tar xz"}, "sh"},
		{[]string{"sh", "-c", "curl x && git push"}, "sh"},
		{[]string{"sh", "-c", "curl $(cat url)"}, "sh"},
		{[]string{"sh", "-c", "! curl x"}, "sh"},
		{[]string{"sh", "-c", "while true; do curl x; done"}, "sh"},
		{[]string{"bash", "deploy.sh"}, "bash"},
		{[]string{"sudo"}, "sudo"},
		{[]string{"timeout", "5"}, "timeout"},
		{[]string{"env"}, "env"},
		{[]string{""}, "."},
		{nil, ""},
	} {
		if got := classify.Read(tc.argv); got.Tool != tc.tool {
			t.Errorf("Read(%q).Tool = %q, want %q", tc.argv, got.Tool, tc.tool)
		}
	}
}

func TestReadFindsTheEffect(t *testing.T) {
	for _, tc := range []struct {
		argv []string
		want classify.Effect
	}{
		{[]string{"curl", "-fsSL", "http://x/"}, classify.EffectRead},
		{[]string{"curl", "-fsSXPOST", "http://x/"}, classify.EffectWrite},
		{[]string{"curl", "-X", "post", "http://x/"}, classify.EffectWrite},
		{[]string{"curl", "--request=PUT", "http://x/"}, classify.EffectRepeatable},
		{[]string{"curl", "-o", "-d", "http://x/"}, classify.EffectRead},
		{[]string{"curl", "--data-binary", "@x", "http://x/"}, classify.EffectWrite},
		{[]string{"curl", "-G", "-d", "a=1", "http://x/"}, classify.EffectRead},
		{[]string{"curl", "-T", "f", "http://x/"}, classify.EffectRepeatable},
		{[]string{"curl", "smtp://x", "--mail-rcpt", "b@x", "-T", "f"}, classify.EffectWrite},
		{[]string{"aws", "dynamodb", "update-item", "--update-expression", "ADD n :one"}, classify.EffectWrite},
		{[]string{"aws", "dynamodb", "update-item", "--update-expression", "SET n = :one"}, classify.EffectRepeatable},
		{[]string{"sudo", "curl", "-d", "x", "http://x/"}, classify.EffectWrite},
		{[]string{"sudo", "-iu", "postgres", "psql", "-c", "insert into t values (1)"}, classify.EffectWrite},
		{[]string{"flock", "l", "psql", "-c", "insert into t values (1)"}, classify.EffectWrite},
		{[]string{"xargs", "-P4", "-I", "{}", "curl", "-d", "{}", "http://x/"}, classify.EffectWrite},
		{[]string{"xargs", "-0n1", "curl", "-O"}, classify.EffectRead},
		{[]string{"parallel", "-j", "2", "curl", "-d", "{}", "http://x/", ":::", "a"}, classify.EffectWrite},
		{[]string{"lxc", "exec", "c", "--", "curl", "-d", "x", "http://x/"}, classify.EffectWrite},
		{[]string{"git", "-C", "push", "fetch"}, classify.EffectRead},
		{[]string{"git", "push"}, classify.EffectRepeatable},
		{[]string{"npm", "publish"}, classify.EffectWrite},
		{[]string{"npm", "publish", "--dry-run"}, classify.EffectRead},
		{[]string{"aws", "--region", "eu-west-1", "sns", "publish"}, classify.EffectWrite},
		{[]string{"aws", "ec2", "describe-instances"}, classify.EffectRead},
		{[]string{"aws", "s3", "sync", "a", "b"}, classify.EffectRepeatable},
		{[]string{"psql", "-c", "INSERT INTO t VALUES (1)"}, classify.EffectWrite},
		{[]string{"psql", "-c", "select inserted from t"}, classify.EffectRead},
		{[]string{"ssh", "-p", "22", "h", "uptime"}, classify.EffectRead},
		{[]string{"ssh", "h", "git push"}, classify.EffectRepeatable},
		{[]string{"ssh", "h", "./deploy.sh"}, classify.EffectUnknown},
		{[]string{"ssh", "h"}, classify.EffectUnknown},
		{[]string{"kubectl", "exec", "-n", "x", "pod", "--", "curl", "-d", "x", "http://y"}, classify.EffectWrite},
		{[]string{"docker", "push", "x"}, classify.EffectRepeatable},
		{[]string{"kubectl", "apply", "-f", "x"}, classify.EffectRepeatable},
		{[]string{"./deploy.sh"}, classify.EffectUnknown},
		{nil, classify.EffectUnknown},
	} {
		if got := classify.Read(tc.argv); got.Effect != tc.want {
			t.Errorf("Read(%q).Effect = %q, want %q", tc.argv, got.Effect, tc.want)
		}
	}
}

func TestReadDescribesTheCommand(t *testing.T) {
	c := classify.Read([]string{"sudo", "-n", "docker", "compose", "run", "web"})
	got := []any{c.Tool, c.Subcommand, c.RemoteExec, c.Argv}
	want := []any{"docker", "compose run", true, []string{"docker", "compose", "run", "web"}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("Read(sudo docker compose run) differs (-want +got):\n%s", d)
	}
	if c := classify.Read([]string{"ssh", "h", "uptime"}); c.RemoteExec {
		t.Error("Read(ssh h uptime).RemoteExec = true, want false: it only reads")
	}
	if c := classify.Read([]string{"make"}); !c.StdoutErrors {
		t.Error("Read(make).StdoutErrors = false, want true")
	}
}

func TestReadNamesTheFile(t *testing.T) {
	for program, want := range map[string]string{"apt": "apt-get", "pip3.12": "pip", "curl": "curl", "frob": ""} {
		if got := classify.Read([]string{program}).File; got != want {
			t.Errorf("Read(%s).File = %q, want %q", program, got, want)
		}
	}
}

func TestReadWith(t *testing.T) {
	var files []classify.Rules
	for _, text := range []string{
		"tool: frob\nnames: [frobber]\nvalues: [-o]\nsubcommands: 1\nsecrets: [--pin]\nstdout_errors: true\nremote: [{sub: [send]}]\n" +
			"effects:\n  - {effect: write, sub: [send]}\n  - {effect: read}\nrules: []\n",
		"tool: curl\nsecrets: [--pin]\neffects: [{effect: repeatable, flags: [--json]}]\nrules: []\n",
	} {
		f, err := classify.ParseFile("mine.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	type seen struct {
		Tool, Subcommand string
		Effect           classify.Effect
		Remote, Stdout   bool
		Secret           bool
	}
	for _, tc := range []struct {
		command string
		want    seen
	}{
		{"frob -o x send", seen{"frob", "send", classify.EffectWrite, true, true, true}},
		{"sudo frobber-2 list", seen{"frobber", "list", classify.EffectRead, false, true, true}},
		{"ssh h frob list", seen{"ssh", "", classify.EffectRead, false, false, false}},
		{"curl --json x http://h/", seen{"curl", "", classify.EffectRepeatable, false, false, true}},
		{"curl -d x http://h/", seen{"curl", "", classify.EffectWrite, false, false, true}},
		{"wget x", seen{"wget", "", classify.EffectRead, false, false, false}},
	} {
		c := classify.ReadWith(strings.Fields(tc.command), files)
		got := seen{c.Tool, c.Subcommand, c.Effect, c.RemoteExec, c.StdoutErrors, slices.Contains(c.SecretFlags, "--pin")}
		if d := cmp.Diff(tc.want, got); d != "" {
			t.Errorf("ReadWith(%s) differs (-want +got):\n%s", tc.command, d)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add("sudo\x00timeout\x005\x00sh\x00-c\x00curl -X POST 'x' \"$Y\"")
	f.Add("ssh\x00h\x00ssh\x00h\x00ssh\x00h\x00ls")
	f.Fuzz(func(t *testing.T, joined string) {
		argv := split(joined)
		first, second := classify.Read(argv), classify.Read(argv)
		if first.Tool != second.Tool || first.Effect != second.Effect || first.Subcommand != second.Subcommand {
			t.Errorf("Read(%q) = %+v, then %+v", argv, first, second)
		}
		if len(first.Argv) > len(argv) && len(argv) > 0 && first.Tool == "" {
			t.Errorf("Read(%q).Tool is empty", argv)
		}
	})
}
