import { Server } from 'socket.io'
import { withoutBase } from '../api/base-path.js'
import { ASSETS_VERSION } from '../dashboard/assets.js'
import { changesOf, figuresOf, hashOf, toShown } from '../dashboard/fragment.js'
import { powersOf } from '../dashboard/powers.js'
import { tidySoon } from '../system/heap.js'
import { attachAlarms } from './alarms.js'
import { throttleLatest } from './throttle-latest.js'

/**
 * The live page: changes are rendered once and sent to all viewers of the same page.
 * @typedef {import('./live-socket.d.ts').LiveSocket} Socket
 * @typedef {import('../dashboard/fragment.js').Shown} Shown
 * @typedef {import('../dashboard/follow-page.js').Followed} Followed
 * @typedef {object} Room  all viewers of one role, for the same apps, at one URL
 * @property {string} key
 * @property {string} url
 * @property {Set<Socket>} viewers
 * @property {Followed['render']} render
 * @property {Followed['chart']} chart
 * @property {Map<string, Shown>} shown  by id, what all viewers have
 * @property {Map<string, string>} figures  by key, what all viewers have
 * @property {number} chartedMs  the viewers have the vitals until then
 * @typedef {import('../../public/live-events.d.ts').Update} Update
 */

/** Vitals change without an event, so viewed pages are rendered this often. */
const BEAT_MS = 500
/** However fast events come, a page is not rendered more often than this. */
const MIN_GAP_MS = 200
const MAX_MESSAGE_BYTES = 10_000
const MAX_URL_CHARS = 2000

/**
 * @param {object} parts
 * @param {import('node:http').Server} parts.httpServer
 * @param {import('../dashboard/follow-page.js').LivePages} parts.pages
 * @param {string} [parts.software]
 * @param {string} [parts.basePath]
 * @param {(req: import('node:http').IncomingMessage) => import('../api/roles.js').Auth | null} parts.authenticate
 * @param {(req: import('node:http').IncomingMessage) => string | null} [parts.whyEnded]  why somebody is no longer signed in
 * @param {() => number} [parts.now] wall clock, ms since the epoch
 * @param {Pick<import('../system/log.js').Log, 'error'>} [parts.log]
 * @returns {{ close: () => void, endOutsiders: () => void }}
 */
export function attachLive ({ httpServer, pages, software = '', basePath = '', authenticate, whyEnded = () => null, now = Date.now, log = { error () {} } }) {
  /** @type {import('./live-socket.d.ts').LiveServer} */
  const io = new Server(httpServer, {
    serveClient: false, maxHttpBufferSize: MAX_MESSAGE_BYTES, pingInterval: 10_000, pingTimeout: 5_000
  })
  /** @type {Map<string, Room>} by role, apps and URL; a room without viewers does not exist */
  const rooms = new Map()
  // A viewer has one page, so only the latest request counts.
  const latest = throttleLatest(watchPage)
  /** @type {NodeJS.Timeout | null} */
  let beat = null
  /** @type {NodeJS.Timeout | null} */
  let scheduled = null
  let lastUpdateAt = -Infinity

  const unsubscribe = pages.onChange(scheduleUpdate)
  const endAlarms = pages.alarms && attachAlarms({ io, deck: pages.alarms })

  io.use((socket, next) => next(authenticate(socket.request) ? undefined : new Error('unauthenticated')))
  io.on('connection', (socket) => {
    if (!beat) tidySoon()
    beat ??= setInterval(onBeat, pages.beatMs ?? BEAT_MS)
    socket.on('watch', (url, ...rest) => latest.ask(socket, { url, known: rest.length > 1 ? rest[0] : null, reply: rest.at(-1) }))
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
      socket.emit('signed-out', whyEnded(socket.request))
      socket.disconnect(true)
    }
  }

  /**
   * A viewer has opened a page or reconnected: it gets what it does not have yet, then each change.
   * @param {Socket} socket @param {{ url: unknown, known: unknown, reply: unknown }} request `known`: hashes of what it shows, by id
   */
  function watchPage (socket, { url, known, reply }) {
    leaveRoom(socket)
    attemptTask(() => {
      const room = typeof url === 'string' && url.length <= MAX_URL_CHARS ? enterRoom(socket, url) : null
      if (!room) return
      const hashes = new Map(typeof known === 'object' && known !== null ? Object.entries(known) : [])
      const fragments = Array
        .from(room.shown, ([id, shown]) => ({ id, html: shown.html, hash: hashOf(shown) }))
        .filter(({ id, hash }) => hashes.get(id) !== hash)
      sendChanges(socket, room, { fragments, figures: Object.fromEntries(room.figures) })
    })
    if (typeof reply === 'function') reply({ version: ASSETS_VERSION, software })
  }

  /** @returns {Room | null} null: not a URL, or the session has ended and the next beat disconnects it */
  function enterRoom (/** @type {Socket} */ socket, /** @type {string} */ url) {
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

  function leaveRoom (/** @type {Socket} */ socket) {
    for (const room of rooms.values()) {
      if (!room.viewers.delete(socket)) continue
      socket.leave(room.key)
      if (room.viewers.size === 0) rooms.delete(room.key)
    }
  }

  /** @returns {Room | null} */
  function openRoom (/** @type {string} */ key, /** @type {string} */ url, /** @type {import('../dashboard/powers.js').Powers} */ can) {
    const path = withoutBase(basePath, url)
    if (!URL.canParse(path, 'http://localhost')) return null
    const followed = pages.follow(can, new URL(path, 'http://localhost'))
    /** @type {Room} */
    const room = { key, url, viewers: new Set(), ...followed, shown: new Map(), figures: new Map(), chartedMs: now() }
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

  /** @param {Room} room @returns {Update | null} the changes since the last rendering; null: none */
  function renderRoom (room) {
    const changed = []
    /** @type {Record<string, string>} */
    const figures = {}
    for (const { id, html } of room.render()) {
      const [shown, before] = [toShown(html), room.shown.get(id)]
      for (const [key, figure] of figuresOf(html)) {
        if (room.figures.get(key) !== figure) room.figures.set(key, figures[key] = figure)
      }
      room.shown.set(id, shown)
      if (shown.still !== before?.still) changed.push({ id, html: changesOf(shown, before), hash: hashOf(shown) })
    }
    const vitals = newVitals(room)
    return changed.length > 0 || vitals || Object.keys(figures).length > 0 ? { fragments: changed, figures, vitals } : null
  }

  /** @param {Room} room */
  function newVitals (room) {
    const values = room.chart === null ? undefined : pages.chart?.(room.chart, room.chartedMs)
    if (values) room.chartedMs = (Number(values.time.at(-1)) + 1) * 1000
    return values
  }

  /** `now` sets the clock of the browser; by `url` it ignores changes of a page that it has left. */
  function sendChanges (/** @type {Pick<Socket, 'emit'>} */ to, /** @type {Room} */ { url }, /** @type {Update} */ update) {
    to.emit('fragments', { now: now(), url, ...update })
  }

  /** A page that cannot be rendered must not take the master down. */
  function attemptTask (/** @type {() => void} */ task) {
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
