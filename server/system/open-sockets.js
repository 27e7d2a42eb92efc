import { readdirSync, readlinkSync } from 'node:fs'

/** @param {number} pid @returns {Set<number>} the inodes of the sockets that it has open; empty where the system does not tell: proc(5) */
export function socketsOf (pid) {
  const folder = `/proc/${pid}/fd`
  const inodes = namesIn(folder).map((name) => Number(/^socket:\[(\d+)\]$/.exec(linkAt(`${folder}/${name}`))?.[1] ?? 0))
  return new Set(inodes.filter((inode) => inode > 0))
}

/** @param {string} folder @returns {string[]} */
function namesIn (folder) {
  try {
    return readdirSync(folder)
  } catch {
    // ENOENT: it has ended; EACCES: another user's.
    return []
  }
}

/** @param {string} link @returns {string} */
function linkAt (link) {
  try {
    return readlinkSync(link)
  } catch {
    // It was closed meanwhile.
    return ''
  }
}
