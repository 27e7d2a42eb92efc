import { closeSync, ftruncateSync, openSync, readSync, writeSync } from 'node:fs'
import path from 'node:path'

/** Entries of 16 bytes: two hashes of the session's name, the worker, and when that was written, in seconds. */
const ENTRY = 16
const PER_BUCKET = 8
const BUCKET = ENTRY * PER_BUCKET
const BUCKETS = 16_384
/** FNV-1a, and the same with another beginning. */
const PRIME = 16_777_619
const BEGINNINGS = [2_166_136_261, 3_266_489_917]
/** How often an entry is written that another worker overwrites at the same moment. */
const TRIES = 3

const FILE = 'owners'

/** Makes the file, before any worker opens it. One that is there stays. */
export function makeSessionOwners (folder: string) {
  const fd = openSync(path.join(folder, FILE), 'a', 0o600)
  ftruncateSync(fd, BUCKETS * BUCKET)
  closeSync(fd)
}

/**
 * Which worker has which session, in a file that all workers read and write: what one has written, every other one
 * knows before the answer is on its way that tells the session to its client. It has room for 131,072 sessions; the one
 * that was used longest ago gives way. `options`: wall clock, ms.
 */
export function openSessionOwners (folder: string, { now = Date.now }: { now?: () => number } = {}) {
  const fd = openSync(path.join(folder, FILE), 'r+')
  const bucket = new Uint32Array(BUCKET / 4)
  const bytes = new Uint8Array(bucket.buffer)

  return {
    find (session: string): number | null {
      const at = locate(session)
      return at.isKnown ? bucket[at.index + 2] : null
    },

    /** `worker`: has it from now on */
    claim (session: string, worker: number) {
      for (let time = 0; time < TRIES; time++) {
        const at = locate(session)
        if (time > 0 && at.isKnown && bucket[at.index + 2] === worker) return
        bucket.set([...at.hashes, worker, Math.floor(now() / 1000)], at.index)
        writeSync(fd, bytes, at.index * 4, ENTRY, at.offset + at.index * 4)
      }
    },

    close () {
      closeSync(fd)
    }
  }

  /** Reads the bucket of a session, and finds its entry, or the one that gives way to it. */
  function locate (session: string) {
    const hashes = BEGINNINGS.map((beginning) => hashOf(session, beginning))
    const offset = (hashes[0] % BUCKETS) * BUCKET
    readSync(fd, bytes, 0, BUCKET, offset)
    let oldest = 0
    for (let index = 0; index < bucket.length; index += 4) {
      if (bucket[index] === hashes[0] && bucket[index + 1] === hashes[1] && bucket[index + 2] !== 0)
        return { isKnown: true, index, hashes, offset }
      if (bucket[index + 3] < bucket[oldest + 3]) oldest = index
    }
    return { isKnown: false, index: oldest, hashes, offset }
  }
}

function hashOf (text: string, beginning: number) {
  let hash = beginning
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), PRIME)
  return (hash ^ (hash >>> 15)) >>> 0
}
