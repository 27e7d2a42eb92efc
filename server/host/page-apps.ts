import { z } from 'zod'
import { mayUse } from '../api/roles.ts'
import { parseFields } from '../api/input.ts'
import { WITHOUT_WORKERS } from '../config/app-states.ts'
import { count, listText } from '../words/health.ts'
import { urlOf } from '../events/page-filters.ts'
import { OUTCOMES } from '../releases/page-list.ts'
import { silentForHost, silentLines } from '../fleet/page-silent-hosts.ts'
import { polylineOf } from '../vitals/page-sparkline.ts'
import type { AppView, Apps } from './api-apps.ts'
import type { Tone } from '../events/kinds.ts'
import type { Deck } from '../deck.ts'
import type { Powers } from '../dashboard/powers.ts'

/** The list of the apps of a host, the sick first. */
type Row = ReturnType<typeof toRow>
type Sources = { apps: Pick<Apps, 'list'>, can?: Powers }

/** From the one that needs help most. */
export const SICK_FIRST: readonly Tone[] = ['bad', 'warn', 'info', 'drain', 'ok', 'idle']

const DEPLOYS: Readonly<Record<string, { label: string, tone: Tone }>> = Object.freeze({
  succeeded: { label: 'succeeded', tone: 'ok' },
  ...OUTCOMES
})

const SPARK_MS = 15 * 60_000
const SPARK_POINT_MS = 30_000
/** Fewer apps are seen at a glance, without a filter. */
const FILTERED_FROM = 9

/** by the value of `show` in the URL */
const TABS: Readonly<Record<string, { label: string, isShown: (row: Row) => boolean }>> = Object.freeze({
  all: { label: 'All', isShown: () => true },
  sick: { label: 'Need attention', isShown: isSick },
  stopped: { label: 'Stopped', isShown: isStopped }
})

const FIELDS = z.object({ q: z.string().max(100).optional().describe('at most 100 characters'),
  show: z.enum(['all', 'sick', 'stopped']).optional().describe('all, sick or stopped') })

export function appsModel (
  { apps, can, params, now }: Sources & { apps: Pick<Apps, 'fleet' | 'notices' | 'opened'>, params: URLSearchParams,
    now: () => number }
) {
  const all = appRows({ apps, can })
  const { texts: { q = '', show = 'all' } } = parseFields(FIELDS, params)
  const rows = all.filter((row) => TABS[show].isShown(row) && row.name.toLowerCase().includes(q.toLowerCase())).map((
    row
  ) => ({ ...row, points: pointsOf(apps.opened(row.name)?.deck, now()) }))
  const link = (tab: string) => urlOf('/', { show: tab === 'all' ? undefined : tab, q })
  return { now: now(), notices: noticesFor({ apps, can }), rows, total: all.length,
    health: { ...healthOf(all), reasons: [] }, silent: silentLines(silentForHost(apps.fleet(), can)),
    totals: totalsOf(all), q, show, isFiltered: all.length >= FILTERED_FROM || q !== '' || show !== 'all',
    isNarrowed: q !== '' || show !== 'all',
    tabs: Object.entries(TABS).map(([tab, { label, isShown }]) => ({ label, count: all.filter(isShown).length || null,
      url: link(tab), isCurrent: tab === show })
    ), canonicalUrl: link(show) }
}

/** @returns its requests over the last minutes, which are in memory, as the points of an SVG polyline */
function pointsOf (deck: Pick<Deck, 'vitals'> | undefined, now: number): string {
  const untilMs = now - now % SPARK_POINT_MS
  const { points } =
    deck?.vitals.series({ sinceMs: untilMs - SPARK_MS, stepMs: 1000, slots: 'none', columns: ['requestsPerSecond'],
      pointMs: SPARK_POINT_MS }) ?? {}
  const rates = points?.cluster.mean.requestsPerSecond ?? []
  return polylineOf(
    points?.time.map((second,
      index) => [1 + (second * 1000 + SPARK_POINT_MS - untilMs) / SPARK_MS, rates[index] ?? 0]
    ) ?? []
  )
}

/** What has gone wrong with the host, for those who may do something about it. */
export function noticesFor ({ apps, can }: { apps: Pick<Apps, 'notices'>, can?: Powers }) {
  return can?.apps ? [] : apps.notices.list()
}

export function appRows ({ apps, can }: Sources): Row[] {
  return apps.list().filter(({ name }) => mayUse(can ?? {}, name)).map(toRow).sort((a, b) =>
    SICK_FIRST.indexOf(a.tone) - SICK_FIRST.indexOf(b.tone) || Number(hasCrashed(b)) - Number(hasCrashed(a)) ||
    (a.name < b.name ? -1 : 1)
  )
}

export function switchModel ({ params, ...sources }: Sources & { params: URLSearchParams }) {
  const all = appRows(sources)
  const q = (params.get('q') ?? '').slice(0, 100)
  return { q, current: params.get('from'), isFiltered: all.length >= FILTERED_FROM,
    rows: all.filter(({ name }) => name.toLowerCase().includes(q.toLowerCase())) }
}

function hasCrashed ({ openCrashes }: Pick<AppView, 'openCrashes'>) {
  return (openCrashes ?? 0) > 0
}

function toRow (app: AppView) {
  const { name, state, reason, health, lastDeploy, workers } = app
  // One that crashes at its start never gets further than to start.
  const words = (state === 'running' || state === 'starting') && health
    ? health
    : { hint: reason ?? '', ...WITHOUT_WORKERS[state === 'running' ? 'starting' : state] }
  return {
    ...app,
    key: `app-${name}`,
    tone: words.tone,
    text: words.text,
    // What is well needs no second line.
    hint: words.tone === 'ok' || words.tone === 'idle' ? '' : words.hint,
    isShort: workers !== null && workers.ready < workers.desired,
    deploy: lastDeploy && { ...lastDeploy, ...(DEPLOYS[lastDeploy.state] ?? { label: lastDeploy.state, tone: 'info' }) }
  }
}

export function isSick ({ tone }: { tone: Tone }) {
  return tone === 'bad' || tone === 'warn'
}

function isStopped ({ state }: Row) {
  return state === 'stopped'
}

/** Says of up to two apps how they are, and names more than two. Why is beside each in the list. */
function whyOf (sick: Row[]) {
  if (sick.length > 2) return listText(sick.map(({ name }) => name))
  return sick.map(({ name, text }) => `${name}: ${text}`).join('. ')
}

export function healthOf (rows: Row[]): { tone: Tone, text: string, hint: string } {
  if (rows.length === 0)
    return { tone: 'idle', text: 'No apps yet', hint: 'One of these commands adds the first.' }
  const sick = rows.filter(isSick)
  const stopped = rows.filter(isStopped)
  const others = stopped.length > 0 ? `${count(stopped.length, 'app')} stopped.` : ''
  if (sick.length > 0) {
    const text = rows.length === 1
      ? `${rows[0].name} needs attention`
      : `${sick.length} of ${rows.length} apps ${sick.length === 1 ? 'needs' : 'need'} attention`
    return { tone: sick[0].tone, text, hint: [`${whyOf(sick)}.`, others].join(' ').trim() }
  }
  const changing = rows.filter(({ tone }) => tone === 'info' || tone === 'drain')
  if (changing.length > 0)
    return { tone: 'info', text: `${count(changing.length, 'app')} ${changing.length === 1 ? 'is' : 'are'} changing`,
      hint: [`${listText(changing.map(({ name }) => name))}.`, others].join(' ').trim() }
  const running = rows.length - stopped.length
  if (running === 0)
    return { tone: 'idle',
      text: rows.length === 1 ? `${rows[0].name} is stopped` : `All ${rows.length} apps are stopped`, hint: '' }
  const crashed = rows.filter(hasCrashed).map(({ name }) => name)
  const crashes = crashed.length > 0 ? `Open crashes: ${listText(crashed)}.` : ''
  return { tone: 'ok', text: running === 1 ? `${rows[0].name} is well` : `All ${running} apps are well`,
    hint: [crashes, others].join(' ').trim() }
}

function totalsOf (rows: Row[]) {
  const sumOf = (key: 'requestsPerSecond' | 'cpu' | 'memoryBytes' | 'openCrashes') => {
    const known = rows.map((row) => row[key]).filter((value) => value !== null)
    return known.length === 0 ? null : known.reduce((total, value) => total + value, 0)
  }
  const latencies = rows.map(({ p99Ms }) => p99Ms).filter((value) => value !== null)
  return { running: rows.filter(({ state }) => state === 'running').length,
    requestsPerSecond: sumOf('requestsPerSecond'), p99Ms: latencies.length === 0 ? null : Math.max(...latencies),
    cpu: sumOf('cpu'), memoryBytes: sumOf('memoryBytes'), openCrashes: sumOf('openCrashes') }
}
