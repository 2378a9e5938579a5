package acl

import (
	"crypto/x509"
	"fmt"
	"strings"

	"github.com/weir-project/weir/internal/quote"
)

// certRule begins the rule with a name in the certificates of a user.
const certRule = "san:"

// addCertName applies the rule san:<name>.
func (u *User) addCertName(rule string) error {
	name := strings.TrimPrefix(rule, certRule)
	if name == "" || len(name) > maxCertNameBytes || strings.Contains(name, "*") {
		return fmt.Errorf("rule %s must be san: and a DNS name or URI of 1 to %d bytes without *",
			quote.Text([]byte(rule)), maxCertNameBytes)
	}
	u.certNames = append(u.certNames, certName(name))
	u.Rules = append(u.Rules, rule)
	return nil
}

// certName returns the form in which names are compared: DNS names have no case, URIs have.
func certName(name string) string {
	if isURI(name) {
		return name
	}
	return strings.ToLower(name)
}

func isURI(name string) bool { return strings.Contains(name, "://") }

// certify adds the names in the certificates of u. It fails if another user has one of them.
func (u *Users) certify(added *User) error {
	for _, name := range added.certNames {
		if other := u.byCert[name]; other != nil && other != added {
			return fmt.Errorf("users %q and %q have the same rule %s%s", other.Name, added.Name, certRule, name)
		}
		u.byCert[name] = added
	}
	return nil
}

// HaveCertificates reports whether a rule san: names a user.
func (u *Users) HaveCertificates() bool { return len(u.byCert) > 0 }

// OfCertificate returns the user whom a verified certificate logs in, by a DNS name or a URI among its subject
// alternative names. It returns nil for a nil certificate, without such a user, if the user is off, or if the names are
// of several users.
func (u *Users) OfCertificate(cert *x509.Certificate) (found *User) {
	if cert == nil {
		return nil
	}
	var names []string
	for _, name := range cert.DNSNames {
		if !isURI(name) { // an authority may constrain the URIs of another one, and not its DNS names
			names = append(names, name)
		}
	}
	for _, uri := range cert.URIs {
		if name := uri.String(); isURI(name) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		one := u.byCert[certName(name)]
		if one != nil && found != nil && one != found {
			return nil
		}
		if one != nil {
			found = one
		}
	}
	if found == nil || !found.on {
		return nil
	}
	return found
}
