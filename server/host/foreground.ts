import { appName } from '../config/app-name.ts'
import { restoredConfig, storedConfig, withHostOptions, type Config, type StoredConfig } from '../config/config.ts'
import { checkedRuns } from '../app/runs.ts'
import { DeckError } from '../errors.ts'
import { createKeptFile } from '../system/kept-file.ts'
import { waitAtMost } from '../system/wait-at-most.ts'
import { tellServiceManager } from '../systemd/service-manager.ts'
import { createDeparture } from './departure.ts'
import type { Upgrade } from '../handover/api.ts'
import type { AppPart } from './app-part.ts'
import type { AppScope } from './app-scopes.ts'
import type { Apps } from './apps.ts'
import type { Host } from './host.ts'
import type { MakeKind } from './kind.ts'
import type { AppRecord, Records } from './records.ts'

/** The app of a host in the foreground. */
type OnlyApp = {
  config: Config,
  /** reads the configuration anew, for a deploy; `launchIn`: for the app in that folder */
  reload: (launchIn?: string) => Promise<Config>,
  /** how the host of the user would be told to run the same; null: a program has started it */
  order: (() => Promise<object>) | null,
  /** why what ran starts in place of what was ordered */
  refused?: string
}
/** What the keeper has of this master for the next one. */
type Left = { config: StoredConfig, refused?: string }

/** An app that takes longer to get ready keeps its host no longer from joining the fleet. */
const START_WITHIN_MS = 3000
/** The next master knows the app by this, whatever its name is by then. */
const ID = 'only'
/** An exception of the app ends the process, and the keeper starts the next master. */
export const WHOLE_PROCESS: Readonly<AppScope> = Object.freeze({ run: (work) => work(), call: (work) => {
  work()
}, bind: (handler) => handler, close () {} })

/**
 * Returns what the master before has run with: where nobody has ordered a change, the next master goes on with it,
 * whatever has become of the config file. `left`: what the keeper has of that master. Null: nothing that this version
 * takes.
 */
export async function whatRan (left: unknown): Promise<Pick<OnlyApp, 'config' | 'refused'> | null> {
  if (left === null) return null
  const { config: stored, refused } = left as Left
  const config = await restoredConfig(stored)
  return config && { config, refused }
}

/** A host that is there for one app alone, and ends with it: in the foreground of a shell, a container or a program. */
export function inForeground ({ config, reload, order, refused }: OnlyApp): MakeKind {
  return (host, apps) => {
    const { dataDir, keeper, log, terminal, software, closers } = host
    const departure = createDeparture(order)
    const leaveToNext = (left: Left) => keeper.memory.write(left)
    let part: AppPart
    let startNext = () => {}

    return {
      records: createOnlyRecord(config, host),
      // What concerns the host concerns its app, which tells it.
      events: { publish () {} },

      policy: { titleOf: () => null, placeOf: () => ({ below: '', host: null }), openFolder: () => ({ dataDir, log }),
        readConfig: async (_, { isAgain = false, launchIn }) => isAgain ? await reload(launchIn) : config,
        keepsOrders: false, turns: null, rolloutTurns: null, move: departure.begin,
        scopes: { open: () => WHOLE_PROCESS, outside: (work) => work() },
        byNextMaster: { whyNot: () => keeper.isKept ? null : 'it takes the keeper, without which this master runs',
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
        const ready = waitAtMost(supervisor.running, START_WITHIN_MS)
        return { history, events, alerts, notices, ...refuseOthers(),
          upgradeHost: (upgrade) => deck.dispatch({ ...upgrade, type: 'upgrade' }) as Upgrade,
          start: async (name, how) => {
            if (apps().view(name).state === 'stopping') throw new DeckError('stopping', 'this deck ends with its app')
            return await apps().start(name, how)
          }, options: settings.current, only: appName(config), ready, ownHistory: null }
      },

      followService (untilDeploying) {
        const { events, supervisor, settings } = part.app
        tellServiceManager({ events, supervisor, settings, keeper }, { sources: [process, keeper.signals],
          untilDeploying })
        return null
      },

      watch ({ port, shutdown, begunAt }) {
        const { app: { supervisor, deck, beginning } } = part
        departure.join(part, { host, shutdown })
        // The port closes first: requests until then are answered from an open history.
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
            bootMs: Math.round(performance.now() - begunAt) })
        )
        apps().onChange(() => endWith(apps(), { stop: shutdown.stop, terminal }))
      }
    }
  }
}

/** Ends the host as its app has ended. */
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
 * The record of the only app, of which what runs is kept in the data folder. Its order is not kept: that is the command
 * that has started this process, and nobody else is to read its variables.
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

function refuseOthers () {
  return { add: refuse, changeVariables: refuse, remove: refuse, adoptions: { begin: refuse, view () {
    throw new DeckError('not-found', 'This master runs one app, and no other one moves in')
  } } }
}

async function refuse (): Promise<never> {
  throw new DeckError('not-possible',
    'this master runs one app in the foreground; a host has many: clusterdeck start --detach')
}
