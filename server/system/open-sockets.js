import { namesIn, socketAt } from './proc.js'

/** @param {number} pid @returns {Set<number>} the inodes of the sockets that it has open; empty where the system does not tell: proc(5) */
export function socketsOf (pid) {
  const folder = `/proc/${pid}/fd`
  const inodes = namesIn(folder).map((name) => socketAt(`${folder}/${name}`))
  return new Set(inodes.filter((inode) => inode > 0))
}
