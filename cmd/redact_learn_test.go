package cmd

import (
	"encoding/base64"
	"net/url"
	"strings"
	"testing"

	"github.com/retryx/retryx/classify"
)

// command reads a command line in which · is a blank within an argument, and
// SECRET what to put there.
func command(line, secret string) []string {
	argv := strings.Fields(line)
	for i, arg := range argv {
		argv[i] = strings.ReplaceAll(strings.ReplaceAll(arg, "·", " "), "SECRET", secret)
	}
	return argv
}

// observing returns a redactor that has seen a command line.
func observing(argv []string) *redactor {
	read := classify.Read(argv)
	r := newRedactor(nil, read.SecretFlags, nil)
	r.observe(argv, read.Argv)
	return r
}

// What stands in a secret of the command line is one by itself, in all forms that
// a program prints it in.
func TestRedactorKnowsPartsOfSecrets(t *testing.T) {
	t.Parallel()
	const secret = "hunter/22x+"
	forms := []string{
		secret, "'" + secret + "'", "tcp(" + secret + ")", url.QueryEscape(secret), url.PathEscape(secret),
		base64.StdEncoding.EncodeToString([]byte(secret)), base64.URLEncoding.EncodeToString([]byte("bob:" + secret)),
		base64.StdEncoding.EncodeToString([]byte("deploy:" + secret + "\n")),
	}
	for _, line := range []string{
		"kubectl create secret generic x --from-literal=password=SECRET",
		"kubectl create secret generic x --from-literal=foo=SECRET",
		"kubectl create secret generic x --from-literal foo=SECRET",
		"sudo -n env A=b kubectl create secret generic x --from-literal=foo=SECRET",
		"sh -c kubectl·create·secret·generic·x·--from-literal=foo='SECRET'",
		"sh -c kubectl·create·secret·generic·x·--from-literal·\"foo=SECRET\"",
		"terraform apply -var=db_password=SECRET",
		"terraform apply -var creds={user=\"bob\",password=\"SECRET\"}",
		"terraform apply -var=list=[\"a\",\"SECRET\"]",
		"timeout 5 sh -c terraform·apply·-var='k=SECRET'",
		"ansible all --extra-vars=x_pass=SECRET",
		"ansible-playbook p.yml -e tag=latest·foo=SECRET",
		"ansible-playbook p.yml --extra-vars={\"k\":{\"n\":[\"SECRET\"]}}",
		"helm upgrade x c --set auth.password=SECRET,image.tag=latest",
		"aws secretsmanager put-secret-value --secret-string={\"k\":\"SECRET\"}",
		"aws lambda update-function-configuration --environment Variables={DB_PASSWORD=SECRET,MODE=default}",
		"curl -b sid=SECRET h",
		"curl -b lang=en;·sid=SECRET;·a=b h",
		"curl -H Cookie:·a=b;·sid=SECRET h",
		"curl -H Authorization:·AWS·AKID:SECRET h",
		"curl -H Authorization:·Digest·username=\"bob\",·response=\"SECRET\" h",
		"curl -u SECRET: h",
		"http h api_key==SECRET",
		"wget --post-data=user=bob&pw=SECRET h",
		"vault kv put secret/a b=SECRET",
		"mount -t cifs //h/s /m -o username=bob,password=SECRET,vers=3.0",
		"sqlplus -s bob/SECRET@//h:1521/x",
		"pip install --proxy bob:SECRET@p:3128 x",
		"sh -c printf·'%s'·SECRET·|·docker·login·--password-stdin",
	} {
		r := observing(command(line, secret))
		for _, form := range forms {
			if got := r.line("bad "+form+" ok", 300); strings.Contains(got, form) || strings.Contains(got, "hunter") || !strings.HasPrefix(got, "bad ") {
				t.Errorf("%s: line(bad %s ok) = %s", line, form, got)
			}
		}
	}
}

// A secret with quotes, ampersands and letters beyond ASCII is written differently
// in each language.
func TestRedactorKnowsQuotedForms(t *testing.T) {
	t.Parallel()
	r := observing([]string{"env", `APP_PASSWORD=a"b\c'd&é9`, "OTHER_PASSWORD=p@ss w&rd99", "app"})
	for _, form := range []string{
		"p%40ss%20w%26rd99", "p%40ss+w%26rd99", "p@ss%20w&rd99",
		`a"b\c'd&é9`, `a\"b\\c'd\u0026é9`, `a\"b\\c'd&é9`, `a\"b\\c'd&\u00e99`, `a"b\c'd&amp;é9`, `a"b\c'\''d&é9`,
		"a%22b%5Cc%27d%26%C3%A99",
	} {
		if got, want := r.line("bad |"+form+"|", 300), "bad |***|"; got != want {
			t.Errorf("line(bad |%s|) = %s, want %s", form, got, want)
		}
	}
}

// Settings that are not called secrets and values that errors are made of stay,
// also beside secrets.
func TestRedactorLeavesOrdinaryValues(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ line, words string }{
		{"terraform apply -var image_tag=latest -var region=us-east-1 -var app=default -var v=1.2.3-rc1", "latest us-east-1 default 1.2.3-rc1"},
		{"terraform apply -var commit_tag=abc123f -var=db=db-1.example.com -var=on=enabled", "abc123f db-1.example.com enabled"},
		{"ansible-playbook p.yml -e user=deploybot -e env=production -e f=/etc/hosts", "deploybot production /etc/hosts p.yml"},
		{"ansible-playbook p.yml --extra-vars={\"env\":\"production\",\"hosts\":[\"db.example.com\"]}", "production db.example.com"},
		{"kubectl create secret generic x --from-literal=username=postgres --from-literal=host=db.example.com", "postgres db.example.com generic"},
		{"helm upgrade x c --set auth.password=SECRET,image.tag=latest", "latest image.tag"},
		{"curl -b lang=english;·theme=default h", "english default"},
		{"curl -H X-Env:·production -H X-Api-Version:·2024-01-01 -H X-Host:·db.example.com h", "production 2024-01-01 db.example.com"},
		{"curl --user=deploy-bot1:SECRET h", "deploy-bot1"},
		{"env TOKEN=${TOKEN:-production} x", "${TOKEN production"},
		{"git clone ssh://deploy@host/x", "deploy"},
		{"psql postgres://postgres@localhost/db", "postgres localhost"},
		{"mysql -uapplication -hpostgres-proxy.internal -pSECRET", "application postgres-proxy.internal"},
		{"mount -t cifs //h/s /m -o username=administrator,password=SECRET,vers=3.1.1", "administrator vers=3.1.1"},
	} {
		r := observing(command(tt.line, "hunter22x"))
		for word := range strings.FieldsSeq(tt.words) {
			if got, want := r.line("bad "+word+" ok", 300), "bad "+word+" ok"; got != want {
				t.Errorf("%s: line(%s) = %s", tt.line, want, got)
			}
		}
	}
}

func TestRedactorKnowsPasswordsOfURLsInAnyVariable(t *testing.T) {
	t.Parallel()
	r := newRedactor([]string{"DATABASE_URL=postgres://bob:hunter%4022x@h/d?x=ftp://u:other99x@g", "ORIGIN=ssh://deploy@h/x"}, nil, nil)
	if got, want := r.line("bob: hunter%4022x, hunter@22x, other99x, deploy", 100), "bob: ***, ***, ***, deploy"; got != want {
		t.Errorf("line = %s, want %s", got, want)
	}
	if got, want := strings.Join(r.argv([]string{"x", "other99x", "deploy"}), " "), "x *** deploy"; got != want {
		t.Errorf("argv = %s, want %s", got, want)
	}
}

// What retryx is given is the user's, but may be large.
func TestRedactorLearnsFromLargeArguments(t *testing.T) {
	t.Parallel()
	for _, unit := range []string{"a=", "a=b,", "a=b&c", "[", "{a=", "a:", "a@", "a/", "a b=", "%41"} {
		r := observing([]string{"terraform", "apply", "-var", "x=" + strings.Repeat(unit, 1<<15/len(unit))})
		if got := r.line("ok", 10); got != "ok" {
			t.Errorf("after %s repeated line(ok) = %s", unit, got)
		}
	}
}
