// Package fx stands in for the real one.
package fx

type Option any

func New(...Option) *App           { return nil }
func Provide(...any) Option        { return nil }
func Decorate(...any) Option       { return nil }
func Invoke(...any) Option         { return nil }
func Supply(...any) Option         { return nil }
func Options(...Option) Option     { return nil }
func Annotate(f any, _ ...any) any { return f }
func As(...any) any                { return nil }

type App struct{}

func (*App) Run() {}
