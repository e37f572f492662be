// Package generator writes the wrappers of annotated types. [Generate] reads sources and touches no file; [Write] and [Check]
// are the only ones to use the disk otherwise. Flags and terminals are not known here.
//
// # The pipeline
//
// Each stage is a function from values to values and diagnostics. No stage calls another one, and none changes what it gets:
// generator.go hands the values on. One package goes through all stages before the next one is parsed, so that memory holds one at
// a time.
//
//	patterns
//	   |  load      finds files with directives and asks the go command about their packages; parses and type-checks one
//	   v            package after the other
//	source.Package  syntax, types, and a types.Importer that loads more of the dependencies when it is asked
//	   |  collect   reads the directives of types and methods, names what is generated, resolves fallbacks
//	   v
//	model.Package   annotated types, their methods and rules: data with positions
//	   |  compile   compiles the expressions of each rule for each method that it limits, with package expr
//	   v
//	model.Package   with the code of the expressions
//	   |- check     finds rules that are valid by themselves and do not do what they seem to; in the end it compares the
//	   |            rules of all packages
//	   |  emit      writes a Go file for each annotated one, unless a stage has found errors
//	   v
//	files           for Write and Check
//
// Each stage also returns diagnostics: generator.go collects them.
//
// Below all stages are annotations (the language), reach (what generated code may name where it stands), names (identifiers and
// imports of a file) and expr (an expression as Go). What a valid rule is, ratelimit.Rule.Problems says.
//
// # Where do I change X
//
//	an argument of a directive             annotations/spec.go, and its field in ratelimit.Rule
//	how a value is written                 annotations/value.go, template.go
//	what is a near miss of a directive     annotations/nearmiss.go
//	where a directive may stand            annotations/stray.go, internal/collect/method.go
//	which files are read                   internal/load/find.go
//	how much of a dependency is checked    internal/load/demand.go
//	which types can be wrapped             internal/collect/wrapper.go, concrete.go, fields.go, foreign.go
//	which parameter is the context         internal/expr/context.go
//	what a fallback may be                 internal/collect/fallback.go
//	what generated code may name           internal/reach
//	what an expression may say             internal/expr
//	which functions an expression has      internal/expr/function.go
//	a warning about rules                  internal/check
//	the text of a wrapper                  internal/emit/wrapper.go, body.go, charge.go, settle.go
//	doc comments in generated code         internal/emit/doc.go, phrase.go
//	names of variables and imports         internal/names, internal/emit/plan.go
//	what -list shows                       list.go, list_settings.go
//	how a file is replaced                 write.go
package generator
