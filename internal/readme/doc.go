// Package readme tests README.md: its Go blocks are one program, which is generated for, compiled and run; what it quotes of
// the demonstration is what the demonstration prints; its table has every argument that there is. The pages of
// docs are tested like it. The package has no code.
package readme
