// Package info writes what a server tells about itself in the forms of Redis: the sections of
// INFO, and the cluster as cluster clients and programs written for replication read it. The
// leader is the primary and owns every slot; every other node is its replica. While no
// leader is known all are replicas, and their link is down.
//
// It promises that every field has the name and the format that Redis gives it, so that exporters
// and clients need no change.
//
// It leaves to others: counting (package service), and the commands that ask (package commands).
package info
