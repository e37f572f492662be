package x

//ratelimit:rule limit=9 per=1m name=all
type X interface {
	//ratelimit:rule key="{a}" limit=1 per=1m
	//ratelimit:rule key="{a}" limit=2 per=60s
	//          ^ this rule counts the same calls in the same window (1m) as the one of line 5; keep the stricter one, or give one a name
	//ratelimit:rule key="{a}" limit=3 per=60s name=other
	//ratelimit:rule key="{a}" limit=4 per=60s algorithm=fixed-window
	M(a string) error

	//ratelimit:rule limit=1 per=1m name=all
	//          ^ this rule counts the same calls in the same window (1m) as the one of line 3; keep the stricter one, or give one a name
	//ratelimit:rule limit=1 per=1m
	N() error
}

type Spelt interface {
	//ratelimit:rule key="{a + b}" limit=1 per=1m
	//ratelimit:rule key="{ a+b }" limit=2 per=1m
	//          ^ this rule counts the same calls in the same window (1m) as the one of line 19; keep the stricter one, or give one a name
	//ratelimit:rule key="{b + a}" limit=2 per=1m
	Key(a, b string) error

	//ratelimit:rule limit=1 cron="@daily"
	//ratelimit:rule limit=2 cron="0 0 * * *"
	//          ^ this rule counts the same calls in the same window (cron:0 0 * * *) as the one of line 25; keep the stricter one, or give one a name
	//ratelimit:rule limit=3 cron="0 0 0 * * *"
	//          ^ this rule counts the same calls in the same window (cron:0 0 0 * * *) as the one of line 25; keep the stricter one, or give one a name
	//ratelimit:rule limit=3 cron="0 1 0 * * *"
	Cron() error
}
