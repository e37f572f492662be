// Package readme tests README.md and the pages of docs: their Go blocks are generated for and compiled, their console blocks
// are run, their links lead somewhere. The package has no code.
package readme
