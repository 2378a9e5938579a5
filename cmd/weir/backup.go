package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/gomodule/redigo/redis"

	"github.com/weir-project/weir/internal/cli/cmdline"
	"github.com/weir-project/weir/internal/cli/remote"
)

// standardStream is the name of standard output or input in place of a file.
const standardStream = "-"

// partSuffix is the suffix of a backup's name until it is complete.
const partSuffix = ".part"

// backupCmd copies the state of a running server into a file.
type backupCmd struct {
	File         string `arg:"" help:"The new file of the backup, or - for standard output."`
	Addr         string `address:"" default:"127.0.0.1:6380" help:"The server, or any node of a cluster, as clients reach it."`
	PasswordFile string `placeholder:"FILE" help:"File that contains the password of the server."`
	remote.Flags
}

func (b *backupCmd) Run() error {
	if b.File == standardStream {
		_, err := b.copyTo(os.Stdout)
		return err
	}
	bytes, err := b.write()
	if err == nil {
		_, err = fmt.Printf("%s: %d bytes\n", b.File, bytes)
	}
	return err
}

// write writes the file. The file exists completely and on disk, or not at all.
func (b *backupCmd) write() (bytes int64, err error) {
	switch _, err := os.Lstat(b.File); {
	case err == nil:
		return 0, fmt.Errorf("%s exists already: choose another name", b.File)
	case !errors.Is(err, fs.ErrNotExist):
		return 0, err
	}
	part := b.File + partSuffix
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) // it contains keys
	if errors.Is(err, fs.ErrExist) {
		return 0, fmt.Errorf(
			"%s exists: another backup is running, or one was interrupted; if none runs, remove this file", part)
	}
	if err != nil {
		return 0, fmt.Errorf(
			"the backup cannot be written: %w: give a file in a directory that exists and that you may write to", err)
	}
	bytes, err = b.copyTo(f)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(part, b.File)
	}
	if err != nil {
		return 0, errors.Join(err, os.Remove(part))
	}
	return bytes, nil
}

// copyTo reads the whole backup from the server.
func (b *backupCmd) copyTo(w io.Writer) (bytes int64, err error) {
	password, err := cmdline.SecretFrom("password", "", b.PasswordFile)
	if err != nil {
		return 0, err
	}
	conn, err := b.Dial(b.Addr, password)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	want, err := redis.Int64(conn.Do("WEIR.BACKUP", "START"))
	for err == nil {
		var piece []byte
		if piece, err = redis.Bytes(conn.Do("WEIR.BACKUP", "NEXT")); err != nil {
			break
		}
		var n int
		n, err = w.Write(piece)
		bytes += int64(n)
	}
	switch {
	case !errors.Is(err, redis.ErrNil):
		return bytes, fmt.Errorf("backup of %s: %w", b.Addr, err)
	case bytes != want:
		return bytes, fmt.Errorf("backup of %s: the server sent only %d of %d bytes", b.Addr, bytes, want)
	}
	return bytes, nil
}
