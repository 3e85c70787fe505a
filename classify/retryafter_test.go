package classify

import (
	"testing"
	"time"
)

func TestStatedWait(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, tc := range []struct {
		text string
		want time.Duration
	}{
		{"Retry-After: 30", 30 * time.Second},
		{"< retry-after: 30\r", 30 * time.Second},
		{"'Retry-After': '30',", 30 * time.Second},
		{"retry-after-ms: 1500", 1500 * time.Millisecond},
		{"Retry-After: Fri, 02 Jan 2026 03:05:05 GMT", time.Minute},
		{"Date: Thu, 01 Jan 2026 00:00:00 GMT\nRetry-After: Thu, 01 Jan 2026 00:01:30 GMT", 90 * time.Second},
		{"Retry-After: Fri, 02 Jan 2026 03:04:04 GMT", 0},
		{`{"retry_after": 12.5}`, 12500 * time.Millisecond},
		{`{"retry_after_ms": 250}`, 250 * time.Millisecond},
		{`"retryDelay": "34.074s"`, 34074 * time.Millisecond},
		{"Please try again in 18.6s.", 18600 * time.Millisecond},
		{"Please try again in 20ms.", 20 * time.Millisecond},
		{"try again in 6m0s", 6 * time.Minute},
		{"try again in 1 hour and 5 minutes", 65 * time.Minute},
		{"Please retry after 30 seconds.", 30 * time.Second},
		{"exceeded the limit. Please try again after '6' seconds.", 6 * time.Second},
		{"Please retry your request in 2 minutes", 2 * time.Minute},
		{"Please wait 45 seconds before retrying", 45 * time.Second},
		{"Rate limit resets in 90 seconds", 90 * time.Second},
		{"Request was throttled. Expected available in 17 seconds.", 17 * time.Second},
		{"Rate limit reached. Expected time to availability: 1200s.", 20 * time.Minute},
		{"the report will be available in 3 days", 0},
		{"A wait of 23 seconds is required", 23 * time.Second},
		{"FLOOD_WAIT_23", 23 * time.Second},
		{"retry after 2026-01-02 03:05:05 UTC", time.Minute},
		{"try again in 10s\ntry again in 20s", 20 * time.Second},
		{"\x1b[31mtry again in 7s\x1b[0m", 7 * time.Second},
		{"try again in 1,200 seconds", 20 * time.Minute},
		{"try again in 1,234,567.5 ms", 1234567500 * time.Microsecond},
		{"try again in 18,6 seconds", 18600 * time.Millisecond},
		{"try again in 0,500 seconds", 500 * time.Millisecond},
		{"the service will be available again in 2 minutes", 2 * time.Minute},
		{"your quota resets again in 90 seconds", 90 * time.Second},
		{"WARNING: your license expires in 20 days", 0},
		{"Certificate expires in 45 days", 0},
		{"cache expires in 2h", 0},
		{"the report will be available in 3 days", 0},
		{"retry_delay=600", 0},
		{"retry_delay=600s", 0},
		{`"retry_delay": 600`, 0},
		{"Retrying in 35 seconds", 0},
		{"Warning: Problem : HTTP error. Will retry in 1 seconds. 2 retries left.", 0},
		{"we will retry after 5 seconds", 0},
		{"waiting 10s for the server", 0},
		{"timeout: 30s", 0},
		{"Retry-After: 0", 0},
		{"Retry-After: -5", 0},
		{"Retry-After: soon", 0},
		{"try again in 99999999999999999999 hours", 366 * 24 * time.Hour},
		{"", 0},
	} {
		t.Run(tc.text, func(t *testing.T) {
			got, ok := statedWait(newText(clean([]byte(tc.text))), now)
			if got != tc.want || ok != (tc.want > 0) {
				t.Errorf("statedWait(%q) = %v, %t, want %v", tc.text, got, ok, tc.want)
			}
		})
	}
}

func TestStatedWaitWithoutAClock(t *testing.T) {
	if got, ok := statedWait(newText("Retry-After: Fri, 02 Jan 2026 03:05:05 GMT"), time.Time{}); ok {
		t.Errorf("statedWait(a date, zero now) = %v, want none", got)
	}
}
