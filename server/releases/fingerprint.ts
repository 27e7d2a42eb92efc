import { createHash } from 'node:crypto'
import { closeSync, constants, fstatSync, openSync, readSync, statSync, type BigIntStats } from 'node:fs'

/** Larger files are not read, and are compared by their stamps alone. */
const MAX_READ_BYTES = 32 * 1024 * 1024

/**
 * Size, times and identity of a file as one text. It has ctime too, as tools can set mtime. `file`: absolute path.
 * Returns null: there is no such file.
 */
export function stampOf (file: string): string | null {
  try {
    const stat = statSync(file, { bigint: true, throwIfNoEntry: false })
    return stat?.isFile() ? toStamp(stat) : null
  } catch {
    // EACCES, ENOTDIR, ELOOP: a worker would not find it either.
    return null
  }
}

/**
 * @param stamp the file is read only if it still has this one
 * @returns of its content; null: it has changed, is too large, or cannot be read
 */
export function digestOf (file: string, stamp: string): string | null {
  let descriptor: number | undefined
  try {
    // O_NONBLOCK: a pipe may have taken the place of the file, and opening it would block the master.
    descriptor = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK)
    const stat = fstatSync(descriptor, { bigint: true })
    if (!stat.isFile() || toStamp(stat) !== stamp || stat.size > MAX_READ_BYTES) return null
    const content = Buffer.allocUnsafe(Number(stat.size))
    for (let at = 0; at < content.length;) {
      const count = readSync(descriptor, content, at, content.length - at, at)
      if (count === 0) return null
      at += count
    }
    return toStamp(fstatSync(descriptor, { bigint: true })) === stamp
      ? createHash('sha256').update(content).digest('base64')
      : null
  } catch {
    return null
  } finally {
    if (descriptor !== undefined) closeSync(descriptor)
  }
}

/**
 * @returns ms since the epoch: the earlier of both times, as a tool can set mtime to the future, and every new link to
 * the file changes ctime
 */
export function writtenAt (stamp: string): number {
  const [, mtimeNs, ctimeNs] = stamp.split(':').map(Number)
  return Math.min(mtimeNs, ctimeNs) / 1e6
}

function toStamp ({ size, mtimeNs, ctimeNs, ino, dev }: BigIntStats) {
  return `${size}:${mtimeNs}:${ctimeNs}:${dev}:${ino}`
}
