import { placeText } from '../system/place-text.ts'
import { describeInherited, listReturned } from '../systemd/activated-sockets.ts'
import { storedName } from '../systemd/socket-store.ts'
import { OF_APP, type Exit, type Handlers, type KeeperLink, type KeptData, type Predecessor, type ToKeeper,
  type MessagesOfKeeper } from './link.ts'
import type { SocketHandle } from '../../workers/node-internals.d.ts'

/** of what the keeper says */
type TypeForApps = 'reaped' | 'relay' | 'take-over' | 'upgrade-failed'
type FromApp = Extract<ToKeeper, { type: 'watch' | 'cancel' | 'serving' | 'relay' }>

/**
 * What an app needs of a keeper. `claim`: asks for a socket of the service manager, which may be another app's; without
 * it there is no other app
 */
export type AppLink = Pick<KeeperLink,
  'isKept' | 'role' | 'predecessor' | 'exits' | 'reaps' | 'held' | 'hold' | 'drop' | 'memory' | 'spare' | 'failUpgrade'
    | 'failure' | 'onLost' | 'offLost'> & { send: (message: FromApp) => void,
  on: <Type extends TypeForApps>(type: Type, handler: Handlers[Type]) => void, claim?: (fd: number) => boolean,
  stored?: () => StoredSocket[], leavesSockets?: boolean }

/** A socket that the service manager keeps, as its app knows it. `key`: of the app; `address`: where it is bound. */
export type StoredSocket = { key: string, address: string, path?: KeptData['path'] }

export type AppLinks = ReturnType<typeof createAppLinks>

const FOR_APPS: readonly TypeForApps[] = Object.freeze(['reaped', 'relay', 'take-over', 'upgrade-failed'])

function namedKey (id: string, key: string) {
  return `of ${id} ${key}`
}

/**
 * Divides the one line to the keeper among the apps of a host, by their ids: each has its own sockets, its own
 * checkpoint and its own events there, and sees those of no other. `onFault`: what an app throws at what it is told.
 */
export function createAppLinks (
  keeper: Pick<KeeperLink,
    'isKept' | 'role' | 'predecessor' | 'exits' | 'reaps' | 'held' | 'copies' | 'hold' | 'drop' | 'memoryOf' | 'spareOf'
      | 'rememberedApps' | 'leavesSockets' | 'send' | 'on' | 'onLost' | 'failUpgrade' | 'failure' | 'failNext'>,
  { onFault = rejectLater }: { onFault?: (error: unknown, id: string) => void } = {}
) {
  /** Those that are open, by the id of the app. */
  const open: Map<string, ReturnType<typeof openLink>> = new Map()
  const kept = takeNamed(keeper.held)
  /** Who has which socket of the service manager, by its number. */
  const claims: Map<number, string> = new Map()
  for (const [id, sockets] of kept)
    for (const { data } of sockets.values()) if (data?.inherited !== undefined) claims.set(data.inherited, id)
  /** Of a next master, those whose workers are all ready. */
  const serving: Set<string> = new Set()
  /** those that are waited for; null: that is not known yet */
  let awaited: readonly string[] | null = null
  let isLost = false
  let { role, predecessor } = keeper
  keeper.on('take-over', (message) => {
    role = 'current'
    predecessor = message.predecessor ?? predecessor
  })
  FOR_APPS.forEach(passToApps)
  keeper.onLost(() => {
    isLost = true
    tellApps(undefined, ({ lose }) => lose())
  })

  return {
    /**
     * Opens the line of an app, which gets the sockets that the master before has left to it, and closes them itself.
     */
    of (id: string, how?: LinkOptions): AppLink {
      closeLink(id)
      takeLate()
      const opened = openLink(id, how)
      open.set(id, opened)
      return opened.link
    },

    /** Gives an app that is not open yet the sockets that it had elsewhere. */
    give (id: string, sockets: ReadonlyMap<string, { handle: SocketHandle, data?: KeptData }>) {
      for (const [key, { handle, data }] of sockets) giveSocket(id, key, { handle, data })
    },

    /**
     * Gives each socket that the service manager has kept to the app whose record names it, with its address. All others
     * are closed, as nobody would accept their connections. `apps`: that are to run. Returns those, for people.
     */
    giveReturned (apps: Iterable<{ id: string, stored: readonly StoredSocket[] }>): string[] {
      const known = new Map(
        [...apps].flatMap(({ id, stored }) =>
          stored.map((socket) => [storedName(namedKey(id, socket.key)), { id, ...socket }])
        )
      )
      return listReturned(keeper.held).flatMap(({ held, handle, data }) => {
        const found = known.get(data.name)
        const isKnown = found?.address === placeText({ ...data, path: data.path ?? undefined })
        if (isKnown) giveSocket(found.id, found.key, { handle, data: { path: found.path } })
        else handle.close()
        keeper.held.delete(held)
        keeper.drop(held)
        return isKnown ? [] : [describeInherited(data)]
      })
    },

    /** The app does not run. Unless workers that a master has left serve there, connections would wait for ever. */
    closeUnserved (id: string, isServed: () => boolean) {
      const unserved = kept.get(id)
      if (!unserved?.size || keeper.leavesSockets || isServed()) return
      for (const [key, { handle, own }] of unserved) {
        keeper.drop(namedKey(id, key))
        // It may have failed before it has taken them.
        const unused = handle ?? own
        unused?.close()
      }
      unserved.clear()
    },

    /** In an upgrade: the other master hands over as soon as these serve. */
    awaitServing (ids: readonly string[]) {
      awaited = ids
      tellServing()
    },

    /**
     * The app is not in this master any more. What the keeper has of it stays there.
     * @param how `keepsSockets`: they are still open, for the same app that is opened anew
     */
    close: closeLink,

    /** The app is not known any more: nothing of it stays with the keeper. */
    forget: forgetApp,

    /** Forgets whatever belongs to none of these; in an upgrade, once this is the only master. */
    dropUnknown (ids: Iterable<string>) {
      takeLate()
      const known = new Set(ids)
      for (const id of new Set([...kept.keys(), ...keeper.rememberedApps()])) if (!known.has(id)) forgetApp(id)
    }
  }

  function giveSocket (id: string, key: string, { handle, data }: { handle: SocketHandle, data?: KeptData }) {
    keeper.hold(namedKey(id, key), handle, data)
    socketsOf(id).set(key, { handle, data })
  }

  /** `id`: undefined: all */
  function tellApps (id: string | undefined, tell: (opened: ReturnType<typeof openLink>) => void) {
    for (const [its, opened] of [...open]) {
      if (id !== undefined && id !== its) continue
      try {
        tell(opened)
      } catch (error) {
        onFault(error, its)
      }
    }
  }

  function passToApps<Type extends TypeForApps> (type: Type) {
    const pass = (message: MessagesOfKeeper[Type]) =>
      tellApps('app' in message ? message.app : undefined, ({ hear }) => hear(type, message))
    keeper.on(type, pass as Handlers[Type])
  }

  function tellServing () {
    if (!awaited?.every((id) => serving.has(id))) return
    awaited = null
    keeper.send({ type: 'serving' })
  }

  function openLink (id: string,
    { title = id, call = (work) => work(), fault = null, exits = [], before = null }: LinkOptions = {})
  {
    const sockets = socketsOf(id)
    const held = heldBy(sockets)
    const handlers: { [Type in TypeForApps]?: Handlers[Type][] } = {}
    const onLost: Set<() => void> = new Set()
    let isOpen = true

    const link: AppLink = {
      get isKept () {
        return keeper.isKept
      },
      role,
      predecessor: fault ? { pid: process.pid, code: null, signal: null, fault } : before ?? predecessor,
      get exits () {
        return [...keeper.exits, ...exits]
      },
      // This process tells itself how those end that were its children, and another deck how those of its own do.
      reaps: keeper.reaps || fault !== null || before !== null,
      held,
      memory: keeper.memoryOf(id),
      spare: keeper.spareOf(id),

      // A timer of an app that has gone may come late, when the app is here again.
      hold (key, handle, data) {
        if (!isOpen) return
        sockets.set(key, { handle: null, own: handle, data })
        return keeper.hold(namedKey(id, key), handle, data)
      },

      drop (key) {
        if (!isOpen) return
        sockets.get(key)?.handle?.close()
        sockets.delete(key)
        keeper.drop(namedKey(id, key))
      },

      claim: title === null ? undefined : claim,

      stored: () =>
        [...sockets.keys()].flatMap((key) => {
          const { data } = keeper.copies.get(namedKey(id, key)) ?? {}
          return data && 'stored' in data && data.stored
            ? [{ key, address: data.stored.address, ...(data.path && { path: data.path }) }]
            : []
        }),

      send (message) {
        if (isOpen) passOn(message.type, message)
      },

      get leavesSockets () {
        return keeper.leavesSockets
      },

      get failure () {
        return keeper.failure
      },
      failUpgrade: (reason) => keeper.failUpgrade(withTitle(reason)),

      on (type, handler) {
        handlers[type] = [...handlers[type] ?? [], handler] as typeof handlers[typeof type]
      },

      onLost (handler) {
        onLost.add(handler)
        if (isLost)
          Promise.resolve().then(() => {
            if (isOpen && onLost.has(handler)) handler()
          })
      },

      offLost (handler) {
        onLost.delete(handler)
      }
    }
    const passed: { [Type in FromApp['type']]: (message: Extract<FromApp, { type: Type }>) => void } = {
      // How long a host may be silent is said by the host.
      watch (message) {
        if (title === null) keeper.send(message)
      },
      cancel ({ reason }) {
        if (reason !== undefined) keeper.failNext(withTitle(reason))
        keeper.send({ type: 'cancel' })
      },
      relay: (message) => keeper.send(message.failing === undefined ? { ...message, app: id } : message),
      serving () {
        serving.add(id)
        tellServing()
      }
    }
    return { link, hear<Type extends TypeForApps> (type: Type, message: MessagesOfKeeper[Type]) {
      for (const handler of handlers[type] ?? []) call(() => handler(message))
    }, lose () {
      for (const handler of [...onLost]) call(handler)
    }, end () {
      isOpen = false
    } }

    function claim (fd: number): boolean {
      if (!claims.has(fd)) claims.set(fd, id)
      return claims.get(fd) === id
    }

    function withTitle (reason: string) {
      return title === null ? reason : `${title}: ${reason}`
    }

    function passOn<Type extends FromApp['type']> (type: Type, message: Extract<FromApp, { type: Type }>) {
      passed[type](message)
    }
  }

  /** In an upgrade, the keeper gives at the end what the other master has held since. */
  function takeLate () {
    for (const [id, late] of takeNamed(keeper.held)) {
      const sockets = socketsOf(id)
      for (const [key, socket] of late) {
        sockets.get(key)?.handle?.close()
        sockets.set(key, socket)
      }
    }
  }

  function socketsOf (id: string) {
    const sockets = kept.get(id) ?? new Map()
    kept.set(id, sockets)
    return sockets
  }

  /** The service manager's belong to all, see `claim`. */
  function heldBy (sockets: Sockets): AppLink['held'] {
    const held = new Map([...keeper.held].filter(([, { data }]) => data && 'fd' in data))
    for (const [key, { handle, data }] of sockets) {
      if (handle === null) continue
      held.set(key, { handle, data })
      sockets.set(key, { handle: null, own: handle, data })
    }
    return held
  }

  function closeLink (id: string, { keepsSockets = false }: { keepsSockets?: boolean } = {}) {
    open.get(id)?.end()
    open.delete(id)
    for (const [key, { handle, own, data }] of kept.get(id) ?? [])
      kept.get(id)?.set(key, { handle: handle ?? ((keepsSockets && own) || null), own, data })
    const used = [...kept.get(id)?.values() ?? []].map(({ data }) => data?.inherited)
    for (const [fd, its] of claims) if (its === id && !used.includes(fd)) claims.delete(fd)
  }

  function forgetApp (id: string) {
    for (const [key, { handle }] of kept.get(id) ?? []) {
      keeper.drop(namedKey(id, key))
      handle?.close()
    }
    kept.delete(id)
    closeLink(id)
    keeper.memoryOf(id).write(null)
    keeper.spareOf(id).clear()
  }
}

/** It is nobody's to catch. */
function rejectLater (error: unknown) {
  Promise.reject(error)
}

/** by key; `handle`: null: the app has it, and closes it; `own`: that one, also once the app is closed */
type Sockets = Map<string, { handle: SocketHandle | null, own?: SocketHandle, data?: KeptData }>
export type Fault = NonNullable<Predecessor['fault']>
/**
 * `title`: what is told of it begins with that, null: it is the only app; `call`: calls the app, so that what it throws
 * keeps nothing from the others; `fault`: by which it was closed here, without a word; `exits`: of the workers that it
 * has left; `before`: the master of the deck that it comes from.
 */
export type LinkOptions = { title?: string | null, call?: (work: () => void) => void, fault?: Fault | null,
  exits?: Exit[], before?: Predecessor | null }

/** `held`: what belongs to an app goes out of it @returns by the id of the app */
function takeNamed (held: KeeperLink['held']): Map<string, Sockets> {
  const taken: ReturnType<typeof takeNamed> = new Map()
  for (const [named, { handle, data }] of held) {
    const [, id, key] = OF_APP.exec(named) ?? []
    if (id === undefined || (data && 'fd' in data)) continue
    held.delete(named)
    taken.set(id, (taken.get(id) ?? new Map()).set(key, { handle, data }))
  }
  return taken
}
