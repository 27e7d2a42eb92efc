import { EventEmitter } from 'node:events'
import { DeckError } from '../errors.ts'
import { lookInMiddleOfSecond } from '../../workers/look-together.ts'
import { waitAtMost } from '../system/wait-at-most.ts'
import { takeInheritedSockets, type InheritedSocket } from '../systemd/activated-sockets.ts'
import { createSocketStore, type StoredAs } from '../systemd/socket-store.ts'
import type { ChildProcess } from 'node:child_process'
import type { DatagramHandle, SocketHandle } from '../../workers/node-internals.d.ts'
import type { DeckEvent, NewEvent } from '../events/stream.ts'
import type { Hang } from './master-watch.ts'
import type { MemoryOfApp } from './memory.ts'
import type { ProcessIdentity } from '../system/process-identity.ts'
import type { Orphan } from '../lifecycle/state.ts'

export type KeeperLink = Awaited<ReturnType<typeof connectKeeper>>
export type Exit = { pid: number, code: number | null, signal: string | null }
/**
 * `hang`: why the keeper has ended it; `fault`: it goes on, and only its part for this app has ended, by an exception.
 */
export type Predecessor =
  & Exit
  & { hang?: Hang | null, fault?: { message: string, stack: string | null } }
/** by type */
export type MessagesOfKeeper = { [Message in FromKeeper as Message['type']]: Message }
export type Handlers = { [Type in keyof MessagesOfKeeper]: (message: MessagesOfKeeper[Type]) => void }

/**
 * What a master says to its keeper. Keepers are not upgraded, so messages may be added but never changed.
 * `hello`: it wants to know what there is; `beat`: it answers, and takes so much memory; `hold`, `drop`: a socket; `started`: signals can come.
 * `ending`: the exit to come is meant; `start-failed`: so is this one if no master has ever started.
 * `upgrade`: start the next master, to which these apps of a host change at once; `cancel`: end it; `serving`: the
 * workers of the next one are ready; `handed-over`: they are the only ones now.
 * Where the disk is full: `remember`: what the next master has to know, null: a file says it; `unsaved`: an event that
 * the history does not have; `saved`: it has all of them. `app`: of a host; without it the master means itself.
 */
export type ToKeeper =
  | { type: 'hello' }
  | { type: 'beat', isInspected: boolean, memoryBytes?: number }
  | { type: 'hold', key: string, data?: KeptData }
  | { type: 'drop', key: string }
  | { type: 'started', hearsSignals?: boolean, giveUpAfter?: number, hang?: HangOptions }
  | { type: 'watch', hang?: HangOptions }
  | { type: 'ending' }
  | { type: 'start-failed', code: number }
  | { type: 'upgrade', execPath: string | null, apps?: string[] }
  | { type: 'cancel', reason?: string }
  | { type: 'serving' }
  | { type: 'handed-over' }
  | { type: 'remember', content: unknown, app?: string }
  | { type: 'unsaved', event: DeckEvent, app?: string }
  | { type: 'saved', app?: string }
  | Relay
/** to the other master of an upgrade; `app`: of a host */
type Relay =
  | { type: 'relay', failing: string, app?: undefined }
  | { type: 'relay', failing?: undefined, event: NewEvent, workers: RelayedWorker[], app?: string }

/** What a keeper says to a master. */
type FromKeeper = { type: 'held', key: string, data?: HeldSocket['data'] } | { type: 'go' } & Greeting | {
  type: 'signal',
  signal: NodeJS.Signals
} | { type: 'reaped' } & Exit | { type: 'hand-over' } | { type: 'take-over', predecessor: Predecessor | null } | {
  type: 'upgrade-failed',
  reason: string
} | { type: 'close-inspector' } | { type: 'remember', content: unknown, apps?: { app: string, content: unknown }[] }
  | Relay
/**
 * `held`: a socket, which comes along; `go`: those were all; `signal`: to a master that `hearsSignals`; `reaped`: how
 * an orphan has ended. `close-inspector`: the keeper has opened it to see where the master is stuck.
 */
type Greeting = {
  role: 'current' | 'next',
  predecessor: Predecessor | null,
  exits: Exit[],
  reaps?: boolean,
  memory?: unknown,
  unsaved?: DeckEvent[],
  apps?: MemoryOfApp[],
  /** the apps of a host that change to this master, in an upgrade */
  upgrading?: string[]
}

type HangOptions = Partial<import('./master-watch.ts').HangOptions> | null
type WorkerIdentity = ProcessIdentity & { crashFile: string, orderFile: string }
type RelayedWorker =
  & Omit<Orphan, 'exit' | 'orphan' | 'state'>
  & { identity: WorkerIdentity | null | undefined }
/**
 * of a socket of the app; `given`: where it is bound, on an address of a program whose place the app takes; `isCopy`:
 * it is that one's own; `isCertain`: that program, and no other of the same process
 */
export type KeptData = { data?: unknown, path?: { file: string, dev: number, ino: number, stage?: string },
  inherited?: number, given?: { host?: string, port?: number, path?: string, isCopy?: boolean, isCertain: boolean },
  stored?: StoredAs }
export type HeldSocket = { handle: SocketHandle, data?: KeptData | InheritedSocket }

/** A message may take this long: the keeper acknowledges each socket before it. */
const DELIVERY_MS = 2000

/** A lost keeper is noticed within this time if Node does not tell. */
const LOSS_POLL_MS = 1000

/** What an app starts and leaves behind may come and go for months. */
const MAX_EXITS = 1000

/** `exits`: the newest last */
export function noteExit (exits: Exit[], exit: Exit) {
  exits.push(exit)
  if (exits.length > MAX_EXITS) exits.shift()
}

/** What the keeper holds of an app has this before its key, and the app's id, which has no blank in it. */
export const OF_APP = /^of (\S+) (.*)$/s

/** Holds the pid of the keeper, so that a master knows that its IPC channel leads to one. */
export const KEPT_VARIABLE = 'CLUSTERDECK_KEPT'
/**
 * The folder that its keeper was started in, which it may not be able to work in any more: see
 * system/working-folder.js.
 */
export const FOLDER_VARIABLE = 'CLUSTERDECK_KEPT_FOLDER'

/** Sends a message to a master, or to none. */
export function sendToMaster (master: { child: ChildProcess } | null, message: FromKeeper, handle?: SocketHandle) {
  // ERR_IPC_CHANNEL_CLOSED, EPIPE: it is dead, and its 'exit' says so.
  if (master?.child.connected) master.child.send(message, handle, undefined, () => {})
}

/** Tells the other master of an upgrade why this one fails. */
export function tellFailure (reason: string) {
  if (process.connected) process.send?.({ type: 'relay', failing: reason }, undefined, undefined, () => {})
}

const ALONE: Greeting = Object.freeze({ role: 'current', predecessor: null, exits: [] })

/**
 * The master's line to its keeper. Without a keeper every call does nothing, and nothing is held but what the service
 * manager has passed.
 * @throws {DeckError} start-failed: the keeper is gone already
 */
export async function connectKeeper (env: Record<string, string | undefined> = process.env) {
  const isKept = Boolean(env[KEPT_VARIABLE] && process.send)
  // A master that lost its keeper before it began could run beside another one, or after the end of the cluster.
  if (isKept && Number(env[KEPT_VARIABLE]) !== process.ppid) throw keeperGone()
  delete env[KEPT_VARIABLE]
  const held: Map<string, HeldSocket> = isKept ? new Map() : takeInheritedSockets({ env })
  const store = createSocketStore(env.NOTIFY_SOCKET)
  /** What the keeper holds now. */
  const copies: Map<string, HeldSocket> = new Map(held)
  const handlers: { [Type in keyof Handlers]?: Handlers[Type][] } = {}
  const loss = isKept ? watchLoss() : { on () {}, off () {} }
  const { role, predecessor, exits, reaps = false, memory = null, unsaved = [], apps = [], upgrading = null } = isKept
    ? await greetKeeper()
    : ALONE
  /** the checkpoints, by app; undefined: of the master itself */
  const contents: Map<string | undefined, unknown> = new Map()
  /** the events of a master before, likewise */
  const unsavedOf: Map<string | undefined, DeckEvent[]> = new Map()
  for (const one of [{ app: undefined, memory, unsaved }, ...apps]) {
    noteContent(one.memory, one.app)
    if (one.unsaved.length > 0) unsavedOf.set(one.app, one.unsaved)
  }
  listen('remember', ({ content, apps = [] }) => {
    contents.clear()
    for (const one of [{ app: undefined, content }, ...apps]) noteContent(one.content, one.app)
  })
  let hasTakenOver = false
  listen('take-over', () => {
    hasTakenOver = true
  })
  let failure: string | null = null
  const signals = new EventEmitter()
  listen('signal', ({ signal }) => signals.emit(signal))

  return {
    get isKept () {
      return isKept && process.connected
    },
    /** `next`: to take over from a master that runs, in an upgrade */
    role,
    /** how the master before this one ended, where the keeper saw it */
    predecessor,
    /** of processes that a master before has left behind, up to now */
    exits,
    /** Whether the keeper reports every orphan's exit. An older version does not say. */
    reaps,
    /** The apps of a host that change to this master, in an upgrade; null: all that there are. */
    upgrading,
    /** The sockets that were there before this master. */
    held,
    /** Those that the keeper holds now, as this master has them. */
    copies: copies as ReadonlyMap<string, HeldSocket>,
    /** Signals that the keeper forwards, by name. */
    signals,
    send: sendToKeeper,

    /**
     * Sends a message before this process ends; a queued one would end with it.
     * @returns resolves once it has left, or cannot any more
     */
    async deliver (message: ToKeeper): Promise<void> {
      if (!isKept || !process.connected) return
      await waitAtMost(new Promise((resolve) => {
        process.send?.(message, undefined, undefined, resolve)
      }), DELIVERY_MS)
    },

    /**
     * @returns resolves once it reaches the keeper even if this process is killed: Node sends a socket only when the
     * keeper has confirmed the one before it; nothing: there is no keeper
     */
    hold (key: string, handle: SocketHandle | DatagramHandle, given?: KeptData): Promise<void> | void {
      const data = describeStored(key, handle, given)
      copies.set(key, { handle: handle as SocketHandle, data })
      if (!isKept || !process.connected) return store.add(data, handle)
      return waitAtMost(new Promise((resolve) => {
        process.send?.({ type: 'hold', key, data }, handle, undefined, resolve)
      }), DELIVERY_MS)
    },

    drop,

    /** Whether the service starts again, with the sockets that the service manager keeps: then they stay open. */
    leavesSockets: false,

    /** `prefix`: of the keys of one kind, of which there is to be one alone */
    dropOthers (prefix: string, wanted: string) {
      for (const [key, { handle }] of held) {
        if (!key.startsWith(prefix) || key === wanted) continue
        drop(key)
        handle.close()
        held.delete(key)
      }
    },

    on: listen,

    /** Why this master comes to nothing, in an upgrade. */
    get failure () {
      return failure
    },

    /**
     * In an upgrade this master comes to nothing: the other one hears why, and so does every part of this one. Once it
     * is the only one, nothing of that is true any more.
     */
    failUpgrade (reason: string) {
      if (role !== 'next' || hasTakenOver) return
      failure ??= reason
      tellFailure(reason)
      passToHandlers('upgrade-failed', { type: 'upgrade-failed', reason })
    },

    /** Why this master ends the next one, in an upgrade: all its parts hear that. */
    failNext (reason: string) {
      passToHandlers('relay', { type: 'relay', failing: reason })
    },

    /** The checkpoint for the next master, if the disk is full. */
    memory: memoryOf(),
    memoryOf,

    /** Events that could not be written to the history. */
    spare: spareOf(),
    spareOf,

    /** The apps of a host of which the keeper remembers something. */
    rememberedApps: (): string[] =>
      [...new Set([...contents.keys(), ...unsavedOf.keys()])].filter((app) => app !== undefined),

    /** `handler`: the keeper is gone; this master goes on */
    onLost: loss.on,

    offLost: loss.off
  }

  function greetKeeper (): Promise<Greeting> {
    return new Promise((resolve, reject) => {
      const onLost = () => reject(keeperGone())
      loss.on(onLost)
      listen('go', (greeting) => {
        process.on('message', (message: FromKeeper) => {
          if (message.type !== 'reaped') return
          const { pid, code, signal } = message
          noteExit(greeting.exits, { pid, code, signal })
        })
        loss.off(onLost)
        resolve(greeting)
      })
      process.on('message', (message: FromKeeper, handle: SocketHandle) => {
        if (message.type === 'held') {
          for (const known of [held, copies]) known.set(message.key, { handle, data: message.data })
        } else passToHandlers(message.type, message)
      })
      sendToKeeper({ type: 'hello' })
    })
  }

  function listen<Type extends keyof Handlers> (type: Type, handler: Handlers[Type]) {
    const others: Handlers[Type][] = handlers[type] ?? []
    handlers[type] = [...others, handler] as typeof handlers[Type]
  }

  function passToHandlers<Type extends keyof Handlers> (type: Type, message: MessagesOfKeeper[Type]) {
    for (const handler of handlers[type] ?? []) handler(message)
  }

  function noteContent (content: unknown, app: string | undefined) {
    if (content === null) contents.delete(app)
    else contents.set(app, content)
  }

  /** `app`: of a host; without it that of the master itself */
  function memoryOf (app?: string) {
    return {
      /** Null: it is in the file */
      read: (): unknown => contents.get(app) ?? null,
      /** `content`: null: a file says it. Returns whether it is kept. */
      write (content: unknown): boolean {
        if (content === null && !contents.has(app)) return isKept
        noteContent(content, app)
        sendToKeeper({ type: 'remember', content, app })
        return isKept && process.connected
      }
    }
  }

  /** `app`: of a host; without it those of the master itself */
  function spareOf (app?: string) {
    return {
      /** Those of a master before, oldest first, until they are saved. */
      get events () {
        return unsavedOf.get(app) ?? []
      },
      keep (event: DeckEvent) {
        sendToKeeper({ type: 'unsaved', event, app })
      },
      clear () {
        unsavedOf.delete(app)
        sendToKeeper({ type: 'saved', app })
      }
    }
  }

  function drop (key: string) {
    const { data } = copies.get(key) ?? {}
    copies.delete(key)
    if (isKept && process.connected) sendToKeeper({ type: 'drop', key })
    else store.remove(data, copies.values())
  }

  /** Whatever an app has bound is stored. `data`: what belongs to others is theirs to keep, as is the admin port. */
  function describeStored (key: string, handle: SocketHandle | DatagramHandle, data?: KeptData): KeptData | undefined {
    const isOwn = OF_APP.test(key) && data?.inherited === undefined && data?.given === undefined
    const stored = (isOwn && store.describe(key, handle)) || undefined
    return data?.stored || stored ? { ...data, stored } : data
  }

  function sendToKeeper (message: ToKeeper, handle?: SocketHandle | DatagramHandle) {
    // 'disconnect' tells that the keeper is gone.
    if (isKept && process.connected) process.send?.(message, handle, undefined, () => {})
  }
}

/**
 * Node forgets to tell 'disconnect' where the keeper dies before it has acknowledged a socket: it waits for that first.
 */
function watchLoss (): { on: (handler: () => void) => void, off: (handler: () => void) => void } {
  const lost: PromiseWithResolvers<void> = Promise.withResolvers()
  const handlers: Set<() => void> = new Set()
  const stop = lookInMiddleOfSecond(() => {
    if (!process.connected) lost.resolve()
  }, LOSS_POLL_MS)
  process.once('disconnect', lost.resolve)
  lost.promise.then(stop)
  return { on (handler) {
    handlers.add(handler)
    lost.promise.then(() => {
      if (handlers.has(handler)) handler()
    })
  }, off (handler) {
    handlers.delete(handler)
  } }
}

function keeperGone () {
  return new DeckError('start-failed', 'the keeper that has started this master is gone')
}
