// Package policyfile reads and writes policies as YAML files.
//
// A file says for each policy what RL.POLICY SET and RL.POLICY OVERRIDE say, in the
// same words, so there is one way to write a limit:
//
//	policies:
//	  login:
//	    limits:
//	      - FIXED 1m 5 FIRST
//	      - SLIDING 1d 50
//	    retry_after: 60s
//	    reserved: 20%
//	    shadow: true
//	    disabled: false
//	    overrides:
//	      - key: office:*
//	        limits: [FIXED 1m 500 FIRST]
//	      - key: probe
//	        unlimited: true
//	        ttl: 1h
//
// A file is read whole before anything is done with it: one bad line, and nothing
// changes. Errors name the line and what would have been right.
package policyfile
