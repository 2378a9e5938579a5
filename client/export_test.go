package client

import "time"

// SetLossTime sets how long weir must answer nothing before its silence is an outage. A test calls it before the first
// request.
func (c *Client) SetLossTime(d time.Duration) { c.lossTime = d }
