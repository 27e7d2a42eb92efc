import { formatBytes, formatLatency, formatPercent, formatRate } from '../../public/format.ts'
import { DeckError } from '../errors.ts'
import { oneLine } from '../system/one-line.ts'
import { nullOn, waitUntil } from './api-client.ts'
import { createTools } from './context.ts'
import { isOpen, stopInHost } from './host.ts'
import { linesOf } from './output.ts'
import { followApps, STATE_WORDS, toFollowed } from './ready-apps.ts'
import { misuse } from './usage.ts'
import type { HostContext } from './app-command.ts'
import type { AppView } from '../host/api-apps.ts'
import type { Target } from './known-apps.ts'
import type { Context, Options } from './commands.ts'
import type { Terminal } from './program.ts'

/**
 * Starts an app again that was stopped or has failed, and waits until it is ready.
 * @throws {DeckError} start-failed
 */
export async function startApp ({ host, app: { name }, options, answer, tell }: HostContext) {
  const view = await host.post<AppView>(`/apps/${name}/start`)
  if (options.noWait) return answer(view, () => view.state)
  const app = toFollowed(view)
  await followApps([app], { host, signal: AbortSignal.timeout(host.timeoutMs), tell: (_, text) => {
    if (/^(still )?waits/.test(text)) tell(text)
  } })
  const isAsOrdered = app.reason === null || view.state === 'running'
  if (app.state === 'ready' && isAsOrdered) return answer(await host.get(`/apps/${name}`), () => 'is ready')
  const text = `${name} ${STATE_WORDS[app.state]}`
  throw new DeckError('start-failed', app.reason === null ? text : `${text}: ${app.reason}`)
}

/** Drains an app; the host remembers that it is to be stopped. */
export async function stopApp ({ host, env, app: { name }, answer, tell }: HostContext) {
  const app = await stopInHost(name, host, env, () => tell('stopping: the workers finish their requests'))
  answer({ ...app, state: 'stopped' }, () => 'stopped')
}

/** Takes an app off the list of the host, stopped before if it runs. */
export async function deleteApp ({ host, app, options, answer, tell }: HostContext) {
  const { name, dataDir } = app
  const deleted = await host.delete(`/apps/${name}${options.purge ? '?purge=true' : ''}`)
  if (isOpen(app)) tell('stopping: the workers finish their requests')
  await waitUntil(async () => await host.get(`/apps/${name}`).catch(nullOn('not-found')) === null, host)
  answer(deleted,
    () =>
      options.purge
        ? `deleted, with its data folder ${dataDir ?? ''}`.trimEnd()
        : `deleted; its data folder stays: ${dataDir ?? 'it had none'}`)
}

/**
 * Asks whoever sits at the terminal.
 * @throws {DeckError} usage: nobody can be asked; not-possible: no
 */
export async function confirmDelete (targets: readonly Target[], { yes, purge }: Options, terminal: Terminal) {
  if (yes) return
  const names = targets.map(({ name }) => name).join(', ')
  const what = purge ? `${names}, and what is in ${targets.map(({ dataDir }) => dataDir).join(', ')}` : names
  const isConfirmed = await createTools({}, terminal).confirm(`Delete ${oneLine(what)}?`)
  if (isConfirmed === null) throw misuse('delete', '--yes, as nobody can be asked here')
  if (!isConfirmed) throw new DeckError('not-possible', 'delete: nothing was deleted')
}

/** Prints all about an app. */
export async function describeApp ({ app, hostUrl, answer }: HostContext) {
  answer(app, () => appText(app, hostUrl))
}

function appText (app: AppView, hostUrl: string) {
  const { health, workers, lastDeploy } = app
  const facts = [['app', app.name], ['state', app.reason === null ? app.state : `${app.state}: ${app.reason}`], [
    'next try',
    app.nextTryAt
  ], ['health', health && [health.text, health.hint].filter(Boolean).join('. ')], ['entry', app.entry], ['cwd',
    app.cwd], ['config', app.configFile], ['folder', app.dataDir], ['page', `${hostUrl}${app.path}`],
    ...app.addresses.map((address) => ['address', address] as [string, string]), ['started', app.startedAt], ['workers',
    workers && `${workers.ready} of ${workers.desired} ready`], ['cpu',
    app.cpu === null ? null : formatPercent(app.cpu)], ['memory',
    app.memoryBytes === null ? null : formatBytes(app.memoryBytes)], ['requests',
    app.requestsPerSecond === null ? null : `${formatRate(app.requestsPerSecond)}/s`], ['p99',
    app.p99Ms === null ? null : formatLatency(app.p99Ms)], ['restarts', app.restarts], ['crashes',
    app.openCrashes === null ? null : `${app.openCrashes} open`], ['release', app.release], ['deploy',
    lastDeploy && [lastDeploy.release, lastDeploy.state, lastDeploy.finishedAt].filter(Boolean).join(', ')]]
  return linesOf(facts)
}

/** @throws {DeckError} not-possible */
export async function refuseOutside ({ master }: Context) {
  throw new DeckError('not-possible',
    `${master.dataDir} is of a deck of its own, which is no app of the host (clusterdeck status, clusterdeck stop)`)
}
