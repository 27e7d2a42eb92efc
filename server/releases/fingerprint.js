import { createHash } from 'node:crypto'
import { closeSync, constants, fstatSync, openSync, readSync, statSync } from 'node:fs'

/** A larger one is known by its stamp alone. */
const MAX_READ_BYTES = 32 * 1024 * 1024

/**
 * What the system knows of a file, without its content. The time of change is in it as copying tools can set the other.
 * @param {string} file absolute path @returns {string | null} null: there is no such file
 */
export function stampOf (file) {
  try {
    const stat = statSync(file, { bigint: true, throwIfNoEntry: false })
    return stat?.isFile() ? toStamp(stat) : null
  } catch {
    // EACCES, ENOTDIR, ELOOP: a worker would not find it either.
    return null
  }
}

/**
 * @param {string} file @param {string} stamp  it is read as this, or not at all
 * @returns {string | null} of its content; null: it is another one by now, too large, or cannot be read
 */
export function digestOf (file, stamp) {
  /** @type {number | undefined} */
  let descriptor
  try {
    // Opened without waiting: whatever has taken the file's place since must not hold up the master.
    descriptor = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK)
    const stat = fstatSync(descriptor, { bigint: true })
    if (!stat.isFile() || toStamp(stat) !== stamp || stat.size > MAX_READ_BYTES) return null
    const content = Buffer.allocUnsafe(Number(stat.size))
    for (let at = 0; at < content.length;) {
      const count = readSync(descriptor, content, at, content.length - at, at)
      if (count === 0) return null
      at += count
    }
    return toStamp(fstatSync(descriptor, { bigint: true })) === stamp ? createHash('sha256').update(content).digest('base64') : null
  } catch {
    return null
  } finally {
    if (descriptor !== undefined) closeSync(descriptor)
  }
}

/**
 * @param {string} stamp
 * @returns {number} ms since the epoch. The earlier of both times: the one is in the future where a tool has set it so,
 *   the other changes with every new link to the file
 */
export function writtenAt (stamp) {
  const [, mtimeNs, ctimeNs] = stamp.split(':').map(Number)
  return Math.min(mtimeNs, ctimeNs) / 1e6
}

/** @param {import('node:fs').BigIntStats} stat */
function toStamp ({ size, mtimeNs, ctimeNs, ino, dev }) {
  return `${size}:${mtimeNs}:${ctimeNs}:${dev}:${ino}`
}
