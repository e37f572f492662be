// Package browser tests the console of package console in a real browser: every screen and form, both themes, three widths, by keyboard alone,
// without script, and with a store that is slow or lost. It needs Chromium, and axe-core, which finds what people with disabilities cannot use:
// scripts/test-needs.sh installs both. It is a module of its own, so that its dependencies stay out of yours.
package browser
