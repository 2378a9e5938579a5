// Package browser tests the page of a server in a real Chromium, and takes the pictures of docs/images. It has no code
// besides its tests.
package browser
