import { setTimeout as wait } from 'node:timers/promises'
import { isReady } from '../words/health.ts'
import { nullOn } from './api-client.ts'
import { isOpen } from './host.ts'
import type { ApiClient } from './api-client.ts'
import type { AppView } from '../host/api-apps.ts'
import type { Status } from '../api/cluster.ts'

/** an app of the host whose start is followed; `dependsOn`: names of the others */
export type Followed = Needed & { dependsOn: readonly string[] }

const POLL_MS = 100
/** How often apps that are ready are looked at. */
const LOOK_EVERY_MS = 250
/** After this time, the user is told what an app waits for. */
const EXPLAIN_AFTER_MS = 5000
/** How many lines are shown of an app that does not get ready. */
const SHOWN_LINES = 20
/** The states of those that are not ready, in the sentence at the end. */
export const STATE_WORDS: Readonly<Record<string, string>> = Object.freeze({ starting: 'is not ready', waiting: 'waits',
  ready: 'does not run as ordered', failed: 'failed', stopped: 'stopped', 'not started': 'was not started' })
const OVER: readonly Followed['state'][] = ['failed', 'stopped', 'not started', 'left']

export function toFollowed ({ name }: Pick<AppView, 'name'>, dependsOn: readonly string[] = []): Followed {
  return { name, dependsOn, state: 'starting', reason: null, status: null }
}

/** Tells whether there is nothing more to follow */
export function isOver ({ state }: Pick<Followed, 'state'>): boolean {
  return OVER.includes(state)
}

/**
 * Follows apps of the host until each is ready, or it is clear that it will not be, or the time is up. They go on in
 * any case. `apps`: are changed.
 */
export async function followApps (apps: readonly Followed[],
  { host, signal, tell, howHostEnded = () => null, toTheEnd = false, explainAfterMs = EXPLAIN_AFTER_MS }: {
    host: Pick<ApiClient, 'get'>,
    /** the time is up */
    signal?: AbortSignal,
    tell: (app: Followed, text: string) => void,
    /** null: it runs */
    howHostEnded?: () => Pick<Followed, 'state' | 'reason'> | null,
    /** also those that are ready, until they have ended */
    toTheEnd?: boolean,
    explainAfterMs?: number
  })
{
  const isSettled = (app: Followed) => isOver(app) || (!toTheEnd && app.state === 'ready')
  let explainAt = performance.now() + explainAfterMs
  const told: Map<string, string> = new Map()
  for (;;) {
    await lookAtApps(apps.filter((app) => !isSettled(app)), apps, { host, tell: tellOnce, howHostEnded })
    if (apps.every(isSettled) || signal?.aborted) break
    if (performance.now() >= explainAt) {
      explainAt += explainAfterMs
      for (const app of apps)
        if (app.state === 'waiting')
          tellOnce(app, `still waits for ${
            needsOf(app, apps).filter(({ state }) => state !== 'ready').map((need) =>
              `${need.name} (${need.state === 'starting' ? whyNotReady(need) : need.state})`
            ).join(', ')
          }`)
    }
    await wait(apps.some(({ state }) => state === 'starting') ? POLL_MS : LOOK_EVERY_MS, undefined, { signal }).catch(
      () => {}
    )
  }
  for (const app of apps) if (!isSettled(app)) leaveOut(app, apps, { tell: tellOnce })

  function tellOnce (app: Followed, text: string) {
    if (told.get(app.name) !== text) tell(app, text)
    told.set(app.name, text)
  }
}

type Tell = (app: Followed, text: string) => void

/** `apps`: that are looked at */
async function lookAtApps (apps: readonly Followed[], all: readonly Followed[],
  { host, tell, howHostEnded }: { host: Pick<ApiClient, 'get'>, tell: Tell,
    howHostEnded: () => Pick<Followed, 'state' | 'reason'> | null })
{
  const views = await host.get<{ items: AppView[] }>('/apps').catch(nullOn())
  const end = views === null ? howHostEnded() : null
  if (end) { for (const app of apps) endWith(app, end.state, end.reason, { tell }) }
  if (views === null) return
  const byName = new Map(views.items.map((view) => [view.name, view]))
  const areReady = await Promise.all(apps.map((app) => lookAt(app, byName, { host, tell })))
  // An app is told after those that it depends on, whichever status came first. Meanwhile somebody may no longer want to
  // follow it.
  for (const [index, app] of apps.entries())
    if (areReady[index] && !isOver(app)) endWith(app, 'ready', app.reason, { tell })
  // Only now is it known what has become of those that they wait for.
  for (const app of apps) if (app.state === 'waiting') waitOrGiveUp(app, all, { tell })
}

/** `views`: by name @returns whether it has become ready */
async function lookAt (app: Followed, views: Map<string, AppView>,
  { host, tell }: { host: Pick<ApiClient, 'get'>, tell: Tell }): Promise<boolean | void>
{
  if (isOver(app)) return
  const view = views.get(app.name)
  if (view === undefined || view.state === 'stopped') return endWith(app, 'stopped', view?.reason ?? null, { tell })
  if (view.isRetried) return
  // The host lets it fail where one that it waits for does not get ready.
  const hasWaited = app.state !== 'ready' &&
    app.dependsOn.some((name) => ['failed', 'stopped'].includes(String(views.get(name)?.state)))
  if (view.state === 'failed' && !hasWaited) return endWith(app, 'failed', view.reason, { tell })
  if (app.state === 'ready') return
  app.state = view.state === 'waiting' || view.state === 'failed' ? 'waiting' : 'starting'
  app.reason = view.reason
  if (!isOpen(view) || view.state === 'stopping') return
  app.status = await host.get<Status>(`/apps/${app.name}/status`).catch(nullOn()) ?? app.status
  return app.status !== null && isReady(app.status)
}

function endWith (app: Followed, state: Followed['state'], reason: string | null, { tell }: { tell: Tell }) {
  Object.assign(app, { state, reason })
  const text = ['ready', 'not started'].includes(state) ? `is ${state}` : state
  tell(app, reason === null ? text : `${text}: ${reason}`)
}

function waitOrGiveUp (app: Followed, apps: readonly Followed[], { tell }: { tell: Tell }) {
  const needs = needsOf(app, apps)
  const missing = needs.find(({ state }) => ['failed', 'stopped', 'not started'].includes(state))
  if (missing) endWith(app, 'not started', whyMissing(missing), { tell })
  else if (needs.length > 0) tell(app, `waits for ${needs.map(({ name }) => name).join(', ')}`)
}

/** Gives an app that is not ready once the time is up a reason. */
function leaveOut (app: Followed, apps: readonly Followed[], { tell }: { tell: Tell }) {
  if (app.state !== 'waiting') {
    app.reason = whyNotReady(app)
    return
  }
  const missing = needsOf(app, apps).find(({ state }) => state !== 'ready')
  app.reason = missing ? whyMissing(missing) : app.reason
  tell(app, `still waits: ${app.reason ?? 'the host has not started it yet'}`)
}

function needsOf ({ dependsOn }: Followed, apps: readonly Followed[]) {
  return dependsOn.flatMap((name) => apps.find((each) => each.name === name) ?? [])
}

/** @returns the last lines that its workers have written */
export async function lastLines (host: Pick<ApiClient, 'get'>, name: string): Promise<string[]> {
  const answer = await host.get<{ items: { text: string }[] }>(`/apps/${name}/logs?lines=${SHOWN_LINES}`).catch(
    nullOn()
  )
  return (answer?.items ?? []).slice(-SHOWN_LINES).map(({ text }) => text)
}

/** An app that another one depends on, and that is not ready. */
type Needed = {
  name: string,
  /** `left`: it goes on, and nobody follows it */
  state: 'starting' | 'waiting' | 'ready' | 'failed' | 'stopped' | 'not started' | 'left',
  reason: string | null,
  /** when it was last asked */
  status: Status | null
}

/** @returns why the app that depends on it is not started */
export function whyMissing ({ name, state, reason, status }: Needed): string {
  const because = reason === null ? '' : ` (${reason})`
  if (state === 'failed') return `it depends on ${name}, which failed${because}`
  if (state === 'stopped') return `it depends on ${name}, which was stopped${because}`
  if (state === 'not started' || state === 'waiting') return `it depends on ${name}, which was not started`
  return `it depends on ${name}, which is not ready (${whyNotReady({ status, reason: null })})`
}

/** `reason`: where the status says nothing */
function whyNotReady ({ status, reason }: Pick<Needed, 'status' | 'reason'>): string {
  return status?.health
    ? `${status.health.text}. ${status.health.hint}`.replace(/[.\s]+$/, '')
    : reason ?? 'its workers are not started yet'
}
