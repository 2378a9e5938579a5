package doctor

import (
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/weir-project/weir/certs"
)

// renewBefore is the remaining time below which a certificate should have been renewed. Automatic renewal happens
// earlier.
const renewBefore = 14 * 24 * time.Hour

// secretModes are the permission bits that let other users access a key.
const secretModes = 0o007

func (d *Subject) lookAtCertificates() (found []Finding) {
	switch store, err := d.Certificate(); {
	case err != nil:
		found = append(found, Finding{Wrong, "certificates", oneLine(err),
			"correct it: weir does not start with this certificate"})
	case store != nil:
		found = append(found,
			judgeCertificate(store, d.TLSCertFile, d.TLSKeyFile, clientHost(d.TLSListen, d.Advertise)))
	}
	switch store, err := d.NodeCertificate(); {
	case err != nil:
		found = append(found, Finding{Wrong, "certificates", oneLine(err),
			"correct it: weir does not start with this certificate"})
	case store != nil:
		found = append(found, judgeCertificate(store, d.RaftTLSCertFile, d.RaftTLSKeyFile, ""),
			judgeTrust(store, d.RaftTLSCAFile))
	}
	if len(found) == 0 {
		found = append(found, Finding{Fine, "certificates", "no port uses a certificate", ""})
	}
	return found
}

// clientHost returns the host name that clients verify in a certificate, or "" if it is not known.
func clientHost(listen, advertise string) string {
	for _, addr := range []string{advertise, listen} {
		host, _, err := net.SplitHostPort(addr)
		if ip := net.ParseIP(host); err == nil && host != "" && (ip == nil || !ip.IsUnspecified()) {
			return host
		}
	}
	return ""
}

// judgeCertificate checks a certificate with its key. host is a name that the certificate should have.
func judgeCertificate(store *certs.Store, file, key, host string) Finding {
	leaf, left := store.Leaf(), time.Until(store.Leaf().NotAfter)
	mode, err := os.Stat(key)
	switch {
	case left < 0:
		return Finding{Wrong, "certificates", fmt.Sprintf("%s expired on %s", file,
			leaf.NotAfter.Format(time.DateOnly)), "renew it; weir reads replaced files by itself"}
	case time.Until(leaf.NotBefore) > 0:
		return Finding{Wrong, "certificates", fmt.Sprintf("%s is not valid before %s", file,
			leaf.NotBefore.Format(time.DateTime)), "check the clock of this machine"}
	case host != "" && leaf.VerifyHostname(host) != nil:
		return Finding{Wrong, "certificates", fmt.Sprintf(
			"%s is for %v %v, but clients connect to %s", file, leaf.DNSNames,
			leaf.IPAddresses, host), "get a certificate for that name, or give --advertise a name that this one has"}
	case left < renewBefore:
		return Finding{Doubt, "certificates", fmt.Sprintf("%s expires on %s", file,
			leaf.NotAfter.Format(time.DateTime)), "renew it; weir reads replaced files by itself"}
	case err == nil && mode.Mode()&secretModes != 0:
		return Finding{Doubt, "certificates", key + " can be read by every user", "chmod o= " + key}
	}
	return Finding{Fine, "certificates",
		fmt.Sprintf("%s matches its key and is valid until %s", file, leaf.NotAfter.Format(time.DateOnly)), ""}
}

// judgeTrust checks whether other nodes with the same authorities would accept this node.
func judgeTrust(store *certs.Store, authorities string) Finding {
	for _, use := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		if err := store.Verify(use); err != nil {
			return Finding{Wrong, "certificates", fmt.Sprintf(
				"no authority in %s signed this node's certificate for both uses: %v", authorities, err),
				"a node is both TLS server and TLS client: have an authority in that file sign it for serverAuth and " +
					"clientAuth"}
		}
	}
	return Finding{Fine, "certificates", authorities + " verifies this node's certificate", ""}
}
