//go:build !unix

package server

// infoCPU omits the fields, because weir does not read the processor time of other systems.
func infoCPU(*shared, *infoWriter) {}
