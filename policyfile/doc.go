// Package policyfile reads, compares, tests and writes policies as YAML files.
//
// A file states each policy in the words of RL.POLICY SET and RL.POLICY OVERRIDE, so that limits have one notation. It
// may name an owner of its policies, and it may have tests:
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
// A file is read and validated as a whole: one bad line means that nothing changes. Errors name the line and the
// accepted values.
//
// A test runs the server's own commands (commands.Local) on a table whose time stands still between the steps.
package policyfile
