package cmd_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// A newcomer installs the package and walks through what it brings. WALK_DEB
// names one that was built for release (make release-snapshot); without it one is
// packed here, of a fresh build and the files that .goreleaser.yml lists.
func TestNewcomersWalk(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"dpkg", "dpkg-deb", "bash", "curl"} {
		wantShell(t, tool)
	}
	deb := os.Getenv("WALK_DEB")
	if deb == "" {
		deb = packed(t)
	}
	out, err := exec.Command("../examples/newcomer/walk.sh", deb).CombinedOutput()
	if err != nil {
		t.Fatalf("walk.sh: %v\n%s", err, out)
	}
	for _, want := range []string{
		"\nretryx: attempt 1 of 3 failed: curl: (7)",
		"\nretryx --budget art<TAB> artifacts",
		": completed_with_unknowns (never_ran); 3 attempts, 1 of them retries\n",
		"\nprepare  verified  succeeded           1\n",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("walk.sh shows no %q:\n%s", want, out)
		}
	}
}

// packed makes a package and returns its path.
func packed(t *testing.T) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "package")
	build := exec.Command("go", "build", "-trimpath", "-o", filepath.Join(root, "usr/bin/retryx"), "..")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	for src, dst := range packagedFiles(t, "deb") {
		copyInto(t, filepath.Join("..", src), filepath.Join(root, dst))
	}
	control := fmt.Sprintf("Package: retryx\nVersion: 0.0.0\nArchitecture: %s\nMaintainer: nobody\nDescription: packed by a test\n", runtime.GOARCH)
	writeFile(t, filepath.Join(root, "DEBIAN/control"), []byte(control))
	deb := root + ".deb"
	if out, err := exec.Command("dpkg-deb", "--root-owner-group", "-Znone", "--build", root, deb).CombinedOutput(); err != nil {
		t.Fatalf("dpkg-deb: %v\n%s", err, out)
	}
	return deb
}

// packagedFiles are those of one kind of package, from where to where.
func packagedFiles(t *testing.T, packager string) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../.goreleaser.yml")
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Nfpms []struct {
			Contents []struct{ Src, Dst, Packager string }
		}
	}
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, n := range config.Nfpms {
		for _, c := range n.Contents {
			if c.Packager == "" || c.Packager == packager {
				files[c.Src] = c.Dst
			}
		}
	}
	return files
}

// Every package has the same kinds of files, and all that it lists exists.
func TestPackagesAreAlike(t *testing.T) {
	t.Parallel()
	for _, packager := range []string{"deb", "rpm", "apk"} {
		files := packagedFiles(t, packager)
		for _, want := range []string{"docs/retryx.1", "completions/retryx.bash", "completions/_retryx", "completions/retryx.fish", "LICENSE"} {
			if files[want] == "" {
				t.Errorf("%s packages %v, want %s too", packager, files, want)
			}
		}
		for src := range files {
			if _, err := os.Stat(filepath.Join("..", src)); errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s packages %s, which does not exist", packager, src)
			}
		}
	}
}

func copyInto(t *testing.T, src, dst string) {
	t.Helper()
	text, err := os.ReadFile(src)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, dst, text)
}

func writeFile(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
}
