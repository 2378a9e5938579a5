// Package format agrees with all members on the form of entries, so that nodes of different versions
// of weir form one cluster while it is upgraded.
package format
