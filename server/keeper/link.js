import { EventEmitter } from 'node:events'
import { DeckError } from '../errors.js'
import { createDeferred } from '../system/deferred.js'
import { waitAtMost } from '../system/wait-at-most.js'
import { takeInheritedSockets } from '../systemd/activated-sockets.js'

/** @typedef {Awaited<ReturnType<typeof connectKeeper>>} KeeperLink */
/** @typedef {{ pid: number, code: number | null, signal: string | null }} Exit */
/** @typedef {Exit & { hang?: import('./master-watch.js').Hang | null }} Predecessor `hang`: why the keeper has ended it */

/**
 * What is said between a master and its keeper. Keepers are not upgraded, so messages may be added but never changed.
 *
 * To the keeper: `hello` (tell me what there is), `beat` (I answer), `hold` and `drop` (a socket, by key), `started`
 * (signals can come), `ending` (the exit to come is meant), `start-failed` (so is this one, with a code, if none has ever started). In an upgrade, when there are two masters: `upgrade` (start the next one), `cancel`
 * (end it), `serving` (from the next one: its workers are ready), `handed-over` (from the current one) and `relay` (to the other).
 *
 * Where the disk takes nothing, `remember` (what the next master has to know; null: a file says it), `unsaved` (an event
 * that the history does not have) and `saved` (it has all of them).
 *
 * To the master: `held` (a socket), `go` (these were all), `signal` (to one that `hearsSignals`), `reaped` (how an orphan has ended), `hand-over`, `take-over`,
 * `upgrade-failed`, `relay` and `close-inspector` (which the keeper has opened to see where it is stuck).
 */

/** Sent after the sockets, each of which the keeper acknowledges first. */
const DELIVERY_MS = 2000

/** A lost keeper is noticed within this time if Node does not tell. */
const LOSS_POLL_MS = 500

/** What an app starts and leaves behind may come and go for months. */
const MAX_EXITS = 1000

/** A master keeps this many events that it cannot write. */
export const MAX_UNSAVED = 10_000

/** @param {Exit[]} exits the newest last @param {Exit} exit */
export function noteExit (exits, exit) {
  exits.push(exit)
  if (exits.length > MAX_EXITS) exits.shift()
}

/** Holds the pid of the keeper, so that a master knows that its IPC channel leads to one. */
export const KEPT_VARIABLE = 'CLUSTERDECK_KEPT'
/** The folder that its keeper was started in, which it may not be able to work in any more: see system/working-folder.js. */
export const FOLDER_VARIABLE = 'CLUSTERDECK_KEPT_FOLDER'

/**
 * The keeper's side of the line.
 * @param {{ child: import('node:child_process').ChildProcess } | null} master @param {Record<string, any>} message @param {any} [handle]
 */
export function sendToMaster (master, message, handle) {
  // ERR_IPC_CHANNEL_CLOSED, EPIPE: it is dead, and its 'exit' says so.
  if (master?.child.connected) master.child.send(message, handle, undefined, () => {})
}

/**
 * Says why this master comes to nothing; in an upgrade it is the other one that wants to know.
 * @param {string} reason
 */
export function tellFailure (reason) {
  if (process.connected) process.send?.({ type: 'relay', failing: reason }, undefined, undefined, () => {})
}

/** @type {{ role: 'current' | 'next', predecessor: Predecessor | null, exits: Exit[], reaps?: boolean, memory?: any, unsaved?: any[] }} */
const ALONE = Object.freeze({ role: 'current', predecessor: null, exits: [] })

/**
 * The master's line to its keeper. Without a keeper every call does nothing, and nothing is held but what the service
 * manager has passed.
 * @param {Record<string, string | undefined>} [env]
 * @throws {DeckError} start-failed: the keeper is gone already
 */
export async function connectKeeper (env = process.env) {
  const isKept = Boolean(env[KEPT_VARIABLE] && process.send)
  // A master that lost its keeper before it began could run beside another one, or after the end of the cluster.
  if (isKept && Number(env[KEPT_VARIABLE]) !== process.ppid) throw keeperGone()
  delete env[KEPT_VARIABLE]
  /** @type {Map<string, { handle: any, data: any }>} */
  const held = isKept ? new Map() : takeInheritedSockets({ env })
  /** @type {Map<string, (message: any) => void>} */
  const handlers = new Map()
  const loss = isKept ? watchLoss() : { on () {}, off () {} }
  const { role, predecessor, exits, reaps = false, memory = null, unsaved = [] } = isKept ? await greetKeeper() : ALONE
  let remembered = memory
  handlers.set('remember', ({ content }) => { remembered = content })
  const signals = new EventEmitter()
  handlers.set('signal', ({ signal }) => signals.emit(signal))

  return {
    get isKept () { return isKept && process.connected },
    /** @type {'current' | 'next'} `next`: to take over from a master that runs, in an upgrade */
    role,
    /** @type {Predecessor | null} how the master before this one ended, where the keeper saw it */
    predecessor,
    /** @type {Exit[]} of processes that a master before has left behind, up to now */
    exits,
    /** Whether the keeper reports every orphan's exit. An older version does not say. */
    reaps,
    /** The sockets that were there before this master. */
    held,
    /** Signals that the keeper forwards, by name. */
    signals,
    send: sendToKeeper,

    /**
     * Before this process ends: what is only queued would end with it.
     * @param {Record<string, any>} message @returns {Promise<void>} resolves once it has left, or cannot any more
     */
    async deliver (message) {
      if (!isKept || !process.connected) return
      await waitAtMost(new Promise((resolve) => { process.send?.(message, undefined, undefined, resolve) }), DELIVERY_MS)
    },

    /** @param {string} key @param {any} handle @param {unknown} [data] */
    hold (key, handle, data) { sendToKeeper({ type: 'hold', key, data }, handle) },

    /** @param {string} key */
    drop (key) { sendToKeeper({ type: 'drop', key }) },

    /** @param {string} prefix of the keys of one kind, of which there is to be one alone @param {string} wanted */
    dropOthers (prefix, wanted) {
      for (const [key, { handle }] of held) {
        if (!key.startsWith(prefix) || key === wanted) continue
        sendToKeeper({ type: 'drop', key })
        handle.close()
        held.delete(key)
      }
    },

    /** @param {string} type @param {(message: any) => void} handler */
    on (type, handler) { handlers.set(type, handler) },

    /** The checkpoint for the next master, if the disk is full. */
    memory: {
      /** @returns {any} null: it is in the file */
      read: () => remembered,
      /** @param {unknown} content null: a file says it @returns {boolean} whether it is kept */
      write (content) {
        if (content === null && remembered === null) return isKept
        remembered = content
        sendToKeeper({ type: 'remember', content })
        return isKept && process.connected
      }
    },

    /** Events that could not be written to the history. */
    spare: {
      /** @type {import('../events/stream.js').DeckEvent[]} those of a master before, oldest first */
      events: unsaved,
      /** @param {import('../events/stream.js').DeckEvent} event */
      keep (event) { sendToKeeper({ type: 'unsaved', event }) },
      clear () { sendToKeeper({ type: 'saved' }) }
    },

    /** @param {() => void} handler the keeper is gone; this master goes on */
    onLost: loss.on,

    /** @param {() => void} handler */
    offLost: loss.off
  }

  /** @returns {Promise<{ role: 'current' | 'next', predecessor: Predecessor | null, exits: Exit[], reaps?: boolean, memory?: any, unsaved?: any[] }>} */
  function greetKeeper () {
    return new Promise((resolve, reject) => {
      const onLost = () => reject(keeperGone())
      loss.on(onLost)
      handlers.set('held', ({ key, data, handle }) => held.set(key, { handle, data }))
      handlers.set('go', ({ exits, ...rest }) => {
        process.on('message', (/** @type {any} */ { type, pid, code, signal }) => { if (type === 'reaped') noteExit(exits, { pid, code, signal }) })
        loss.off(onLost)
        resolve({ exits, ...rest })
      })
      process.on('message', (/** @type {any} */ message, handle) => handlers.get(message.type)?.({ ...message, handle }))
      sendToKeeper({ type: 'hello' })
    })
  }

  /** @param {Record<string, any>} message @param {any} [handle] */
  function sendToKeeper (message, handle) {
    // 'disconnect' tells that the keeper is gone.
    if (isKept && process.connected) process.send?.(message, handle, undefined, () => {})
  }
}

/**
 * Node forgets to tell 'disconnect' where the keeper dies before it has acknowledged a socket: it waits for that first.
 * @returns {{ on: (handler: () => void) => void, off: (handler: () => void) => void }}
 */
function watchLoss () {
  const lost = createDeferred()
  /** @type {Set<() => void>} */
  const handlers = new Set()
  const timer = setInterval(() => { if (!process.connected) lost.reach() }, LOSS_POLL_MS).unref()
  process.once('disconnect', lost.reach)
  lost.reached.then(() => clearInterval(timer))
  return {
    on (handler) {
      handlers.add(handler)
      lost.reached.then(() => { if (handlers.has(handler)) handler() })
    },
    off (handler) { handlers.delete(handler) }
  }
}

function keeperGone () {
  return new DeckError('start-failed', 'the keeper that has started this master is gone')
}
