package x

import "time"

type Item struct {
	SKU   string
	Price float64
	at    time.Time
}

type X interface {
	//ratelimit:rule limit=1 per=1m key="{join(map(items, .Sku), \",\")}"
	//                                                     ^ Item has no field or method Sku; did you mean SKU?
	Unknown(items []Item) error
	//ratelimit:rule limit=1 per=1m when="any(items, .Price)"
	//                                               ^ any needs a bool here; this is a float64
	NotABool(items []Item) error
	//ratelimit:rule limit=1 per=1m when="any(items, .SKU == 5)"
	//                                                    ^ == cannot be used with string and int
	Operands(items []Item) error
	//ratelimit:rule limit=1 per=1m key="{filter(items, .Price > 1)}"
	//                                    ^ a []Item has no stable text form; write one value of it
	List(items []Item) error
	//ratelimit:rule limit=1 per=1m cost="map(items, .Price)"
	//                                    ^ a number is needed here; this is a []float64
	Cost(items []Item) error
	//ratelimit:rule limit=1 per=1m when="all(items, .at > now(zone))"
	//                                                         ^ now cannot be used with a string
	Argument(items []Item, zone string) error
	//ratelimit:rule limit=1 per=1m when="name matches \"(\""
	//                                                 ^ error parsing regexp: missing closing ): `(`
	Pattern(name string) error
	//ratelimit:rule limit=1 per=1m when="fliter(items, true) != nil"
	//                                    ^ unknown function fliter; did you mean filter?
	Misspelt(items []Item) error
	//ratelimit:rule limit=1 per=1m when="count(items, .SKU == nope) > 1"
	//                                                         ^ unknown name nope; the parameter is items
	Inside(items []Item) error
}
