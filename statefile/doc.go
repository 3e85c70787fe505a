// Package statefile keeps bytes on disk for many short-lived processes: small
// records that are changed under a lock, a journal of lines, the directory that
// holds them, and the clocks that make stored times comparable.
//
// It knows nothing of what the bytes mean.
//
// # Records
//
// A [File] is a file of fixed size with two slots, each with a sequence number
// and a checksum. A change takes an exclusive flock on the file itself, reads
// the newer valid slot and overwrites the other one with a single write, so that
// a process that dies at any moment leaves the state before the change or the
// one after it. Files are never renamed and, but for [Dir.Sweep], never
// unlinked; lock and data cannot part. Nothing is synced: after a power failure
// the checksums tell what survived.
//
// # What is refused
//
// A directory that others may write, or that belongs to somebody who does not
// share it. A file that is a symbolic link, a device, a FIFO, a directory, has a
// second hard link, or belongs to somebody else; the state directory itself may
// be a symbolic link, what counts is the directory behind it. A remote or FUSE
// filesystem, where locks may not exclude, unless [Dir.AllowRemote] is set.
//
// # Sharing
//
// A directory that belongs to somebody else, or is group-writable with the setgid
// bit, is shared: what is made in it belongs to its group, with mode 0660. What
// root makes in another user's own directory belongs to that user.
package statefile
