import { createHash, randomUUID } from 'node:crypto'
import { z } from 'zod'
import { DeckError } from '../errors.js'
import { ARCHIVE } from '../system/archive.js'
import { appKey } from './app-key.js'
import { valueOrThrow } from './nats-connection.js'
import { parseUntrusted } from './untrusted-json.js'
import { streamExists, makeReplicated } from './streams.js'

/**
 * Keeps the pushed archives of an app by their digests in a NATS object store, whose objects are called `<app>/<digest>`. It reads and writes piece by piece and asks for the next one
 * only after the last one was handled, so neither a slow disk nor a hostile NATS fills the memory.
 * @typedef {ReturnType<typeof createStore>} Store
 * @typedef {{ digest: string, bytes: number, pushedAt: string, actor: string | null }} Pushed `digest`: `sha256:` and 64 hex digits
 * @typedef {Pushed & { app: string, id: string, pieces: number, revision: number }} Stored `app`: its key; `id`: of its pieces
 * @typedef {import('./nats-connection.js').Open} Open
 */

export const DIGEST = /^sha256:[0-9a-f]{64}$/

const PIECE_BYTES = 512 * 1024
/** A message has headers beside its data. */
const ENVELOPE_BYTES = 4096
/** A read fails if nothing comes for this time. */
const STALLED_MS = 60_000
const AGAIN_MS = 1000
const KEPT = 5
/** Pieces without an object are of a failed upload once they are this old. */
const ABANDONED_MS = 10 * 60_000

const OBJECT = z.object({
  name: z.string().max(1000),
  nuid: z.string().regex(/^[\w-]{1,64}$/),
  size: z.int().min(1).max(ARCHIVE.maxBytes),
  chunks: z.int().min(1).max(ARCHIVE.maxBytes),
  deleted: z.literal(false).optional(),
  mtime: z.string().max(40),
  metadata: z.object({ actor: z.string().max(200).optional() }).optional()
})

/**
 * @param {object} parts
 * @param {import('./nats-connection.js').Connection} parts.nats
 * @param {string} parts.fleet  its name
 * @param {string} parts.app
 * @param {number} [parts.abandonedMs]
 * @param {(ms: number) => Promise<unknown>} [parts.wait]
 * @param {() => number} [parts.now]  monotonic, ms
 */
export function createStore ({ nats, fleet, app, abandonedMs = ABANDONED_MS, wait = waitFor, now = () => performance.now() }) {
  const bucket = `clusterdeck_${fleet}_releases`
  const stream = `OBJ_${bucket}`
  const piecesSubject = (/** @type {string} */ id) => `$O.${bucket}.C.${id}`
  const nameOf = (/** @type {string} */ digest) => `${appKey(app)}/${digest}`
  const objectSubject = (/** @type {string} */ digest) => `$O.${bucket}.M.${base64Url(Buffer.from(nameOf(digest)))}`
  /** Failed uploads of this app whose pieces are still in NATS: from the id of the pieces to the digest. @type {Map<string, string>} */
  const owed = new Map()
  const close = nats.use(async (open) => {
    for (const [id, digest] of owed) await dropPieces(open, id, digest).catch(() => {})
  })

  return {
    /** @returns {Promise<Pushed[]>} newest first @throws {DeckError} fleet-away */
    async list () {
      return (await callOrThrow(listOwn)).map(toPushed)
    },

    /** @param {string} digest @returns {Promise<boolean>} @throws {DeckError} fleet-away */
    has: async (digest) => await callOrThrow((open) => findStored(open, digest)) !== null,

    /**
     * A digest that is there already is not stored again.
     * @param {string} digest @param {AsyncIterable<Buffer>} source
     * @param {{ actor: string, named: string[] }} by `named`: digests to keep, whatever their age
     * @returns {Promise<Pushed & { isNew: boolean }>}
     * @throws {DeckError} fleet-away; payload-too-large, invalid-body: `source` has another digest; and what `source` throws
     */
    async put (digest, source, { actor, named }) {
      const there = await callOrThrow((open) => prepareUpload(open, digest))
      if (there) return { ...toPushed(there), isNew: false }
      const id = randomUUID()
      try {
        const { bytes, count } = await putPieces(id, verifyDigest(source, digest))
        const pushedAt = new Date().toISOString()
        await putAbout(digest, {
          name: nameOf(digest),
          bucket,
          nuid: id,
          size: bytes,
          chunks: count,
          digest: `SHA-256=${base64Url(Buffer.from(digest.slice('sha256:'.length), 'hex'))}`,
          mtime: pushedAt,
          options: { max_chunk_size: PIECE_BYTES },
          metadata: { actor }
        })
        await callOrThrow((open) => removeOld(open, new Set([digest, ...named]))).catch(() => {})
        return { digest, bytes, pushedAt, actor, isNew: true }
      } catch (error) {
        owed.set(id, digest)
        const dropped = await nats.attempt((open) => dropPieces(open, id, digest))
        const stored = dropped.is === 'done' ? dropped.value : null
        // Another deck was faster, or the answer of NATS was lost.
        if (stored && error instanceof DeckError && error.code === 'fleet-away') return { ...toPushed(stored), isNew: stored.id === id }
        throw error
      }
    },

    /**
     * Its bytes, unchecked. If the connection is lost meanwhile, it waits for the next one.
     * @param {string} digest @returns {AsyncGenerator<Uint8Array>} @throws {DeckError} fleet-away, not-found
     */
    async * read (digest) {
      const found = await callOrThrow((open) => findStored(open, digest))
      if (!found) throw notPushed(digest)
      let seq = 1
      for (let left = found.pieces; left > 0; left--) {
        const piece = await nextPiece(found, seq)
        seq = piece.seq + 1
        yield piece.data
      }
    },

    close
  }

  /** @template T @param {(open: Open) => Promise<T>} work @returns {Promise<T>} @throws {DeckError} fleet-away */
  async function callOrThrow (work) {
    return valueOrThrow(await nats.attempt(work))
  }

  /** @param {Open} open @param {string} digest @returns {Promise<Stored | null>} what is there already, whole */
  async function prepareUpload (open, digest) {
    const { connection, manager } = open
    /** @type {Partial<import('@nats-io/jetstream').StreamConfig> & { name: string }} */
    const config = {
      name: stream,
      subjects: [piecesSubject('>'), `$O.${bucket}.M.>`],
      allow_rollup_hdrs: true,
      allow_direct: true,
      discard: 'new',
      storage: 'file'
    }
    await makeReplicated({ connection, manager }, stream, async (replicas) => {
      if (!await streamExists(manager, stream)) await manager.streams.add({ ...config, num_replicas: replicas })
    })
    const found = await findStored(open, digest)
    if (!found) await manager.streams.purge(stream, { filter: objectSubject(digest) })
    return found
  }

  /** @param {Open} open @param {string} id @param {string} digest @returns {Promise<Stored | null>} what is there of that digest */
  async function dropPieces (open, id, digest) {
    const found = await findStored(open, digest)
    if (found?.id !== id && await streamExists(open.manager, stream)) await open.manager.streams.purge(stream, { filter: piecesSubject(id) })
    owed.delete(id)
    return found
  }

  /** @param {Open} open @param {string} digest @returns {Promise<Stored | null>} null also where a part of it is lost */
  async function findStored ({ manager }, digest) {
    if (!await streamExists(manager, stream)) return null
    const found = storedOf(await manager.streams.getMessage(stream, { last_by_subj: objectSubject(digest) }))
    return found && found.app === appKey(app) && found.digest === digest && isWhole(found, await subjectsOf(manager, piecesSubject(found.id))) ? found : null
  }

  /** @param {Open} open @returns {Promise<Stored[]>} newest first */
  async function listOwn (open) {
    return (await listAll(open)).filter((stored) => stored.app === appKey(app))
  }

  /** @param {Open} open @returns {Promise<Stored[]>} of all apps, newest first */
  async function listAll ({ manager }) {
    if (!await streamExists(manager, stream)) return []
    const subjects = Object.keys(await subjectsOf(manager, `$O.${bucket}.M.>`))
    const found = await Promise.all(subjects.map(async (subject) => storedOf(await manager.streams.getMessage(stream, { last_by_subj: subject }))))
    const counts = await subjectsOf(manager, piecesSubject('>'))
    return found.flatMap((stored) => stored && isWhole(stored, counts) ? stored : []).sort((one, other) => other.revision - one.revision)
  }

  /** @param {Stored} stored @param {Record<string, number>} counts */
  function isWhole ({ id, pieces: count }, counts) {
    return counts[piecesSubject(id)] === count
  }

  /** @param {Open['manager']} manager @param {string} filter @returns {Promise<Record<string, number>>} how many messages each has */
  async function subjectsOf (manager, filter) {
    const { state } = await manager.streams.info(stream, { subjects_filter: filter })
    return state.subjects ?? {}
  }

  /** @param {string} id @param {AsyncIterable<Buffer>} source */
  async function putPieces (id, source) {
    const size = await callOrThrow(async ({ connection }) => Math.min(PIECE_BYTES, (connection.info?.max_payload ?? 0) - ENVELOPE_BYTES))
    let [bytes, count] = [0, 0]
    for await (const piece of piecesOf(source, size)) {
      await callOrThrow(({ js }) => js.publish(piecesSubject(id), piece, { msgID: `${id}-${count}` }))
      bytes += piece.length
      count++
    }
    return { bytes, count }
  }

  /** @param {string} digest @param {object} object */
  async function putAbout (digest, object) {
    await callOrThrow(({ js }) => js.publish(objectSubject(digest), JSON.stringify(object), { expect: { lastSubjectSequence: 0 } }))
  }

  /** @param {Stored} stored @param {number} seq  the first that it may be @returns {Promise<{ seq: number, data: Uint8Array }>} */
  async function nextPiece ({ id, digest }, seq) {
    const until = now() + STALLED_MS
    for (;;) {
      const found = await nats.attempt(({ manager }) => manager.direct.getMessage(stream, { seq, next_by_subj: piecesSubject(id) }))
      if (found.is === 'done' && found.value) return found.value
      if (now() > until) throw new DeckError('fleet-away', `${digest} cannot be read: ${found.is === 'away' ? found.reason : 'a part is missing'}`)
      await wait(AGAIN_MS)
    }
  }

  /** Removes the oldest ones of this app, and pieces without an object. @param {Open} open @param {Set<string>} named */
  async function removeOld (open, named) {
    const { manager } = open
    const all = await listAll(open)
    const own = all.filter((stored) => stored.app === appKey(app))
    for (const { digest, id } of own.slice(KEPT).filter((each) => !named.has(each.digest))) {
      await manager.streams.purge(stream, { filter: objectSubject(digest) })
      await manager.streams.purge(stream, { filter: piecesSubject(id) })
    }
    // Both times are by the clock of NATS.
    const newest = await manager.streams.getMessage(stream, { seq: all[0].revision })
    const known = new Set(all.map(({ id }) => piecesSubject(id)))
    for (const subject of Object.keys(await subjectsOf(manager, piecesSubject('>')))) {
      if (known.has(subject)) continue
      const last = await manager.streams.getMessage(stream, { last_by_subj: subject })
      if (newest && last && newest.time.getTime() - last.time.getTime() >= abandonedMs) await manager.streams.purge(stream, { filter: subject })
    }
  }
}

/** @param {string} digest */
export function notPushed (digest) {
  return new DeckError('not-found', `${digest} is not in the fleet: it was never pushed, or has been removed`)
}

/** @param {import('@nats-io/jetstream').StoredMsg | null} message @returns {Stored | null} null: it is none */
function storedOf (message) {
  const found = message && parseUntrusted(OBJECT, () => message.json())
  const [, app, digest] = /^([^/]+)\/(.+)$/.exec(found?.name ?? '') ?? []
  if (!found || !DIGEST.test(digest)) return null
  return {
    app,
    digest,
    bytes: found.size,
    pushedAt: found.mtime,
    actor: found.metadata?.actor ?? null,
    id: found.nuid,
    pieces: found.chunks,
    revision: message.seq
  }
}

/** @param {AsyncIterable<Buffer>} source @param {string} digest @returns {AsyncGenerator<Buffer>} @throws {DeckError} payload-too-large, invalid-body */
async function * verifyDigest (source, digest) {
  const hash = createHash('sha256')
  let bytes = 0
  for await (const chunk of source) {
    bytes += chunk.length
    if (bytes > ARCHIVE.maxBytes) throw new DeckError('payload-too-large', `The archive is too large: expected at most ${ARCHIVE.maxBytes} bytes`)
    hash.update(chunk)
    yield chunk
  }
  const received = `sha256:${hash.digest('hex')}`
  if (bytes === 0 || received !== digest) throw new DeckError('invalid-body', `digest: expected that of the body, ${received}, received ${digest}`)
}

/** @param {AsyncIterable<Buffer>} source @param {number} size  of each but the last one @returns {AsyncGenerator<Buffer>} */
async function * piecesOf (source, size) {
  /** @type {Buffer[]} */
  let chunks = []
  let length = 0
  for await (const chunk of source) {
    chunks.push(chunk)
    length += chunk.length
    if (length < size) continue
    const all = Buffer.concat(chunks)
    const whole = length - length % size
    for (let at = 0; at < whole; at += size) yield all.subarray(at, at + size)
    chunks = [all.subarray(whole)]
    length -= whole
  }
  if (length > 0) yield Buffer.concat(chunks)
}

/** With its padding, as NATS has it. @param {Buffer} bytes */
function base64Url (bytes) {
  return bytes.toString('base64').replaceAll('+', '-').replaceAll('/', '_')
}

/** @param {Stored} stored @returns {Pushed} */
function toPushed ({ digest, bytes, pushedAt, actor }) {
  return { digest, bytes, pushedAt, actor }
}

/** @param {number} ms @returns {Promise<void>} */
function waitFor (ms) {
  return new Promise((resolve) => { setTimeout(resolve, ms).unref() })
}
