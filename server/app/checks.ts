import { setTimeout as timer } from 'node:timers/promises'
import { attempt } from '../errors.ts'
import { appName } from '../config/app-name.ts'
import { configFileOf, type Config } from '../config/config.ts'
import type { Report } from '../doctor/doctor.ts'
import type { Known, Running } from '../doctor/facts.ts'
import type { Settings } from '../config/settings.ts'
import type { Deck, Status } from '../deck.ts'
import type { History } from '../../db/history.ts'
import type { Vitals } from '../vitals/vitals.ts'
import type { Releases } from '../releases/registry.ts'

const SECOND_MS = 1000
/** Vitals are kept in memory for this time by the second. */
const MEMORY_MS = 15 * 60 * SECOND_MS
/** Errors in these first seconds of a worker are taken for those of an app that is not ready yet. */
const EARLY_S = 30
/** For this time files are looked for that the app has written. */
const LOOK_WITHIN_MS = 5000
const MAX_EVENTS = 500
/** Causes of the ends of workers that were told to go, and had time to finish their requests. */
const DRAINED = Object.freeze(['deploy', 'rollback', 'restart', 'scale-down', 'upgrade', 'max-age', 'max-requests',
  'memory-limit'])

/** Examines a running app: what it is started with, its folder, the machine, and what its workers have shown. */
export function createChecks (
  { config, settings, environment, deck, history, vitals, releases, keeper, now = Date.now }: {
    /** as the master was started with */
    config: Config,
    settings: Pick<Settings, 'current' | 'list'>,
    /** of the shell that the app is from */
    environment: Record<string, string | undefined>,
    deck: Pick<Deck, 'snapshot' | 'health'>,
    history: Pick<History, 'page'>,
    vitals: Pick<Vitals, 'series' | 'latest' | 'answers'>,
    releases: Pick<Releases, 'written' | 'parts'>,
    keeper: { isKept: boolean },
    /** wall clock, ms */
    now?: () => number
  }
): () => Promise<Report> {
  /** The examination that is under way: whoever asks meanwhile gets the same report. */
  let running: Promise<Report> | null = null

  return () => (running ??= examineNow().finally(() => {
    running = null
  }))

  async function examineNow () {
    // Most masters are never examined.
    const [{ examine }, { appNodeVersion }] = await Promise.all([import('../doctor/doctor.ts'),
      import('../doctor/node-lines.ts')])
    const { current } = settings
    const snapshot = deck.snapshot()
    return await examine({ config: { ...current, releases: { ...current.releases, ...releases.parts() } },
      settings: settings.list(), configFile: configFileOf(config), name: appName(config), env: environment,
      known: await runningFacts(snapshot), nodeVersion: appNodeVersion(snapshot),
      pids: [process.pid, ...keeper.isKept ? [process.ppid] : []], now })
  }

  async function runningFacts (snapshot: Status): Promise<Known> {
    const { master, workers, desiredWorkers, app, release } = snapshot
    const written = await Promise.race([releases.written().catch(() => null),
      timer(LOOK_WITHIN_MS, 'unknown' as const, { ref: false })])
    return { health: deck.health(snapshot), master, isKept: keeper.isKept, desiredWorkers,
      workers: workers.map(({ id, pid }) => {
        const { rssBytes = null, openConnections = null } = (id === null ? null : vitals.latest(id)) ?? {}
        return { pid, rssBytes, openConnections }
      }), isServer: app.addresses.length > 0, release: release.id, answers: vitals.answers.recent(),
      releaseMode: release.build === undefined ? release.mode ?? 'live' : 'commit',
      historyProblem: snapshot.history.problem,
      written: written === 'unknown' || (written && written.files.length > 0) ? written : null,
      releaseBytes: written === 'unknown' ? null : written && written.bytes, ...fromHistory(master.startedAt) }
  }

  function fromHistory (
    startedAt: string
  ): Pick<Running, 'cutOff' | 'unanswered' | 'serverErrors' | 'longestMs' | 'newestEventAt'> {
    // That the history cannot be read is a finding of its own.
    return attempt(() => {
      const [newest] = history.page({ limit: 1 }).items
      return { cutOff: findCutOff(startedAt), unanswered: findUnanswered(startedAt), ...fromVitals(),
        newestEventAt: newest ? Date.parse(newest.at) : null }
    }, { cutOff: null, unanswered: [], serverErrors: null, longestMs: null, newestEventAt: null })
  }

  function findCutOff (startedAt: string): Running['cutOff'] {
    const [changed] = history.page({ type: ['config.changed'], since: startedAt, limit: MAX_EVENTS }).items.filter((
      { detail }
    ) => detail?.changes?.some(({ name }) => name === 'drain.deadlineMs'))
    const exits = history.page({ type: ['worker.exited'], since: changed?.at ?? startedAt, limit: MAX_EVENTS }).items
    const cut = exits.filter(({ cause, detail }) => DRAINED.includes(cause ?? '') && Number(detail?.endedRequests) > 0)
    return cut.length === 0
      ? null
      : { at: cut[0].at, requests: Number(cut[0].detail?.endedRequests), count: cut.length }
  }

  function findUnanswered (startedAt: string): Running['unanswered'][number][] {
    const events = history.page({ type: ['worker.unanswered'], since: startedAt, limit: MAX_EVENTS }).items
    return events.map(({ message, detail }) => ({ library: detail?.library ?? null, message: message ?? '' }))
  }

  function fromVitals (): Pick<Running, 'serverErrors' | 'longestMs'> {
    const sinceMs = now() - MEMORY_MS
    const ready = history.page({ type: ['worker.ready'], since: new Date(sinceMs).toISOString(), limit: MAX_EVENTS })
      .items.map(({ at }) => Date.parse(at) / SECOND_MS)
    const { time, cluster: { requests5xx, latencyP99Ms } } = vitals.series({ sinceMs, stepMs: SECOND_MS,
      columns: ['requests5xx', 'latencyP99Ms'], slots: 'none' })
    const counted = { early: 0, later: 0 }
    for (const [index, second] of time.entries()) {
      const isEarly = ready.some((at) => second >= Math.floor(at) && second <= at + EARLY_S)
      counted[isEarly ? 'early' : 'later'] += requests5xx[index] ?? 0
    }
    return { serverErrors: counted,
      longestMs: latencyP99Ms.reduce((longest, ms) => Math.max(longest ?? 0, ms ?? 0), null) }
  }
}
