package images

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

// Store implements raft.SnapshotStore on the images of package persistence. It returns an error for an image that
// cannot be read and never skips it, because the log before it is gone.
type Store struct {
	Images    *persistence.Images
	Faults    faults.Set
	Recovered bool // the images come from a recovery
	// Has reports whether this node has the entry with this index and term, and all entries before it.
	Has func(index, term uint64) bool
}

var _ raft.SnapshotStore = Store{}

// Meta is the data of the Raft library that is stored with an image.
type Meta struct {
	Version            raft.SnapshotVersion
	Configuration      raft.Configuration
	ConfigurationIndex uint64
	Recovered          bool `json:",omitempty"` // written by a recovery, so no majority has agreed to it
}

// DecodeMeta decodes the Meta of an image.
func DecodeMeta(of persistence.ImageInfo) (meta Meta, err error) {
	if err := json.Unmarshal(of.Meta, &meta); err != nil {
		return meta, fmt.Errorf("image %s: %w", of.ID, err)
	}
	return meta, nil
}

// Create begins a snapshot: either of this node's own table (Persist seals it), or received from another node (Write
// receives it).
func (s Store) Create(version raft.SnapshotVersion, index, term uint64, configuration raft.Configuration,
	configurationIndex uint64, _ raft.Transport) (raft.SnapshotSink, error) {
	meta, err := json.Marshal(Meta{version, configuration, configurationIndex, s.Recovered})
	if err != nil {
		return nil, err
	}
	if s.Faults.Has(faults.StaleIndex) {
		index -= min(index-1, 50)
	}
	return &Sink{images: s.Images, index: index, term: term, meta: meta, faults: s.Faults,
		late: func() bool { return s.Late(index, term) }}, nil
}

// Late reports whether an image from another node must not be installed, because this node has all its entries and
// perhaps more. An image that is older than the image of this node's own recovery is never late, because it overrules
// that recovery.
func (s Store) Late(index, term uint64) bool {
	if s.Has == nil || !s.Has(index, term) {
		return false
	}
	infos, err := s.Images.List()
	if err != nil || len(infos) == 0 || infos[0].Index <= index {
		return true
	}
	newest, err := DecodeMeta(infos[0])
	return err != nil || !newest.Recovered
}

// List returns the images, newest first.
func (s Store) List() ([]*raft.SnapshotMeta, error) {
	infos, err := s.Images.List()
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
	meta, err := DecodeMeta(info)
	if err != nil {
		return nil, err
	}
	return &raft.SnapshotMeta{
		Version: meta.Version, ID: info.ID, Index: info.Index, Term: info.Term,
		Configuration: meta.Configuration, ConfigurationIndex: meta.ConfigurationIndex, Size: info.Bytes,
	}, nil
}

// Open returns an image as a stream, for another node or for this node's Restore.
func (s Store) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	stream, info, err := s.Images.Send(id)
	if err != nil {
		return nil, nil, err
	}
	meta, err := snapshotMeta(info)
	if err != nil {
		return nil, nil, errors.Join(err, stream.Close())
	}
	return meta, &Stream{stream, meta}, nil
}

// Stream is the stream of an image. Restore uses only its Meta.
type Stream struct {
	io.ReadCloser
	Meta *raft.SnapshotMeta
}

// StreamOf returns the Stream that the Raft library passes to Restore.
func StreamOf(r io.ReadCloser) (*Stream, error) {
	if wrapped, ok := r.(raft.ReadCloserWrapper); ok {
		r = wrapped.WrappedReadCloser()
	}
	if stream, ok := r.(*Stream); ok {
		return stream, nil
	}
	return nil, fmt.Errorf("a snapshot stream of type %T", r)
}

// Sink receives one snapshot.
type Sink struct {
	images      *persistence.Images
	index, term uint64
	meta        []byte
	faults      faults.Set
	late        func() bool           // see Store.Late
	incoming    *persistence.Incoming // nil until the first byte from another node
	id          string
}

func (s *Sink) ID() string { return s.id }

// Seal writes the image of this node's own table, with the state at a log index.
func (s *Sink) Seal(entry uint64, state []byte) error {
	if entry > s.index && !s.faults.Has(faults.StaleIndex) {
		return fmt.Errorf("a snapshot of entry %d with the state of entry %d", s.index, entry)
	}
	info, err := s.images.Seal(s.index, s.term, state, s.meta)
	s.id = info.ID
	return err
}

func (s *Sink) Write(b []byte) (int, error) {
	if s.incoming == nil {
		if s.late() {
			guards.LateImage.Hit()
			return 0, ErrHasImage
		}
		var err error
		if s.incoming, err = s.images.Receive(s.index, s.term, s.meta); err != nil {
			return 0, err
		}
	}
	return s.incoming.Write(b)
}

func (s *Sink) Close() error {
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

// overrule removes the image of this node's own recovery if it is newer than the received image. The survivors that
// formed the new cluster continued from the received image, so entries beyond that image are not part of the cluster.
func (s *Sink) overrule() error {
	infos, err := s.images.List()
	if err != nil || infos[0].ID == s.id {
		return err
	}
	newest, err := DecodeMeta(infos[0])
	if err != nil || !newest.Recovered {
		return err
	}
	return s.images.KeepOnly(s.id)
}

func (s *Sink) Cancel() error {
	if s.incoming == nil {
		return nil
	}
	return s.incoming.Cancel()
}

// ErrHasImage is the answer to an image that must not be installed. Its text is part of the inter-node protocol and
// must not change.
var ErrHasImage = errors.New("this node has all entries of the image")
