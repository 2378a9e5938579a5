package persistence

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/engine/hashslot"
	"github.com/weir-project/weir/limiter"
)

// tierState is the tables of a cluster with several groups.
type tierState struct {
	t      *testing.T
	at     engine.Stamp
	tables []*engine.Table
}

// decide carries out operations in the groups that own their slots, or in all groups.
func (s *tierState) decide(ops ...engine.Op) {
	s.t.Helper()
	for _, op := range ops {
		for g, table := range s.tables {
			if !op.Slotless() && g != hashslot.Group(engine.SlotOf(op.Key), len(s.tables)) {
				continue
			}
			out := make([]engine.Decision, 1)
			table.Decide(s.at, []engine.Op{op}, out)
			require.Equal(s.t, engine.OK, out[0].Status, "%+v", op)
		}
	}
}

// busyTier returns groups with each kind of state on many slots.
func busyTier(t *testing.T, groups int) *tierState {
	s := &tierState{t: t, at: engine.Stamp{NowNs: noon}}
	for range groups {
		s.tables = append(s.tables, engine.NewTable(engine.Options{TrackChanges: true}))
	}
	terms := &engine.Policy{
		Limits: []engine.PolicyLimit{{Limit: engine.Limit{Algorithm: engine.FixedWindow, Mode: engine.Forever,
			Max: 1000}}},
		Overrides: []engine.Override{{Pattern: "vip:*", UntilNs: engine.Never}},
	}
	s.decide(
		engine.Op{Code: engine.OpPolicy, Key: []byte("user"), Policy: &engine.PolicyChange{Terms: terms}},
		engine.Op{Code: engine.OpPolicy, Key: []byte("org"), Policy: &engine.PolicyChange{Terms: terms}},
		engine.Op{Code: engine.OpBlockEverywhere, Key: []byte("ip:10.0.0.1"), TTLNs: engine.Never,
			Text: []byte("abuse")},
		engine.Op{Code: engine.OpBlockEverywhere, Key: []byte("ip:10.0.0.2"), TTLNs: int64(time.Hour)},
	)
	for i := range 32 {
		tag := fmt.Sprintf("{%d}", i)
		for _, op := range takes(noon) {
			op.Key = append([]byte(tag), op.Key...)
			s.decide(op)
		}
		key := []byte(tag + "key")
		s.decide(
			engine.Op{Code: engine.OpCheck, Text: []byte("user"), Key: key, Cost: 4},
			engine.Op{Key: []byte(tag + "once"), ID: []byte("id"), Cost: 1, Limit: terms.Limits[0].Limit},
			engine.Op{Code: engine.OpReserve, Text: []byte("user"), Key: key, Cost: 5, ID: []byte(tag + "open"),
				TTLNs: int64(time.Hour), Also: []engine.Pair{{Policy: []byte("org"), Key: []byte(tag + "org")}}},
			engine.Op{Code: engine.OpReserve, Text: []byte("user"), Key: key, Cost: 5, ID: []byte(tag + "done"),
				TTLNs: int64(time.Hour)},
			engine.Op{Code: engine.OpCommit, Key: []byte(tag + "done"), Cost: 2},
		)
	}
	return s
}

// backup returns a backup of all groups, which ends at different log entries.
func (s *tierState) backup() []byte {
	s.t.Helper()
	var parts []*limiter.Backup
	for g, table := range s.tables {
		parts = append(parts, s.group(table, uint64(100+g)))
	}
	whole := parts[0]
	if len(parts) > 1 {
		var err error
		whole, err = JoinBackups(parts)
		require.NoError(s.t, err)
	}
	all, err := io.ReadAll(whole)
	require.NoError(s.t, err)
	require.EqualValues(s.t, whole.Bytes, len(all))
	require.NoError(s.t, whole.Close())
	return all
}

func (s *tierState) group(table *engine.Table, index uint64) *limiter.Backup {
	images := mustOpenImages(s.t, vfs.NewMem())
	table.Renew(0, 1<<30)
	require.NoError(s.t, table.Drain(chunkEntries, images.Write))
	info := seal(s.t, images, index)
	stream, _, err := images.Send(info.ID)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { require.NoError(s.t, images.Close()) })
	return NewBackup(stream, info.Bytes, Contents{Index: index, Term: 1, IDLifetimeNs: int64(time.Hour),
		At: Record{LimiterNs: s.at.NowNs, WallNs: noon, OffsetNs: s.at.WallOffsetNs}})
}

// entries returns all entries of a table by their storage keys.
func entries(t *testing.T, table *engine.Table) map[string]string {
	all := map[string]string{}
	table.Renew(0, 1<<30)
	require.NoError(t, table.Drain(chunkEntries, func(chunk []engine.Change) error {
		for _, c := range chunk {
			if delete(all, string(c.Key)); len(c.Value) > 0 {
				all[string(c.Key)] = string(c.Value)
			}
		}
		return nil
	}))
	return all
}

// restoredTier is what a restore into some groups gives each of them.
func restoredTier(t *testing.T, backup []byte, groups int, endHolds bool) (got []map[string]string, err error) {
	fs := vfs.NewMem()
	require.NoError(t, fs.MkdirAll(dataDir, 0o700))
	o := StoreOptions{Dir: dataDir, FS: fs, Logger: quiet, OnFatal: mustNotStop(t)}
	_, err = RestoreTo(o, bytes.NewReader(backup), "LAST", func(into string, b *Unpacked) error {
		b.EndHolds = endHolds
		for g := range groups {
			table := engine.NewTable(engine.Options{TrackChanges: true})
			at := b.Within(hashslot.OfGroup(g, groups)).At
			err := b.Entries(hashslot.OfGroup(g, groups), func(chunk []engine.Change) error {
				_, err := table.Load(engine.Stamp{NowNs: at.LimiterNs}, chunk)
				return err
			})
			if err != nil {
				return err
			}
			got = append(got, entries(t, table))
		}
		require.NoError(t, fs.MkdirAll(into, 0o700))
		writeFile(t, fs, fs.PathJoin(into, "LAST"), nil)
		return nil
	})
	if err != nil {
		require.Empty(t, files(t, fs, dataDir), "a failed restore must leave nothing")
	}
	return got, err
}

// split divides entries into those that every group has, and the others.
func split(t *testing.T, all map[string]string) (common, own map[string]string) {
	common, own = map[string]string{}, map[string]string{}
	for key, value := range all {
		at, err := engine.PlacementOf(engine.Change{Key: []byte(key), Value: []byte(value)})
		require.NoError(t, err)
		if at.Policy || at.BlockEverywhere {
			common[key] = value
		} else {
			own[key] = value
		}
	}
	return common, own
}

// TestABackupOfGroupsIsRestoredBySlot checks that every entry of every kind arrives with its value, in the group that
// owns its slot, whatever the numbers of groups are. Every group gets all policies and blocks everywhere.
func TestABackupOfGroupsIsRestoredBySlot(t *testing.T) {
	for _, from := range []int{1, 2, 4, 16} {
		s := busyTier(t, from)
		wantCommon, wantOwn := split(t, entries(t, s.tables[0]))
		for _, table := range s.tables[1:] {
			_, own := split(t, entries(t, table))
			maps.Copy(wantOwn, own)
		}
		kinds := map[byte]bool{}
		for key := range wantOwn {
			kinds[key[0]] = true
		}
		require.Len(t, kinds, 5, "limiters, blocks, tokens, holds, allocations")
		require.Len(t, wantCommon, 4)
		backup := s.backup()
		for _, to := range []int{1, 2, 4, 16} {
			got, err := restoredTier(t, backup, to, false)
			require.NoError(t, err)
			own := map[string]string{}
			for g, all := range got {
				common, mine := split(t, all)
				require.Equal(t, wantCommon, common, "group %d of %d from %d", g, to, from)
				for key, value := range mine {
					at, err := engine.PlacementOf(engine.Change{Key: []byte(key), Value: []byte(value)})
					require.NoError(t, err)
					require.Equal(t, g, hashslot.Group(at.Slot, to), "%q", key)
					own[key] = value
				}
			}
			require.Equal(t, wantOwn, own, "%d groups into %d", from, to)
		}
	}
}

// TestWhatGroupsDisagreeAbout checks that the policies of the first group, and the block everywhere that the group of
// its key has, are restored. A change of them was under way between two groups.
func TestWhatGroupsDisagreeAbout(t *testing.T) {
	s := busyTier(t, 2)
	blocked := engine.Op{Code: engine.OpBlockEverywhere, TTLNs: engine.Never}
	for g := 0; g < 2; g++ { // one block that only its own group has, and one that only the other group has
		blocked.Key = []byte(fmt.Sprint("alone", g))
		home := hashslot.Group(engine.SlotOf(blocked.Key), 2)
		one := &tierState{t: t, at: s.at, tables: s.tables[(home+g)%2:][:1]}
		one.decide(blocked)
	}
	one := &tierState{t: t, at: s.at, tables: s.tables[1:]}
	one.decide(engine.Op{Code: engine.OpPolicy, Key: []byte("user"),
		Policy: &engine.PolicyChange{Do: engine.PolicyDelete}})
	got, err := restoredTier(t, s.backup(), 4, false)
	require.NoError(t, err)
	for _, all := range got {
		require.Contains(t, all, "puser")
		require.Contains(t, all, "balone0")
		require.NotContains(t, all, "balone1")
	}
}

// TestAHoldAcrossGroups checks that a hold whose id and key would be in different groups is named and refused, or ended
// if the operator says so. All other entries then arrive.
func TestAHoldAcrossGroups(t *testing.T) {
	s := busyTier(t, 1)
	s.decide(engine.Op{Code: engine.OpReserve, Text: []byte("user"), Key: []byte("foo"), Cost: 5, ID: []byte("bar"),
		TTLNs: int64(time.Hour)}) // slots 12182 and 5061
	_, err := restoredTier(t, s.backup(), 2, false)
	require.ErrorIs(t, err, ErrSplitHold)
	require.ErrorContains(t, err, `hold "bar"`)
	want := entries(t, s.tables[0])
	got, err := restoredTier(t, s.backup(), 1, false)
	require.NoError(t, err)
	require.Equal(t, want, got[0])
	got, err = restoredTier(t, s.backup(), 2, true)
	require.NoError(t, err)
	delete(want, "hbar")
	maps.Copy(got[0], got[1])
	require.Equal(t, want, got[0])

	s.decide(engine.Op{Code: engine.OpCommit, Key: []byte("bar"), Cost: 2})
	want = entries(t, s.tables[0])
	got, err = restoredTier(t, s.backup(), 2, false)
	require.NoError(t, err, "a completed hold changes no limiter any more")
	maps.Copy(got[0], got[1])
	require.Equal(t, want, got[0])
}

// TestClocksOfGroups checks that a group which gets the keys of one group goes on with its clock, and one that gets the
// keys of several groups with the latest of their clocks.
func TestClocksOfGroups(t *testing.T) {
	s := busyTier(t, 2)
	first := s.group(s.tables[0], 1)
	s.at.NowNs += int64(time.Minute)
	joined, err := JoinBackups([]*limiter.Backup{first, s.group(s.tables[1], 2)})
	require.NoError(t, err)
	o := StoreOptions{Dir: dataDir, FS: vfs.NewMem(), Logger: quiet, OnFatal: mustNotStop(t)}
	c, err := RestoreTo(o, joined, "LAST", func(into string, b *Unpacked) error {
		require.Equal(t, 2, b.Groups())
		for g, want := range []int64{noon, noon, s.at.NowNs, s.at.NowNs} {
			require.Equal(t, want, b.Within(hashslot.OfGroup(g, 4)).At.LimiterNs)
		}
		require.NoError(t, o.FS.MkdirAll(into, 0o700))
		writeFile(t, o.FS, o.FS.PathJoin(into, "LAST"), nil)
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, s.at.NowNs, c.At.LimiterNs)
	require.EqualValues(t, 1, c.Index)
	require.NoError(t, joined.Close())
}

// TestOneServerFromGroups checks that a server that runs alone takes a backup of several groups.
func TestOneServerFromGroups(t *testing.T) {
	s := busyTier(t, 4)
	want := map[string]string{}
	for _, table := range s.tables {
		maps.Copy(want, entries(t, table))
	}
	fs := vfs.NewMem()
	require.NoError(t, restoreOn(t, fs, s.backup()))
	n := mustStart(t, nodeOptions(t, fs, &fakeSource{wall: noon}))
	require.Equal(t, want, entries(t, n.table))
	require.NoError(t, n.Close())
}

// TestADamagedBackupOfGroupsIsRefused checks that each flipped byte of the manifest and of the heads, sampled bytes of
// the images, and a backup that is cut anywhere restore nothing.
func TestADamagedBackupOfGroupsIsRefused(t *testing.T) {
	s := busyTier(t, 2)
	whole := s.backup()
	refuses := func(b []byte, label string, args ...any) {
		t.Helper()
		_, err := restoredTier(t, b, 2, false)
		require.ErrorContains(t, err, "nothing was restored", append([]any{label}, args...)...)
	}
	end := manifestHead + 2*manifestEntry + 4
	parts := partsOf(t, whole)
	for i := range end + partHead + backupHead + streamHead {
		refuses(flipped(whole, i), "byte %d", i)
	}
	second := end + len(parts[0])
	for i := second - partSum; i < second+partHead+backupHead; i++ {
		refuses(flipped(whole, i), "byte %d", i)
	}
	for i := range partSum {
		refuses(flipped(whole, len(whole)-1-i), "byte %d from the end", i)
	}
	for _, i := range flipPoints(len(whole)) {
		refuses(flipped(whole, i), "byte %d", i)
		refuses(whole[:i], "cut to %d bytes", i)
	}
	refuses(append(bytes.Clone(whole), 0), "one byte more")
}

// partsOf cuts a backup of several groups into its parts.
func partsOf(t *testing.T, backup []byte) (parts [][]byte) {
	m, err := readManifest(backup[:backupStart], bytes.NewReader(backup[backupStart:]))
	require.NoError(t, err)
	rest := backup[manifestHead+len(m.groups)*manifestEntry+4:]
	for _, g := range m.groups {
		n := partHead + int(g.bytes) + partSum
		parts, rest = append(parts, rest[:n:n]), rest[n:]
	}
	require.Empty(t, rest)
	return parts
}

// TestAMixedSetIsRefused checks that the error names the image that is missing, in the wrong place, or of another
// backup.
func TestAMixedSetIsRefused(t *testing.T) {
	s := busyTier(t, 4)
	whole, later := s.backup(), s.backup()
	parts, others := partsOf(t, whole), partsOf(t, later)
	head := whole[:len(whole)-len(slices.Concat(parts...))]
	p0, p1, p2, p3 := parts[0], parts[1], parts[2], parts[3]
	for want, images := range map[string][][]byte{
		"image of group 2 of 4: %w (it belongs to another backup)":         {p0, p1, others[2], p3},
		"image of group 0 of 4: %w (it belongs to another backup)":         others,
		"image of group 1 of 4: %w (the image of group 2 is in its place)": {p0, p2, p3},
		"image of group 0 of 4: %w (the image of group 1 is in its place)": {p1, p0, p2, p3},
		"image of group 3 of 4: %w (the backup ends before it)":            {p0, p1, p2},
		"image of group 3 of 4: %w (its checksum is missing)":              {p0, p1, p2, p3[:len(p3)-1]},
		"image of group 1 of 4: %w (its head is damaged)":                  {p0, p1[1:], p2, p3},
		"%w (data follows the image of the last group)":                    {p0, p1, p2, p3, p3},
		"image of group 0 of 4: %w (it ends at entry 102, and the manifest names entry 100)": {
			p0[:partHead], p2[partHead:]},
	} {
		_, err := restoredTier(t, append(bytes.Clone(head), slices.Concat(images...)...), 4, false)
		require.EqualError(t, err, fmt.Errorf(want, ErrNoBackup).Error())
	}
	got, err := restoredTier(t, append(bytes.Clone(head), slices.Concat(parts...)...), 4, false)
	require.NoError(t, err)
	require.Len(t, got, 4)
}

// TestAManifestThatNoWeirWrote checks manifests with a correct checksum.
func TestAManifestThatNoWeirWrote(t *testing.T) {
	whole := busyTier(t, 2).backup()
	for want, at := range map[string]int{
		"":                                       manifestHead - 4, // three groups
		"gives group 0 of 2 the slots 1 to 8191": manifestHead + 8,
		"gives group 1 of 2 the slots 8192 to 16382": manifestHead + manifestEntry + 10,
	} {
		b := bytes.Clone(whole)
		b[at] ^= 1
		end := manifestHead + int(b[manifestHead-4])*manifestEntry
		binary.LittleEndian.PutUint32(b[end:], crc32.Checksum(b[:end], castagnoli))
		_, err := restoredTier(t, b, 2, false)
		require.ErrorIs(t, err, ErrNoBackup)
		require.ErrorContains(t, err, want)
	}
}
