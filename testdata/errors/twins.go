package x

//ratelimit:rule limit=9 per=1m name=all
type X interface {
	//ratelimit:rule key="{a}" limit=1 per=1m
	//ratelimit:rule key="{a}" limit=2 per=60s
	//          ^ this rule counts the same calls in the same window (1m) as the rule of line 5; keep the stricter one
	//ratelimit:rule key="{a}" limit=3 per=60s name=other
	//ratelimit:rule key="{a}" limit=4 per=60s algorithm=fixed-window
	M(a string) error

	//ratelimit:rule limit=1 per=1m name=all
	//          ^ this rule counts the same calls in the same window (1m) as the rule of line 3; keep the stricter one
	//ratelimit:rule limit=1 per=1m
	N() error
}

type Spelt interface {
	//ratelimit:rule key="{a + b}" limit=1 per=1m
	//ratelimit:rule key="{ a+b }" limit=2 per=1m
	//          ^ this rule counts the same calls in the same window (1m) as the rule of line 19; keep the stricter one
	//ratelimit:rule key="{b + a}" limit=2 per=1m
	Key(a, b string) error

	//ratelimit:rule limit=1 cron="@daily"
	//ratelimit:rule limit=2 cron="0 0 * * *"
	//ratelimit:rule limit=3 cron="0 0 0 * * *"
	//ratelimit:rule limit=3 cron="0 1 0 * * *"
	Cron() error
}

type Shared interface {
	//ratelimit:rule key="{user}" limit=10 per=1m when=!vip
	//ratelimit:rule key="{user}" limit=100 per=1m when=vip
	//          ^ this rule shares one count with the rule of line 33, since both are called twins.Shared.Exclusive, so each also counts what the other takes; give one of them a name of its own
	Exclusive(user string, vip bool) error

	//ratelimit:rule limit=most per=1m when="n > 5"
	//ratelimit:rule limit=100 per=1m when="n <= 5"
	//          ^ this rule shares one count with the rule of line 38, since both are called twins.Shared.Compared, so each also counts what the other takes; give one of them a name of its own
	Compared(n, most int) error

	//ratelimit:rule limit=100 per=1m when=vip
	//ratelimit:rule limit=10 per=1m
	//          ^ this rule shares one count with the rule of line 43, since both are called twins.Shared.Exception, so each also counts what the other takes; give one of them a name of its own
	Exception(vip bool) error

	//ratelimit:rule limit=100 per=1m
	//ratelimit:rule limit=10 per=1m when="a ? b : c"
	//          ^ this rule shares one count with the rule of line 48, since both are called twins.Shared.Chosen, so each also counts what the other takes; give one of them a name of its own
	Chosen(a, b, c bool) error

	//ratelimit:rule limit=100 per=1m when=a
	//ratelimit:rule limit=10 per=1m when=b
	//          ^ this rule shares one count with the rule of line 53, since both are called twins.Shared.Overlapping, so each also counts what the other takes; give one of them a name of its own
	Overlapping(a, b bool) error

	//ratelimit:rule key="{user}" limit=10 per=1m
	//ratelimit:rule key="{user}" limit=5 per=1m mode=shadow
	//          ^ this rule shares one count with the rule of line 58, since both are called twins.Shared.Shadow, so each also counts what the other takes; give one of them a name of its own
	Shadow(user string) error

	//ratelimit:rule limit=100 per=1m cost="len(items)"
	//ratelimit:rule limit=10 per=1m
	//          ^ this rule shares one count with the rule of line 63, since both are called twins.Shared.Costs, so each also counts what the other takes; give one of them a name of its own
	Costs(items []string) error

	//ratelimit:rule limit=100 per=1m distinct="{a}"
	//ratelimit:rule limit=10 per=1m distinct="{b}"
	//          ^ this rule shares one count with the rule of line 68, since both are called twins.Shared.Members, so each also counts what the other takes; give one of them a name of its own
	Members(a, b string) error

	//ratelimit:rule key="{user}" limit=10 per=1m name=all
	//ratelimit:rule key="{user}" limit=5 per=1m name=all mode=trigger
	//          ^ this rule shares one count with the rule of line 73, since both are called all, so each also counts what the other takes; give one of them a name of its own
	Named(user string) error

	//ratelimit:rule key="{user}" limit=10 per=1m
	//ratelimit:rule key="{user}" limit=5 per=1m mode=shadow name=stricter
	OtherName(user string, vip bool) error

	//ratelimit:rule key="sms:{user}" limit=10 per=1m
	//ratelimit:rule key="sms:{user}" limit=5 per=1m
	//          ^ this rule counts the same calls in the same window (1m) as the rule of line 82; keep the stricter one
	Text(user string) error

	//ratelimit:rule limit=10 cron=@daily when=!vip
	//ratelimit:rule limit=100 cron="0 0 * * *" when=vip
	OtherText(vip bool) error
}
