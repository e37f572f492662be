// Package simulate runs a load of calls against rules. A limiter in this process decides each call in virtual time, so the simulation
// of a day takes only as long as the decisions. The result counts calls by rule and key, and can be printed as a table or drawn as an
// SVG.
//
// A comparison decides each call by two lists of rules, and counts the calls that they decide differently.
//
// Calls wait in virtual time if their rules have wait=. Waiting calls never give up, and charges are not refunded or settled.
//
// The package reads neither directives nor flags.
package simulate
