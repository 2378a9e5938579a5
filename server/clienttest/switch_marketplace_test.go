package clienttest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// marketplace has the functions that the services in the marketplace's document call before an action. It uses weir
// through a standard Redis client and an address only.
type marketplace struct{ weir *redis.Client }

// limit sends a decision, and returns whether it is admitted. wait is the retry time of a denial, or the delay of an
// admission.
func (m marketplace) limit(ctx context.Context, line string) (allowed bool, wait time.Duration, err error) {
	answer, err := m.weir.Do(ctx, anys(strings.Fields(line))...).Slice()
	if err != nil {
		return false, 0, err
	}
	return answer[0].(int64) == 1, time.Duration(answer[2].(int64)) * time.Millisecond, nil
}

// login answers an attempt to log in. hold is how long the service delays the answer.
func (m marketplace) login(ctx context.Context, ip, user string, right bool) (answer string,
	hold time.Duration, err error) {
	strike := "RL.STRIKE login:" + user + lockout
	if allowed, wait, err := m.limit(ctx, fmt.Sprintf("RL.CHECK edge-auth %s auth %s", ip, ip)); !allowed {
		return "too many requests", wait, err
	}
	if allowed, wait, err := m.limit(ctx, strike+" COST 0"); !allowed {
		return "locked", wait, err
	}
	if right {
		return "welcome", 0, m.weir.Do(ctx, "RL.RESET", "login:"+user).Err()
	}
	_, hold, err = m.limit(ctx, strike)
	return "wrong", hold, err
}

// createDeal begins a deal, or returns the reason why it may not begin.
func (m marketplace) createDeal(ctx context.Context, advertiser, channel, deal string) (string, error) {
	slots := "deals:" + advertiser
	allowed, _, err := m.limit(ctx, fmt.Sprintf("RL.ACQUIRE %s 10 0 HOLDER %s", slots, deal))
	if err != nil || !allowed {
		return "MAX_ACTIVE_DEALS", err
	}
	allowed, _, err = m.limit(
		ctx, fmt.Sprintf("RL.CHECK global %s deals-write %s channel-deals %s", advertiser, advertiser, channel))
	if err != nil || !allowed {
		return "limited", m.endDeal(ctx, advertiser, deal)
	}
	return "created", nil
}

func (m marketplace) endDeal(ctx context.Context, advertiser, deal string) error {
	return m.weir.Do(ctx, "RL.RELEASE", "deals:"+advertiser, deal).Err()
}

// TestMarketplaceIsSwitchedOver runs the calls of the marketplace's services with weir in place of Redis.
func TestMarketplaceIsSwitchedOver(t *testing.T) {
	s := startSystem(t, "marketplace.yaml")
	m := marketplace{redis.NewClient(&redis.Options{Addr: s.addr})} // the changed address
	t.Cleanup(func() { _ = m.weir.Close() })
	ctx := t.Context()

	s.run("an attack on a password", func() { // from many addresses, after the delay of each answer
		for try, waitSec := range []int{0, 0, 0, 2, 2, 5, 5, 5, 5, 5, 900} {
			answer, hold, err := m.login(ctx, fmt.Sprintf("192.0.2.%d", try), "42", false)
			require.NoError(s.t, err)
			require.Equal(s.t, "wrong", answer)
			require.Equal(s.t, time.Duration(waitSec)*time.Second, hold, "try %d", try+1)
			if try < 10 {
				s.pass(hold)
			}
		}
		answer, wait, err := m.login(ctx, "192.0.2.77", "42", true)
		require.NoError(s.t, err)
		require.Equal(s.t, "locked", answer, "even with the right password")
		s.pass(wait)
		answer, _, err = m.login(ctx, "192.0.2.77", "42", true)
		require.NoError(s.t, err)
		require.Equal(s.t, "welcome", answer)
	})
	s.run("an attack from one address", func() { // against different users
		var answers []string
		for user := range 5 {
			answer, _, err := m.login(ctx, "192.0.2.200", fmt.Sprintf("victim%d", user), false)
			require.NoError(s.t, err)
			answers = append(answers, answer)
		}
		require.Equal(s.t, []string{"wrong", "wrong", "wrong", "too many requests", "too many requests"}, answers)
	})
	s.run("deals", func() {
		create := func(advertiser, channel, deal string) string {
			answer, err := m.createDeal(ctx, advertiser, channel, deal)
			require.NoError(s.t, err)
			return answer
		}
		for i := range 10 { // each of two channels admits five a day
			require.Equal(s.t, "created", create("7", fmt.Sprintf("c%d", i%2), fmt.Sprintf("d%d", i)))
			s.pass(3 * time.Second)
		}
		require.Equal(s.t, "MAX_ACTIVE_DEALS", create("7", "c2", "d10"))
		require.NoError(s.t, m.endDeal(ctx, "7", "d0"))
		require.Equal(s.t, "limited", create("7", "c0", "d10"), "the channel has had its five")
		require.Equal(s.t, "created", create("7", "c2", "d10"), "the slot was given back")
	})
	s.run("messages and calls", func() { // they leave at the rate that the other API accepts
		for message := range 120 {
			second := message / 40
			allowed, hold, err := m.limit(ctx, fmt.Sprintf("RL.CHECK bot all bot-chat chat%d", message%40))
			require.NoError(s.t, err)
			require.True(s.t, allowed)
			turn := time.Duration(second)*time.Second + hold
			require.InDelta(s.t, time.Duration(message)*time.Second/30, turn, float64(time.Millisecond))
			if message%40 == 39 {
				s.pass(time.Second)
			}
		}
		for call := range 25 {
			allowed, hold, err := m.limit(ctx, "RL.CHECK chain-api basic")
			require.NoError(s.t, err)
			require.True(s.t, allowed)
			require.Equal(s.t, time.Duration(call)*100*time.Millisecond, hold)
		}
	})
}
