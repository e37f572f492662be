// Package simulate tells what rules would do with a load. A limiter in this process decides each call of the load in virtual
// time, so a day takes no longer than its calls take to decide. The outcome is counted by rule and key, and can be printed as a
// table and drawn as an SVG.
//
// Calls wait in virtual time where their rules say so. Nobody gives up, and no charge is given back or settled.
//
// The package reads neither directives nor flags.
package simulate
