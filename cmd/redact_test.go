package cmd

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/retryx/retryx/classify"
)

func TestRedactorText(t *testing.T) {
	const jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
	environ := []string{
		"DEPLOY_TOKEN=s3cr3t-value", "MY_PASS=p@ss w/rd", "HOME=/home/u", "PWD=/home/u/x", "AUTH_MODE=true",
		"SSH_AUTH_SOCK=agent.sock.here", "OLDPWD=/nowhere-at-all/x", "PWD=odbc-password", "RETRYX_IDEMPOTENCY_KEY=01JABCDEFGH", "KEY_FILE=./id_ed25519", "key_lower=lower-case-value",
		"PIN_KEY=12345", "JSON_SECRET=a\"b\\c\"d", "PLAIN=not-a-secret",
	}
	r := newRedactor(environ, []string{"-u", "--user"}, []*regexp.Regexp{regexp.MustCompile(`acct-\d+`)})
	for _, tt := range []struct{ name, in, want string }{
		{"plain", "curl: (7) Failed to connect to 127.0.0.1 port 9", "curl: (7) Failed to connect to 127.0.0.1 port 9"},
		{"variable", "sent s3cr3t-value to x", "sent *** to x"},
		{"variable that mostly holds a directory", "login with odbc-password", "login with ***"},
		{"variable twice", "s3cr3t-values3cr3t-value", "***"},
		{"variable in lower case", "lower-case-value", "***"},
		{"percent-encoded", "GET /?k=p%40ss+w%2Frd and p@ss%20w%2Frd", "GET /?k=*** and ***"},
		{"as JSON", `{"x":"a\"b\\c\"d"}`, `{"x":"***"}`},
		{"paths, short values and ours stay", "/home/u/x /nowhere-at-all/x true 12345 ./id_ed25519 agent.sock.here 01JABCDEFGH not-a-secret", "/home/u/x /nowhere-at-all/x true 12345 ./id_ed25519 agent.sock.here 01JABCDEFGH not-a-secret"},
		{"user's expression", "acct-12 and acct-345", "*** and ***"},
		{"colours inside", "s3cr3t\x1b[31m-value", "***"},
		{"bidi inside", "s3cr3t\u202e-val\u200bue", "***"},

		{"url", "fatal: https://bob:hunter2@host/x.git not found", "fatal: https://***@host/x.git not found"},
		{"url, token alone", "https://abcdef@host", "https://***@host"},
		{"url, at sign in password", "https://bob:a@b@host/", "https://***@host/"},
		{"url, slash in password", "postgres://bob:a/b@host/db", "postgres://***@host/db"},
		{"url with port and scope stays", "https://host:8080/@scope/pkg", "https://host:8080/@scope/pkg"},
		{"url, IPv6 and scope stays", "http://[::1]:80/@scope http://[::1]/@scope", "http://[::1]:80/@scope http://[::1]/@scope"},
		{"scp stays", "git@host:repo.git", "git@host:repo.git"},
		{"mail stays", "to bob@example.org", "to bob@example.org"},

		{"authorization", "> Authorization: Bearer abc", "> Authorization: ***"},
		{"authorization without blank", "authorization:abc def", "authorization:***"},
		{"authorization in quotes", `curl -H "Authorization: token abc" http://x`, `curl -H "Authorization: ***" http://x`},
		{"own header", "> X-Api-Thing: 17 18\n> Accept: */*", "> X-Api-Thing: ***\n> Accept: */*"},
		{"telling header", "Private-Token: abc", "Private-Token: ***"},
		{"cookie", "< Set-Cookie: a=b; c=d", "< Set-Cookie: ***"},
		{"standard header stays", "Retry-After: 30", "Retry-After: 30"},
		{"bearer alone", "got Bearer abc123def456ghi", "got Bearer ***"},
		{"bearer in prose stays", "Bearer authentication failed; bearer token invalid", "Bearer authentication failed; bearer token invalid"},

		{"password", "password=x", "password=***"},
		{"case and prefix", "db.accessToken=abc&x=1", "db.accessToken=***&x=1"},
		{"form", "user[password]=abc", "user[password]=***"},
		{"api_key and API-KEY", "api_key=a API-KEY=b apikey=c", "api_key=*** API-KEY=*** apikey=***"},
		{"quoted", `password="a b c" next`, `password="***" next`},
		{"quoted with a quote", `password="a \" c" next`, `password="***" next`},
		{"ini", "client_secret = abc", "client_secret = ***"},
		{"connection string", "Server=x;Password=abc;Database=y", "Server=x;Password=***;Database=y"},
		{"signature", "https://s3/x?X-Amz-Signature=abcdef&y=1", "https://s3/x?X-Amz-Signature=***&y=1"},
		{"json", `{"token": "abc", "n": 1}`, `{"token": "***", "n": 1}`},
		{"json in json", `"{\"password\":\"abc\"}"`, `"{\"password\":\"***\"}"`},
		{"python", `{'api_key': 'abc'}`, `{'api_key': '***'}`},
		{"yaml", "password: abc", "password: ***"},
		{"empty", "password= token=", "password= token="},
		{"variable assignment", "MY_AUTH=abcdef GIT_KEY=ab", "MY_AUTH=*** GIT_KEY=ab"},
		{"directory stays", "PWD=/tmp OLDPWD=/x", "PWD=/tmp OLDPWD=/x"},
		{"npm", "//registry/:_auth=YWJjZGVm", "//registry/:_auth=***"},
		{"tokens stay", "max_tokens=5 Unexpected token: }", "max_tokens=5 Unexpected token: }"},
		{"words that only end so stay", "bypass=1 config=2 keys=3", "bypass=1 config=2 keys=3"},
		{"error about a secret stays", `Error: secret "x" not found: secret: no such key`, `Error: secret "x" not found: secret: no such key`},

		{"flag", "+ deploy --token abc --host x", "+ deploy --token *** --host x"},
		{"flag with equals", "deploy --api-key=abc", "deploy --api-key=***"},
		{"flag in quotes", "deploy --password 'a b' x", "deploy --password '***' x"},
		{"tool's flag", "--user=bob:x --user bob:x", "--user=*** --user ***"},
		{"short flag in prose stays", "use -u root", "use -u root"},

		{"index", `os.environ["PASSWORD"] = "abc" x['api_key']='abc'`, `os.environ["PASSWORD"] = "***" x['api_key']='***'`},
		{"numbered", "password2=abc sha256=abc", "password2=*** sha256=abc"},
		{"object", `{pwd: "abc", accessToken:'abc'}`, `{pwd: "***", accessToken:'***'}`},
		{"what a sentence says stays", `Unexpected token: "}" invalid secret: 'x'`, `Unexpected token: "}" invalid secret: 'x'`},
		{"name and value", `{"name":"DB_PASSWORD","value":"abc"},{"name":"MODE","value":"abc"}`, `{"name":"DB_PASSWORD","value":"***"},{"name":"MODE","value":"abc"}`},
		{"name and value in YAML", "- name: API_TOKEN\n  value: abc", "- name: API_TOKEN\n  value: ***"},
		{"bad value stays", "invalid password value: must be longer (using password: YES)", "invalid password value: must be longer (using password: YES)"},
		{"parameter", "ParameterKey=DbPassword,ParameterValue=abc", "ParameterKey=DbPassword,ParameterValue=***"},
		{"docker's configuration", `{"auth": "Ym9iOmh1bnRlcjIyeA==", "x": "auth"}`, `{"auth": "***", "x": "auth"}`},
		{"telegram", "https://api.telegram.org/bot12:abc/sendMessage", "https://api.telegram.org/bot***/sendMessage"},
		{"statement", "ALTER USER u PASSWORD 'abc' VALID", "ALTER USER u PASSWORD '***' VALID"},
		{"statement of mysql", "near 'IDENTIFIED WITH x BY \"abc\"' PASSWORD('abc')", "near 'IDENTIFIED WITH x BY \"***\"' PASSWORD('***')"},
		{"statement of oracle", "CREATE USER u IDENTIFIED BY abc;", "CREATE USER u IDENTIFIED BY ***;"},
		{"statement in small letters", "create user u identified by 'abc'", "create user u identified by '***'"},
		{"sentence stays", "can't find a revision identified by 'abc', nor identified by name", "can't find a revision identified by 'abc', nor identified by name"},

		{"github", "ghp_abcdefghijklmnopqrstuvwxyz0123456789", "***"},
		{"gitlab", "x glpat-abcdefghijklmnopqrst.", "x ***."},
		{"aws", "AKIAIOSFODNN7EXAMPLE", "***"},
		{"slack", "xoxb-123456789012-abc", "***"},
		{"json web token", "jwt " + jwt + " end", "jwt *** end"},
		{"private key", "a\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----\nb", "a\n-----BEGIN RSA PRIVATE KEY-----***-----END RSA PRIVATE KEY-----\nb"},
		{"private key broken off", "-----BEGIN PRIVATE KEY-----\nMIIE", "-----BEGIN PRIVATE KEY-----***"},
		{"certificate stays", "-----BEGIN CERTIFICATE-----\nMIIE", "-----BEGIN CERTIFICATE-----\nMIIE"},
		{"inside a word stays", "my_ghp_abcdefghijklmnopqrstuvwxyz0123456789", "my_ghp_abcdefghijklmnopqrstuvwxyz0123456789"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := redacted(r, tt.in)
			if got != tt.want {
				t.Errorf("redacted(%q) = %q, want %q", tt.in, got, tt.want)
			}
			if again := redacted(r, got); again != got {
				t.Errorf("redacted(redacted(%q)) = %q, want %q", tt.in, again, got)
			}
		})
	}
}

func TestRedactorHidesSecretsOfManyLines(t *testing.T) {
	key := "-----BEGIN X-----\nMIIEpAIBAAKCAQEA\nabcdefghijklmnopqr\n-----END X-----\n"
	r := newRedactor([]string{"SIGNING_KEY=" + key}, nil, nil)
	for _, in := range []string{key, "parse abcdefghijklmnopqr failed", "parse " + strings.ReplaceAll(key, "\n", " "), strings.ReplaceAll(key, "\n", `\n`)} {
		if got := r.line(in, 1000); strings.Contains(got, "MIIEpAIBAAKCAQEA") || strings.Contains(got, "abcdefghijklmnopqr") {
			t.Errorf("line(%q) = %q, want no line of the secret", in, got)
		}
	}
}

func TestRedactorArgv(t *testing.T) {
	r := newRedactor([]string{"DEPLOY_TOKEN=s3cr3t-value"}, []string{"-u", "--user", "-p", "-storepass"}, nil)
	for _, tt := range []struct{ in, want []string }{
		{[]string{"curl", "-fsS", "-o", "x", "https://host/"}, []string{"curl", "-fsS", "-o", "x", "https://host/"}},
		{[]string{"curl", "-u", "bob:x", "u"}, []string{"curl", "-u", "***", "u"}},
		{[]string{"curl", "-ubob:x"}, []string{"curl", "-u***"}},
		{[]string{"curl", "-fsSu", "bob:x"}, []string{"curl", "-fsSu", "***"}},
		{[]string{"curl", "--user=bob:x", "--user", "bob:x y"}, []string{"curl", "--user=***", "--user", "***"}},
		{[]string{"keytool", "-storepass", "abc"}, []string{"keytool", "-storepass", "***"}},
		{[]string{"x", "--client-secret", "a b", "--token=c d"}, []string{"x", "--client-secret", "***", "--token=***"}},
		{[]string{"x", "--password", "-dash"}, []string{"x", "--password", "***"}},
		{[]string{"x", "-password", "abc"}, []string{"x", "-password", "***"}},
		{[]string{"gh", "auth", "login", "--with-token", "x"}, []string{"gh", "auth", "login", "--with-token", "x"}},
		{[]string{"curl", "-H", "DD-Application: abc def", "-H", "Accept: a/b"}, []string{"curl", "-H", "DD-Application: ***", "-H", "Accept: a/b"}},
		{[]string{"curl", "-HThing:abc", "--header=Foo: bar"}, []string{"curl", "-HThing:***", "--header=Foo: ***"}},
		{[]string{"ldapsearch", "-H", "ldap://host"}, []string{"ldapsearch", "-H", "ldap://host"}},
		{[]string{"rsync", "-H", "host2:/path"}, []string{"rsync", "-H", "host2:/path"}},
		{[]string{"sh", "-c", "mysql -ps3kret -h db && mysql -p s3kret"}, []string{"sh", "-c", "mysql -p*** -h db && mysql -p ***"}},
		{[]string{"env", "PGPASSWORD=x", "psql"}, []string{"env", "PGPASSWORD=***", "psql"}},
		{[]string{"env", `PGPASSWORD=a "b" &c;d`, "psql"}, []string{"env", "PGPASSWORD=***", "psql"}},
		{[]string{"docker", "build", `--build-arg=NPM_TOKEN=a"b`, "."}, []string{"docker", "build", "--build-arg=NPM_TOKEN=***", "."}},
		{[]string{"curl", "-d", "password=a&user=bob", "h"}, []string{"curl", "-d", "password=***&user=bob", "h"}},
		{[]string{"ssh", "h", "PGPASSWORD=x psql"}, []string{"ssh", "h", "PGPASSWORD=*** psql"}},
		{[]string{"deploy", "s3cr3t-value"}, []string{"deploy", "***"}},
		{[]string{"npm", "publish", "--//host/:_authToken=a b"}, []string{"npm", "publish", "--//host/:_authToken=***"}},
		{[]string{"npm", "publish", "--//host/:_authToken", "abc"}, []string{"npm", "publish", "--//host/:_authToken", "***"}},
		{[]string{"npm", "config", "set", "//host/:_authToken=abc"}, []string{"npm", "config", "set", "//host/:_authToken=***"}},
		{[]string{"--token", "x"}, []string{"--token", "x"}},
		{[]string{"x", "\x1b[31mred\xff"}, []string{"x", "red\ufffd"}},
		{nil, []string{}},
	} {
		if diff := cmp.Diff(tt.want, r.argv(tt.in)); diff != "" {
			t.Errorf("argv(%q) differs (-want +got):\n%s", tt.in, diff)
		}
	}
}

// Command lines of tools that take secrets, as a run reads them.
func TestRedactorKnowsTools(t *testing.T) {
	for _, tt := range []struct{ line, want string }{
		// attached, and ending like a flag of its own
		{"mysql -psecret db", "mysql -p*** db"},
		{"mysql -pmypassword db", "mysql -p*** db"},
		{"mysql -uroot -ptoken-of-mine", "mysql -uroot -p***"},
		{"mysql -password x", "mysql -password ***"},
		{"mariadb -px", "mariadb -p***"},
		{"sshpass -pmy-secret ssh h ls", "sshpass -p*** ssh h ls"},
		{"sshpass -p x ssh -v h", "sshpass -p *** ssh -v h"},
		{"helm registry login -u me -p hunter2hunter ghcr.example", "helm registry login -u me -p *** ghcr.example"},
		{"curl -sSfu a:b u", "curl -sSfu *** u"},
		{"redis-cli -ax ping", "redis-cli -a*** ping"},
		{"docker login -p x -u y", "docker login -p *** -u y"},
		{"docker run -p 80:80 -p 127.0.0.1:53:53/udp x", "docker run -p 80:80 -p 127.0.0.1:53:53/udp x"},
		{"openssl rsa -passin pass:x -passout pass:y", "openssl rsa -passin *** -passout ***"},
		{"zip -P x a.zip b", "zip -P *** a.zip b"},
		{"http --auth=a:b GET u", "http --auth=*** GET u"},
		{"snmpget -v2c -c x h", "snmpget -v2c -c *** h"},
		{"curl -sSfubob:my-secret u", "curl -sSfu*** u"},
		{"curl -XPUT -obuild u", "curl -XPUT -obuild u"},
		{"mysql -uapp -hpg-proxy -px", "mysql -uapp -hpg-proxy -p***"},
		{"curl -x bob:x@p:3128 --proxy=bob:x@p.example u:x@h.example http://h:80/@a/b", "curl -x ***@p:3128 --proxy=***@p.example ***@h.example http://h:80/@a/b"},
		{"curl -E c.pem:x --cert c.pem u", "curl -E c.pem:*** --cert c.pem u"},
		{"wget -E http://h:8080/x", "wget -E http://h:8080/x"},
		{"vault kv get -field=password secret/app", "vault kv get -field=password secret/app"},
		{"openssl req -new -key k.pem -keyout x", "openssl req -new -key k.pem -keyout x"},
		{"docker compose -p shop exec db mysql -px", "docker compose -p shop exec db mysql -p***"},
		{"rsync host:dir@daily.0/ dst", "rsync host:dir@daily.0/ dst"},
		{"cosign login h -u me -p x", "cosign login h -u me -p ***"},
		{"ansible all -e a=b --extra-vars=c=d", "ansible all -e *** --extra-vars=***"},
		{"aws ssm put-parameter --name /p --value x --type String", "aws ssm put-parameter --name /p --value *** --type String"},
		{"oc create secret generic x --from-literal=a=b", "oc create secret generic x --from-literal=***"},
		{"ctr images pull --user bob:x --creds a:b i", "ctr images pull --user *** --creds *** i"},
		{"act -s FOO=x", "act -s ***"},
		{"wmic /user:bob /password:x y", "wmic /user:bob /password:*** y"},
		{"docker run -v /secret:/secret:ro x", "docker run -v /secret:/secret:ro x"},
		{"az rest --headers Authorization=x", "az rest --headers Authorization=***"},
		// behind wrappers and far away
		{"sudo -u me env PGPASSWORD=x AWS_SECRET_ACCESS_KEY=y A=B psql", "sudo -u me env PGPASSWORD=*** AWS_SECRET_ACCESS_KEY=*** A=B psql"},
		{"ssh host mysql -px", "ssh host mysql -p***"},
		{"ssh -p 22 host ls", "ssh -p 22 host ls"},
		{"kubectl exec pod -- mysql -px", "kubectl exec pod -- mysql -p***"},
		{"docker exec db mysql -px", "docker exec db mysql -p***"},
		// by its place
		{"nmcli dev wifi connect home password x", "nmcli dev wifi connect home password ***"},
		{"nmcli con mod home wifi-sec.psk x", "nmcli con mod home wifi-sec.psk ***"},
		{"mysqladmin -uroot password x", "mysqladmin -uroot password ***"},
		{"redis-cli -h h auth me x", "redis-cli -h h auth *** ***"},
		{"vault login x", "vault login ***"},
		{"vault kv put secret/a b=x", "vault kv put secret/a ***"},
		{"htpasswd -b file me x", "htpasswd -b file me ***"},
		{"npm config set //h/:_authToken x", "npm config set //h/:_authToken ***"},
		{"echo no password given", "echo no password given"},
		{"kubectl get secret db-password -o json", "kubectl get secret db-password -o json"},
		{"sudo nmcli con add type wifi wifi-sec.psk x", "sudo nmcli con add type wifi wifi-sec.psk ***"},
		{"ssh h /usr/bin/mysqladmin password x", "ssh h /usr/bin/mysqladmin password ***"},
		{"wpa_cli set_network 0 psk x", "wpa_cli set_network 0 psk ***"},
		{"pppd user me password x", "pppd user me password ***"},
		{"redis-cli config set requirepass x", "redis-cli config set requirepass ***"},
		{"redis-cli hset user:1 password x", "redis-cli hset user:1 password ***"},
		{"aws configure set aws_secret_access_key x", "aws configure set aws_secret_access_key ***"},
		{"git config --global sendemail.password x", "git config --global sendemail.password ***"},
		{"pulumi config set db-password x", "pulumi config set db-password ***"},
		{"etcdctl put /app/password x", "etcdctl put /app/password ***"},
		{"ipmitool user set password 2 x", "ipmitool user set password *** ***"},
		{`net use \\h\share x /user:me`, `net use \\h\share *** /user:me`},
		{`net use z: \\h\share /user:me x`, `net use z: \\h\share /user:me ***`},
		{"redis-cli CONFIG SET requirepass x", "redis-cli CONFIG SET requirepass ***"},
		{"pulumi config set token x --secret", "pulumi config set token *** --secret"},
		{"npm config set _auth x", "npm config set _auth ***"},
		{"netlify env:set API_KEY x", "netlify env:set API_KEY ***"},
		{"composer config --global github-oauth.github.com x", "composer config --global github-oauth.github.com ***"},
		{"composer config http-basic.h bob x", "composer config http-basic.h *** ***"},
		{"jq -n --arg token x --arg env production .a", "jq -n --arg token *** --arg env production .a"},
		{"fly secrets set a=b", "fly secrets set ***"},
		{"vault operator unseal x", "vault operator unseal ***"},
		{"wandb login x", "wandb login ***"},
		{"rclone obscure x", "rclone obscure ***"},
		{"ansible-vault encrypt_string x", "ansible-vault encrypt_string ***"},
		// not by its place
		{"gh secret set TOKEN --env production", "gh secret set TOKEN --env production"},
		{"vercel env add TOKEN production", "vercel env add TOKEN production"},
		{"composer config vendor-dir lib", "composer config vendor-dir lib"},
		{"jq --arg env production .token", "jq --arg env production .token"},
		{"grep password config.yaml", "grep password config.yaml"},
		{"grep set password config.yaml", "grep set password config.yaml"},
		{"sudo grep -r db_password config.yaml", "sudo grep -r db_password config.yaml"},
		{"scp /etc/passwd host:/x", "scp /etc/passwd host:/x"},
		{"cat passwd group", "cat passwd group"},
		{"s3cmd put /etc/passwd s3://b/x", "s3cmd put /etc/passwd s3://b/x"},
		{"tool set private-key /etc/ssh/key", "tool set private-key /etc/ssh/key"},
		{"npm run generate-apikey production", "npm run generate-apikey production"},
		{"npm run set-password production", "npm run set-password production"},
		{"docker config create db_password file", "docker config create db_password file"},
		{"kubectl delete secret db-password registry", "kubectl delete secret db-password registry"},
		{"nmcli -g wifi-sec.psk connection show", "nmcli -g wifi-sec.psk connection show"},
		{"./rotate-password production", "./rotate-password production"},
		{"pytest tests/password tests/other", "pytest tests/password tests/other"},
		// headers and addresses
		{"curl -sHToken:x u", "curl -sHToken:*** u"},
		{"curl https://hooks.slack.com/services/T0/B0/x", "curl https://hooks.slack.com/services/***"},
		{"curl http://h/?key=short&key=AbcdefghijKlmnopqrst", "curl http://h/?key=short&key=***"},
	} {
		argv := strings.Fields(tt.line)
		r := newRedactor(nil, classify.Read(argv).SecretFlags, nil)
		if got := strings.Join(r.argv(argv), " "); got != tt.want {
			t.Errorf("argv(%s) = %s, want %s", tt.line, got, tt.want)
		}
	}
}

func TestRedactorReadsScripts(t *testing.T) {
	for _, tt := range []struct{ script, want string }{
		{"cd /x && mysql -px db", "cd /x && mysql -p*** db"},
		{"mysql -p'a b' db; ls", "mysql -p'***' db; ls"},
		{`curl -s u -u "a:b" | jq .`, `curl -s u -u "***" | jq .`},
		{"curl -H 'Token: x y' u", "curl -H 'Token: ***' u"},
		{"curl -H'Token: x y' u", "curl -H'Token: ***' u"},
		{"curl -H 'Accept: a/b' u", "curl -H 'Accept: a/b' u"},
		{"echo x y | docker login --password-stdin", "echo *** | docker login --password-stdin"},
		{"echo x | grep y", "echo x | grep y"},
		{"PGPASSWORD=x psql; mkdir -p a", "PGPASSWORD=*** psql; mkdir -p a"},
		{"vault login 's3cr3t-x'", "vault login '***'"},
		{"curl -s http://h/ && rsync -avz srcdir dst", "curl -s http://h/ && rsync -avz srcdir dst"},
		{"curl -s https://h/zip && cp -aP srcdir dst", "curl -s https://h/zip && cp -aP srcdir dst"},
		{"cp a.zip b && cp -P srcdir dst; ping h.example.net; id -U me", "cp a.zip b && cp -P srcdir dst; ping h.example.net; id -U me"},
		{"http -a u:p http://h/ && ls -l a", "http -a *** http://h/ && ls -l a"},
		{"ls;/usr/bin/zip -P x a.zip b", "ls;/usr/bin/zip -P *** a.zip b"},
		{"rsync --rsh=sshpass -p x a h:b", "rsync --rsh=sshpass -p *** a h:b"},
		{"kubectl create secret generic x --from-literal=a='b c' -n y", "kubectl create secret generic x --from-literal=*** -n y"},
		{"curl -u bob:'a b' h", "curl -u *** h"},
		{"curl -x bob:x@p:1 -E 'c.pem:x' h", "curl -x ***@p:1 -E 'c.pem:***' h"},
		{"echo 'x' | sudo -S ls", "echo *** | sudo -S ls"},
		{"printf '%s\\n' x | gh auth login --with-token", "printf '%s\\n' *** | gh auth login --with-token"},
		{"echo bob:x | chpasswd", "echo *** | chpasswd"},
		{"echo -n x y | docker login --password-stdin", "echo -n *** | docker login --password-stdin"},
		{"psql -c \"ALTER USER u PASSWORD 'x'\"", "psql -c \"ALTER USER u PASSWORD '***'\""},
		{"(zip -P x a.zip b)", "(zip -P *** a.zip b)"},
	} {
		argv := []string{"sh", "-c", tt.script}
		read := classify.Read(argv)
		r := newRedactor(nil, read.SecretFlags, nil)
		r.observe(argv, read.Argv)
		if got := r.argv(argv)[2]; got != tt.want {
			t.Errorf("argv(sh -c %q) = %q, want %q", tt.script, got, tt.want)
		}
	}
}

// Programs print their arguments: what was a secret there is one everywhere.
func TestRedactorKnowsSecretsOfTheCommandElsewhere(t *testing.T) {
	for _, tt := range []struct {
		argv     []string
		in, want string
	}{
		{[]string{"mysql", "-phunter22"}, "+ mysql -phunter22; denied (using hunter22)", "+ mysql -p***; denied (using ***)"},
		{[]string{"curl", "-u", "bob:hunter22"}, "401 for bob with hunter22, bob:hunter22", "401 for bob with ***, ***"},
		{[]string{"curl", "-H", "X-A: Bearer hunter22"}, "sent hunter22", "sent ***"},
		{[]string{"curl", "https://bob:hunter22@h/"}, "bad password hunter22", "bad password ***"},
		{[]string{"env", "PGPASSWORD=hunter22", "psql"}, "hunter22", "***"},
		{[]string{"sh", "-c", "vault login hunter22"}, "hunter22", "***"},
		{[]string{"tool", "--token", "hunter22"}, "hunter22", "***"},
		{[]string{"tool", "--token", "short"}, "too short", "too short"},
		{[]string{"tool", "--token", "$TOKEN", "--password", "/etc/secret"}, "$TOKEN /etc/secret", "$TOKEN /etc/secret"},
		{[]string{"docker", "run", "-p", "8080:8080"}, "8080:8080 in use", "8080:8080 in use"},
		{[]string{"grep", "password", "config.yaml"}, "config.yaml: no", "config.yaml: no"},
		{[]string{"sh", "-c", "curl http://h/ | rsync -a srcdir dst"}, "srcdir: no", "srcdir: no"},
		{[]string{"pip", "-i", "https://h/simple"}, "https://h/simple: no", "https://h/simple: no"},
	} {
		read := classify.Read(tt.argv)
		r := newRedactor(nil, read.SecretFlags, nil)
		r.observe(tt.argv, read.Argv)
		if got := redacted(r, tt.in); got != tt.want {
			t.Errorf("%q: redacted(%q) = %q, want %q", tt.argv, tt.in, got, tt.want)
		}
	}
}

func TestRedactorLine(t *testing.T) {
	r := newRedactor([]string{"A_TOKEN=abc def", "B_TOKEN=0123456789"}, nil, nil)
	for _, tt := range []struct {
		in    string
		limit int
		want  string
	}{
		{"a\n\tb  c\r\nd", 100, "a b  c d"},
		{"x abc\ndef y", 100, "x *** y"},
		{"0123456789 0123456789", 8, "*** ***"},
		{"aé", 2, "a"},
		{"aé", 3, "aé"},
		{"abc", 0, ""},
		{"a\u2028b\u0000c\u0085\xff\xfe", 100, "a bc\ufffd"},
	} {
		if got := r.line(tt.in, tt.limit); got != tt.want {
			t.Errorf("line(%q, %d) = %q, want %q", tt.in, tt.limit, got, tt.want)
		}
	}
}

func TestRedactorTailHidesTheEndOfASecret(t *testing.T) {
	r := newRedactor([]string{"A_TOKEN=0123456789abcdef"}, nil, nil)
	for _, tt := range []struct{ in, want string }{
		{"789abcdef rest\nmore", "*** rest\nmore"},
		{"cdef rest", "cdef rest"},
		{"0123456789abcdef\x1b]0;title\a\r\n", "***\n"},
	} {
		if got := r.tail([]byte(tt.in)); got != tt.want {
			t.Errorf("tail(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

func TestNilRedactor(t *testing.T) {
	var r *redactor
	if got, want := r.line("password=x\x1b[0m", 99)+r.line("a\nb", 9)+r.tail([]byte("c\x00")), "password=***a bc"; got != want {
		t.Errorf("nil redactor gives %q, want %q", got, want)
	}
	if got, want := r.argv([]string{"x", "--token", "y"}), []string{"x", "--token", "***"}; !slices.Equal(got, want) {
		t.Errorf("argv = %q, want %q", got, want)
	}
}

// Hiding one secret may bring up the next, and the mask may be part of one.
func TestRedactorHidesWhatHidingBringsUp(t *testing.T) {
	r := newRedactor([]string{"A_TOKEN=x***yy"}, nil, []*regexp.Regexp{regexp.MustCompile(`\*$`)})
	nested := strings.Repeat("x", 2*passes) + "***" + strings.Repeat("yy", 2*passes)
	for _, tt := range []struct{ in, want string }{
		{nested, "***"},
		{"ends in *", "ends in ***"},
		{"ends in ***", "ends in ***"},
	} {
		if got := redacted(r, tt.in); got != tt.want {
			t.Errorf("redacted(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

func TestPrintable(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"\x1b[1;31mred\x1b[0m", "red"},
		{"\x1b]8;;http://x\x1b\\link\x1b]8;;\a", "link"},
		{"\x1b]never closed\nerror", "never closed\nerror"},
		{"\x1b[12\nerror", "\nerror"},
		{"\x1b", ""},
		{"10%\r20%\r\nok", "10%\n20%\nok"},
		{"a\xe2\x1b[0m\x80\xaeb", "a\ufffd\ufffdb"},
		{"\u202eab\u2066c\ufeff\u200b\U000e0041", "abc"},
		{"\u200d\u200c", "\u200d\u200c"},
	} {
		if got := printable(tt.in); got != tt.want {
			t.Errorf("printable(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

// checkRedacted holds r to what it promises about any text.
func checkRedacted(t interface {
	Helper()
	Errorf(string, ...any)
}, r *redactor, secret, in string,
) {
	t.Helper()
	secret = strings.TrimSpace(printable(secret))
	known := utf8.RuneCountInString(secret) >= shortestSecret
	got := redacted(r, in)
	if known && strings.Contains(got, secret) {
		t.Errorf("redacted(%q) = %q, want no %q", in, got, secret)
	}
	if again := redacted(r, got); again != got {
		t.Errorf("redacted(redacted(%q)) = %q, want %q", in, again, got)
	}
	if !utf8.ValidString(got) || printable(got) != got {
		t.Errorf("redacted(%q) = %q, want it printable", in, got)
	}
	line := r.line(in, 100)
	if len(line) > 100 || strings.ContainsAny(line, "\n\t") || !utf8.ValidString(line) {
		t.Errorf("line(%q, 100) = %q, want one line of at most 100 bytes", in, line)
	}
	if known && (strings.Contains(line, secret) || strings.Contains(r.tail([]byte(in)), secret)) {
		t.Errorf("line or tail of %q hold %q", in, secret)
	}
	for _, a := range r.argv([]string{in, in, "-u", in}) {
		if known && strings.Contains(a, secret) {
			t.Errorf("argv of %q holds %q", in, secret)
		}
	}
}

func FuzzRedactor(f *testing.F) {
	f.Add("s3cr3t-value", "a s3cr3t-value b https://u:p@h/?token=x Authorization: y")
	f.Add("***abc", "password=***abcabc --token abc***")
	f.Add("rd=***", "password=abc")
	f.Add("a\nb\tc d", "a b c d a\r\nb\tc d")
	f.Add("a\xffb\x1b[0mcdef", "a\xffbcdef -----BEGIN PRIVATE KEY-----")
	f.Fuzz(func(t *testing.T, secret, in string) {
		if strings.ContainsRune(secret, 0) {
			t.Skip("no variable holds a NUL")
		}
		if secret != "" && isPath(secret) {
			t.Skip("a path")
		}
		checkRedacted(t, newRedactor([]string{"X_TOKEN=" + secret}, []string{"-u", "--user"}, nil), secret, in)
	})
}

// The same with texts that are made of what the scanners look for.
func TestRedactorOnHostileTexts(t *testing.T) {
	words := []string{
		"=", ":", "://", "@", "/", "?", "&", ";", " ", "\n", "\t", `"`, "'", `\`, "*", "***", "-", "--", "--token", "-u", "--user", "-H ",
		"password", "token", "X-A", "Authorization", "Bearer ", "ghp_", "abcdefghijklmnopqrst0", "eyJ", ".", "x", "é", "\xff", "\x1b[", "\u202e",
		"-----BEGIN PRIVATE KEY-----", "-----END", "MY_KEY", "_auth", "pass", "[", "]",
	}
	text := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 0, 14).Draw(t, "words"), "")
	})
	rapid.Check(t, func(t *rapid.T) {
		secret := text.Draw(t, "secret")
		in := text.Draw(t, "before") + secret + text.Draw(t, "after")
		if secret != "" && isPath(secret) {
			t.Skip("a path")
		}
		checkRedacted(t, newRedactor([]string{"X_TOKEN=" + secret}, []string{"-u", "--user"}, nil), secret, in)
	})
}

// hostileTails are made to send scanners back and forth.
func hostileTails() []string {
	return []string{
		"=", "a=", "token=", "MY_KEY=", "=\"", "token=\"", "token=\\\"", "a://a:b/", "://", "a://@", "a", "aaaaaaaa*", "x-a:", "'x-a:", ":", "\"a\":",
		"?key=", "&key=a", "api/webhooks/", "echo ", "echo|", "mysql -p", "mysql ", "a.", "-H \"", "-H a:", "-H'",
		"--token ", "/--token=", "/-x", "-u", "value=", "name=token,value=", "value: ", "pwd:'", "IDENTIFIED BY ", "identified with ", "PASSWORD '", "PASSWORD(", "a='", "a:b@", "curl a:", "['a']=",
		"-----BEGIN PRIVATE KEY-----", "Bearer ", "Bearer 1", "eyJ.", "eyJ", "hf_.", "-", "*", ".", "[", "\x1b]", "\x1b[",
	}
}

// A scanner whose time grows with the square of its input would not come back
// from half a megabyte.
func TestRedactorIsLinear(t *testing.T) {
	const size = 1 << 19
	r := newRedactor([]string{"A_KEY=aaaaaaaa", "B_TOKEN=" + strings.Repeat("=", 100)}, []string{"-u"}, nil)
	for _, unit := range hostileTails() {
		if got := r.tail([]byte(strings.Repeat(unit, size/len(unit)))); len(got) > 2*size {
			t.Errorf("tail(%q repeated) has %d bytes, want at most %d", unit, len(got), 2*size)
		}
		script := strings.Repeat(unit, size/32/len(unit))
		if got := r.argv([]string{"sh", "-c", script}); len(got[2]) > 2*size {
			t.Errorf("argv(%q repeated) has %d bytes, want at most %d", unit, len(got[2]), 2*size)
		}
	}
}

func benchEnviron() []string {
	environ := []string{"GITHUB_TOKEN=ghs_abcdefghijklmnopqrstuvwxyz0123456789", "NPM_TOKEN=npm_abc12345", "PWD=/home/u", "SSH_AUTH_SOCK=/tmp/x"}
	for _, n := range []string{"LANG", "TERM", "SHELL", "CI_COMMIT_REF_NAME", "CI_PIPELINE_SOURCE", "GOPATH", "XDG_SESSION_TYPE"} {
		for _, suffix := range []string{"", "_1", "_2", "_3", "_4", "_5", "_6", "_7", "_8", "_9"} {
			environ = append(environ, n+suffix+"=some value of no interest")
		}
	}
	return environ
}

func BenchmarkRedactorSuccessPath(b *testing.B) {
	environ := benchEnviron()
	argv := []string{"curl", "-fsS", "--retry", "0", "-H", "Accept: application/json", "-o", "out.json", "https://api.example.org/v1/things?limit=100"}
	for b.Loop() {
		r := newRedactor(environ, []string{"-u", "--user"}, nil)
		r.observe(argv, argv)
		r.argv(argv)
	}
}

func BenchmarkRedactorTail(b *testing.B) {
	r := newRedactor(benchEnviron(), nil, nil)
	tail := []byte(strings.Repeat("2026-01-02 03:04:05 INFO  fetch https://host/path?x=1 took 12 ms, status=200\n", 64<<10/77))
	b.SetBytes(int64(len(tail)))
	for b.Loop() {
		r.tail(tail)
	}
}

// A secret may begin as paths do, and the name of a file may be that of a secret.
func TestRedactorTellsPathsFromSecrets(t *testing.T) {
	t.Parallel()
	for value, secret := range map[string]bool{
		"/abc+def1234567890abcdef": true, "/abcdefGHIJKL0123456789": true, "/abcdef/GHIJKL0123456789": true,
		"//abcdefGHIJKL0123456789": true, "~tilde-s3cret": true,
		"/etc/retryx-nowhere/key.pem": false, "/etc//key.pem": false, "~/key.pem": false, "../key.pem": false,
	} {
		r := newRedactor([]string{"MY_SECRET_KEY=" + value}, nil, nil)
		want := "got " + value + " there"
		if secret {
			want = "got *** there"
		}
		if got := r.line("got "+value+" there", 99); got != want {
			t.Errorf("line() with %s in a secret's variable = %q, want %q", value, got, want)
		}
	}
	r := newRedactor(nil, nil, nil)
	for in, want := range map[string]string{
		"open /etc/passwd: no such file":                   "open /etc/passwd: no such file",
		`cannot start "/etc/passwd": permission denied`:    `cannot start "/etc/passwd": permission denied`,
		"/etc/db/password: s3cr3t":                         "/etc/db/password: s3cr3t",
		"app/password: s3cr3t":                             "app/password: ***",
		`{"/prod-nowhere/db/password": "s3cr3t"}`:          `{"/prod-nowhere/db/password": "***"}`,
		"password: s3cr3t in /etc/passwd: a bad idea":      "password: *** in /etc/passwd: a bad idea",
		"MY_SECRET_KEY=/abc+def123456 ssh -i /etc/ssh/key": "MY_SECRET_KEY=*** ssh -i /etc/ssh/key",
		"PWD=/nowhere/at/all":                              "PWD=/nowhere/at/all",
	} {
		if got := r.line(in, 99); got != want {
			t.Errorf("line(%q) = %q, want %q", in, got, want)
		}
	}
}

// redacted is s with its lines, as the middle of an output is stored.
func redacted(r *redactor, s string) string {
	r.settle()
	return r.hide(printable(s), nil)
}
