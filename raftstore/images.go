package raftstore

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/internal/faults"
	"github.com/weir-project/weir/internal/guards"
	"github.com/weir-project/weir/persistence"
)

// imageStore lets the Raft library find its snapshots in the images of package
// persistence. An image that cannot be read is an error, never passed over: the
// log before it is gone.
type imageStore struct {
	images    *persistence.Images
	faults    faults.Set
	recovered bool // the images made are those of a recovery
	// holds reports whether this node has all entries up to an index; see Node.holds.
	holds func(index, term uint64) bool
}

var _ raft.SnapshotStore = imageStore{}

// imageMeta is what the Raft library wants to find again with an image.
type imageMeta struct {
	Version            raft.SnapshotVersion
	Configuration      raft.Configuration
	ConfigurationIndex uint64
	Recovered          bool `json:",omitempty"` // by recoverIfAsked: nobody has agreed to it
}

func decodeImageMeta(of persistence.ImageInfo) (meta imageMeta, err error) {
	if err := json.Unmarshal(of.Meta, &meta); err != nil {
		return meta, fmt.Errorf("image %s: %w", of.ID, err)
	}
	return meta, nil
}

// Create begins a snapshot: of this node's own table (Persist seals it) or one
// that another node sends (it is written to).
func (s imageStore) Create(version raft.SnapshotVersion, index, term uint64, configuration raft.Configuration, configurationIndex uint64, _ raft.Transport) (raft.SnapshotSink, error) {
	meta, err := json.Marshal(imageMeta{version, configuration, configurationIndex, s.recovered})
	if err != nil {
		return nil, err
	}
	if s.faults.Has(faults.StaleIndex) {
		index -= min(index-1, 50)
	}
	return &sink{images: s.images, index: index, term: term, meta: meta, faults: s.faults, late: func() bool { return s.late(index, term) }}, nil
}

// late reports whether an image that another node sends must not be installed, because
// this node has all its entries and perhaps more. An image that overrules this node's own
// recovery is never late.
func (s imageStore) late(index, term uint64) bool {
	if s.holds == nil || !s.holds(index, term) {
		return false
	}
	infos, err := s.images.List()
	if err != nil || len(infos) == 0 || infos[0].Index <= index {
		return true
	}
	newest, err := decodeImageMeta(infos[0])
	return err != nil || !newest.Recovered
}

// List returns the images, newest first.
func (s imageStore) List() ([]*raft.SnapshotMeta, error) {
	infos, err := s.images.List()
	if err != nil {
		return nil, err
	}
	metas := make([]*raft.SnapshotMeta, 0, len(infos))
	for _, info := range infos {
		meta, err := snapshotMeta(info)
		if err != nil {
			return nil, err
		}
		metas = append(metas, meta)
	}
	return metas, nil
}

func snapshotMeta(info persistence.ImageInfo) (*raft.SnapshotMeta, error) {
	meta, err := decodeImageMeta(info)
	if err != nil {
		return nil, err
	}
	return &raft.SnapshotMeta{
		Version: meta.Version, ID: info.ID, Index: info.Index, Term: info.Term,
		Configuration: meta.Configuration, ConfigurationIndex: meta.ConfigurationIndex, Size: info.Bytes,
	}, nil
}

// Open returns an image as a stream, for another node or for this one's Restore.
func (s imageStore) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	stream, info, err := s.images.Send(id)
	if err != nil {
		return nil, nil, err
	}
	meta, err := snapshotMeta(info)
	if err != nil {
		return nil, nil, errors.Join(err, stream.Close())
	}
	return meta, &imageStream{stream, meta}, nil
}

// imageStream is an image on its way out; Restore only wants to know which.
type imageStream struct {
	io.ReadCloser
	meta *raft.SnapshotMeta
}

// imageOf returns the image that the Raft library wants restored.
func imageOf(r io.ReadCloser) (*imageStream, error) {
	if wrapped, ok := r.(raft.ReadCloserWrapper); ok {
		r = wrapped.WrappedReadCloser()
	}
	if stream, ok := r.(*imageStream); ok {
		return stream, nil
	}
	return nil, fmt.Errorf("a snapshot stream of type %T", r)
}

// sink takes one snapshot.
type sink struct {
	images      *persistence.Images
	index, term uint64
	meta        []byte
	faults      faults.Set
	late        func() bool           // see imageStore.late
	incoming    *persistence.Incoming // nil until the first byte from another node
	id          string
}

func (s *sink) ID() string { return s.id }

// seal makes the image of this node's own table.
func (s *sink) seal(of state) error {
	if of.Index > s.index && !s.faults.Has(faults.StaleIndex) {
		return fmt.Errorf("a snapshot of entry %d with the state of entry %d", s.index, of.Index)
	}
	info, err := s.images.Seal(s.index, s.term, of.encode(), s.meta)
	s.id = info.ID
	return err
}

func (s *sink) Write(b []byte) (int, error) {
	if s.incoming == nil {
		if s.late() {
			guards.LateImage.Hit()
			return 0, errHasImage
		}
		var err error
		if s.incoming, err = s.images.Receive(s.index, s.term, s.meta); err != nil {
			return 0, err
		}
	}
	return s.incoming.Write(b)
}

func (s *sink) Close() error {
	if s.incoming == nil {
		return nil
	}
	info, err := s.incoming.Close()
	if err != nil {
		return err
	}
	s.id = info.ID
	return s.overrule()
}

// overrule removes the image of this node's own recovery where it is newer than the one
// received: the survivors who met first have gone on from the latter, and what they
// lacked has not happened.
func (s *sink) overrule() error {
	infos, err := s.images.List()
	if err != nil || infos[0].ID == s.id {
		return err
	}
	newest, err := decodeImageMeta(infos[0])
	if err != nil || !newest.Recovered {
		return err
	}
	return s.images.KeepOnly(s.id)
}

func (s *sink) Cancel() error {
	if s.incoming == nil {
		return nil
	}
	return s.incoming.Cancel()
}
