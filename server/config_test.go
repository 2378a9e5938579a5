package server

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/server/commands"
	"github.com/weir-project/weir/server/resp"
)

// TestAConnectionWithoutASession checks that a connection ends if its session could not be created.
func TestAConnectionWithoutASession(t *testing.T) {
	over, polite := new(conn).loop()
	require.True(t, over)
	require.True(t, polite)
}

// TestBoundsOfTheConfiguration checks each bound with a value inside and a value outside.
func TestBoundsOfTheConfiguration(t *testing.T) {
	for name, c := range map[string]struct {
		change func(c *Config)
		says   string
	}{
		"defaults":            {func(*Config) {}, ""},
		"no bound per source": {func(c *Config) { c.MaxPerSource = 0 }, ""},
		"a negative bound per source": {func(c *Config) { c.MaxPerSource = -1 },
			"per source must not be negative, and is -1"},
		"one client":       {func(c *Config) { c.MaxClients = 1 }, ""},
		"fewer":            {func(c *Config) { c.MaxClients = -1 }, "max clients must be at least 1, not -1"},
		"the least bulk":   {func(c *Config) { c.MaxBulkBytes = resp.PreAuthBulkBytes }, ""},
		"less":             {func(c *Config) { c.MaxBulkBytes = resp.PreAuthBulkBytes - 1 }, "max bulk bytes must be"},
		"the most bulk":    {func(c *Config) { c.MaxBulkBytes = LargestMaxBulkBytes }, ""},
		"more":             {func(c *Config) { c.MaxBulkBytes = LargestMaxBulkBytes + 1 }, "max bulk bytes must be"},
		"the least output": {func(c *Config) { c.MaxOutputBytes = flushBytes }, ""},
		"less output": {func(c *Config) { c.MaxOutputBytes = flushBytes - 1 },
			"max output bytes must be at least"},
		"no time to write":  {func(c *Config) { c.WriteTimeout = -1 }, "write timeout must be positive"},
		"no time to log in": {func(c *Config) { c.AuthTimeout = -1 }, "auth timeout must be positive"},
	} {
		var config Config
		c.change(&config)
		if err := completeConns(&config); c.says == "" {
			require.NoError(t, err, name)
		} else {
			require.ErrorIs(t, err, commands.ErrBadConfig, name)
			require.ErrorContains(t, err, c.says, name)
		}
	}
}
