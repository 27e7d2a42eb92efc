import { hangOptions } from '../app/cluster.ts'
import { isConfigLoader } from '../config/file.ts'
import { startBeat } from '../keeper/beat.ts'
import { createReaper } from '../keeper/reaper.ts'
import { listenForSignals } from '../system/signals.ts'
import { errorText } from '../errors.ts'
import type { App } from '../app/app.ts'
import type { Host } from './host.ts'
import type { Shutdown } from './shutdown.ts'
import type { Config } from '../config/config.ts'
import type { Deck } from '../deck.ts'
import type { Apps } from './apps.ts'
import type { KeeperLink } from '../keeper/link.ts'
import type { EventStream } from '../events/stream.ts'

/** Tells the keeper that this master has started and answers, and the history where the keeper is lost. */
export function reportToKeeper (options: Pick<Config, 'keeper' | 'watchdog'>,
  { keeper, events }: { keeper: KeeperLink, events: EventStream })
{
  keeper.onLost(() =>
    events.publish({ type: 'keeper.lost', actor: 'system',
      message: 'the keeper is gone: this master keeps running, but nothing restarts it if it dies' })
  )
  startBeat(keeper)
  keeper.send({ type: 'started', hearsSignals: true, giveUpAfter: options.keeper.giveUpAfter,
    hang: hangOptions(options) })
}

/** What an operator means by signals. `stopHost`: lets all apps finish. */
export function listenToSignals (
  { apps, host: { keeper }, shutdown, stopHost }: { apps: Apps, host: Host, shutdown: Shutdown,
    stopHost: (actor: string) => void }
) {
  let deploying = Promise.resolve()
  const leave = listenForSignals({ onStop: () => stopHost('signal'), onKill: () => shutdown.stop(1), onDeploy () {
    deploying = forEachDeck((deck) => deck.deploy({ actor: 'signal' }))
  },
    onRestart: () =>
      forEachDeck(async (deck) => deck.dispatch({ type: 'rollout', kind: 'restart', actor: 'signal' })) }, {
    sources: [process, keeper.signals]
  })
  return { leave, untilDeploying: () => deploying }

  async function forEachDeck (work: (deck: Deck) => Promise<unknown>) {
    // What comes now is for the next master, to which the keeper says it again.
    if (shutdown.hasBegun) return
    await Promise.all(
      apps.all().map(({ part }) =>
        part?.run(() => work(part.app.deck)).catch((error) => part.say(`refused: ${errorText(error)}`))
      )
    )
  }
}

/**
 * As process 1 of a container every orphan is its child; otherwise that is the keeper's business, or the system's.
 * `apps`: all that are in this process.
 */
export function reapOrphans (apps: () => Pick<App, 'logs' | 'releases' | 'hooks' | 'jobs' | 'supervisor'>[],
  { terminal }: Pick<Host, 'terminal'>)
{
  if (process.pid !== 1) return
  createReaper({ isOurs: (pid) => isConfigLoader(pid) || apps().some((app) => isChild(app, pid)),
    onReaped: (exit) => apps().forEach(({ supervisor }) => supervisor.reaped(exit)), say: terminal.fail })
}

/** Tells whether node waits for it */
function isChild (
  { logs, releases, hooks, jobs, supervisor }: Pick<App, 'logs' | 'releases' | 'hooks' | 'jobs' | 'supervisor'>,
  pid: number
): boolean {
  return supervisor.isWorker(pid) || logs.isArchiver(pid) || releases.isChild(pid) || hooks.isChild(pid) ||
    jobs.isChild(pid)
}
