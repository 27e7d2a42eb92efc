import { errorText } from '../errors.ts'
import type { AppPart } from '../fleet/app-fleet.ts'
import type { Fleet, createFleet } from '../fleet/fleet.ts'
import type { Config } from '../config/config.ts'
import type { Log } from '../system/log.ts'
import type { Shutdown } from './shutdown.ts'
import type { Closers } from '../system/closers.ts'

export type FleetMembership = ReturnType<typeof createFleetMembership>

/**
 * A host's place among hosts on other machines, which is empty until it has joined them. Nothing here depends on it and
 * no app waits for it: what it needs is loaded after that.
 */
export function createFleetMembership ({ fleet: options }: Pick<Config, 'fleet'>, log: Log) {
  let fleet: Fleet | null = null
  /** The apps of this host that run, and how each leaves the fleet where it has joined. */
  const parts: Map<AppPart, (() => Promise<void>) | null> = new Map()

  return {
    /** Whether this host is to be in one. */
    isWanted: options.servers.length > 0,

    get fleet () {
      return fleet
    },

    of: (app: string) => fleet?.of(app) ?? null,

    /**
     * An app takes part in the fleet from now on, or once the host has joined it.
     * @returns ends it
     */
    enter (part: AppPart): () => Promise<void> {
      parts.set(part, null)
      if (fleet) admit(part, fleet)
      return async () => {
        const leave = parts.get(part)
        parts.delete(part)
        await leave?.()
      }
    },

    /** Joins the configured fleet. `ready`: the apps come first. */
    async join (place: Omit<Parameters<typeof createFleet>[0], 'options' | 'log'>,
      { ready, shutdown, closers }: { ready: Promise<unknown>, shutdown: Shutdown, closers: Closers })
    {
      if (options.servers.length === 0) return
      try {
        await ready
        const { createFleet } = await import('../fleet/fleet.ts')
        if (shutdown.hasBegun) return
        const made = closers.add(createFleet({ ...place, options, log }), ({ close }) => close())
        fleet = made
        for (const part of parts.keys()) admit(part, made)
      } catch (error) {
        log.error({ err: error }, 'this host is not in its fleet')
      }
    },

    /** What others see of an app of this host may have changed. */
    tellSoon () {
      fleet?.tellSoon()
    }
  }

  function admit (part: AppPart, made: Fleet) {
    try {
      parts.set(part, made.join(part))
    } catch (error) {
      log.error({ err: error, app: part.app }, `an app is not in the fleet of its host: ${errorText(error)}`)
    }
  }
}
