/** @typedef {import('./link.js').KeeperLink} KeeperLink */
/** @typedef {import('./link.js').KeptData} KeptData */
/** @typedef {'reaped' | 'relay' | 'take-over' | 'upgrade-failed'} TypeForApps  of what the keeper says */
/** @typedef {Extract<import('./link.js').ToKeeper, { type: 'watch' | 'upgrade' | 'cancel' | 'serving' | 'relay' }>} FromApp */

/**
 * What an app needs of a keeper. The whole line of a master with one app is one of these.
 * @typedef {Pick<KeeperLink, 'isKept' | 'role' | 'predecessor' | 'exits' | 'reaps' | 'held' | 'hold' | 'drop' | 'memory' | 'spare' | 'failUpgrade' | 'failure' | 'onLost' | 'offLost'> & {
 *   send: (message: FromApp) => void,
 *   on: <Type extends TypeForApps>(type: Type, handler: import('./link.js').Handlers[Type]) => void,
 *   claim?: (fd: number) => boolean
 * }} AppLink  `claim`: asks for a socket of the service manager, which may be another app's; where there is no other app, nobody asks
 */

/** @typedef {ReturnType<typeof createAppLinks>} AppLinks */

/** What the keeper holds of an app of a host has this before its key, and the app's name, which has no blank in it. */
const NAMED = /^of (\S+) (.*)$/s
/** @type {readonly TypeForApps[]} */
const FOR_APPS = Object.freeze(['reaped', 'relay', 'take-over', 'upgrade-failed'])

/** @param {string} name @param {string} key */
function namedKey (name, key) {
  return `of ${name} ${key}`
}

/**
 * Divides the one line to the keeper among the apps of a host: each has its own sockets, its own checkpoint and its own
 * events there, and sees those of no other.
 * @param {Pick<KeeperLink, 'isKept' | 'role' | 'predecessor' | 'exits' | 'reaps' | 'held' | 'hold' | 'drop' | 'memoryOf' | 'spareOf' | 'rememberedApps' | 'send' | 'on' | 'onLost' | 'failUpgrade' | 'failure' | 'failNext'>} keeper
 * @param {{ onFault?: (error: unknown, name: string) => void }} [hooks]  what an app throws at what it is told
 */
export function createAppLinks (keeper, { onFault = rejectLater } = {}) {
  /** Those that are open, by the name of the app. @type {Map<string, ReturnType<typeof openLink>>} */
  const open = new Map()
  const kept = takeNamed(keeper.held)
  /** Who has which socket of the service manager, by its number. @type {Map<number, string>} */
  const claims = new Map()
  for (const [name, sockets] of kept) for (const { data } of sockets.values()) if (data?.inherited !== undefined) claims.set(data.inherited, name)
  /** Of a next master, those whose workers are all ready. @type {Set<string>} */
  const serving = new Set()
  /** @type {readonly string[] | null} those that are waited for; null: that is not known yet */
  let awaited = null
  let isLost = false
  let { role, predecessor } = keeper
  keeper.on('take-over', (message) => {
    role = 'current'
    predecessor = message.predecessor ?? predecessor
  })
  for (const type of FOR_APPS) keeper.on(type, (/** @type {any} */ message) => tellApps(message.app, ({ hear }) => hear(type, message)))
  keeper.onLost(() => {
    isLost = true
    tellApps(undefined, ({ lose }) => lose())
  })

  return {
    /**
     * Opens the line of an app, which gets the sockets that the master before has left to it, and closes them itself.
     * @param {string} name
     * @param {LinkOptions} [how]
     * @returns {AppLink}
     */
    of (name, how) {
      closeLink(name)
      takeLate()
      const opened = openLink(name, how)
      open.set(name, opened)
      return opened.link
    },

    /** Gives an app that is not open yet the sockets that it had elsewhere. @param {string} name @param {ReadonlyMap<string, { handle: SocketHandle, data?: KeptData }>} sockets */
    give (name, sockets) {
      for (const [key, { handle, data }] of sockets) {
        keeper.hold(namedKey(name, key), handle, data)
        socketsOf(name).set(key, { handle, data })
      }
    },

    /** In an upgrade: the other master hands over as soon as these serve. @param {readonly string[]} names */
    awaitServing (names) {
      awaited = names
      tellServing()
    },

    /**
     * The app is not in this master any more. What the keeper has of it stays there.
     * @param {string} name @param {{ keepsSockets?: boolean }} [how] `keepsSockets`: they are still open, for the same app that is opened anew
     */
    close: closeLink,

    /** The app is not known any more: nothing of it stays with the keeper. @param {string} name */
    forget: forgetApp,

    /** Forgets whatever belongs to none of these; in an upgrade, once this is the only master. @param {Iterable<string>} names */
    dropUnknown (names) {
      takeLate()
      const known = new Set(names)
      for (const name of new Set([...kept.keys(), ...keeper.rememberedApps()])) if (!known.has(name)) forgetApp(name)
    }
  }

  /** @param {string | undefined} name undefined: all @param {(opened: ReturnType<typeof openLink>) => void} tell */
  function tellApps (name, tell) {
    for (const [its, opened] of [...open]) {
      if (name !== undefined && name !== its) continue
      try {
        tell(opened)
      } catch (error) {
        onFault(error, its)
      }
    }
  }

  function tellServing () {
    if (!awaited?.every((name) => serving.has(name))) return
    awaited = null
    keeper.send({ type: 'serving' })
  }

  /** @param {string} name @param {LinkOptions} [how] */
  function openLink (name, { call = (work) => work(), fault = null, exits = [], before = null } = {}) {
    const sockets = socketsOf(name)
    const held = heldBy(sockets)
    /** @type {Map<TypeForApps, ((message: any) => void)[]>} */
    const handlers = new Map()
    /** @type {Set<() => void>} */
    const onLost = new Set()
    let isOpen = true

    /** @type {AppLink} */
    const link = {
      get isKept () { return keeper.isKept },
      role,
      predecessor: fault ? { pid: process.pid, code: null, signal: null, fault } : before ?? predecessor,
      get exits () { return [...keeper.exits, ...exits] },
      // This process tells itself how those end that were its children, and another deck how those of its own do.
      reaps: keeper.reaps || fault !== null || before !== null,
      held,
      memory: keeper.memoryOf(name),
      spare: keeper.spareOf(name),

      // A timer of an app that has gone may come late, when the app is here again.
      hold (key, handle, data) {
        if (!isOpen) return
        sockets.set(key, { handle: null, own: handle, data })
        return keeper.hold(namedKey(name, key), handle, data)
      },

      drop (key) {
        if (!isOpen) return
        sockets.get(key)?.handle?.close()
        sockets.delete(key)
        keeper.drop(namedKey(name, key))
      },

      claim (fd) {
        if (!claims.has(fd)) claims.set(fd, name)
        return claims.get(fd) === name
      },

      send (message) { if (isOpen) passOn(message.type, message) },

      get failure () { return keeper.failure },
      failUpgrade: (reason) => keeper.failUpgrade(`${name}: ${reason}`),

      on (type, handler) { handlers.set(type, [...handlers.get(type) ?? [], handler]) },

      onLost (handler) {
        onLost.add(handler)
        if (isLost) Promise.resolve().then(() => { if (isOpen && onLost.has(handler)) handler() })
      },

      offLost (handler) { onLost.delete(handler) }
    }
    /** @type {{ [Type in FromApp['type']]: (message: Extract<FromApp, { type: Type }>) => void }} */
    const passed = {
      // How long a master may be silent is said by the host, and when another one starts.
      watch () {},
      upgrade () {},
      cancel ({ reason }) {
        if (reason !== undefined) keeper.failNext(`${name}: ${reason}`)
        keeper.send({ type: 'cancel' })
      },
      relay: (message) => keeper.send(message.failing === undefined ? { ...message, app: name } : message),
      serving () {
        serving.add(name)
        tellServing()
      }
    }
    return {
      link,

      /** @param {TypeForApps} type @param {any} message */
      hear (type, message) { for (const handler of handlers.get(type) ?? []) call(() => handler(message)) },

      lose () { for (const handler of [...onLost]) call(handler) },

      end () { isOpen = false }
    }

    /** @template {FromApp['type']} Type @param {Type} type @param {Extract<FromApp, { type: Type }>} message */
    function passOn (type, message) {
      passed[type](message)
    }
  }

  /** In an upgrade, the keeper gives at the end what the other master has held since. */
  function takeLate () {
    for (const [name, late] of takeNamed(keeper.held)) {
      const sockets = socketsOf(name)
      for (const [key, socket] of late) {
        sockets.get(key)?.handle?.close()
        sockets.set(key, socket)
      }
    }
  }

  /** @param {string} name */
  function socketsOf (name) {
    const sockets = kept.get(name) ?? new Map()
    kept.set(name, sockets)
    return sockets
  }

  /** The service manager's belong to all, see `claim`. @param {Sockets} sockets @returns {AppLink['held']} */
  function heldBy (sockets) {
    const held = new Map([...keeper.held].filter(([, { data }]) => data && 'fd' in data))
    for (const [key, { handle, data }] of sockets) {
      if (handle === null) continue
      held.set(key, { handle, data })
      sockets.set(key, { handle: null, own: handle, data })
    }
    return held
  }

  /** @param {string} name @param {{ keepsSockets?: boolean }} [how] */
  function closeLink (name, { keepsSockets = false } = {}) {
    open.get(name)?.end()
    open.delete(name)
    for (const [key, { handle, own = null, data }] of kept.get(name) ?? []) kept.get(name)?.set(key, { handle: handle ?? (keepsSockets ? own : null), data })
    const used = [...kept.get(name)?.values() ?? []].map(({ data }) => data?.inherited)
    for (const [fd, its] of claims) if (its === name && !used.includes(fd)) claims.delete(fd)
  }

  /** @param {string} name */
  function forgetApp (name) {
    for (const [key, { handle }] of kept.get(name) ?? []) {
      keeper.drop(namedKey(name, key))
      handle?.close()
    }
    kept.delete(name)
    closeLink(name)
    keeper.memoryOf(name).write(null)
    keeper.spareOf(name).clear()
  }
}

/** It is nobody's to catch. @param {unknown} error */
function rejectLater (error) {
  Promise.reject(error)
}

/** @typedef {import('./link.js').SocketHandle} SocketHandle */
/** @typedef {Map<string, { handle: SocketHandle | null, own?: SocketHandle, data?: KeptData }>} Sockets  by key; `handle`: null: the app has it, and closes it; `own`: that one */
/** @typedef {NonNullable<import('./link.js').Predecessor['fault']>} Fault */
/**
 * `call`: calls the app, so that what it throws keeps nothing from the others; `fault`: by which it was closed here, without a word; `exits`: of the workers that it has left;
 * `before`: the master of the deck that it comes from.
 * @typedef {{ call?: (work: () => void) => void, fault?: Fault | null, exits?: import('./link.js').Exit[], before?: import('./link.js').Predecessor | null }} LinkOptions
 */

/**
 * @param {KeeperLink['held']} held  what belongs to an app goes out of it
 * @returns {Map<string, Sockets>} by the name of the app
 */
function takeNamed (held) {
  /** @type {ReturnType<typeof takeNamed>} */
  const taken = new Map()
  for (const [named, { handle, data }] of held) {
    const [, name, key] = NAMED.exec(named) ?? []
    if (name === undefined || (data && 'fd' in data)) continue
    held.delete(named)
    taken.set(name, (taken.get(name) ?? new Map()).set(key, { handle, data }))
  }
  return taken
}
