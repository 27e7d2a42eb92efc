import { linkSync } from 'node:fs'
import { lstatSocket } from '../../workers/socket-file.js'

/**
 * The two names of a Unix socket, as paths that lead to its folder and nowhere else.
 * @typedef {{ name: string, hidden: string, dev: number, ino: number }} SocketNames  `dev`, `ino`: by which it is told from whatever else is there
 */

/** @param {string} file @param {{ dev: number, ino: number }} socket @returns {boolean} whether it is there, and no other file */
export function isAt (file, { dev, ino }) {
  const there = lookAt(file)
  return there?.ino === ino && there.dev === dev
}

/** @param {string} file @returns {import('../../workers/socket-file.js').SocketStat | undefined} */
export function lookAt (file) {
  try {
    return lstatSocket(file)
  } catch {
    // EACCES: the folder has been closed to us.
    return undefined
  }
}

/** Gives it its own name again, where nothing else has that by now. @param {SocketNames} socket */
export function nameAgain ({ name, hidden, ...socket }) {
  if (isAt(name, socket) || !isAt(hidden, socket)) return
  try {
    linkSync(hidden, name)
  } catch {
    // EEXIST: somebody was quicker, perhaps the master that takes over.
  }
}
