// Package generator generates wrappers and guards of annotated types. [Generate] reads Go source and returns the generated files. [Check]
// compares them with the files on the disk, and [Write] replaces the files that differ. The package knows nothing of flags and
// terminals.
//
// # The pipeline
//
// Each stage is a function that returns values and diagnostics. It does not call another stage: package pipeline passes the values
// on, for [Generate] and for ratelimit vet, which loads packages itself. Only compile changes its argument: it completes the model. One
// package goes through all stages before the next one is parsed, so that only one is in memory at a time.
//
//	patterns
//	   |  load      finds files with directives and asks the go command about their packages; parses and type-checks one
//	   v            package after the other
//	source.Package  syntax and types
//	   |  collect   reads the directives of types and methods, chooses the names of the generated code, resolves fallbacks
//	   v
//	model.Package   annotated types, their methods and rules, with positions
//	   |  compile   compiles the expressions of each rule for each method that it limits, with package expr
//	   v
//	model.Package   with the code of the expressions
//	   |- doubt     finds valid rules that have no effect or probably do not do what was meant; at the end it compares the
//	   |            rules of all packages
//	   |  emit      generates a Go file for each annotated file, unless a stage has found errors
//	   v
//	files           for Write and Check, after the Loader has type-checked them with the source of the runtime: an error stands at
//	                the directive
//
// Load knows no directives. Before it type-checks a package, it asks collect which names will be generated, and which imports the
// directives name.
//
// Below the stages are annotations (the syntax of directives), reach (what generated code can refer to), names (identifiers and
// imports of a file) and expr (expressions as Go code). Besides compile, doubt asks expr about a text that it is going to suggest.
// Besides load, collect reads a file of a dependency: whether rules stand on a type that an annotated one embeds is seen only there.
// ratelimit.Rule.Problems decides which rules are valid.
//
// # Where do I change X
//
//	an argument of a directive             annotations/spec.go; CONTRIBUTING.md lists the other places
//	how a value is written                 annotations/scan.go, value.go, template.go
//	what looks like a directive            annotations/nearmiss.go
//	where a directive may stand            annotations/spec.go, stray.go, internal/collect/wrapper.go, method.go
//	how messages are sorted and printed    annotations/diagnostic.go
//	which files are read                   internal/load/find.go
//	how much of a dependency is checked    internal/load/demand.go
//	under which builds code is generated   builds.go, internal/load/build.go, internal/collect/part.go
//	how generated code is checked          internal/load/compile.go, internal/pipeline/check.go
//	which types can be wrapped             internal/collect/wrapper.go, concrete.go, fields.go, foreign.go
//	which parameter is the context         internal/expr/context.go
//	what a fallback may be                 internal/collect/fallback.go
//	what generated code can refer to       internal/reach
//	what an expression may contain         internal/expr
//	which functions an expression has      internal/expr/function.go
//	a warning about rules                  internal/doubt
//	the text of a wrapper                  internal/emit/wrapper.go, limit.go, call.go, writer.go, charge.go, settle.go
//	the text of a guard                    internal/emit/guard.go
//	the rules in generated code            internal/emit/rules.go
//	keys and messages in generated code    internal/emit/template.go
//	doc comments in generated code         internal/emit/doc.go, phrase.go
//	names of variables and imports         internal/names, internal/emit/plan.go
//	what -list shows                       list.go, internal/rulelist/of.go
//	how a file is replaced                 write.go
package generator
