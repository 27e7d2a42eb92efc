import { configFileOf } from '../config/config.ts'
import { identifyProcess, pidNamespace } from '../system/process-identity.ts'
import { registerDeck, withdrawDeck } from '../system/running-decks.ts'
import type { App, HostServices } from '../app/app.ts'
import type { KeeperLink } from '../keeper/link.ts'

/**
 * `adminUrl`: on this machine, `publicUrl`: for people, null if it is the same; `fingerprint`: of the certificate;
 * `host`: the folder of the host, which has the token, null where the master has this one app.
 */
export type Address = { adminUrl: string, publicUrl: string | null, fingerprint: string | null, host: string | null }

/**
 * Tells others on this machine where an app is run: whoever looks into its data folder, and whoever reads the list of
 * all decks of this user. No start depends on either.
 */
export function createAnnouncement (
  { config, dataDir, deck, startedAt }: Pick<App, 'config' | 'dataDir' | 'deck' | 'startedAt'>,
  { keeper, log, software }: Pick<HostServices, 'keeper' | 'log' | 'software'>,
  address: () => Address
) {
  return {
    /** Writes into its data folder. */
    announce () {
      announceMaster({ dataDir, startedAt }, { keeper, log }, address())
    },

    /** Writes into the list. */
    register () {
      const { entry, cwd } = config
      const { adminUrl, publicUrl, fingerprint } = address()
      try {
        registerDeck({ name: deck.snapshot().app.name, entry, cwd, dataDir: config.dataDir,
          configFile: configFileOf(config), adminUrl, publicUrl, fingerprint, version: software.version, startedAt,
          master: identifyProcess(process.pid), keeper: identifyKeeper(keeper) })
      } catch (error) {
        log.warn({ err: error }, 'this deck is not in the list of running decks')
      }
    },

    /** Takes it off the list, where the next master is not on it. */
    withdraw () {
      withdrawDeck({ dataDir: config.dataDir, master: identifyProcess(process.pid) })
    }
  }
}

/** Tells whoever looks into a data folder where its master is. */
export function announceMaster ({ dataDir, startedAt }: Pick<App, 'dataDir' | 'startedAt'>,
  { keeper, log }: Pick<HostServices, 'keeper' | 'log'>, { adminUrl, fingerprint, host }: Omit<Address, 'publicUrl'>)
{
  try {
    dataDir.announce({ ...identifyProcess(process.pid), keeper: identifyKeeper(keeper), pidNamespace: pidNamespace(),
      adminUrl, ...(fingerprint && { fingerprint }), ...(host && { host }), startedAt })
  } catch (error) {
    log.error({ err: error }, 'this master could not be announced in its data folder')
  }
}

export function identifyKeeper (keeper: Pick<KeeperLink, 'isKept'>) {
  return keeper.isKept ? identifyProcess(process.ppid) : null
}
