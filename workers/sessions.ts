import { setTimeout } from 'node:timers'
import { watchAnswers } from './answers.ts'
import { ASKED, takeBack, type Asked } from './asked-connection.ts'
import { loadConnectionCalls } from './connection-calls.ts'
import { createPassing, type Passing } from './passing.ts'
import { createSessionNames } from './session-names.ts'
import { openSessionOwners } from './session-owners.ts'
import type { IncomingMessage as Request } from 'node:http'
import type { Socket } from 'node:net'
import type { AnyResponse, AnyServer, SocketHandle } from './node-internals.d.ts'
import type { SessionSettings } from './protocol.ts'
import type { Requests } from './requests.ts'

/** Node marks those that change the protocol. */
type AskedFor =
  & Request
  & { upgrade?: boolean }

/** How many a worker knows by name. */
const MAX_OWN = 100_000
/** The file of all owners is told this often that a session is still in use. */
const CLAIM_EVERY_MS = 60_000
/** A worker that cannot take a connection now is asked again this often, until it can or has ended. */
const AGAIN_MS = 5
/** Sessions in use are counted anew this often. */
const COUNT_EVERY_MS = 1000
/** With such a request a client of the Model Context Protocol ends its session. */
const ENDED_BY_DELETE = 'mcp-session-id'

export type Sessions = ReturnType<typeof createSessions>

/** Where no session has an owner. */
export const NO_SESSIONS: Sessions = Object.freeze({ take () {}, begin () {}, count: () => 0, has: () => false,
  end () {} })

/**
 * Keeps the sessions of an app that has them in memory with the worker that has made them. The answer that tells a
 * client its session tells it here too. A connection that another worker gets for this session is passed to its owner:
 * a new one before anything is read from it, and one that was used before together with the request that names the
 * session. A draining worker still gets those of its sessions, until these are over.
 */
export function createSessions ({ folder, by, idleMs }: SessionSettings,
  { worker, requests, onProblem, now = () => performance.now() }: {
    worker: number,
    requests: Pick<Requests, 'inFlight' | 'isAlone' | 'passOn'>,
    onProblem: (message: string) => void,
    /** monotonic clock, ms */
    now?: () => number
  })
{
  const names = createSessionNames(by)
  /** Its own sessions, in the order in which they were claimed. */
  const own: Map<string, { usedAt: number, claimedAt: number }> = new Map()
  const servers: Set<AnyServer> = new Set()
  /** what takes the connections of a listening socket, by its key */
  const places: Map<string, (client: SocketHandle, bytes: Buffer) => void> = new Map()
  /** Connections that were passed here, with the session for which; '': the first request will say. */
  const passedFor: WeakMap<object, string> = new WeakMap()
  /** Connections that are about to be passed, with all that was asked on them since. */
  const leaving: WeakMap<object, Asked[]> = new WeakMap()
  /** null: there are none here */
  let tools: ReturnType<typeof openTools> | null | undefined
  /** How many connections wait until another worker can take them. */
  let waiting = 0
  let [counted, countedAt] = [0, 0]
  let state: 'serving' | 'draining' | 'ended' = 'serving'

  return {
    /** `handle`: its listening socket, before Node has it */
    take (server: AnyServer, key: string, handle: SocketHandle) {
      if (!isPlainHttp(server) || !prepare()) return
      const { listen } = handle
      handle.listen = function (backlog) {
        handle.listen = listen
        tools?.calls.waitForBytes(handle.fd)
        watchServer(server, key, handle)
        return listen.call(handle, backlog)
      }
    },

    /**
     * It drains, and its servers are about to close. Apps may end what they need as soon as these say 'close', so that
     * has to wait.
     */
    begin () {
      if (state !== 'serving') return
      state = 'draining'
      for (const server of servers) server._connections++
    },

    /** @returns how many of its sessions are in use; a connection that is not passed whole yet counts as one */
    count (): number {
      const unpassed = waiting + (tools?.passing.halfway() ?? 0)
      if (state === 'ended') return unpassed
      if (counted > 0 && now() - countedAt < COUNT_EVERY_MS) return counted
      countedAt = now()
      for (const { response } of requests.inFlight()) if (response) noteUse(names.inRequest(response.req))
      const since = now() - idleMs
      counted = unpassed
      for (const { usedAt } of own.values()) if (usedAt >= since) counted++
      return counted
    },

    /** Tells whether it belongs to one of its sessions */
    has (request: Request): boolean {
      const session = names.inRequest(request)
      return session !== null && own.has(session)
    },

    /** Its sessions are over: others serve what still comes for them. */
    end () {
      if (state === 'draining') { for (const server of servers) letClose(server) }
      state = 'ended'
      own.clear()
      tools?.passing.close()
    }
  }

  /** Tells whether sessions can be kept here */
  function prepare (): boolean {
    if (tools !== undefined) return tools !== null
    try {
      tools = openTools()
      watchAnswers({ onHead: learnFromHead, onBody: names.isInBody ? learnFromBody : null })
    } catch (error) {
      tools = null
      onProblem(`sessions do not stay with this worker (sticky.by): ${error instanceof Error ? error.message : error}`)
    }
    return tools !== null
  }

  /** @throws {Error} */
  function openTools () {
    const calls = loadConnectionCalls()
    if (!calls) throw new Error('the package koffi cannot be loaded')
    const owners = openSessionOwners(folder)
    const passing = createPassing({ folder, worker, calls,
      onPassed: ({ key, bytes, handle }) => (places.get(key) ?? closeHandle)(handle, bytes),
      onProblem: ({ message }) => onProblem(`no worker can pass connections to this one (sticky.by): ${message}`) })
    return { calls, owners, passing }
  }

  function watchServer (server: AnyServer, key: string, handle: SocketHandle) {
    const { onconnection } = handle
    const { emit } = server
    /** what was read of the connection that is passed here just now */
    let passed: Buffer | null = null

    handle.onconnection = function (error, client) {
      if (error || !passNew(key, client, () => onconnection.call(handle, 0, client)))
        onconnection.call(handle, error, client)
    }
    server.emit = function (...event: unknown[]) {
      const [name, ...args] = event as [name: string, AskedFor, AnyResponse, Buffer]
      const goOn = () => Reflect.apply(emit, this, event)
      if (ASKED.has(name) && passAsked(key, args, goOn)) return true
      const isHeard = goOn()
      if (name === 'connection' && passed) takeOver(event[1] as Socket, passed)
      return isHeard
    }
    servers.add(server)
    places.set(key, (client, bytes) => {
      passed = bytes
      onconnection.call(handle, 0, client)
      passed = null
    })
  }

  function takeOver (socket: Socket, bytes: Buffer) {
    passedFor.set(socket, '')
    if (bytes.length > 0) socket.unshift(bytes)
  }

  /** Tells whether it goes to another worker, or waits for that */
  function passNew (key: string, client: SocketHandle, keep: () => void): boolean {
    const session = names.inHead(tools?.calls.peek(client.fd) ?? '')
    const owner = session === null || noteUse(session) ? null : ownerElsewhere(session)
    if (owner === null) return false
    pass(owner, { key, fd: client.fd }, (isPassed) => isPassed ? client.close() : keep())
    return true
  }

  /** `args`: of the event @returns as of passNew */
  function passAsked (key: string, [request, response, head]: [AskedFor, AnyResponse, Buffer],
    keep: () => void): boolean
  {
    const one = { request, head: request.upgrade ? head : null }
    // Whatever a client asks behind such a request is the other worker's too: nobody could answer it here.
    if (leaving.get(request.socket)?.push(one)) return true
    const session = names.inRequest(request)
    if (session === null) return false
    const { socket } = request
    const isPassed = passedFor.get(socket)
    if (isPassed === '') passedFor.set(socket, session)
    // It goes on no further than once, should its owner not know it.
    if (noteUse(session) || isPassed === '' || isPassed === session) return false
    // What has no handle is a connection inside this process.
    if (!socket._handle || !(request.upgrade || requests.isAlone(response))) return false
    const owner = ownerElsewhere(session)
    if (owner === null) return false
    const asked = [one]
    leaving.set(socket, asked)
    takeBack(asked, (bytes) => passUsed(owner, key, socket, bytes), () => {
      // One of several was too long: none has been begun, and the client may ask again.
      if (asked.length > 1) return socket.destroy()
      leaving.delete(socket)
      keep()
    })
    return true
  }

  /** `bytes`: that were read from it */
  function passUsed (to: number, key: string, socket: Socket, bytes: Buffer) {
    const { _handle: handle } = socket
    // Its client has gone meanwhile.
    if (!handle) return
    handle.readStop?.()
    // While this waits for the other worker, Node may neither read on, as it does once a body has room again, nor close
    // it, as its descriptor would be that of another client.
    socket._handle = null
    pass(to, { key, fd: handle.fd, bytes }, () => {
      requests.passOn(socket)
      handle.close()
      socket.destroy()
    })
  }

  function pass (to: number, connection: Parameters<Passing['pass']>[1], done: (isPassed: boolean) => void) {
    const outcome = tools?.passing.pass(to, connection)
    if (outcome !== 'busy') return done(outcome === 'passed')
    waiting++
    setTimeout(() => {
      waiting--
      pass(to, connection, done)
    }, AGAIN_MS)
  }

  /** `session`: that this worker does not know. Returns the worker that has it; null: no other that lives. */
  function ownerElsewhere (session: string): number | null {
    const owner = tools?.owners.find(session) ?? null
    return owner === null || owner === worker || !tools?.passing.isThere(owner) ? null : owner
  }

  /** Tells whether this worker has it */
  function noteUse (session: string | null): boolean {
    const use = session === null ? undefined : own.get(session)
    if (!use || session === null) return false
    use.usedAt = now()
    if (use.usedAt - use.claimedAt > CLAIM_EVERY_MS) claim(session)
    return true
  }

  function claim (session: string) {
    own.delete(session)
    own.set(session, { usedAt: now(), claimedAt: now() })
    if (own.size > MAX_OWN) own.delete(String(own.keys().next().value))
    tools?.owners.claim(session, worker)
  }

  function learnFromHead ({ req, statusCode }: AnyResponse, head: string) {
    const ended = by.header === ENDED_BY_DELETE && req.method === 'DELETE' && statusCode < 300
      ? names.inRequest(req)
      : null
    if (ended) own.delete(ended)
    else learn(names.inAnswer(head) ?? (statusCode < 400 ? names.inPath(req) : null))
  }

  function learnFromBody ({ req }: AnyResponse, body: string) {
    // A client that names its session has been told before.
    if (names.inRequest(req) === null) learn(names.inBody(body))
  }

  function learn (session: string | null) {
    if (session !== null && state !== 'ended' && !noteUse(session)) claim(session)
  }
}

/** HTTP/1 without TLS: nobody else can go on with a connection of TLS. */
function isPlainHttp (server: AnyServer) {
  return typeof server.closeIdleConnections === 'function' && typeof server.setSecureContext !== 'function'
}

function letClose (server: AnyServer) {
  server._connections--
  server._emitCloseIfDrained?.()
}

function closeHandle (handle: SocketHandle) {
  handle.close()
}
