package sharedlog

// spans records how the size of the log is distributed over its positions.
type spans struct {
	each int64 // the least size of a span
	list []span
}

type span struct {
	first uint64 // position of its first record
	bytes int64
}

// add adds a record at the end. It reports whether the record begins a new span.
func (s *spans) add(at uint64, bytes int64) (begun bool) {
	n := len(s.list)
	if n == 0 || s.list[n-1].bytes >= s.each {
		s.list, begun = append(s.list, span{first: at}), true
		n++
	}
	s.list[n-1].bytes += bytes
	return begun
}

func (s *spans) bytes() (all int64) {
	for _, one := range s.list {
		all += one.bytes
	}
	return all
}

// before returns about the size of the records before a position, less at most a span.
func (s *spans) before(at uint64) (bytes int64) {
	for i, one := range s.list {
		if i+1 == len(s.list) || s.list[i+1].first > at {
			break
		}
		bytes += one.bytes
	}
	return bytes
}

// after returns the first position of a span before which there are records of a size.
func (s *spans) after(bytes int64) uint64 {
	for _, one := range s.list {
		if bytes <= 0 {
			return one.first
		}
		bytes -= one.bytes
	}
	return 0
}

// drop removes the spans before a position.
func (s *spans) drop(at uint64) {
	n := 0
	for n+1 < len(s.list) && s.list[n+1].first <= at {
		n++
	}
	s.list = append([]span(nil), s.list[n:]...)
}
