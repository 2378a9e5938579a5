// Package rules reads the YAML configuration of envoyproxy/ratelimit and finds the limit of a descriptor in it as that
// program does. The reference is its version of January 2026. It decides nothing and counts nothing.
//
// A Config never changes, so a new one replaces it as a whole. A configuration with an error gives no Config, and the
// error names each file and descriptor.
package rules
