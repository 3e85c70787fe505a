package classify_test

import (
	"strings"
	"testing"

	"mvdan.cc/sh/v3/shell"

	"github.com/retryx/retryx/classify"
)

// effects lists command lines by what they do to the world. A write that is
// taken for something else may be done twice, so the list is long where tools
// send, publish, pay and insert.
const effects = `
write: npm publish ¦ npm publish --access public ¦ env CI=1 npm publish ¦ npx npm publish ¦ yarn npm publish ¦ yarn publish
write: pnpm publish -r ¦ pnpm -r publish ¦ pnpm --filter web publish ¦ pnpm --filter=web publish ¦ yarn workspace web npm publish ¦ yarn workspaces foreach npm publish
write: bun publish ¦ deno publish ¦ bunx npm publish ¦ npm run publish ¦ npm run release ¦ lerna publish ¦ cargo publish ¦ twine upload dist/a
write: python3 -m twine upload dist/a ¦ uv publish ¦ poetry publish --build ¦ gem push a.gem ¦ dotnet nuget push a ¦ nuget push a ¦ mvn deploy ¦ ./gradlew publish
write: npm deprecate a b ¦ mix hex.publish ¦ dart pub publish ¦ flutter pub publish ¦ helm install a b ¦ jsr publish ¦ npx jsr publish ¦ changeset publish ¦ semantic-release publish
repeatable: npm install ¦ pnpm add a ¦ pnpm --filter web add a ¦ yarn add a ¦ bun add a ¦ bun install ¦ bun i ¦ bun remove a ¦ pip install a ¦ pipx install a ¦ pipx upgrade a ¦ cargo build ¦ uv sync
read: npm view a ¦ npm publish --dry-run ¦ npm test ¦ bun test ¦ yarn info a ¦ pip download a ¦ bun pm ls ¦ pipx list ¦ deno test ¦ deno check a.ts ¦ deno info
repeatable: deno cache a.ts ¦ deno install ¦ deno add a

write: psql -c 'insert into t values (1)' ¦ psql db -c 'update t set a=a+1' ¦ psql -f x.sql ¦ psql db -f x.sql ¦ psql db ¦ psql -h h -U u db ¦ sh -c 'psql db < x.sql'
write: sudo -u postgres psql -d app -f m.sql ¦ pg_restore -d db x.dump ¦ createdb a ¦ pgbench -i ¦ mysql db -e 'insert into t values (1)' ¦ mysql db ¦ sh -c 'mysql db < x.sql'
write: mysql -h h db -e 'call pay()' ¦ sqlcmd -S h -Q 'insert into t values (1)' ¦ sqlplus u/p@db @x.sql ¦ snowsql -q 'insert into t values (1)' ¦ duckdb a.db 'insert into t values (1)'
write: mongosh db --eval 'db.c.insertOne({})' ¦ mongoimport --file a.json ¦ mongorestore dump ¦ redis-cli lpush q a ¦ redis-cli INCR n ¦ redis-cli publish c m ¦ clickhouse-client -q 'insert into t values (1)'
write: bq query 'insert into t values (1)' ¦ influx write x ¦ cqlsh -e 'insert into t (a) values (1)' ¦ sqlite3 a.db 'insert into t values (1)' ¦ usql pg://h -c 'insert into t values (1)' ¦ trino --execute 'insert into t values (1)'
read: psql -c 'select 1' ¦ psql -l ¦ psql db -tAc 'select now()' ¦ pg_dump db ¦ pg_dumpall ¦ pg_isready ¦ mysql -e 'show tables' ¦ mysqldump db ¦ redis-cli get k ¦ redis-cli -h h ping
read: mongosh db --eval 'db.c.find()' ¦ mongodump ¦ clickhouse-client -q 'select 1' ¦ sqlcmd -S h -Q 'select 1' ¦ snowsql -q 'select 1' ¦ bq query 'select 1' ¦ pg_basebackup -D x ¦ pg_restore -l x.dump
repeatable: redis-cli set k v ¦ redis-cli del k ¦ vacuumdb db ¦ reindexdb db ¦ dropdb db

write: curl -d a http://h/ ¦ curl --json {} http://h/ ¦ curl -F f=@x http://h/ ¦ curl -X POST http://h/ ¦ curl --request PATCH http://h/ ¦ curl --data-urlencode a=b http://h/ ¦ curl --data-binary @x http://h/ ¦ curl -XPOST http://h/
write: curl --form-string a=b http://h/ ¦ curl --url-query a=b -d x http://h/ ¦ curl -sSLd a http://h/ ¦ curl smtp://h --mail-rcpt a@b ¦ curl --request=POST http://h/ ¦ curl --data @x --url http://h/
write: wget --post-data=a http://h/ ¦ wget --post-file x http://h/ ¦ wget --method=POST http://h/ ¦ http POST h a=1 ¦ http h a=1 ¦ https post h a=1 ¦ xh post h a=1 ¦ xh h a=1 ¦ http --form POST h a=1 ¦ http h a:=1 ¦ curlie post h a=1 ¦ http PATCH h a=1
write: httpie h a=1
repeatable: curl -T f http://h/ ¦ curl -X DELETE http://h/ ¦ curl -X PUT -d a http://h/ ¦ http PUT h a=1 ¦ http DELETE h ¦ xh put h a=1 ¦ wget --method=DELETE http://h/
read: curl http://h/ ¦ curl -G -d a=1 http://h/ ¦ curl -I http://h/ ¦ curl -X GET http://h/ ¦ curl -o f http://h/ ¦ wget http://h/ ¦ http GET h ¦ http --check-status GET h ¦ xh get h
unknown: http h

write: gh pr create ¦ gh release create v1 ¦ gh workflow run a ¦ gh api -f a=b /x ¦ gh api -X POST /x ¦ gh issue comment 1 ¦ gh pr merge 1 ¦ gh api graphql -f query=mutation{} ¦ glab mr create ¦ glab api -X POST /x
write: aws sns publish --message a ¦ aws sqs send-message ¦ aws lambda invoke --function-name f o ¦ aws ses send-email ¦ aws ec2 run-instances ¦ aws dynamodb transact-write-items ¦ aws events put-events ¦ aws kinesis put-record ¦ aws kinesis put-records
write: aws logs put-log-events ¦ aws cloudwatch put-metric-data ¦ aws stepfunctions start-execution ¦ aws codebuild start-build ¦ aws batch submit-job ¦ aws ssm send-command ¦ aws ecs run-task ¦ aws s3 mv s3://a s3://b ¦ aws firehose put-record-batch ¦ aws iam create-user
write: gcloud pubsub topics publish t ¦ gcloud run deploy s ¦ gcloud builds submit ¦ gcloud compute instances create v ¦ gcloud functions call f ¦ gcloud tasks create-http-task ¦ az vm create ¦ az deployment group create ¦ az eventgrid topic create ¦ doctl compute droplet create d
write: kubectl create -f x ¦ kubectl run a ¦ kubectl rollout restart d/a ¦ kubectl create job j --from=cronjob/c ¦ helm upgrade a b ¦ terraform apply ¦ pulumi up ¦ terragrunt apply ¦ heroku run a ¦ fly apps create a ¦ oci compute instance launch ¦ hcloud server create
write: stripe charges create ¦ stripe post /v1/charges ¦ stripe payment_intents create ¦ twilio api:core:messages:create ¦ sendgrid mail send ¦ slack chat send hi ¦ telegram-send hi ¦ ntfy publish t hi ¦ amqp-publish -r a ¦ nats pub a b
write: apprise -b hi mailto://h ¦ slackcat -c a f ¦ kcat -P -t a ¦ kafka-console-producer --topic a ¦ rabbitmqadmin publish ¦ signal-cli send -m hi ¦ mail -s a b@c ¦ mailx a ¦ sendmail -t ¦ msmtp a ¦ swaks --to a ¦ mutt -s a b@c ¦ notify-send hi ¦ logger hi ¦ lp f ¦ gotify push hi ¦ pushover hi
write: vault kv put a b=c ¦ consul event -name a ¦ vault token create ¦ ansible-playbook x.yml ¦ salt '*' state.apply ¦ jira issue create ¦ linear issue create ¦ plaid transfer create ¦ square payments create ¦ shopify order create ¦ braintree transaction submit
read: gh pr list ¦ gh api /x ¦ gh run view 1 ¦ gh release download ¦ glab mr list ¦ aws s3 ls ¦ aws ec2 describe-instances ¦ aws sts get-caller-identity ¦ gcloud compute instances list ¦ gcloud logging read x ¦ az vm list ¦ kubectl get po ¦ kubectl logs a ¦ helm list ¦ terraform plan
read: stripe charges list ¦ stripe get /v1/charges ¦ twilio api:core:messages:list ¦ doctl compute droplet list ¦ heroku logs ¦ fly status ¦ jira issue list ¦ hcloud server list ¦ kubectl create -f x --dry-run=client ¦ shopify order list ¦ nomad status
repeatable: aws s3 cp a s3://b ¦ aws s3 sync a s3://b ¦ aws s3api put-object ¦ aws dynamodb put-item ¦ aws ec2 terminate-instances ¦ kubectl apply -f x ¦ kubectl delete po a ¦ gsutil cp a gs://b ¦ gcloud storage cp a gs://b ¦ terraform destroy ¦ s3cmd put a s3://b ¦ rclone sync a b:c ¦ stripe customers update ¦ fly scale count 2 ¦ hcloud server delete a

write: git send-email x ¦ git commit -m a ¦ ssh h npm publish ¦ ssh h 'cd /app && npm publish' ¦ ssh h cd /app '&&' npm publish ¦ docker exec a npm publish ¦ kubectl exec a -- npm publish ¦ docker compose exec -T web npm publish ¦ docker-compose exec web npm publish ¦ kubectl -n a exec -it b -c d -- npm publish
write: docker run a ¦ docker compose run web a ¦ docker exec a sh -c 'psql -c "insert into t values (1)"' ¦ sh -c 'npm publish' ¦ sh -c 'npm ci && npm publish' ¦ bash -euo pipefail -c 'cd x; npm publish' ¦ bash -c 'echo a | kcat -P -t b' ¦ sh -c 'if true; then npm publish; fi'
write: podman exec a npm publish ¦ lxc exec a -- npm publish ¦ incus exec a -- npm publish ¦ su - app -c 'npm publish' ¦ su app -c 'npm publish' ¦ runuser -u app -- npm publish ¦ chroot /x npm publish ¦ nsenter -t 1 -m npm publish ¦ sudo -u a -- npm publish ¦ sudo -E -u a env B=c npm publish ¦ doas -u a npm publish
write: timeout 60 npm publish ¦ timeout -k 5 60 npm publish ¦ nice -n 5 npm publish ¦ ionice -c2 -n7 npm publish ¦ flock /l npm publish ¦ flock -n /l -c 'npm publish' ¦ stdbuf -oL npm publish ¦ setsid -w npm publish ¦ nohup npm publish ¦ xvfb-run -a npm publish ¦ systemd-run --wait --pipe npm publish
write: direnv exec . npm publish ¦ op run -- npm publish ¦ doppler run -- npm publish ¦ aws-vault exec a -- npm publish ¦ chamber exec a -- npm publish ¦ infisical run -- npm publish ¦ dotenv npm publish ¦ dotenvx run -- npm publish ¦ mise exec -- npm publish ¦ asdf exec npm publish ¦ nvm exec 20 npm publish ¦ fakeroot npm publish ¦ strace -f npm publish
write: sshpass -p x ssh h npm publish ¦ gcloud compute ssh h --command='npm publish' ¦ retryx -n 3 -- npm publish ¦ unshare -n npm publish ¦ firejail npm publish ¦ script -qec 'npm publish' /dev/null ¦ nix-shell --run 'npm publish' ¦ time -p npm publish ¦ caffeinate -i npm publish ¦ chronic npm publish
repeatable: git push ¦ git push origin v1 ¦ git tag v1 ¦ git push --tags ¦ docker push a ¦ docker build . ¦ rsync -a a b ¦ scp a h:b ¦ ssh h git push ¦ docker compose up -d
read: git fetch ¦ git clone x ¦ git pull ¦ docker pull a ¦ docker ps ¦ ssh h uptime ¦ ssh h 'uptime; df -h' ¦ docker exec a ls ¦ kubectl exec a -- cat f ¦ sh -c 'curl http://h/ | jq .a' ¦ bash -c 'cd /x && git pull'
unknown: ssh h ./x ¦ ssh h ¦ docker exec a ./x ¦ sh -c 'a $(b)' ¦ bash x.sh ¦ ./deploy.sh ¦ python3 x.py ¦ make ¦ node x.js

repeatable: find x -delete ¦ ip link set a up ¦ ip addr add a dev b ¦ ip route replace a ¦ ifconfig a down ¦ ifconfig a 10.0.0.1 up ¦ hostname a ¦ date -s 12:00 ¦ hostnamectl set-hostname a ¦ journalctl --vacuum-time=1d
unknown: find x -exec rm {} + ¦ find x -execdir a ';' ¦ find x -ok a ';'
read: find x -name a ¦ ip addr ¦ ip link show ¦ ip -br a ¦ ip route get 1.1.1.1 ¦ ifconfig ¦ ifconfig a ¦ hostname ¦ hostname -f ¦ hostname -I ¦ date ¦ date +%s ¦ ping -c1 h ¦ traceroute h ¦ journalctl -u a ¦ ls -la ¦ grep a b ¦ cat f ¦ jq . f ¦ dmesg
write: dmesg -C
write: ./send-newsletter.js ¦ node scripts/send-newsletter.js ¦ python3 charge.py ¦ python manage.py sendreminders ¦ python3.12 manage.py send_invoices --due ¦ php artisan newsletter:send ¦ ./artisan app:send-emails ¦ bin/console app:send-newsletter ¦ php bin/console app:send-newsletter ¦ bin/rails runner x ¦ rails newsletter:send ¦ ruby post_tweet.rb ¦ bundle exec rake billing:charge
write: ./charge-card 5 ¦ discord-post hi ¦ bash publish.sh ¦ ./scripts/create_invoice.py ¦ npx tsx scripts/sendEmails.ts ¦ make publish ¦ just publish ¦ task release ¦ bundle exec fastlane deliver ¦ perl submit.pl ¦ php artisan queue:retry all ¦ python -m app.jobs.publish ¦ poetry run python send.py
repeatable: python manage.py migrate ¦ rails db:migrate ¦ php artisan migrate ¦ bin/console doctrine:migrations:migrate ¦ ./artisan migrate --force
read: python manage.py check ¦ ./check-status.sh ¦ php artisan route:list ¦ rails routes ¦ ./list-users a ¦ tool get create-user --help ¦ frob --dry-run create a
write: ./check-and-send.sh ¦ python3 fetch-and-charge.py ¦ rake validate_and_submit ¦ ./scripts/check_then_notify ¦ node fetchAndPublish.js ¦ ./validate-send ¦ bin/console app:check-and-refund ¦ ./get-order-and-pay.sh
repeatable: ./check-and-update.sh ¦ ./fetch-and-install
unknown: ./deploy test ¦ ./deploy preview ¦ ./deploy head ¦ ./deploy.sh status ¦ bash deploy.sh test ¦ ./check-and-deploy.sh ¦ ./test-and-restore.sh ¦ ./release preview
read: ./get-order.sh ¦ ./check-mail ¦ ./list-created.sh ¦ ./show-sender.sh ¦ tool get-order
write: frob --dry-run=false create a ¦ frob --dry-run=0 send a ¦ frob --dryrun=no send a ¦ npm publish --dry-run=false ¦ npm publish --dry-run false ¦ cargo publish --dry-run=false ¦ kubectl create -f x --dry-run=none ¦ helm install a b --dry-run=none ¦ helm install a b --dry-run=false
read: frob --dry-run=true create a ¦ npm publish --dry-run=true ¦ helm install a b --dry-run=server ¦ helm install a b --dry-run
unknown: ssh h 'echo job >> /var/spool/queue' ¦ ssh h 'cat > f' ¦ ssh h echo job '>>' q ¦ ssh h echo job '>q' ¦ sh -c 'echo job >> q' ¦ sh -c 'echo a>q' ¦ sh -c 'uptime && echo job &>> q' ¦ sh -c 'ls >& f' ¦ docker exec a sh -c 'echo a > f' ¦ sh -c ': > f; ls' ¦ sudo bash -c 'echo a >| /etc/f'
read: ssh h 'uptime 2>/dev/null' ¦ sh -c 'ls >/dev/null 2>&1' ¦ sh -c 'ls >&2' ¦ sh -c 'ls < f' ¦ sh -c 'ls > /dev/stderr; ls 2>&-' ¦ sh -c 'ls &>/dev/null && uptime'
repeatable: sh -c 'git push > log 2>&1'
write: sh -c 'npm publish > log'
write: sudo docker compose -f prod.yml exec -T app php artisan tinker --execute 'Mail::send()' ¦ docker compose -p x run --rm app rake newsletter:send ¦ kubectl -n prod exec deploy/api -c api -- bin/rails runner 'Invoice.send!' ¦ ssh -o StrictHostKeyChecking=no -i k u@h "sudo -u app /opt/app/bin/console app:send-mails" ¦ ssh u@h -- npm publish ¦ ssh -tt u@h 'psql app -c "update x set y=y+1"' ¦ sh -c "curl -fsS -X POST $URL -d @- < body.json" ¦ bash -c 'set -o pipefail; pg_dump a | psql b' ¦ bash -lc "source .env && twine upload dist/*"
write: /usr/bin/env python3.11 -m twine upload dist/x ¦ npx -y -p npm@10 npm publish ¦ npx semantic-release@22 ¦ pnpm dlx wrangler publish ¦ yarn dlx @changesets/cli publish ¦ npm --prefix web publish ¦ npm run deploy:publish ¦ corepack pnpm publish ¦ uvx twine upload dist/x
write: uv run twine upload dist/x ¦ pipx run twine upload dist/x ¦ poetry run twine upload dist/x ¦ bundle exec gem push a.gem ¦ mvn -B -DskipTests deploy ¦ mvn -f pom.xml clean deploy ¦ gradle :lib:publishToMavenCentral ¦ cargo +nightly publish ¦ cargo release --execute
write: goreleaser release --clean ¦ gh release create v1 --notes x ¦ gh api repos/o/r/issues -f title=x ¦ gh api --method POST /repos/o/r/dispatches ¦ glab api projects/1/issues --method POST ¦ aws --region eu sns publish --topic-arn a --message b ¦ aws ses send-raw-email --raw-message file://x ¦ aws events put-events --entries file://e ¦ aws ecs run-task --cluster c
write: gcloud --project p pubsub topics publish t --message m ¦ gcloud scheduler jobs run j ¦ gcloud workflows execute w ¦ az servicebus queue send x ¦ az storage message put -q q --content c ¦ az functionapp function invoke ¦ oci ons message publish --body x ¦ doctl apps create --spec s ¦ kubectl create job --from=cronjob/x y
write: argo submit wf.yaml ¦ tkn pipeline start p ¦ airflow dags trigger d ¦ prefect deployment run x ¦ dagster job launch -j x ¦ dbt run-operation charge ¦ temporal workflow start --type x ¦ celery -A app call tasks.send ¦ nats request svc.pay x
write: redis-cli -u redis://h XADD s '*' a b ¦ redis-cli -h h eval "return 1" 0 ¦ kafka-console-producer.sh --bootstrap-server k --topic t ¦ rpk topic produce t ¦ pulsar-client produce t -m x ¦ amqp-publish -u amqp://h -r k -b x ¦ influx write -b b 'm v=1' ¦ clickhouse-client --query "INSERT INTO t FORMAT CSV" ¦ sqlite3 db.sqlite "INSERT INTO t VALUES(1)"
write: mongosh "mongodb://h/db" --quiet --eval "db.t.insertOne({a:1})" ¦ mongoimport -c t f.json ¦ cqlsh h -e "INSERT INTO t(a) VALUES (1)" ¦ psql "$DATABASE_URL" -Atc "select nextval('s')" ¦ psql -d a -1 -f m.sql ¦ mysql a -e "INSERT INTO t VALUES(1)" ¦ wget -qO- --post-data 'x=1' http://h ¦ curl -sS https://h -d a=b ¦ curl -sS -H 'X: y' --data-raw '{}' https://h
write: curl -X POST https://h ¦ curl -sSfLO --form file=@x https://h ¦ curl --request 'POST' https://h ¦ http POST :8080/x a=b ¦ sendmail -oi -t ¦ mail -s hi x@y ¦ msmtp -a default x@y ¦ swaks --to x@y
write: slack-cli -d general hi ¦ telegram-send hi ¦ aws lambda invoke --function-name f out ¦ func azure functionapp publish x ¦ sls invoke -f x ¦ heroku run rake x ¦ flyctl machine run img ¦ ansible all -m shell -a 'x' ¦ ansible-playbook -i h s.yml
write: terraform apply -auto-approve ¦ pulumi up -y ¦ helm install a b ¦ openssl ca -in x ¦ git send-email x.patch ¦ svn commit -m x ¦ lp -d p f
read: aws s3api get-object --bucket b --key k f ¦ kubectl -n x get pods -o wide ¦ kubectl exec p -- cat /etc/hosts ¦ docker logs -f x ¦ gcloud compute instances list --filter create ¦ gh run list --workflow publish.yml ¦ psql -c 'SELECT created_at FROM t' ¦ mysql -e 'select inserted from t' ¦ git log --grep=publish
read: curl -s https://h/create?x=1 ¦ npm view publish ¦ stripe events list ¦ cat publish.sh ¦ terraform plan -out p
repeatable: git push --force ¦ docker push r/x:1 ¦ kubectl apply -k . ¦ rsync -a --delete a h:b ¦ aws s3 cp x s3://b ¦ npm ci ¦ apt-get install -y x ¦ pip install -r r.txt
`

func TestEffects(t *testing.T) {
	for line := range strings.Lines(effects) {
		want, commands, found := strings.Cut(strings.TrimSpace(line), ": ")
		if !found {
			continue
		}
		for command := range strings.SplitSeq(commands, " ¦ ") {
			argv, err := shell.Fields(command, func(name string) string { return "$" + name })
			if err != nil {
				t.Fatalf("%q: %v", command, err)
			}
			if got := classify.Read(argv); string(got.Effect) != want {
				t.Errorf("Read(%s).Effect = %q, want %q (tool %s)", command, got.Effect, want, got.Tool)
			}
		}
	}
}
