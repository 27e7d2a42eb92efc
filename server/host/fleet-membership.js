import { waitAtMost } from '../system/wait-at-most.js'
import { LOAD_SITE_WITHIN_MS } from './admin-page.js'

/**
 * A deck's place among decks on other machines, which is empty until it has joined them.
 * @typedef {{ readonly fleet: import('../fleet/fleet.js').Fleet | null, join: (app: import('../app/app.js').App, parts: import('./master.js').Parts) => Promise<void> }} FleetMembership
 * @returns {FleetMembership}
 */
export function createFleetMembership () {
  /** @type {import('../fleet/fleet.js').Fleet | null} */
  let fleet = null

  return {
    get fleet () { return fleet },

    /**
     * Joins the configured fleet. Nothing here depends on it and no app waits for it: what it needs is loaded after that.
     * @param {import('../app/app.js').App} app @param {import('./master.js').Parts} parts
     */
    async join ({ config, dataDir, deck, supervisor }, { host: { log, closers, software }, admin: { publicUrl, ask }, shutdown }) {
      if (config.fleet.servers.length === 0) return
      try {
        await waitAtMost(supervisor.running, LOAD_SITE_WITHIN_MS)
        const { createFleet } = await import('../fleet/fleet.js')
        if (shutdown.hasBegun) return
        fleet = closers.add(createFleet({
          options: config.fleet,
          folder: dataDir.folder,
          deck,
          root: config.releases.root,
          version: software.version,
          url: config.admin.publicUrl ? publicUrl : null,
          log,
          serve: (order, asker, limits) => ask(order, { ...asker, token: null, until: null, via: 'fleet' }, limits)
        }), ({ close }) => close())
      } catch (error) {
        log.error({ err: error }, 'this deck is not in its fleet')
      }
    }
  }
}
