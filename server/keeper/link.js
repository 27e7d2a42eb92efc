import { EventEmitter } from 'node:events'
import { DeckError } from '../errors.js'
import { lookInMiddleOfSecond } from '../../workers/look-together.js'
import { waitAtMost } from '../system/wait-at-most.js'
import { takeInheritedSockets } from '../systemd/activated-sockets.js'

/** @typedef {Awaited<ReturnType<typeof connectKeeper>>} KeeperLink */
/** @typedef {{ pid: number, code: number | null, signal: string | null }} Exit */
/**
 * `hang`: why the keeper has ended it; `fault`: it goes on, and only its part for this app has ended, by an exception.
 * @typedef {Exit & { hang?: import('./master-watch.js').Hang | null, fault?: { message: string, stack: string | null } }} Predecessor
 */
/** @typedef {{ [Message in FromKeeper as Message['type']]: Message }} MessagesOfKeeper  by type */
/** @typedef {{ [Type in keyof MessagesOfKeeper]: (message: MessagesOfKeeper[Type]) => void }} Handlers */

/**
 * What a master says to its keeper. Keepers are not upgraded, so messages may be added but never changed.
 * @typedef {{ type: 'hello' }
 *   | { type: 'beat', isInspected: boolean }
 *   | { type: 'hold', key: string, data?: KeptData }
 *   | { type: 'drop', key: string }
 *   | { type: 'started', hearsSignals?: boolean, giveUpAfter?: number, hang?: HangOptions }
 *   | { type: 'watch', hang?: HangOptions }
 *   | { type: 'ending' }
 *   | { type: 'start-failed', code: number }
 *   | { type: 'upgrade', execPath: string | null, apps?: string[] }
 *   | { type: 'cancel', reason?: string }
 *   | { type: 'serving' }
 *   | { type: 'handed-over' }
 *   | { type: 'remember', content: unknown, app?: string }
 *   | { type: 'unsaved', event: DeckEvent, app?: string }
 *   | { type: 'saved', app?: string }
 *   | Relay} ToKeeper
 *
 * `hello`: it wants to know what there is; `beat`: it answers; `hold`, `drop`: a socket; `started`: signals can come.
 * `ending`: the exit to come is meant; `start-failed`: so is this one if no master has ever started.
 * `upgrade`: start the next master, to which these apps of a host change at once; `cancel`: end it; `serving`: the workers of the next one are ready; `handed-over`: they
 *   are the only ones now.
 * Where the disk is full: `remember`: what the next master has to know, null: a file says it; `unsaved`: an event that the
 *   history does not have; `saved`: it has all of them. `app`: of a host; without it the master means itself.
 *
 * @typedef {{ type: 'relay', failing: string, app?: undefined } | { type: 'relay', failing?: undefined, event: NewEvent, workers: RelayedWorker[], app?: string }} Relay
 *   to the other master of an upgrade; `app`: of a host
 */

/**
 * What a keeper says to a master.
 * @typedef {{ type: 'held', key: string, data?: HeldSocket['data'] }
 *   | { type: 'go' } & Greeting
 *   | { type: 'signal', signal: NodeJS.Signals }
 *   | { type: 'reaped' } & Exit
 *   | { type: 'hand-over' }
 *   | { type: 'take-over', predecessor: Predecessor | null }
 *   | { type: 'upgrade-failed', reason: string }
 *   | { type: 'close-inspector' }
 *   | { type: 'remember', content: unknown, apps?: { app: string, content: unknown }[] }
 *   | Relay} FromKeeper
 *
 * `held`: a socket, which comes along; `go`: those were all; `signal`: to a master that `hearsSignals`; `reaped`: how an orphan has ended.
 * `close-inspector`: the keeper has opened it to see where the master is stuck.
 *
 * @typedef {object} Greeting
 * @property {'current' | 'next'} role
 * @property {Predecessor | null} predecessor
 * @property {Exit[]} exits
 * @property {boolean} [reaps]
 * @property {unknown} [memory]
 * @property {DeckEvent[]} [unsaved]
 * @property {import('./memory.js').MemoryOfApp[]} [apps]
 * @property {string[]} [upgrading]  the apps of a host that change to this master, in an upgrade
 */

/**
 * @typedef {import('../../workers/node-internals.d.ts').SocketHandle} SocketHandle
 * @typedef {import('../../workers/node-internals.d.ts').DatagramHandle} DatagramHandle
 * @typedef {import('../events/stream.js').DeckEvent} DeckEvent
 * @typedef {import('../events/stream.js').NewEvent} NewEvent
 * @typedef {Partial<import('./master-watch.js').HangOptions> | null} HangOptions
 * @typedef {import('../system/process-identity.js').ProcessIdentity & { crashFile: string, orderFile: string }} WorkerIdentity
 * @typedef {Omit<import('../lifecycle/state.js').Orphan, 'exit' | 'orphan' | 'state'> & { identity: WorkerIdentity | null | undefined }} RelayedWorker
 *
 * @typedef {{ data?: unknown, path?: { file: string, dev: number, ino: number, stage?: string }, inherited?: number, given?: { host?: string, port?: number, path?: string, isCopy?: boolean, isCertain: boolean } }} KeptData
 *   of a socket of the app; `given`: where it is bound, on an address of a program whose place the app takes; `isCopy`: it is that one's own; `isCertain`: that program, and no other of the same process
 * @typedef {{ handle: SocketHandle, data?: KeptData | import('../systemd/activated-sockets.js').InheritedSocket }} HeldSocket
 */

/** A message may take this long: the keeper acknowledges each socket before it. */
const DELIVERY_MS = 2000

/** A lost keeper is noticed within this time if Node does not tell. */
const LOSS_POLL_MS = 1000

/** What an app starts and leaves behind may come and go for months. */
const MAX_EXITS = 1000

/** @param {Exit[]} exits the newest last @param {Exit} exit */
export function noteExit (exits, exit) {
  exits.push(exit)
  if (exits.length > MAX_EXITS) exits.shift()
}

/** @param {Exit} exit  with more */
function exitOf ({ pid, code, signal }) {
  return { pid, code, signal }
}

/** Holds the pid of the keeper, so that a master knows that its IPC channel leads to one. */
export const KEPT_VARIABLE = 'CLUSTERDECK_KEPT'
/** The folder that its keeper was started in, which it may not be able to work in any more: see system/working-folder.js. */
export const FOLDER_VARIABLE = 'CLUSTERDECK_KEPT_FOLDER'

/**
 * Sends a message to a master, or to none.
 * @param {{ child: import('node:child_process').ChildProcess } | null} master @param {FromKeeper} message @param {SocketHandle} [handle]
 */
export function sendToMaster (master, message, handle) {
  // ERR_IPC_CHANNEL_CLOSED, EPIPE: it is dead, and its 'exit' says so.
  if (master?.child.connected) master.child.send(message, handle, undefined, () => {})
}

/**
 * Tells the other master of an upgrade why this one fails.
 * @param {string} reason
 */
export function tellFailure (reason) {
  if (process.connected) process.send?.({ type: 'relay', failing: reason }, undefined, undefined, () => {})
}

/** @type {Greeting} */
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
  /** @type {Map<string, HeldSocket>} */
  const held = isKept ? new Map() : takeInheritedSockets({ env })
  /** What the keeper holds now. @type {Map<string, HeldSocket>} */
  const copies = new Map()
  /** @type {{ [Type in keyof Handlers]?: Handlers[Type][] }} */
  const handlers = {}
  const loss = isKept ? watchLoss() : { on () {}, off () {} }
  const { role, predecessor, exits, reaps = false, memory = null, unsaved = [], apps = [], upgrading = null } = isKept ? await greetKeeper() : ALONE
  /** @type {Map<string | undefined, unknown>} the checkpoints, by app; undefined: of the master itself */
  const contents = new Map()
  /** @type {Map<string | undefined, DeckEvent[]>} the events of a master before, likewise */
  const unsavedOf = new Map()
  for (const one of [{ app: undefined, memory, unsaved }, ...apps]) {
    noteContent(one.memory, one.app)
    if (one.unsaved.length > 0) unsavedOf.set(one.app, one.unsaved)
  }
  listen('remember', ({ content, apps = [] }) => {
    contents.clear()
    for (const one of [{ app: undefined, content }, ...apps]) noteContent(one.content, one.app)
  })
  let hasTakenOver = false
  listen('take-over', () => { hasTakenOver = true })
  /** @type {string | null} */
  let failure = null
  const signals = new EventEmitter()
  listen('signal', ({ signal }) => signals.emit(signal))

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
    /** The apps of a host that change to this master, in an upgrade; null: all that there are. */
    upgrading,
    /** The sockets that were there before this master. */
    held,
    /** Those that the keeper holds now, as this master has them. @type {ReadonlyMap<string, HeldSocket>} */
    copies,
    /** Signals that the keeper forwards, by name. */
    signals,
    send: sendToKeeper,

    /**
     * Sends a message before this process ends; a queued one would end with it.
     * @param {ToKeeper} message @returns {Promise<void>} resolves once it has left, or cannot any more
     */
    async deliver (message) {
      if (!isKept || !process.connected) return
      await waitAtMost(new Promise((resolve) => { process.send?.(message, undefined, undefined, resolve) }), DELIVERY_MS)
    },

    /**
     * @param {string} key @param {SocketHandle | DatagramHandle} handle @param {KeptData} [data]
     * @returns {Promise<void> | void} resolves once it reaches the keeper even if this process is killed: Node sends a socket only when the
     *   keeper has confirmed the one before it; nothing: there is no keeper
     */
    hold (key, handle, data) {
      copies.set(key, { handle: /** @type {SocketHandle} */ (handle), data })
      if (!isKept || !process.connected) return
      return waitAtMost(new Promise((resolve) => { process.send?.({ type: 'hold', key, data }, handle, undefined, resolve) }), DELIVERY_MS)
    },

    drop,

    /** @param {string} prefix of the keys of one kind, of which there is to be one alone @param {string} wanted */
    dropOthers (prefix, wanted) {
      for (const [key, { handle }] of held) {
        if (!key.startsWith(prefix) || key === wanted) continue
        drop(key)
        handle.close()
        held.delete(key)
      }
    },

    on: listen,

    /** Why this master comes to nothing, in an upgrade. @type {string | null} */
    get failure () { return failure },

    /**
     * In an upgrade this master comes to nothing: the other one hears why, and so does every part of this one. Once it is the only one,
     * nothing of that is true any more.
     * @param {string} reason
     */
    failUpgrade (reason) {
      if (role !== 'next' || hasTakenOver) return
      failure ??= reason
      tellFailure(reason)
      passToHandlers('upgrade-failed', { type: 'upgrade-failed', reason })
    },

    /** Why this master ends the next one, in an upgrade: all its parts hear that. @param {string} reason */
    failNext (reason) { passToHandlers('relay', { type: 'relay', failing: reason }) },

    /** The checkpoint for the next master, if the disk is full. */
    memory: memoryOf(),
    memoryOf,

    /** Events that could not be written to the history. */
    spare: spareOf(),
    spareOf,

    /** The apps of a host of which the keeper remembers something. @returns {string[]} */
    rememberedApps: () => [...new Set([...contents.keys(), ...unsavedOf.keys()])].filter((app) => app !== undefined),

    /** @param {() => void} handler the keeper is gone; this master goes on */
    onLost: loss.on,

    /** @param {() => void} handler */
    offLost: loss.off
  }

  /** @returns {Promise<Greeting>} */
  function greetKeeper () {
    return new Promise((resolve, reject) => {
      const onLost = () => reject(keeperGone())
      loss.on(onLost)
      listen('go', (greeting) => {
        process.on('message', (/** @type {FromKeeper} */ message) => { if (message.type === 'reaped') noteExit(greeting.exits, exitOf(message)) })
        loss.off(onLost)
        resolve(greeting)
      })
      process.on('message', (/** @type {FromKeeper} */ message, /** @type {SocketHandle} */ handle) => {
        if (message.type === 'held') for (const known of [held, copies]) known.set(message.key, { handle, data: message.data })
        else passToHandlers(message.type, message)
      })
      sendToKeeper({ type: 'hello' })
    })
  }

  /** @template {keyof Handlers} Type @param {Type} type @param {Handlers[Type]} handler */
  function listen (type, handler) {
    /** @type {Handlers[Type][]} */
    const others = handlers[type] ?? []
    handlers[type] = /** @type {typeof handlers[Type]} */ ([...others, handler])
  }

  /** @template {keyof Handlers} Type @param {Type} type @param {MessagesOfKeeper[Type]} message */
  function passToHandlers (type, message) {
    for (const handler of handlers[type] ?? []) handler(message)
  }

  /** @param {unknown} content @param {string | undefined} app */
  function noteContent (content, app) {
    if (content === null) contents.delete(app)
    else contents.set(app, content)
  }

  /** @param {string} [app] of a host; without it that of the master itself */
  function memoryOf (app) {
    return {
      /** @returns {unknown} null: it is in the file */
      read: () => contents.get(app) ?? null,
      /** @param {unknown} content null: a file says it @returns {boolean} whether it is kept */
      write (content) {
        if (content === null && !contents.has(app)) return isKept
        noteContent(content, app)
        sendToKeeper({ type: 'remember', content, app })
        return isKept && process.connected
      }
    }
  }

  /** @param {string} [app] of a host; without it those of the master itself */
  function spareOf (app) {
    return {
      /** Those of a master before, oldest first, until they are saved. */
      get events () { return unsavedOf.get(app) ?? [] },
      /** @param {DeckEvent} event */
      keep (event) { sendToKeeper({ type: 'unsaved', event, app }) },
      clear () {
        unsavedOf.delete(app)
        sendToKeeper({ type: 'saved', app })
      }
    }
  }

  /** @param {string} key */
  function drop (key) {
    copies.delete(key)
    sendToKeeper({ type: 'drop', key })
  }

  /** @param {ToKeeper} message @param {SocketHandle | DatagramHandle} [handle] */
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
  /** @type {PromiseWithResolvers<void>} */
  const lost = Promise.withResolvers()
  /** @type {Set<() => void>} */
  const handlers = new Set()
  const stop = lookInMiddleOfSecond(() => { if (!process.connected) lost.resolve() }, LOSS_POLL_MS)
  process.once('disconnect', lost.resolve)
  lost.promise.then(stop)
  return {
    on (handler) {
      handlers.add(handler)
      lost.promise.then(() => { if (handlers.has(handler)) handler() })
    },
    off (handler) { handlers.delete(handler) }
  }
}

function keeperGone () {
  return new DeckError('start-failed', 'the keeper that has started this master is gone')
}
