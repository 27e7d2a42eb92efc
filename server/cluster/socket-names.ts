import { linkSync } from 'node:fs'
import { attempt } from '../errors.ts'
import { lstatSocket, type SocketStat } from '../../workers/socket-file.ts'

/**
 * The two names of a Unix socket, as paths that lead to its folder and nowhere else.
 * `dev`, `ino`: by which it is told from whatever else is there
 */
export type SocketNames = { name: string, hidden: string, dev: number, ino: number }

/** Tells whether it is there, and no other file */
export function isAt (file: string, { dev, ino }: { dev: number, ino: number }): boolean {
  const there = lookAt(file)
  return there?.ino === ino && there.dev === dev
}

export function lookAt (file: string): SocketStat | null {
  // EACCES: the folder has been closed to us.
  return attempt(() => lstatSocket(file)) ?? null
}

/** Gives it its own name again, where nothing else has that by now. */
export function nameAgain ({ name, hidden, ...socket }: SocketNames) {
  if (isAt(name, socket) || !isAt(hidden, socket)) return
  // EEXIST: somebody was quicker, perhaps the master that takes over.
  attempt(() => linkSync(hidden, name))
}
