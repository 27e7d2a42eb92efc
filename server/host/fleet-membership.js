import { errorText } from '../errors.js'

/** @typedef {import('../fleet/app-fleet.js').AppPart} AppPart */
/** @typedef {import('../fleet/app-fleet.js').Scope} Scope */
/** @typedef {import('../fleet/fleet.js').Fleet} Fleet */
/** @typedef {ReturnType<typeof createFleetMembership>} FleetMembership */

/** Of a process with one app: its part is the whole. @type {Readonly<Scope>} */
export const WHOLE_PROCESS = Object.freeze({ run: (work) => work(), call: (work) => { work() }, bind: (/** @type {any} */ handler) => handler })

/**
 * A host's place among hosts on other machines, which is empty until it has joined them. Nothing here depends on it and no app
 * waits for it: what it needs is loaded after that.
 * @param {Pick<import('../config/config.js').Config, 'fleet'>} config @param {import('../system/log.js').Log} log
 */
export function createFleetMembership ({ fleet: options }, log) {
  /** @type {Fleet | null} */
  let fleet = null
  /** The apps of this host that run, and how each leaves the fleet where it has joined. @type {Map<AppPart, (() => Promise<void>) | null>} */
  const parts = new Map()

  return {
    /** Whether this host is to be in one. */
    isWanted: options.servers.length > 0,

    get fleet () { return fleet },

    /** The app of a host that never has another one. */
    get only () {
      const [part] = parts.keys()
      return part && fleet ? fleet.of(part.app) : null
    },

    /** @param {string} app */
    of: (app) => fleet?.of(app) ?? null,

    /**
     * An app takes part in the fleet from now on, or once the host has joined it.
     * @param {AppPart} part @returns {() => Promise<void>} ends it
     */
    enter (part) {
      parts.set(part, null)
      if (fleet) admit(part, fleet)
      return async () => {
        const leave = parts.get(part)
        parts.delete(part)
        await leave?.()
      }
    },

    /**
     * Joins the configured fleet.
     * @param {Omit<Parameters<typeof import('../fleet/fleet.js').createFleet>[0], 'options' | 'log'>} place
     * @param {{ ready: Promise<unknown>, shutdown: import('./shutdown.js').Shutdown, closers: import('../system/closers.js').Closers }} how
     *   `ready`: the apps come first
     */
    async join (place, { ready, shutdown, closers }) {
      if (options.servers.length === 0) return
      try {
        await ready
        const { createFleet } = await import('../fleet/fleet.js')
        if (shutdown.hasBegun) return
        const made = closers.add(createFleet({ ...place, options, log }), ({ close }) => close())
        fleet = made
        for (const part of parts.keys()) admit(part, made)
      } catch (error) {
        log.error({ err: error }, 'this host is not in its fleet')
      }
    },

    /** What others see of an app of this host may have changed. */
    tellSoon () { fleet?.tellSoon() }
  }

  /** @param {AppPart} part @param {Fleet} made */
  function admit (part, made) {
    try {
      parts.set(part, made.join(part))
    } catch (error) {
      log.error({ err: error, app: part.app }, `an app is not in the fleet of its host: ${errorText(error)}`)
    }
  }
}
