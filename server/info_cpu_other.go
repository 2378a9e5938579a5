//go:build !unix

package server

// infoCPU leaves the fields out: weir does not read the processor time of other systems.
func infoCPU(*shared, *infoWriter) {}
