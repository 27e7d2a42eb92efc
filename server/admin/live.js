import { Server } from 'socket.io'
import { ASSETS_VERSION } from '../dashboard/assets.js'
import { fragmentsOf } from '../dashboard/pages.js'
import { powersOf } from '../dashboard/powers.js'
import { withoutTicking } from '../dashboard/views.js'

/**
 * The live page: what changed is rendered once and sent to everybody who looks at the same page.
 * @typedef {import('socket.io').Socket} Socket
 * @typedef {import('../dashboard/pages.js').Deck & Pick<import('../deck.js').Deck, 'events'>} Deck
 * @typedef {import('../dashboard/pages.js').Fragment} Fragment
 * @typedef {{ key: string, url: string, viewers: Set<Socket>, render: () => Fragment[], sent: Map<string, string> }} Room  everybody of one role at one URL
 */

/** Vitals come without an event, so viewed pages are looked over in this rhythm. */
const BEAT_MS = 500
/** However fast events come, a page is not rendered more often than this. */
const MIN_GAP_MS = 200
const MAX_MESSAGE_BYTES = 10_000
const MAX_URL_CHARS = 2000

/**
 * @param {object} parts
 * @param {import('node:http').Server} parts.httpServer
 * @param {Deck} parts.deck
 * @param {import('../../db/history.js').History} parts.history
 * @param {import('../dashboard/views.js').Views} parts.views
 * @param {string} [parts.software]
 * @param {(req: import('node:http').IncomingMessage) => import('./guard.js').Auth | null} parts.authenticate
 * @param {() => number} [parts.now] wall clock, ms since the epoch
 * @param {Pick<import('./app.js').Log, 'error'>} [parts.log]
 * @returns {{ close: () => void, endOutsiders: () => void }}
 */
export function attachLive ({ httpServer, deck, history, views, software = '', authenticate, now = Date.now, log = { error () {} } }) {
  const io = new Server(httpServer, {
    serveClient: false, maxHttpBufferSize: MAX_MESSAGE_BYTES, pingInterval: 10_000, pingTimeout: 5_000
  })
  /** @type {Map<string, Room>} by role and URL; a room without viewers does not exist */
  const rooms = new Map()
  /** What each viewer wants to see next. @type {Map<Socket, { url: unknown, reply: unknown, timer: NodeJS.Timeout }>} */
  const asked = new Map()
  /** @type {WeakMap<Socket, number>} by the monotonic clock */
  const answeredAt = new WeakMap()
  /** @type {NodeJS.Timeout | null} */
  let beat = null
  /** @type {NodeJS.Timeout | NodeJS.Immediate | null} */
  let scheduled = null
  let lastUpdateAt = -Infinity

  const unsubscribe = deck.events.subscribe(scheduleUpdate)

  io.use((socket, next) => next(authenticate(socket.request) ? undefined : new Error('unauthenticated')))
  io.on('connection', (socket) => {
    beat ??= setInterval(onBeat, BEAT_MS)
    socket.on('watch', (url, reply) => ask(socket, { url, reply }))
    socket.on('disconnect', () => {
      forget(socket)
      leave(socket)
      if (io.sockets.sockets.size === 0) stopBeat()
    })
  })

  return {
    /** Signs out those who are signed in no longer, at once. */
    endOutsiders,

    close () {
      unsubscribe()
      stopBeat()
      for (const socket of asked.keys()) forget(socket)
      // Not io.close(), which closes the HTTP server too, and not disconnectSockets(), after which browsers stay away:
      // they are to come back to the next master.
      io.engine.close()
    }
  }

  function onBeat () {
    endOutsiders()
    scheduleUpdate()
  }

  function endOutsiders () {
    for (const socket of io.sockets.sockets.values()) {
      if (authenticate(socket.request)) continue
      socket.emit('signed-out')
      socket.disconnect(true)
    }
  }

  /** Nobody looks at two pages at once: of what one viewer asks for faster than we render, only the last counts. */
  function ask (/** @type {Socket} */ socket, /** @type {{ url: unknown, reply: unknown }} */ request) {
    const waiting = asked.get(socket)
    if (waiting) return Object.assign(waiting, request)
    const waitMs = (answeredAt.get(socket) ?? -Infinity) + MIN_GAP_MS - performance.now()
    asked.set(socket, { ...request, timer: setTimeout(answer, Math.max(0, waitMs), socket) })
  }

  function answer (/** @type {Socket} */ socket) {
    const { url, reply } = /** @type {{ url: unknown, reply: unknown }} */ (asked.get(socket))
    forget(socket)
    watch(socket, url, reply)
    answeredAt.set(socket, performance.now())
  }

  function forget (/** @type {Socket} */ socket) {
    clearTimeout(asked.get(socket)?.timer)
    asked.delete(socket)
  }

  /** A viewer came, came back, or moved on: from now on it gets what changes there, beginning with all of it. */
  function watch (/** @type {Socket} */ socket, /** @type {unknown} */ url, /** @type {unknown} */ reply) {
    leave(socket)
    attempt(() => {
      const room = typeof url === 'string' && url.length <= MAX_URL_CHARS ? enter(socket, url) : null
      if (!room) return
      const fragments = room.render()
      if (room.viewers.size === 1) fragments.forEach((fragment) => isNews(room, fragment))
      send(socket, room, fragments)
    })
    if (typeof reply === 'function') reply({ version: ASSETS_VERSION, software })
  }

  /** @returns {Room | null} null for a page on which nothing changes */
  function enter (/** @type {Socket} */ socket, /** @type {string} */ url) {
    const can = powersOf(authenticate(socket.request))
    const key = `${can.role} ${url}`
    const room = rooms.get(key) ?? openRoom(key, url, can)
    if (!room) return null
    rooms.set(key, room)
    room.viewers.add(socket)
    socket.join(key)
    return room
  }

  function leave (/** @type {Socket} */ socket) {
    for (const room of rooms.values()) {
      if (!room.viewers.delete(socket)) continue
      socket.leave(room.key)
      if (room.viewers.size === 0) rooms.delete(room.key)
    }
  }

  /** @returns {Room | null} */
  function openRoom (/** @type {string} */ key, /** @type {string} */ url, /** @type {import('../dashboard/powers.js').Powers} */ can) {
    if (!URL.canParse(url, 'http://localhost')) return null
    const render = fragmentsOf({ deck, history, now, can, render: views.render }, new URL(url, 'http://localhost'))
    return render && { key, url, viewers: new Set(), render, sent: new Map() }
  }

  /** Many events of one turn make one update. */
  function scheduleUpdate () {
    if (scheduled || rooms.size === 0) return
    const waitMs = lastUpdateAt + MIN_GAP_MS - performance.now()
    scheduled = waitMs > 0 ? setTimeout(update, waitMs) : setImmediate(update)
  }

  function update () {
    scheduled = null
    lastUpdateAt = performance.now()
    for (const room of rooms.values()) {
      attempt(() => {
        const changed = room.render().filter((fragment) => isNews(room, fragment))
        if (changed.length > 0) send(io.to(room.key), room, changed)
      })
    }
  }

  function isNews (/** @type {Room} */ { sent }, /** @type {Fragment} */ { id, html }) {
    const content = withoutTicking(html)
    if (sent.get(id) === content) return false
    sent.set(id, content)
    return true
  }

  /** `now` lets the browser's clocks tick by ours; `url`: by the time that it arrives the viewer may be elsewhere. */
  function send (/** @type {{ emit: (event: string, data: object) => unknown }} */ to, /** @type {Room} */ { url }, /** @type {Fragment[]} */ fragments) {
    to.emit('fragments', { now: now(), url, fragments })
  }

  /** A page that cannot be rendered must not take the master down. */
  function attempt (/** @type {() => void} */ task) {
    try {
      task()
    } catch (error) {
      log.error({ err: error }, 'an update of the live page failed')
    }
  }

  function stopBeat () {
    if (beat) clearInterval(beat)
    beat = null
    if (scheduled) {
      clearTimeout(/** @type {NodeJS.Timeout} */ (scheduled))
      clearImmediate(/** @type {NodeJS.Immediate} */ (scheduled))
    }
    scheduled = null
  }
}
