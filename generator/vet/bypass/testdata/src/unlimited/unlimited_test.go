package unlimited

import "sms"

func bare(sender *sms.LimitedSender) sms.Sender { return sender.Unlimited() }
