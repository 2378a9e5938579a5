package raftstore

import (
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/raftstore/internal/failure"
)

// backup is Node.Backup.
func (s *snapshots) backup() (*limiter.Backup, error) {
	if err := s.now(); err != nil {
		return nil, err
	}
	infos, err := s.images.List()
	if err != nil {
		return nil, err
	}
	if len(infos) == 0 {
		return nil, failure.ErrUnavailable
	}
	stream, info, err := s.images.Send(infos[0].ID)
	if err != nil {
		return nil, err
	}
	return persistence.NewBackup(stream, info.Bytes, s.contents(info)), nil
}

// contents describes an image. What was applied since it was made only brings the clock
// further, as its own going on would have.
func (s *snapshots) contents(info persistence.ImageInfo) persistence.Contents {
	s.machine.Mu.Lock()
	lifetime := s.machine.State.Founding.IDLifetimeNs
	s.machine.Mu.Unlock()
	return persistence.Contents{
		Index: info.Index, Term: info.Term, IDLifetimeNs: lifetime,
		At: s.leadership.clockFrom(s.machine.Last()).Record(),
	}
}
