import { configFileOf } from '../config/config.js'
import { identifyProcess, pidNamespace } from '../system/process-identity.js'
import { registerDeck, withdrawDeck } from '../system/running-decks.js'

/** @typedef {ReturnType<typeof createAnnouncement>} Announcement */
/**
 * `adminUrl`: on this machine, `publicUrl`: for people, null if it is the same; `fingerprint`: of the certificate;
 * `host`: the folder of the host, which has the token, null where the master has this one app.
 * @typedef {{ adminUrl: string, publicUrl: string | null, fingerprint: string | null, host: string | null }} Address
 */

/**
 * Tells others on this machine where an app is run: whoever looks into its data folder, and whoever reads the list of all decks of
 * this user. No start depends on either.
 * @param {Pick<import('../app/app.js').App, 'config' | 'dataDir' | 'deck' | 'startedAt'>} app
 * @param {Pick<import('../app/app.js').HostServices, 'keeper' | 'log' | 'software'>} services
 * @param {() => Address} address
 */
export function createAnnouncement ({ config, dataDir, deck, startedAt }, { keeper, log, software }, address) {
  return {
    /** Writes into its data folder. */
    announce () { announceMaster({ dataDir, startedAt }, { keeper, log }, address()) },

    /** Writes into the list. */
    register () {
      const { entry, cwd } = config
      const { adminUrl, publicUrl, fingerprint } = address()
      try {
        registerDeck({
          name: deck.snapshot().app.name,
          entry,
          cwd,
          dataDir: config.dataDir,
          configFile: configFileOf(config),
          adminUrl,
          publicUrl,
          fingerprint,
          version: software.version,
          startedAt,
          master: identifyProcess(process.pid),
          keeper: identifyKeeper(keeper)
        })
      } catch (error) {
        log.warn({ err: error }, 'this deck is not in the list of running decks')
      }
    },

    /** Takes it off the list, where the next master is not on it. */
    withdraw () { withdrawDeck({ dataDir: config.dataDir, master: identifyProcess(process.pid) }) }
  }
}

/**
 * Tells whoever looks into a data folder where its master is.
 * @param {Pick<import('../app/app.js').App, 'dataDir' | 'startedAt'>} master
 * @param {Pick<import('../app/app.js').HostServices, 'keeper' | 'log'>} services
 * @param {Omit<Address, 'publicUrl'>} address
 */
export function announceMaster ({ dataDir, startedAt }, { keeper, log }, { adminUrl, fingerprint, host }) {
  try {
    dataDir.announce({
      ...identifyProcess(process.pid),
      keeper: identifyKeeper(keeper),
      pidNamespace: pidNamespace(),
      adminUrl,
      ...(fingerprint && { fingerprint }),
      ...(host && { host }),
      startedAt
    })
  } catch (error) {
    log.error({ err: error }, 'this master could not be announced in its data folder')
  }
}

/** @param {Pick<import('../keeper/link.js').KeeperLink, 'isKept'>} keeper */
export function identifyKeeper (keeper) {
  return keeper.isKept ? identifyProcess(process.ppid) : null
}
