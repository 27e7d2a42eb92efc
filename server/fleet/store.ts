import { createHash, randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { DeckError } from '../errors.ts'
import { ARCHIVE } from '../system/archive.ts'
import { appKey } from './app-key.ts'
import { DIGEST } from './document.ts'
import { valueOrThrow, type Connection, type Open } from './nats-connection.ts'
import { parseUntrusted } from './untrusted-json.ts'
import { streamExists, makeReplicated } from './streams.ts'
import type { StoredMsg, StreamConfig } from '@nats-io/jetstream'

/**
 * Keeps the pushed archives of an app by their digests in a NATS object store, whose objects are called
 * `<app>/<digest>`. It reads and writes piece by piece and asks for the next one only after the last one was handled,
 * so neither a slow disk nor a hostile NATS fills the memory.
 */
export type Store = ReturnType<typeof createStore>
/** `digest`: `sha256:` and 64 hex digits */
export type Pushed = { digest: string, bytes: number, pushedAt: string, actor: string | null }
/** `app`: its key; `id`: of its pieces */
type Stored = Pushed & { app: string, id: string, pieces: number, revision: number }

const PIECE_BYTES = 512 * 1024
/** A message has headers beside its data. */
const ENVELOPE_BYTES = 4096
/** A read fails if nothing comes for this time. */
const STALLED_MS = 60_000
const AGAIN_MS = 1000
const KEPT = 5
/** Pieces without an object are of a failed upload once they are this old. */
const ABANDONED_MS = 10 * 60_000

const OBJECT = z.object({ name: z.string().max(1000), nuid: z.string().regex(/^[\w-]{1,64}$/),
  size: z.int().min(1).max(ARCHIVE.maxBytes), chunks: z.int().min(1).max(ARCHIVE.maxBytes),
  deleted: z.literal(false).optional(), mtime: z.string().max(40),
  metadata: z.object({ actor: z.string().max(200).optional() }).optional() })

export function createStore (
  { nats, fleet, app, abandonedMs = ABANDONED_MS, wait = (ms) => sleep(ms, undefined, { ref: false }), now = () =>
    performance.now() }: {
      nats: Connection,
      /** its name */
      fleet: string,
      app: string,
      abandonedMs?: number,
      wait?: (ms: number) => Promise<unknown>,
      /** monotonic, ms */
      now?: () => number
    }
) {
  const bucket = `clusterdeck_${fleet}_releases`
  const stream = `OBJ_${bucket}`
  const piecesSubject = (id: string) => `$O.${bucket}.C.${id}`
  const nameOf = (digest: string) => `${appKey(app)}/${digest}`
  const objectSubject = (digest: string) => `$O.${bucket}.M.${base64Url(Buffer.from(nameOf(digest)))}`
  /** Failed uploads of this app whose pieces are still in NATS: from the id of the pieces to the digest. */
  const owed: Map<string, string> = new Map()
  const close = nats.use(async (open) => {
    for (const [id, digest] of owed) await dropPieces(open, id, digest).catch(() => {})
  })

  return {
    /** @returns newest first @throws {DeckError} fleet-away */
    async list (): Promise<Pushed[]> {
      return (await callOrThrow(listAll)).filter((stored) => stored.app === appKey(app)).map(toPushed)
    },

    /** @throws {DeckError} fleet-away */
    has: async (digest: string): Promise<boolean> => await callOrThrow((open) => findStored(open, digest)) !== null,

    /**
     * A digest that is there already is not stored again.
     * @param by `named`: digests to keep, whatever their age
     * @throws {DeckError} fleet-away; payload-too-large, invalid-body: `source` has another digest; and what `source`
     * throws
     */
    async put (digest: string, source: AsyncIterable<Buffer>,
      { actor, named }: { actor: string, named: string[] }): Promise<Pushed & { isNew: boolean }>
    {
      const there = await callOrThrow((open) => prepareUpload(open, digest))
      if (there) return { ...toPushed(there), isNew: false }
      const id = randomUUID()
      try {
        const { bytes, count } = await putPieces(id, verifyDigest(source, digest))
        const pushedAt = new Date().toISOString()
        const about = { name: nameOf(digest), bucket, nuid: id, size: bytes, chunks: count,
          digest: `SHA-256=${base64Url(Buffer.from(digest.slice('sha256:'.length), 'hex'))}`, mtime: pushedAt,
          options: { max_chunk_size: PIECE_BYTES }, metadata: { actor } }
        await callOrThrow(({ js }) =>
          js.publish(objectSubject(digest), JSON.stringify(about), { expect: { lastSubjectSequence: 0 } })
        )
        await callOrThrow((open) => removeOld(open, new Set([digest, ...named]))).catch(() => {})
        return { digest, bytes, pushedAt, actor, isNew: true }
      } catch (error) {
        owed.set(id, digest)
        const dropped = await nats.attempt((open) => dropPieces(open, id, digest))
        const stored = dropped.is === 'done' ? dropped.value : null
        // Another deck was faster, or the answer of NATS was lost.
        if (stored && error instanceof DeckError && error.code === 'fleet-away')
          return { ...toPushed(stored), isNew: stored.id === id }
        throw error
      }
    },

    /**
     * Its bytes, unchecked. If the connection is lost meanwhile, it waits for the next one.
     * @throws {DeckError} fleet-away, not-found
     */
    async *read (digest: string): AsyncGenerator<Uint8Array> {
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

  /** @throws {DeckError} fleet-away */
  async function callOrThrow<T> (work: (open: Open) => Promise<T>): Promise<T> {
    return valueOrThrow(await nats.attempt(work))
  }

  /** @returns what is there already, whole */
  async function prepareUpload (open: Open, digest: string): Promise<Stored | null> {
    const { connection, manager } = open
    const config: Partial<StreamConfig> & { name: string } = { name: stream,
      subjects: [piecesSubject('>'), `$O.${bucket}.M.>`], allow_rollup_hdrs: true, allow_direct: true, discard: 'new',
      storage: 'file' }
    await makeReplicated({ connection, manager }, stream, async (replicas) => {
      if (!await streamExists(manager, stream)) await manager.streams.add({ ...config, num_replicas: replicas })
    })
    const found = await findStored(open, digest)
    if (!found) await manager.streams.purge(stream, { filter: objectSubject(digest) })
    return found
  }

  /** @returns what is there of that digest */
  async function dropPieces (open: Open, id: string, digest: string): Promise<Stored | null> {
    const found = await findStored(open, digest)
    if (found?.id !== id && await streamExists(open.manager, stream))
      await open.manager.streams.purge(stream, { filter: piecesSubject(id) })
    owed.delete(id)
    return found
  }

  /** @returns null also where a part of it is lost */
  async function findStored ({ manager }: Open, digest: string): Promise<Stored | null> {
    if (!await streamExists(manager, stream)) return null
    const found = storedOf(await manager.streams.getMessage(stream, { last_by_subj: objectSubject(digest) }))
    return found && found.app === appKey(app) && found.digest === digest &&
        isWhole(found, await subjectsOf(manager, piecesSubject(found.id)))
      ? found
      : null
  }

  /** @returns of all apps, newest first */
  async function listAll ({ manager }: Open): Promise<Stored[]> {
    if (!await streamExists(manager, stream)) return []
    const subjects = Object.keys(await subjectsOf(manager, `$O.${bucket}.M.>`))
    const found = await Promise.all(
      subjects.map(async (subject) => storedOf(await manager.streams.getMessage(stream, { last_by_subj: subject })))
    )
    const counts = await subjectsOf(manager, piecesSubject('>'))
    return found.flatMap((stored) => stored && isWhole(stored, counts) ? stored : []).sort((one, other) =>
      other.revision - one.revision
    )
  }

  function isWhole ({ id, pieces: count }: Stored, counts: Record<string, number>) {
    return counts[piecesSubject(id)] === count
  }

  /** @returns how many messages each has */
  async function subjectsOf (manager: Open['manager'], filter: string): Promise<Record<string, number>> {
    const { state } = await manager.streams.info(stream, { subjects_filter: filter })
    return state.subjects ?? {}
  }

  async function putPieces (id: string, source: AsyncIterable<Buffer>) {
    const size = await callOrThrow(async ({ connection }) =>
      Math.min(PIECE_BYTES, (connection.info?.max_payload ?? 0) - ENVELOPE_BYTES)
    )
    let [bytes, count] = [0, 0]
    for await (const piece of piecesOf(source, size)) {
      await callOrThrow(({ js }) => js.publish(piecesSubject(id), piece, { msgID: `${id}-${count}` }))
      bytes += piece.length
      count++
    }
    return { bytes, count }
  }

  /** `seq`: the first that it may be */
  async function nextPiece ({ id, digest }: Stored, seq: number): Promise<{ seq: number, data: Uint8Array }> {
    const until = now() + STALLED_MS
    for (;;) {
      const found = await nats.attempt(({ manager }) =>
        manager.direct.getMessage(stream, { seq, next_by_subj: piecesSubject(id) })
      )
      if (found.is === 'done' && found.value) return found.value
      if (now() > until)
        throw new DeckError('fleet-away',
          `${digest} cannot be read: ${found.is === 'away' ? found.reason : 'a part is missing'}`)
      await wait(AGAIN_MS)
    }
  }

  /** Removes the oldest ones of this app, and pieces without an object. */
  async function removeOld (open: Open, named: Set<string>) {
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
      if (newest && last && newest.time.getTime() - last.time.getTime() >= abandonedMs)
        await manager.streams.purge(stream, { filter: subject })
    }
  }
}

export function notPushed (digest: string) {
  return new DeckError('not-found', `${digest} is not in the fleet: it was never pushed, or has been removed`)
}

/** Null: it is none */
function storedOf (message: StoredMsg | null): Stored | null {
  const found = message && parseUntrusted(OBJECT, () => message.json())
  const [, app, digest] = /^([^/]+)\/(.+)$/.exec(found?.name ?? '') ?? []
  if (!found || !DIGEST.test(digest)) return null
  return { app, digest, bytes: found.size, pushedAt: found.mtime, actor: found.metadata?.actor ?? null, id: found.nuid,
    pieces: found.chunks, revision: message.seq }
}

/** @throws {DeckError} payload-too-large, invalid-body */
async function* verifyDigest (source: AsyncIterable<Buffer>, digest: string): AsyncGenerator<Buffer> {
  const hash = createHash('sha256')
  let bytes = 0
  for await (const chunk of source) {
    bytes += chunk.length
    if (bytes > ARCHIVE.maxBytes)
      throw new DeckError('payload-too-large', `The archive is too large: expected at most ${ARCHIVE.maxBytes} bytes`)
    hash.update(chunk)
    yield chunk
  }
  const received = `sha256:${hash.digest('hex')}`
  if (bytes === 0 || received !== digest)
    throw new DeckError('invalid-body', `digest: expected that of the body, ${received}, received ${digest}`)
}

/** `size`: of each but the last one */
async function* piecesOf (source: AsyncIterable<Buffer>, size: number): AsyncGenerator<Buffer> {
  let chunks: Buffer[] = []
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

/** With its padding, as NATS has it. */
function base64Url (bytes: Buffer) {
  return bytes.toString('base64').replaceAll('+', '-').replaceAll('/', '_')
}

function toPushed ({ digest, bytes, pushedAt, actor }: Stored): Pushed {
  return { digest, bytes, pushedAt, actor }
}
