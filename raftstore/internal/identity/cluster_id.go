package identity

import (
	"crypto/rand"
	"encoding/hex"
)

// ClusterIDLen is the length of a cluster's id, in bytes before they are hexadecimal.
const ClusterIDLen = 16

// NewClusterID returns a new random id.
func NewClusterID() (string, error) {
	var id [ClusterIDLen]byte
	_, err := rand.Read(id[:])
	return hex.EncodeToString(id[:]), err
}
