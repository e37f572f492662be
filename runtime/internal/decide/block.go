package decide

// block is until when the claim behind it is refused.
type block struct{ until int64 }

func (b *block) Earliest(_ *Claim, now int64) int64 { return max(now, b.until) }
func (b *block) Commit(*Claim, int64, int64) int64  { return 0 }
func (b *block) Return(*Claim, int64)               {}
func (b *block) Expiry(*Rule) int64                 { return b.until }

// Start begins a block, if s is one.
func Start(s State, r *Rule, now int64) {
	s.(*block).until = now + r.Per
}
