package identity

import (
	"crypto/rand"
	"encoding/hex"
)

// ClusterIDLen is the number of random bytes in a cluster id, which is written in hexadecimal.
const ClusterIDLen = 16

// NewClusterID returns a new random id.
func NewClusterID() (string, error) {
	var id [ClusterIDLen]byte
	_, err := rand.Read(id[:])
	return hex.EncodeToString(id[:]), err
}
