import { setMaxListeners } from 'node:events'
import http from 'node:http'
import https from 'node:https'
import { cutEndlessBody, mayTakeTime } from '../api/body.ts'
import { holderOf, type Auth } from '../api/roles.ts'
import { DeckError } from '../errors.ts'
import { expectOwner } from '../system/connection-owner.ts'
import { createAccess, type Access, type Limits } from './access.ts'
import { createConnections, roomWithin, type Room } from './connections.ts'
import { createKeptSite, type KeptSite } from './kept-site.ts'
import { answerProbe } from './probe-answers.ts'
import { answerScrape } from './scrapes.ts'
import { dropSite, loadSite } from './site-code.ts'
import { createLinks } from './sign-in-links.ts'
import type { Duplex } from 'node:stream'
import type { Socket } from 'node:net'
import type { Apps } from '../host/api-apps.ts'
import type { EventStream } from '../events/stream.ts'
import type { History } from '../../db/history.ts'
import type { Certificate } from './certificate.ts'
import type { Log } from '../system/log.ts'
import type { Timers } from './site.ts'
import type { SocketHandle } from '../../workers/node-internals.d.ts'
import type { Answer, InProcessRequest } from './in-process-transport.ts'

/** Ends connections that send slowly or nothing. */
const SERVER_OPTIONS: Readonly<http.ServerOptions> = Object.freeze({ headersTimeout: 10_000, requestTimeout: 30_000,
  keepAliveTimeout: 10_000, connectionsCheckingInterval: 5_000, maxHeaderSize: 16 * 1024 })
/** Limits for the TLS handshake. */
const TLS_OPTIONS: Readonly<https.ServerOptions> = Object.freeze({ handshakeTimeout: 5_000, minVersion: 'TLSv1.2' })
/** The queue is long: a connection that does not fit in is accepted seconds later, if at all. */
const BACKLOG = 4096
const CLOSE_GRACE_MS = 1_000
const TOO_SLOW = 'ERR_HTTP_REQUEST_TIMEOUT'
/** Answers to requests that are no valid HTTP. */
const STATUS_OF: Readonly<Record<string, string>> = Object.freeze({ [TOO_SLOW]: '408 Request Timeout',
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large', HPE_CHUNK_EXTENSIONS_OVERFLOW: '413 Payload Too Large' })
const DEFAULT_SESSION_TTL_MS = 12 * 60 * 60_000

/** What a port has once it is bound. `access`: made with the first request that is no probe */
type Open = { publicUrl: string, site: KeptSite, access: () => Access }

const SILENT_LOG = { error () {}, warn () {} }
const REAL_TIMERS = { setTimeout, clearTimeout, setInterval, clearInterval }

/**
 * The admin port of a host. It is bound at once, so that a start fails if it cannot be bound. What is behind it comes
 * with the first request that is no probe and no scrape.
 */
export function createAdmin (
  { apps, events, history, token, host = '127.0.0.1', port = 0, portsToTry = 1, socket, allowedHosts = [],
    basePath = '', publicUrl: configuredUrl, certificate = null, sessionTtlMs = DEFAULT_SESSION_TTL_MS, proxyAuth,
    now = Date.now, log = SILENT_LOG, timers = REAL_TIMERS, randomBytes, limits = {}, serverOptions = {},
    maxConnections = roomWithin(Infinity), load = loadSite, drop = dropSite, keptMs }: {
      apps: Apps,
      /** of the host, or of its only app */
      events: EventStream,
      /** of the same */
      history: History,
      token: string,
      host?: string,
      /** 0: any free one */
      port?: number,
      /** this one and the next ones, where it is in use */
      portsToTry?: number,
      /** a raw handle that is bound to them already */
      socket?: object,
      allowedHosts?: readonly string[],
      basePath?: string,
      publicUrl?: string,
      certificate?: Certificate | null,
      sessionTtlMs?: number,
      proxyAuth?: Parameters<typeof createAccess>[0]['proxyAuth'],
      now?: () => number,
      log?: Log,
      timers?: Timers,
      randomBytes?: (size: number) => Buffer,
      limits?: Partial<Limits>,
      serverOptions?: http.ServerOptions,
      maxConnections?: Room,
      load?: typeof loadSite,
      drop?: typeof dropSite,
      /** after the last request of a browser; Infinity: for good */
      keptMs?: number
    }
) {
  const publicUrl = configuredUrl?.replace(/\/+$/, '') ?? null
  const options = { ...SERVER_OPTIONS, ...serverOptions }
  const outer = certificate
    ? https.createServer({ ...TLS_OPTIONS, ...options, ...certificate.pair })
    : http.createServer(options)
  // node would drop what comes after the first 1000, unseen. Their size is limited.
  outer.maxHeadersCount = 0
  const connections = createConnections(maxConnections)
  const rawOf = followConnections(outer, (socket) => {
    connections.admit(socket)
    expectOwner(socket)
  })
  const links = createLinks({ now, randomBytes })
  const closing = new AbortController()
  setMaxListeners(0, closing.signal)
  /** kept here, as the server does not track upgraded sockets */
  const upgraded: Set<Duplex> = new Set()
  /** Sockets with a request that is not answered yet. */
  const asking: WeakSet<Socket> = new WeakSet()
  let open: Open | null = null
  let closed: Promise<void> | null = null

  return {
    /**
     * @returns `url`: on this machine; `publicUrl`: for people; `socket`: the raw handle
     * @throws {DeckError} `port-in-use`, `listen-failed`
     */
    async listen (): Promise<
      { url: string, publicUrl: string, host: string, port: number, socket: SocketHandle | null }
    > {
      const realPort = await bindOne(outer, { host, port, socket }, portsToTry)
      outer.on('error', (error) => log.error({ err: error }, 'the admin port failed to accept a connection'))
      const url = `${certificate ? 'https' : 'http'}://${reachableName(host)}:${realPort}`
      // Not `instanceof`, for which Node would load all that https needs.
      if ('setSecureContext' in outer) certificate?.renewFor(outer)
      const parts = { events, history, token, host, port: realPort, allowedHosts, basePath, publicUrl,
        hasTls: certificate !== null, sessionTtlMs, proxyAuth, links, now, log, randomBytes, limits }
      // Who may ask stays known while the site goes and comes: a token that was revoked stays revoked, even if the
      // database could not keep that. A role for one app of several means nothing where there is one.
      let made: Access | null = null
      const access = () => made ??= createAccess({ ...parts, apps: apps.only === null ? apps : null })
      const site = createKeptSite({ load, drop,
        make: ({ createSites }) =>
          createSites({ apps, events, history, access: access(), basePath, closing: closing.signal, now, timers, log }),
        keptMs, now, timers, log })
      const opened = open = { publicUrl: publicUrl ?? url + basePath, site, access }
      outer.on('request', (req, res) => answerRequest(opened, req, res))
      outer.on('clientError', refuseSocket)
      outer.on('upgrade', (req, socket, head) => upgradeSocket(site, req, socket, head))
      return { url, publicUrl: opened.publicUrl, host, port: realPort, socket: outer._handle }
    },

    signInLink (): string {
      if (!open) throw new DeckError('listen-failed', 'The admin port is not open yet')
      return `${open.publicUrl}/sign-in?code=${links.create().code}`
    },

    /** Signs everybody out, on this port and in the history. */
    revokeSessions () {
      open?.access().sessions.revokeAll()
    },

    /**
     * Answers a request of another deck, for a person who is signed in there.
     * @throws {DeckError} stopping, payload-too-large, and what `signal` is aborted with
     */
    async ask (order: InProcessRequest, auth: Auth,
      limits: { maxBytes: number, signal: AbortSignal }): Promise<Answer>
    {
      const leave = open?.site.enter({ isOfBrowser: true })
      try {
        const sites = await open?.site.untilLoaded()
        if (!sites || closing.signal.aborted)
          throw new DeckError('stopping', 'The admin page of this master is not available')
        return await sites.ask(order, auth, limits)
      } finally {
        leave?.()
      }
    },

    /** Waits a moment for answers to end, then closes all connections. It may be called twice. */
    close () {
      closed ??= closePort()
      return closed
    }
  }

  async function closePort () {
    if (!open) return
    closing.abort()
    certificate?.close()
    const timer = timers.setTimeout(cutAll, CLOSE_GRACE_MS)
    const answered = new Promise((resolve) => outer.close(resolve))
    await open.site.close()
    await answered
    timers.clearTimeout(timer)
  }

  async function answerRequest ({ site, access }: Open, req: http.IncomingMessage, res: http.ServerResponse) {
    const { socket } = req
    // Pipelined requests are refused: no current client sends them, and node would begin all of them in one turn.
    if (asking.has(socket)) return socket.destroy()
    asking.add(socket)
    res.once('prefinish', () => {
      // Cut now, as node would read the rest of an unread body to its end.
      if (!req.complete) cutEndlessBody(req).resume().read(0)
    })
    res.once('finish', () => {
      asking.delete(socket)
      endIfClosing(socket)
    })
    if (!answerProbe(req, res, { apps, basePath }) && !answerScrape(req, res, { apps, basePath, access }))
      await answerBySite(site, req, res)
    connections.heard(rawOf(req.socket), req.auth ? holderOf(req.auth) : null)
  }

  async function answerBySite (site: KeptSite, req: http.IncomingMessage, res: http.ServerResponse) {
    res.once('close', site.enter({ isOfBrowser: 'cookie' in req.headers }))
    // The sender is not known yet, but the connection is not idle.
    if (!site.present) connections.heard(rawOf(req.socket), '')
    const sites = site.present ?? await site.untilLoaded()
    if (sites) sites.request(req, res)
    else res.writeHead(503).end()
  }

  /** Refuses invalid HTTP as node does, but spares a body that may take longer. */
  function refuseSocket (error: NodeJS.ErrnoException, socket: Duplex) {
    if (error.code === TOO_SLOW && mayTakeTime(socket)) return
    const isBegun = '_httpMessage' in socket && Object(socket._httpMessage).headersSent
    if (socket.writable && !isBegun)
      socket.write(`HTTP/1.1 ${STATUS_OF[String(error.code)] ?? '400 Bad Request'}\r\nConnection: close\r\n\r\n`)
    socket.destroy(error)
  }

  async function upgradeSocket (site: KeptSite, req: http.IncomingMessage, socket: Duplex, head: Buffer) {
    upgraded.add(socket)
    socket.once('close', () => upgraded.delete(socket))
    // ECONNRESET: no other listener exists until the site takes the socket.
    const ignoreError = () => {}
    socket.on('error', ignoreError)
    socket.once('close', site.enter({ isOfBrowser: 'cookie' in req.headers }))
    const sites = site.present ?? await site.untilLoaded()
    socket.off('error', ignoreError)
    if (sites) sites.upgrade(req, socket, head)
    else socket.destroy()
    connections.heard(rawOf(req.socket), req.auth ? holderOf(req.auth) : null)
  }

  // close() ends idle connections only once; it would wait for those that become idle later.
  function endIfClosing (socket: Socket) {
    if (closing.signal.aborted) socket.end()
  }

  function cutAll () {
    outer.closeAllConnections()
    for (const socket of upgraded) socket.destroy()
  }
}

/**
 * With TLS, requests arrive on another socket than the accepted one, so the accepted one is looked up by its address.
 * @returns finds the accepted socket
 */
function followConnections (server: http.Server, admit: (socket: Socket) => void): (socket: Socket) => Socket {
  /** by the address of the client */
  const raw: Map<string, Socket> = new Map()
  const endOf = ({ remoteAddress, remotePort }: Socket) => `${remoteAddress} ${remotePort}`
  server.on('connection', (socket) => {
    const end = endOf(socket)
    raw.set(end, socket)
    socket.once('close', () => {
      if (raw.get(end) === socket) raw.delete(end)
    })
    admit(socket)
  })
  return (socket) => raw.get(endOf(socket)) ?? socket
}

/** @returns the real port */
async function bindOne (server: http.Server, place: { host: string, port: number, socket?: object },
  portsToTry: number): Promise<number>
{
  for (let n = 0; n < portsToTry - 1; n++) {
    try {
      return await bindServer(server, { ...place, port: place.port + n })
    } catch (error) {
      if (!(error instanceof DeckError) || error.code !== 'port-in-use') throw error
    }
  }
  return await bindServer(server, { ...place, port: place.port + portsToTry - 1 })
}

/** @returns the real port */
function bindServer (server: http.Server,
  { host, port, socket }: { host: string, port: number, socket?: object }): Promise<number>
{
  return new Promise((resolve, reject) => {
    server.once('error', (cause) => reject(bindError(cause, { host, port })))
    const onListening = () => {
      server.removeAllListeners('error')
      const address = server.address()
      resolve(typeof address === 'string' ? port : address?.port ?? port)
    }
    if (socket) server.listen(socket, BACKLOG, onListening)
    else server.listen({ host, port, exclusive: true, backlog: BACKLOG }, onListening)
  })
}

function bindError (cause: NodeJS.ErrnoException, { host, port }: { host: string, port: number }) {
  if (cause.code === 'EADDRINUSE') {
    return new DeckError('port-in-use',
      `admin.port: expected a free port (option --admin-port, 0 takes any) on ${host}, but ${port} is in use`, {
      cause
    })
  }
  return new DeckError('listen-failed',
    `admin.host: expected an address to listen on, received ${host}:${port} (${cause.code})`, { cause })
}

/** An address to bind, such as 0.0.0.0, is not always one to visit. */
function reachableName (host: string) {
  if (host === '0.0.0.0') return '127.0.0.1'
  if (host === '::') return '[::1]'
  return host.includes(':') ? `[${host}]` : host
}
