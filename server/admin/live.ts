import { Server } from 'socket.io'
import { withoutBase } from '../api/base-path.ts'
import { ASSETS_VERSION } from '../dashboard/assets.ts'
import { toSent, type Fragment } from '../dashboard/fragment.ts'
import { powersOf, type Powers } from '../dashboard/powers.ts'
import { tidySoon } from '../system/heap.ts'
import { attachAlarms } from './alarms.ts'
import { throttleLatest } from './throttle-latest.ts'
import type { IncomingMessage } from 'node:http'
import type { LiveServer, LiveSocket as Socket } from './live-socket.d.ts'
import type { Followed, LivePages } from '../dashboard/follow-page.ts'
import type { Update } from '../../public/live-events.d.ts'
import type { Auth } from '../api/roles.ts'
import type { Log } from '../system/log.ts'

/** The live page: changes are rendered once and sent to all viewers of the same page. */
/** all viewers of one role, for the same apps, at one URL */
type Room = {
  key: string,
  url: string,
  viewers: Set<Socket>,
  render: Followed['render'],
  chart: Followed['chart'],
  /** by id, what all viewers have */
  shown: Map<string, Fragment>,
  /** by key, what all viewers have */
  figures: Map<string, string>,
  /** the viewers have the vitals until then */
  chartedMs: number
}

/** Vitals change without an event, so viewed pages are rendered this often. */
const BEAT_MS = 500
/** However fast events come, a page is not rendered more often than this. */
const MIN_GAP_MS = 200
const MAX_MESSAGE_BYTES = 10_000
const MAX_URL_CHARS = 2000

export function attachLive (
  { httpServer, pages, software = '', basePath = '', authenticate, whyEnded = () => null, now = Date.now,
    log = { error () {} } }: {
      httpServer: import('node:http').Server,
      pages: LivePages,
      software?: string,
      basePath?: string,
      authenticate: (req: IncomingMessage) => Auth | null,
      /** why somebody is no longer signed in */
      whyEnded?: (req: IncomingMessage) => string | null,
      /** wall clock, ms since the epoch */
      now?: () => number,
      log?: Pick<Log, 'error'>
    }
): { close: () => void, endOutsiders: () => void } {
  const io: LiveServer = new Server(httpServer, { serveClient: false, maxHttpBufferSize: MAX_MESSAGE_BYTES,
    pingInterval: 10_000, pingTimeout: 5_000 })
  /** by role, apps and URL; a room without viewers does not exist */
  const rooms: Map<string, Room> = new Map()
  // A viewer has one page, so only the latest request counts.
  const latest = throttleLatest(watchPage)
  let beat: NodeJS.Timeout | null = null
  let scheduled: NodeJS.Timeout | null = null
  let lastUpdateAt = -Infinity

  const unsubscribe = pages.onChange(scheduleUpdate)
  const endAlarms = pages.alarms && attachAlarms({ io, deck: pages.alarms })

  io.use((socket, next) => next(authenticate(socket.request) ? undefined : new Error('unauthenticated')))
  io.on('connection', (socket) => {
    if (!beat) tidySoon()
    beat ??= setInterval(onBeat, pages.beatMs ?? BEAT_MS)
    socket.on('watch',
      (url, ...rest) => latest.ask(socket, { url, known: rest.length > 1 ? rest[0] : null, reply: rest.at(-1) }))
    socket.on('disconnect', () => {
      latest.forget(socket)
      leaveRoom(socket)
      if (io.sockets.sockets.size > 0) return
      stopBeat()
      tidySoon()
    })
  })

  return {
    /** Disconnects viewers whose session has ended. */
    endOutsiders,

    close () {
      unsubscribe()
      endAlarms?.()
      stopBeat()
      latest.close()
      // Not io.close(), which also closes the HTTP server, and not disconnectSockets(), after which browsers do not
      // reconnect: they should come back to the next master.
      io.engine.close()
    }
  }

  function onBeat () {
    endOutsiders()
    updateRooms()
  }

  function endOutsiders () {
    for (const socket of io.sockets.sockets.values()) {
      if (authenticate(socket.request)) continue
      // The browser comes back at once, by a request that the proxy judges anew.
      if (socket.request.auth?.via === 'proxy') {
        socket.conn.close()
        continue
      }
      socket.emit('signed-out', whyEnded(socket.request))
      socket.disconnect(true)
    }
  }

  /**
   * A viewer has opened a page or reconnected: it gets what it does not have yet, then each change.
   * @param request `known`: hashes of what it shows, by id
   */
  function watchPage (socket: Socket, { url, known, reply }: { url: unknown, known: unknown, reply: unknown }) {
    leaveRoom(socket)
    attemptTask(() => {
      const room = typeof url === 'string' && url.length <= MAX_URL_CHARS ? enterRoom(socket, url) : null
      if (!room) return
      const hashes = new Map(typeof known === 'object' && known !== null ? Object.entries(known) : [])
      const fragments = Array.from(room.shown.values(), (shown) => toSent(shown)).filter(({ id, hash }) =>
        hashes.get(id) !== hash
      )
      sendChanges(socket, room, { fragments, figures: Object.fromEntries(room.figures) })
    })
    if (typeof reply === 'function') reply({ version: ASSETS_VERSION, software })
  }

  /** Null: not a URL, or the session has ended and the next beat disconnects it */
  function enterRoom (socket: Socket, url: string): Room | null {
    const auth = authenticate(socket.request)
    if (!auth) return null
    const can = powersOf(auth)
    const key = `${can.role} ${can.apps?.join() ?? ''} ${url}`
    const room = rooms.get(key) ?? openRoom(key, url, can)
    if (!room) return null
    rooms.set(key, room)
    room.viewers.add(socket)
    socket.join(key)
    return room
  }

  function leaveRoom (socket: Socket) {
    for (const room of rooms.values()) {
      if (!room.viewers.delete(socket)) continue
      socket.leave(room.key)
      if (room.viewers.size === 0) rooms.delete(room.key)
    }
  }

  function openRoom (key: string, url: string, can: Powers): Room | null {
    const path = withoutBase(basePath, url)
    if (!URL.canParse(path, 'http://localhost')) return null
    const followed = pages.follow(can, new URL(path, 'http://localhost'))
    const room: Room = { key, url, viewers: new Set(), ...followed, shown: new Map(), figures: new Map(),
      chartedMs: now() }
    renderRoom(room)
    return room
  }

  /** Many events of one turn make one update. */
  function scheduleUpdate () {
    if (scheduled || rooms.size === 0) return
    scheduled = setTimeout(answerEvents, Math.max(0, lastUpdateAt + MIN_GAP_MS - performance.now()))
  }

  function answerEvents () {
    scheduled = null
    lastUpdateAt = performance.now()
    updateRooms()
  }

  function updateRooms () {
    for (const room of rooms.values()) {
      attemptTask(() => {
        const changes = renderRoom(room)
        if (changes) sendChanges(io.to(room.key), room, changes)
      })
    }
  }

  /** @returns the changes since the last rendering; null: none */
  function renderRoom (room: Room): Update | null {
    const changed = []
    const figures: Record<string, string> = {}
    for (const fragment of room.render()) {
      const before = room.shown.get(fragment.id)
      for (const [key, figure] of fragment.figures) {
        if (room.figures.get(key) !== figure) room.figures.set(key, figures[key] = figure)
      }
      room.shown.set(fragment.id, fragment)
      if (fragment.still !== before?.still) changed.push(toSent(fragment, before))
    }
    const vitals = newVitals(room)
    return changed.length > 0 || vitals || Object.keys(figures).length > 0
      ? { fragments: changed, figures, vitals }
      : null
  }

  function newVitals (room: Room) {
    const values = room.chart === null ? undefined : pages.chart?.(room.chart, room.chartedMs)
    if (values) room.chartedMs = (Number(values.time.at(-1)) + 1) * 1000
    return values
  }

  /** `now` sets the clock of the browser; by `url` it ignores changes of a page that it has left. */
  function sendChanges (to: Pick<Socket, 'emit'>, { url }: Room, update: Update) {
    to.emit('fragments', { now: now(), url, ...update })
  }

  /** A page that cannot be rendered must not take the master down. */
  function attemptTask (task: () => void) {
    try {
      task()
    } catch (error) {
      log.error({ err: error }, 'an update of the live page failed')
    }
  }

  function stopBeat () {
    if (beat) clearInterval(beat)
    beat = null
    if (scheduled) clearTimeout(scheduled)
    scheduled = null
  }
}
