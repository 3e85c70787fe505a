package cmd_test

import (
	"slices"
	"testing"
)

// Which fault is tried on which client. A cell is the name of a case in
// TestClients, or in brackets why there is none.
//
//	           503 twice      404              401             malformed         hang              reset            lost write         crash
//	curl       503 twice      404              401             400               hang              reset, then 200  lost write         crash
//	wget       503 twice      404              401             400               hang              reset, then 200  lost write         crash
//	git        503 twice      404              401             unknown option    hang              reset            push, reset        crash
//	ssh        closed twice   no such command  wrong key       bad option        read that hangs   closed at once   lost write         crash
//	rsync      busy twice     missing source   wrong password  unknown option    hang              closed at once   push, closed       crash
//	apt-get    503 twice      404              401             malformed source  hang              reset            [it only reads]    crash
//	npm        503 twice      404              401             malformed input   hang              reset            lost write         crash
//	pip        503 twice      404              401             malformed input   hang              reset            [it only reads]    crash
//	psql       starting twice no such table    wrong password  malformed         read that hangs   read, no answer  write, no answer   crash
//	redis-cli  loading twice  no such command  no password     wrong type        read that hangs   read, no answer  write, no answer   crash
//
// A client that the machine lacks is skipped, and so are ssh's cells with a real
// server where there is no sshd. That git push, rsync and other writes which may
// be repeated are retried after a reset is what the contract wants.
func cells() map[string][]string {
	return map[string][]string{
		"curl":      {"503 twice", "404", "401", "400", "hang", "reset, then 200", "lost write", "crash"},
		"wget":      {"503 twice", "404", "401", "400", "hang", "reset, then 200", "lost write", "crash"},
		"git":       {"503 twice", "404", "401", "unknown option", "hang", "reset", "push, reset", "crash"},
		"ssh":       {"closed twice", "no such command", "wrong key", "bad option", "read that hangs", "closed at once", "lost write", "crash"},
		"rsync":     {"busy twice", "missing source", "wrong password", "unknown option", "hang", "closed at once", "push, closed", "crash"},
		"apt-get":   {"503 twice", "404", "401", "malformed source", "hang", "reset", "", "crash"},
		"npm":       {"503 twice", "404", "401", "malformed input", "hang", "reset", "lost write", "crash"},
		"pip":       {"503 twice", "404", "401", "malformed input", "hang", "reset", "", "crash"},
		"psql":      {"starting twice", "no such table", "wrong password", "malformed", "read that hangs", "read, no answer", "write, no answer", "crash"},
		"redis-cli": {"loading twice", "no such command", "no password", "wrong type", "read that hangs", "read, no answer", "write, no answer", "crash"},
	}
}

// TestClientCells holds the table to the cases that there are.
func TestClientCells(t *testing.T) {
	for client, names := range cells() {
		for _, name := range names {
			found := slices.ContainsFunc(clientCases(), func(c clientCase) bool { return c.client == client && c.name == name })
			if name != "" && !found {
				t.Errorf("the table has %s of %s, want a case of that name", name, client)
			}
		}
	}
}
