import { fstatSync, lstatSync, unlinkSync, type BigIntStats } from 'node:fs'

/** What is known of a file that may be a socket or a pipe, as `fs.Stats` has it. */
export type SocketStat = { dev: number, ino: number, mode: number, uid: number, gid: number, nlink: number,
  isSocket: () => boolean }

/**
 * Does what lstatSync() does, for whatever may be a socket or a pipe. After lstatSync() of one, fs.realpathSync() of
 * Node ends too early: at a folder that it knows already it looks at the last stat of the process, whose ever that was,
 * and takes it for its own (lib/fs.js, Node 20 to 24). A module behind a link, as pnpm makes them, is then loaded under
 * the name of the link, once more or even empty. Stats in BigInts are kept in another place, which it does not look at.
 * @returns undefined: nothing is there
 * @throws {NodeJS.ErrnoException}
 */
export function lstatSocket (file: string): SocketStat | undefined {
  const stat = lstatSync(file, { bigint: true, throwIfNoEntry: false })
  return stat && inNumbers(stat)
}

/**
 * Does what fstatSync() does, for the same reason.
 * @throws {NodeJS.ErrnoException}
 */
export function fstatSocket (fd: number): SocketStat {
  return inNumbers(fstatSync(fd, { bigint: true }))
}

/** Removes what rmSync() would look at first, for the same reason. `file`: of a socket, or where none is. */
export function removeSocket (file: string) {
  try {
    unlinkSync(file)
  } catch {
    // ENOENT: there is none; EROFS: what is bound there next says so.
  }
}

function inNumbers (stat: BigIntStats): SocketStat {
  return { dev: Number(stat.dev), ino: Number(stat.ino), mode: Number(stat.mode), uid: Number(stat.uid),
    gid: Number(stat.gid), nlink: Number(stat.nlink), isSocket: () => stat.isSocket() }
}
