package server

import "crypto/tls"

// NewHTTP returns the HTTP side of s.
func NewHTTP(s *Server) *HTTP { return newHTTP(s.service, s, s.cfg.HTTPCheck) }

// NewRLS returns the rate limit service of s; a nil config is no TLS.
func NewRLS(s *Server, config *tls.Config) *RLS { return newRLS(s.service, config) }
