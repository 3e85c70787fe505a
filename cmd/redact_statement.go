package cmd

import "strings"

// statement is the password of a statement in SQL whose word for it begins at i:
//
//	CREATE USER u IDENTIFIED [WITH plugin] BY 'VALUE'
//	ALTER ROLE r PASSWORD 'VALUE'
//
// Servers and clients print the statement that failed. In small letters it may be
// a sentence: without quotes, or without a user.
func statement(s string, i int) span {
	if strings.HasPrefix(s[i:], "PASSWORD(") {
		return quotedAt(s, i+len("PASSWORD("))
	}
	if from := skipWord(s, i, "password"); from > i {
		return quotedAt(s, from)
	}
	from := skipWord(s, i, "identified")
	if from == i {
		return span{}
	}
	if plugin := skipWord(s, from, "with"); plugin > from {
		from = skipSpaces(s, plugin+len(wordAt(s, plugin)))
	}
	by := skipWord(s, from, "by")
	switch {
	case by == from:
		return span{}
	case by < len(s) && isQuote(s[by]):
		if s[i] == 'I' || strings.Contains(s[max(0, i-longestFlag):i], "user ") {
			return quotedAt(s, by)
		}
		return span{}
	case s[i] != 'I' || skipWord(s, by, "password") > by:
		return span{}
	}
	return value(s, by)
}

// skipWord returns where the text goes on behind a word at i, in any case, and
// its blanks, and i if it is another word.
func skipWord(s string, i int, word string) int {
	end := i + len(word)
	if end >= len(s) || s[end] != ' ' || !strings.EqualFold(s[i:end], word) {
		return i
	}
	return skipSpaces(s, end)
}

// quotedAt is what stands in quotes at i, if they close in the same line.
func quotedAt(s string, i int) span {
	if i >= len(s) || !isQuote(s[i]) {
		return span{}
	}
	rest := s[i+1 : min(len(s), i+longestPipe)]
	n := strings.IndexByte(rest, s[i])
	if n < 0 || strings.Contains(rest[:n], "\n") {
		return span{}
	}
	return span{i + 1, i + 1 + n}
}
