// Package readme has tests of README.md and of the pages of docs, and no other code. The tests generate from the Go blocks and compile
// them, run the console blocks, and follow the links.
package readme
