package ratelimit

import (
	"time"

	"github.com/ratelimit-go/ratelimit/internal/period"
)

// maxLease is the longest lease. Useful ones are far shorter.
const maxLease = time.Minute

// checkLease returns an error if the rule has a Lease and permits taken ahead would change what the rule means.
func (r Rule) checkLease() error {
	switch {
	case r.Lease == 0:
	case r.Lease < 0 || r.Lease > maxLease || r.Lease%time.Microsecond != 0:
		return r.wrong("lease", "found %s; expected whole microseconds, up to %s", period.Format(r.Lease), period.Format(maxLease))
	case !r.takes("lease"):
		return r.checkTakes("lease", true)
	case r.Wait > 0:
		return r.wrong("lease", "found wait as well; a call does not wait for permits that are taken ahead")
	case r.Distinct != "":
		return r.wrong("lease", "found distinct as well; members cannot be taken ahead")
	case r.Block > 0:
		return r.wrong("lease", "found block as well; a refusal in this process would block nobody elsewhere")
	case r.Mode != ModeEnforce:
		return r.wrong("lease", "found mode=%s, which needs the count of all", r.Mode)
	case r.Prepay || r.Warmup > 0:
		return r.wrong("lease", "found prepay or warmup as well; expected a bucket without debts")
	case r.Scope == ScopeInstance:
		return r.wrong("lease", "found scope=instance, which counts in this process anyway")
	}
	return nil
}
