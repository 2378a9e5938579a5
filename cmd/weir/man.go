package main

// manFoot ends the man page of weir.
const manFoot = `.SH FILES
.TP
.I /etc/weir/weir.yaml
The configuration of the service that the packages of Linux install. Keys are flags of
.BR weir\-serve (1).
.SH SEE ALSO
.B weir help
explains the commands that clients send.
`
