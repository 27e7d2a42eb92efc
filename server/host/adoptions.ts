import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import net from 'node:net'
import path from 'node:path'
import { z } from 'zod'
import { APP_ORDER } from '../config/orders.ts'
import { DeckError, errorText } from '../errors.ts'
import { createJsonLines, type JsonLines } from '../handover/json-lines.ts'
import { receiveSockets } from '../handover/socket-passing.ts'
import { makeSocketFolder } from '../system/loan.ts'
import type { AdoptionView } from './api.ts'
import type { Arrival } from './hosted-app.ts'
import type { Apps } from './apps.ts'
import type { Log } from '../system/log.ts'

type Adoption =
  & AdoptionView
  & { actor: string, secret: string, wantedName: string | undefined, stopWaiting: () => void, close: () => void }

/**
 * How long a deck is waited for, with its sockets. How long its workers may take to get ready here is said by their own
 * options.
 */
const COMES_WITHIN_MS = 30_000
/** While they get ready, the host tells the deck this often that it does not hang. */
const BEAT_MS = 3000
/** The oldest ones that are over are forgotten. */
const MAX_KEPT = 100
const LINE = 'deck'
const SOCKETS = `${LINE}-sockets`

const HELLO = z.strictObject({ type: z.literal('hello'), secret: z.string(), pid: z.int().positive(),
  dataDir: z.string().refine(path.isAbsolute), order: APP_ORDER })
const PROGRAM = z.strictObject({ type: z.literal('program'), secret: z.string(), from: z.string().min(1).max(500),
  order: APP_ORDER })
const NEWCOMER = z.union([HELLO, PROGRAM])
const SOCKET_LIST = z.strictObject({ type: z.literal('sockets'),
  sockets: z.array(
    z.strictObject({ key: z.string().max(1000), data: z.unknown(), kind: z.enum(['stream', 'datagram']) })
  ).max(1000) })
const EXIT = z.strictObject({ type: z.literal('exit'), pid: z.int().positive(), code: z.int().nullable(),
  signal: z.string().nullable() })

/**
 * Takes running decks of this user into the host, and starts apps in the place of programs of no deck, for whom a
 * command comes. Each comes by a socket in a folder that no other user can enter, with a secret that counts once.
 */
export function createAdoptions ({ folder, apps, log, comesWithinMs = COMES_WITHIN_MS }: {
  /** of the host */
  folder: string,
  apps: Pick<Apps, 'expect' | 'adopt' | 'replace'>,
  log: Log,
  comesWithinMs?: number
}) {
  const adoptions: Map<number, Adoption> = new Map()
  let lastId = 0

  return {
    /**
     * Waits for one deck. `name`: what the host is to call it, in place of its own name. Returns what its master
     * has to be told.
     * @throws {DeckError} not-possible
     */
    async begin (
      { name, actor }: { name?: string, actor: string }
    ): Promise<{ view: AdoptionView, path: string, secret: string }> {
      const place = makeSocketFolder(folder, 'adopt-', SOCKETS)
      const secret = randomBytes(32).toString('base64url')
      const id = ++lastId
      const adoption: Adoption = { id, state: 'waiting', app: null, reason: null, actor, secret, wantedName: name,
        stopWaiting: () => {}, close: () => {} }
      const line = net.createServer((connection) => receive(adoption, connection, sockets))
      const sockets = net.createServer({ pauseOnConnect: true })
      const timer = setTimeout(() => fail(adoption, 'no deck has come'), comesWithinMs)
      adoption.stopWaiting = () => clearTimeout(timer)
      adoption.close = () => {
        clearTimeout(timer)
        for (const server of [line, sockets]) server.close()
        rmSync(place, { recursive: true, force: true })
      }
      await Promise.all([listen(line, path.join(place, LINE)), listen(sockets, path.join(place, SOCKETS))])
      adoptions.set(id, adoption)
      forgetOldest()
      return { view: viewOf(adoption), path: path.join(place, LINE), secret }
    },

    /** @throws {DeckError} not-found */
    view (id: number): AdoptionView {
      const adoption = adoptions.get(id)
      if (adoption) return viewOf(adoption)
      throw new DeckError('not-found', `There is no adoption ${id}, or it was too long ago`)
    },

    /** Waits for no deck any more. */
    close () {
      for (const adoption of adoptions.values()) if (adoption.state === 'waiting') fail(adoption, 'the host ends')
    }
  }

  async function receive (adoption: Adoption, connection: net.Socket, sockets: net.Server) {
    const line = createJsonLines(connection)
    try {
      await goOn(adoption, { ...await welcome(adoption, { line, sockets }), line })
    } catch (error) {
      const { code, message } = error instanceof DeckError ? error : { code: 'internal', message: errorText(error) }
      if (code === 'internal') log.error({ err: error }, 'an app could not be moved into this host')
      line.send({ type: 'refused', code, message })
      line.close()
      fail(adoption, message)
    } finally {
      adoption.close()
    }
  }

  async function welcome (adoption: Adoption, { line, sockets }: { line: JsonLines, sockets: net.Server }) {
    const newcomer = expect(NEWCOMER, await line.next())
    const { secret, order } = newcomer
    if (adoption.state !== 'waiting' || secret !== adoption.secret)
      throw new DeckError('forbidden', 'secret: expected that of this adoption, which counts once')
    adoption.state = 'moving'
    // Where the folder is must not depend on where a link leads by now, or on a config file that has changed since.
    const flags = newcomer.type === 'hello' ? { ...order.flags, dataDir: newcomer.dataDir } : order.flags
    const app = await apps.expect({ ...order, ...(adoption.wantedName !== undefined && { name: adoption.wantedName }),
      flags })
    adoption.app = app.name
    line.send({ type: 'accepted', name: app.name, pid: process.pid })
    const handles = new Map()
    const { sockets: listed } = expect(SOCKET_LIST, await line.next())
    if (listed.length > 0) {
      const [connection] = await once(sockets, 'connection')
      const received = await receiveSockets(connection, listed.map(({ kind }) => kind))
      listed.forEach(({ key, data }, index) => handles.set(key, { handle: received[index], data: data ?? undefined }))
    }
    // Else it has failed meanwhile, as the deck has taken too long.
    if (adoption.state === 'moving') {
      adoption.stopWaiting()
      line.send({ type: 'received' })
      if ((await line.next())?.type === 'released') return { app, newcomer, handles }
    }
    for (const { handle } of handles.values()) handle.close()
    throw new DeckError('not-possible', 'the deck stays where it is')
  }

  async function goOn (adoption: Adoption,
    { app, newcomer, handles, line }: Awaited<ReturnType<typeof welcome>> & { line: JsonLines })
  {
    const beat = setInterval(() => line.send({ type: 'starting' }), BEAT_MS)
    try {
      if (newcomer.type === 'hello') await apps.adopt(app, arrivalOf(newcomer, handles, line), adoption)
      else await apps.replace(app, { sockets: handles, from: newcomer.from, abandoned: untilAbandoned(line) }, adoption)
    } finally {
      clearInterval(beat)
    }
    adoption.state = 'done'
    line.send({ type: 'serving' })
  }

  function fail (adoption: Adoption, reason: string) {
    if (adoption.state === 'done') return
    Object.assign(adoption, { state: 'failed', reason })
    adoption.close()
  }

  function forgetOldest () {
    for (const [id, { state }] of adoptions)
      if (adoptions.size > MAX_KEPT && (state === 'done' || state === 'failed')) adoptions.delete(id)
  }
}

function arrivalOf ({ pid }: z.infer<typeof HELLO>, sockets: Arrival['sockets'], line: JsonLines): Arrival {
  const arrival: Arrival = { before: { pid, code: null, signal: null }, from: `a deck of its own (pid ${pid})`, sockets,
    onExit: () => {} }
  tellExits(line, arrival)
  return arrival
}

/** Nobody would ask the program to end any more. */
async function untilAbandoned (line: JsonLines) {
  while (await line.next() !== null);
  return 'the command that moves it has ended'
}

/** The workers of a deck are children of its master, which waits for their end. */
async function tellExits (line: JsonLines, arrival: Arrival) {
  for (let message; (message = await line.next());) {
    const { data } = EXIT.safeParse(message)
    if (data) arrival.onExit({ pid: data.pid, code: data.code, signal: data.signal })
  }
}

/** @throws {DeckError} not-possible */
function expect<Schema extends z.ZodType> (schema: Schema, message: unknown): z.infer<Schema> {
  const { success, data } = schema.safeParse(message)
  if (success) return data
  throw new DeckError('not-possible',
    message === null
      ? 'the deck has gone'
      : 'the deck says what this host does not understand: it may be of another version; upgrade it first')
}

function viewOf ({ id, state, app, reason }: Adoption): AdoptionView {
  return { id, state, app, reason }
}

async function listen (server: net.Server, file: string) {
  await new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(file, () => resolve(null))
  })
}
