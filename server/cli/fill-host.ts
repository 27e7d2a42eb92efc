import { DeckError } from '../errors.ts'
import { keptSecretsText, type AppOrder } from './app-orders.ts'
import { decksTable, type Row } from './decks-table.ts'
import { isWanted, lastingHost, listApps } from './host.ts'
import { ensureHost } from './host-start.ts'
import { jsonText } from './output.ts'
import { createPrefixed, type Prefixed } from './prefixed.ts'
import { followApps, lastLines, STATE_WORDS, toFollowed, whyMissing, type Followed } from './ready-apps.ts'
import { oneLine } from '../system/one-line.ts'
import { deployNow } from '../rollouts/cli.ts'
import { timeoutOf } from './usage.ts'
import type { AppView, OrderedView } from '../host/api-apps.ts'
import type { Terminal } from './program.ts'
import type { ApiClient } from './api-client.ts'

/**
 * An app that the host is to run. `label`: what the user calls it; null: as the host does; `isIdle`: it is put on the
 * list, and is not started.
 */
export type Wanted = { label: string | null, order: AppOrder, isIdle?: boolean }
/**
 * What has become of the order. `isInHost`: the host has taken it; `ranBefore`: the app ran already; `isIdle`: it stays
 * stopped.
 */
export type Ordered =
  & Followed
  & { isInHost: boolean, ranBefore: boolean, isIdle: boolean }

/**
 * Lets the host run apps, and starts the host where there is none. `wanted`: each after those that it depends on;
 * `waits`: until they are ready; `applies`: those that run already are deployed so.
 * @throws {DeckError} usage, start-failed: some are not ready
 */
export async function fillHost (wanted: readonly Wanted[],
  { command, waits, applies = false, json = false, timeout, ofHost = [] }: { command: string, waits: boolean,
    applies?: boolean, json?: boolean, timeout?: string, ofHost?: readonly string[] }, terminal: Terminal)
{
  const { stdout, stderr, env } = terminal
  const limit = timeoutOf({ timeout }, env)
  const { master } = await ensureHost({ ofHost, ...limit, terminal })
  const host = lastingHost(master, env)
  const kept = keptSecretsText(wanted.map(({ order }) => order))
  if (kept !== null && stderr.isTTY) stderr.write(`clusterdeck: ${kept}\n`)
  const prefixed = createPrefixed(wanted.flatMap(({ label }) => label ?? []), terminal)
  const apps = await orderApps(wanted, { host, prefixed, applies })
  const labels = new Map(Array.from(apps, ([label, { name }]) => [name, label]))
  if (waits)
    await followApps([...apps.values()], { host, signal: AbortSignal.timeout(limit.timeoutMs),
      tell: ({ name }, text) => prefixed.say(labels.get(name) ?? name, text) })
  await showOutcome()

  async function showOutcome () {
    const missing = [...apps].filter(([, { isIdle }]) => !isIdle).filter(([, { state, reason, ranBefore }]) =>
      waits ? state !== 'ready' || (reason !== null && !ranBefore) : state === 'failed' || state === 'not started'
    )
    for (const [label, { name, state }] of missing)
      if (state === 'starting') { for (const line of await lastLines(host, name)) prefixed.say(label, line) }
    const views = new Map((await listApps(host)).map((view) => [view.name, view]))
    if (json) stdout.write(`${jsonText([...apps.values()].map(({ name }) => views.get(name) ?? null))}\n`)
    else stdout.write(
        `${decksTable([...apps].map(([label, app]) => rowOf(label, app, views.get(app.name))), { now: Date.now() })}\n`
      )
    checkNoneFailed(missing, command)
  }

  function rowOf (label: string, { state, reason, status }: Followed, view: AppView | undefined): Row {
    return { name: label, dataDir: view?.dataDir ?? null, adminUrl: view ? `${master.url}${view.path}` : null,
      answer: status && ['ready', 'starting'].includes(state) ? { status, problem: null } : null,
      state: waits || !view ? state : view.state, reason: state === 'starting' ? null : reason,
      nextTryAt: state === 'failed' ? view?.nextTryAt : null }
  }
}

/**
 * Gives the orders. One that is refused keeps none of the others back. `wanted`: each after those that it depends on;
 * `stop`: no more orders.
 * @returns by label
 * @throws {DeckError} where the host does not answer, or refuses an app without a label
 */
export async function orderApps (wanted: readonly Wanted[],
  { host, prefixed, applies = false, stop }: { host: Pick<ApiClient, 'get' | 'post'>, prefixed: Prefixed,
    applies?: boolean, stop?: AbortSignal }): Promise<Map<string, Ordered>>
{
  const before = new Map((await listApps(host)).map((view) => [view.name, view]))
  const apps: Map<string, Ordered> = new Map()
  for (const { label, order, isIdle = false } of wanted) {
    if (stop?.aborted) break
    const app = await giveOrder(label, order, isIdle)
    apps.set(label ?? app.name, app)
  }
  return apps

  async function giveOrder (label: string | null, { dependsOn = [], ...order }: AppOrder,
    isIdle: boolean): Promise<Ordered>
  {
    const others = dependsOn.flatMap((each) => apps.get(each) ?? [])
    const needs = others.map(({ name }) => name)
    const missing = others.find(({ state }) => state === 'failed' || state === 'not started')
    if (missing && label !== null && !isIdle) return leftOut(label, missing)
    try {
      const view = await host.post<OrderedView>(`/apps?start=${!isIdle}&apply=${applies}`, { ...order,
        ...(needs.length > 0 && { dependsOn: needs }) })
      const known = before.get(view.name)
      const app = { ...toFollowed(view, needs), isInHost: true, ranBefore: known !== undefined && isWanted(known),
        isIdle: isIdle && !isWanted(view) }
      if (app.isIdle) return staysStopped(label ?? view.name, app)
      if (app.ranBefore) await tellRunning(label ?? view.name, view)
      return view.state === 'failed' && !view.isRetried ? refused(label ?? view.name, app, view.reason) : app
    } catch (error) {
      if (label === null || !(error instanceof DeckError) ||
        ['no-master', 'timed-out', 'unauthenticated', 'forbidden'].includes(error.code)) throw error
      return refused(label, notInHost(label, needs), error.message)
    }
  }

  /** @throws {DeckError} rollout-failed */
  async function tellRunning (label: string, { name, notApplied }: OrderedView) {
    const say = (text: string) => prefixed.say(label, text)
    if (!applies)
      return say(
        notApplied.length === 0
          ? 'already runs'
          : `already runs, and stays as it is: not applied: ${oneLine(notApplied.join(', '))} (--apply deploys it so)`
      )
    const api = { get: <T>(path: string) => host.get<T>(`/apps/${name}${path}`),
      post: <T>(path: string, body?: unknown) => host.post<T>(`/apps/${name}${path}`, body) }
    const { to } = await deployNow({ api, tell: say })
    say(`${to} is deployed`)
  }

  function staysStopped (label: string, app: Ordered): Ordered {
    prefixed.say(label, `stays stopped (clusterdeck start ${app.name})`)
    return { ...app, state: 'stopped' }
  }

  function refused (label: string, app: Ordered, reason: string | null): Ordered {
    prefixed.say(label, reason === null ? 'failed' : `failed: ${reason}`)
    return { ...app, state: 'failed', reason }
  }

  /** `missing`: that it depends on */
  function leftOut (label: string, missing: Followed): Ordered {
    const reason = whyMissing(missing)
    prefixed.say(label, `is not started: ${reason}`)
    return { ...notInHost(label), state: 'not started', reason }
  }
}

function notInHost (label: string, dependsOn?: string[]): Ordered {
  return { ...toFollowed({ name: label }, dependsOn), isInHost: false, ranBefore: false, isIdle: false }
}

/** `missing`: that did not become what they were to @throws {DeckError} start-failed */
export function checkNoneFailed (missing: [label: string, app: Pick<Followed, 'state'>][], command: string) {
  if (missing.length > 0)
    throw new DeckError('start-failed',
      `${command}: ${missing.map(([label, { state }]) => `${label} ${STATE_WORDS[state]}`).join(', ')}`)
}
