package snapshots

import (
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/raftstore/internal/failure"
)

// Backup implements Node.Backup.
func (s *Snapshots) Backup() (*limiter.Backup, error) {
	if err := s.Now(); err != nil {
		return nil, err
	}
	infos, err := s.Images.List()
	if err != nil {
		return nil, err
	}
	if len(infos) == 0 {
		return nil, failure.ErrUnavailable
	}
	stream, info, err := s.Images.Send(infos[0].ID)
	if err != nil {
		return nil, err
	}
	return persistence.NewBackup(stream, info.Bytes, s.contents(info)), nil
}

// contents describes an image. Entries that were applied after the image only advance the clock further, as the
// passing time would have done.
func (s *Snapshots) contents(info persistence.ImageInfo) persistence.Contents {
	s.FSM.Mu.Lock()
	lifetime := s.FSM.State.Founding.IDLifetimeNs
	s.FSM.Mu.Unlock()
	return persistence.Contents{
		Index: info.Index, Term: info.Term, IDLifetimeNs: lifetime,
		At: s.ClockFrom(s.FSM.Last()).Record(),
	}
}
