// Package policyfile reads, compares, tests and writes policies as YAML files.
//
// A file says for each policy what RL.POLICY SET and RL.POLICY OVERRIDE say, in the
// same words, so there is one way to write a limit. It may have an owner, whose policies
// it holds, and tests:
//
//	owner: team-a
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
//	tests:
//	  - name: the sixth login is denied
//	    steps:
//	      - {at: 0s, check: login alice, times: 5, expect: allowed}
//	      - {at: 10s, check: login alice, expect: denied, retry_after: 50s}
//
// A file is read whole before anything is done with it: one bad line, and nothing
// changes. Errors name the line and what would have been right.
//
// A test is carried out by the server's own commands (commands.Local) on a table whose time
// stands still between the steps.
package policyfile
