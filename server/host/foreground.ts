import { appName } from '../config/app-name.ts'
import { checkedRuns } from '../app/runs.ts'
import { DeckError } from '../errors.ts'
import { createKeptFile } from '../system/kept-file.ts'
import { waitAtMost } from '../system/wait-at-most.ts'
import { tellServiceManager } from '../systemd/service-manager.ts'
import { LOAD_SITE_WITHIN_MS } from './admin-page.ts'
import { createDeparture } from './departure.ts'
import type { Upgrade } from '../api/upgrade.ts'
import type { AppPart } from './app-part.ts'
import type { AppScope } from './app-scopes.ts'
import type { Apps } from './apps.ts'
import type { Host } from './host.ts'
import type { MakeKind } from './kind.ts'
import type { AppRecord, Records } from './records.ts'
import { restoredConfig, storedConfig, withHostOptions, type Config, type StoredConfig } from '../config/config.ts'

/** The app of such a host. */
type Only = {
  config: Config,
  /** reads the configuration anew, for a deploy; `launchIn`: for the app in that folder */
  reload: (launchIn?: string) => Promise<Config>,
  /** how the host of the user would be told to run the same; null: a program has started it */
  order: (() => Promise<object>) | null,
  /** why what ran starts in place of what was ordered */
  refused?: string
}
/** What the keeper has for the next master. */
type Left = { config: StoredConfig, refused?: string }

/** Whatever it is called by then, the next master knows it by this. */
const ID = 'only'
/** What it throws ends the process, and the keeper starts the next one. */
export const WHOLE_PROCESS: Readonly<AppScope> = Object.freeze({ run: (work) => work(), call: (work) => {
  work()
}, bind: (handler) => handler, close () {} })

/**
 * What a master before has run with, which nobody has ordered to change: whatever has become of the config file, the
 * next one goes on with it. `left`: as its keeper has it. Returns null: it has nothing that this version takes.
 */
export async function whatRan (left: unknown): Promise<Pick<Only, 'config' | 'refused'> | null> {
  if (left === null) return null
  const { config: stored, refused } = left as Left
  const config = await restoredConfig(stored)
  return config && { config, refused }
}

/** A host that is there for one app alone, and ends with it: in the foreground of a shell, a container or a program. */
export function inForeground ({ config, reload, order, refused }: Only): MakeKind {
  return (host, { apps }) => {
    const { dataDir, keeper, log, terminal, software, closers } = host
    const departure = createDeparture(order)
    const leaveToNext = (left: Left) => keeper.memory.write(left)
    let part: AppPart
    let beginsAt = performance.now()
    let startNext = () => {}

    return {
      records: createOnlyRecord(config, host),
      // What concerns the host concerns its app, which tells it.
      events: { publish () {} },

      ways: { titleOf: () => null, placeOf: () => ({ below: '', host: null }), openFolder: () => ({ dataDir, log }),
        readConfig: async (_, { isAgain = false, launchIn }) => isAgain ? await reload(launchIn) : config,
        keepsOrders: false, turns: null, rolloutTurns: null, move: departure.begin,
        scopes: { open: () => WHOLE_PROCESS, outside: (work) => work() },
        wayBack: { whyNot: () => keeper.isKept ? null : 'it takes the keeper, without which this master runs',
          start (runs, why) {
            leaveToNext({ config: withHostOptions(runs.config, config), refused: why })
            terminal.fail(`${why}; ${runs.release.id} runs instead`)
            startNext()
          } } },

      openFirst: (opening) =>
        opening.openAll({ isOrdered: keeper.predecessor === null, refused }).catch((error) => endMoved(error, host)),

      begin ([opened], failed = []) {
        if (!opened) throw failed[0] ?? new DeckError('start-failed', 'the app does not take part in the upgrade')
        part = opened
        const { history, events, deck, settings, supervisor } = part.app
        const { alerts, notices } = deck
        const ready = waitAtMost(supervisor.running, LOAD_SITE_WITHIN_MS)
        return { history, events, alerts, notices, ...refuseOthers(),
          upgradeHost: (upgrade) => deck.dispatch({ ...upgrade, type: 'upgrade' }) as Upgrade,
          start: async (name, how) => {
            if (apps().view(name).state === 'stopping') throw new DeckError('stopping', 'this deck ends with its app')
            return await apps().start(name, how)
          }, options: settings.current, only: appName(config), loadAfter: ready, ownHistory: null }
      },

      tellStart () {
        beginsAt = performance.now()
      },

      followService (untilDeploying) {
        tellServiceManager({ ...part.app, keeper }, { sources: [process, keeper.signals], untilDeploying })
        return { tellStopping () {}, end () {} }
      },

      watch (port, shutdown) {
        const { app: { supervisor, deck, beginning } } = part
        departure.join(part, { host, shutdown })
        // Whoever asks is answered while there is something to tell.
        part.closesBefore(port.close)
        leaveToNext({ config: storedConfig(config, config) })
        startNext = () =>
          shutdown.move(async () => {
            await closers.close({ handsOver: true })
            return 1
          })
        supervisor.running.then(() =>
          terminal.started({ version: software.version, entry: deck.snapshot().app.program ?? config.entry,
            workers: beginning.workers, addresses: supervisor.addresses(), admin: port,
            bootMs: Math.round(performance.now() - beginsAt) })
        )
        apps().onChange(() => endWith(apps(), { stop: shutdown.stop, terminal }))
      },

      tellStop () {}
    }
  }
}

/** It ends as its app does. */
function endWith (apps: Apps,
  { stop, terminal }: { stop: (exitCode: number) => void, terminal: Pick<Host['terminal'], 'fail'> })
{
  const [{ state, reason }] = apps.all()
  if (state === 'stopped') stop(0)
  if (state !== 'failed') return
  terminal.fail(String(reason))
  stop(1)
}

/** The app has moved into a host, and the master that did that was killed before it could tell its keeper so. */
async function endMoved (error: unknown, { keeper }: Pick<Host, 'keeper'>): Promise<never> {
  if (keeper.predecessor && error instanceof DeckError && error.details.isInHost)
    await keeper.deliver({ type: 'ending' })
  throw error
}

/**
 * The record of that app: what runs of it is kept in its data folder. Its order is the command that has started this
 * process, whose variables nobody else is to read.
 */
function createOnlyRecord (config: Config,
  { dataDir, log, closers }: Pick<Host, 'dataDir' | 'log' | 'closers'>): Records
{
  const file = createKeptFile(dataDir.runs.file, {
    onProblem: (reason) =>
      log.error({}, reason === null ? 'what runs is written again' : `what runs cannot be written (${reason})`)
  })
  closers.add(file, ({ close }) => close())
  return { ...file,
    read:
      (): AppRecord[] => [{ version: 1, id: ID, name: appName(config), dataDir: config.dataDir, wish: 'running',
        order: { cwd: config.cwd, flags: {}, env: process.env as Record<string, string>, dependsOn: [] },
        runs: checkedRuns(dataDir.runs.read()) }], save: ({ runs }) => file.save(runs), remove () {} }
}

/** What only the host of a user can do. */
function refuseOthers () {
  return { add: refuse, changeVariables: refuse, remove: refuse, adoptions: { begin: refuse, view () {
    throw new DeckError('not-found', 'This master runs one app, and no other one moves in')
  } } }
}

async function refuse (): Promise<never> {
  throw new DeckError('not-possible',
    'this master runs one app in the foreground; a host has many: clusterdeck start --detach')
}
