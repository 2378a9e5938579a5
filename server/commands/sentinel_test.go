package commands

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/servertest"
)

func TestSentinel(t *testing.T) {
	f := servertest.NewFakeCluster()
	c, _ := clusterClient(t, f, "b", Config{})
	sentinel := func(id, host, flags string) string {
		return "name " + id + " ip " + host + " port 6380 runid " + id + " flags " + flags
	}
	primary := "name mymaster ip 10.0.0.1 port 6380 runid " + idA + " flags master role-reported master " +
		"config-epoch 7 num-slaves 2 num-other-sentinels 2 quorum 2"
	replica := func(host, id, flags, offset string) string {
		return "name " + host + ":6380 ip " + host + " port 6380 runid " + id + " flags " + flags +
			" role-reported slave master-link-status ok master-host 10.0.0.1 master-port 6380 slave-repl-offset " + offset
	}
	for send, want := range map[string]string{
		"GET-MASTER-ADDR-BY-NAME mymaster": "10.0.0.1 6380",
		"get-master-addr-by-name other":    "nil",
		"MASTERS":                          primary,
		"MASTER mymaster":                  primary,
		"REPLICAS mymaster": replica("10.0.0.2", idB, "slave", "41") + " " +
			replica("c.example", idC, "slave", "42"),
		"SENTINELS mymaster": sentinel(idA, "10.0.0.1", "sentinel") + " " + sentinel(idC, "c.example", "sentinel"),
		"CKQUORUM mymaster":  "OK 3 usable Sentinels. Quorum and failover authorization can be reached",
		"MYID":               idB,
		"MASTER other": "-ERR No such master with that name: name must be mymaster (--sentinel-name), " +
			"not 'other'",
	} {
		assert.Equal(t, want, c.say("SENTINEL "+send), send)
	}

	f.Change(func(t *limiter.Topology) { t.Nodes[2].Up = false })
	assert.Contains(t, c.say("SENTINEL SLAVES mymaster"), replica("c.example", idC, "slave,s_down", "42"))
	f.Lead("")
	assert.Contains(t, c.say("SENTINEL MASTER mymaster"), " flags master,s_down,o_down ")
	assert.Equal(t, "10.0.0.1 6380", c.say("SENTINEL GET-MASTER-ADDR-BY-NAME mymaster"),
		"as in Redis before a failover")
	assert.Contains(t, c.say("SENTINEL CKQUORUM mymaster"), "-CLUSTERDOWN ")
	f.Change(func(t *limiter.Topology) { t.LastLeader, t.Nodes[0].Up = "", false })
	assert.Empty(t, c.say("SENTINEL MASTERS"))
	assert.Equal(t, "nil", c.say("SENTINEL GET-MASTER-ADDR-BY-NAME mymaster"))
	assert.Contains(t, c.say("SENTINEL MASTER mymaster"), "-CLUSTERDOWN ")
	assert.Contains(t, c.say("SENTINEL CKQUORUM mymaster"), "-NOQUORUM 1 usable Sentinels. ")
}

// TestSentinelOfOne checks that a server that runs alone names itself, by the address that the client chose.
func TestSentinelOfOne(t *testing.T) {
	_, err := NewShared(silent(Config{SentinelName: "my master"}), servertest.NewTableLimiter())
	assert.ErrorContains(t, err, "must have no spaces")
	c := newTestServer(t, Config{SentinelName: "limits"}).client(t)
	assert.Equal(t, "127.0.0.1 6380", c.say("SENTINEL GET-MASTER-ADDR-BY-NAME limits"))
	assert.Contains(t, c.say("SENTINEL MASTERS"), " flags master ")
	assert.Contains(t, c.say("SENTINEL MASTERS"), " num-slaves 0 num-other-sentinels 0 quorum 1")
	assert.Empty(t, c.say("SENTINEL SENTINELS limits")+c.say("SENTINEL REPLICAS limits"))
	assert.Equal(t, "OK 1 usable Sentinels. Quorum and failover authorization can be reached",
		c.say("SENTINEL CKQUORUM limits"))
}

// TestANewPrimaryIsAnnounced checks the messages to subscribers after a change of the leader.
func TestANewPrimaryIsAnnounced(t *testing.T) {
	f := servertest.NewFakeCluster()
	c, _ := clusterClient(t, f, "b", Config{})
	srv := c.sess.srv
	c.say("SUBSCRIBE +switch-master +slave")
	known := srv.announcePrimary("")
	f.Lead("")
	known = srv.announcePrimary(known)
	assert.Empty(t, c.fake.messages(), "the leader at the start is not new, and no leader is none")
	f.Lead("c")
	known = srv.announcePrimary(known)
	said := c.fake.messages()
	assert.Contains(t, said, "\r\nmymaster 10.0.0.1 6380 c.example 6380\r\n")
	assert.Contains(t, said, "\r\nslave 10.0.0.1:6380 10.0.0.1 6380 @ mymaster c.example 6380\r\n")
	assert.Contains(t, said, "\r\nslave 10.0.0.2:6380 10.0.0.2 6380 @ mymaster c.example 6380\r\n")
	f.Lead("c")
	srv.announcePrimary(known)
	assert.Empty(t, c.fake.messages())
}
