// Command onpurpose excuses a bypass with a reason.
package main

import (
	"login"
	"sms"
)

func main() {
	login.New(sms.NewGateway("")) //ratelimit:bare operators are not limited
	login.New(
		sms.NewGateway(""), //ratelimit:bare operators are not limited
	)
	login.New(sms.NewGateway("")) /* want `\*sms.Gateway is used` */ //ratelimit:bare
	//ratelimit:bare a line of its own excuses nothing
	login.New(sms.NewGateway("")) // want `\*sms.Gateway is used`
}
