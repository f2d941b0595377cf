import { isServoError, messageOf, ServoError } from '../../lib/error.ts'
import { errnoOf } from './disk.ts'

/** The operation that failed, for the sentence: "cannot create ledger/x.json in /data: the disk is full". */
export interface Attempted {
  verb: 'create' | 'put' | 'read' | 'list' | 'delete' | 'sweep' | 'sync'
  path: string
  dir: string
}

interface Reason {
  kind: 'unavailable' | 'invalid'
  code: string
  text: string
  hint: string
}

const full: Reason = {
  kind: 'unavailable',
  code: 'disk_full',
  text: 'the disk is full, or a quota or file size limit is reached',
  hint: 'Free some space (df -h, df -i, quota, ulimit -f) and try again. Nothing half-written was left behind.',
}
const readOnly: Reason = {
  kind: 'unavailable',
  code: 'read_only',
  text: 'the folder cannot be written',
  hint: 'Check who owns the folder, its permissions, and whether it is mounted read-only.',
}
const tooManyFiles: Reason = {
  kind: 'unavailable',
  code: 'too_many_files',
  text: 'too many files are open',
  hint: 'Raise the limit of open files (ulimit -n) or lower the concurrency.',
}
const notAnObject: Reason = {
  kind: 'invalid',
  code: 'path_conflict',
  text: 'a folder is where the object should be, or an object or symlink where its folder should be',
  hint: 'A path is either an object or a folder of objects. Choose another name.',
}
const tooLong: Reason = {
  kind: 'invalid',
  code: 'path_too_long',
  text: 'the path is longer than this system allows',
  hint: 'Move the store to a folder with a shorter path.',
}
const twoFilesystems: Reason = {
  kind: 'invalid',
  code: 'two_filesystems',
  text: 'part of the folder is on another filesystem',
  hint: 'An object moves into place from .tmp in one step, which needs one filesystem: mount it at the root of the store.',
}
const vanished: Reason = {
  kind: 'unavailable',
  code: 'folder_gone',
  text: 'its folder or temporary file disappeared in the meantime',
  hint: 'Something else deletes in this folder, or sweepTemp was given less time than a write takes. Retry.',
}
const noHardLinks: Reason = {
  kind: 'invalid',
  code: 'no_hard_links',
  text: 'this filesystem has no hard links, so an object cannot be created exactly once',
  hint: 'Use ext4, xfs, btrfs, zfs, tmpfs, overlayfs, APFS or NFS. FAT, exFAT and FUSE mounts of buckets do not work; for a bucket use its own adapter.',
}

const reasons: Record<string, Reason> = {
  ENOSPC: full,
  EDQUOT: full,
  EFBIG: full,
  EROFS: readOnly,
  EACCES: readOnly,
  EPERM: readOnly,
  EMFILE: tooManyFiles,
  ENFILE: tooManyFiles,
  ENOTDIR: notAnObject,
  EISDIR: notAnObject,
  ELOOP: notAnObject,
  ENAMETOOLONG: tooLong,
  EXDEV: twoFilesystems,
  ENOENT: vanished,
}

/** Translates an errno into our words. An unknown one is an outage: the caller retries or gives up. */
export function explainFailure(error: unknown, attempted: Attempted): Error {
  if (isServoError(error)) return error
  const errno = errnoOf(error)
  // This is not a failed system call but a bug, which must not look like a bad disk.
  if (errno === undefined || errno.startsWith('ERR_')) return error instanceof Error ? error : new Error(messageOf(error))
  return failure(reasonFor(errno, attempted), attempted, error)
}

export function pathConflict(attempted: Attempted): ServoError {
  return failure(notAnObject, attempted, undefined)
}

export function hardLinksUnsupported(attempted: Attempted, cause: unknown): ServoError {
  return failure(noHardLinks, attempted, cause)
}

function reasonFor(errno: string, { verb }: Attempted): Reason {
  const reason = reasons[errno]
  if (reason === readOnly && (verb === 'read' || verb === 'list')) {
    return { ...readOnly, code: 'no_access', text: 'it cannot be read', hint: 'Check who owns the folder and its permissions.' }
  }
  return (
    reason ?? {
      kind: 'unavailable',
      code: 'disk_error',
      text: `the disk answered ${errno}`,
      hint: 'Look at the system log (dmesg) for errors of this disk or mount.',
    }
  )
}

function failure(reason: Reason, { verb, path, dir }: Attempted, cause: unknown): ServoError {
  return new ServoError(
    reason.kind,
    reason.code,
    `cannot ${verb} ${path === '' ? 'objects' : path} in ${dir}: ${reason.text}`,
    {
      hint: reason.hint,
      facts: { path, dir, ...(cause === undefined ? {} : { errno: errnoOf(cause) }) },
      cause,
    },
  )
}
