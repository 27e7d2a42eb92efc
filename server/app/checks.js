import { setTimeout as timer } from 'node:timers/promises'
import { appName } from '../config/app-name.js'
import { configFileOf } from '../config/config.js'

/** @typedef {import('../doctor/doctor.js').Report} Report */
/** @typedef {import('../doctor/facts.js').Running} Running */

const SECOND_MS = 1000
/** Vitals are kept in memory for this time by the second. */
const MEMORY_MS = 15 * 60 * SECOND_MS
/** Errors in these first seconds of a worker are taken for those of an app that is not ready yet. */
const EARLY_S = 30
/** For this time files are looked for that the app has written. */
const LOOK_WITHIN_MS = 5000
const MAX_EVENTS = 500
/** Causes of the ends of workers that were told to go, and had time to finish their requests. */
const DRAINED = Object.freeze(['deploy', 'rollback', 'restart', 'scale-down', 'upgrade', 'max-age', 'max-requests', 'memory-limit'])

/**
 * Examines a running app: what it is started with, its folder, the machine, and what its workers have shown.
 * @param {object} parts
 * @param {import('../config/config.js').Config} parts.config  as the master was started with
 * @param {Pick<import('../config/settings.js').Settings, 'current' | 'list'>} parts.settings
 * @param {Record<string, string | undefined>} parts.environment  of the shell that the app is from
 * @param {Pick<import('../deck.js').Deck, 'snapshot' | 'health'>} parts.deck
 * @param {Pick<import('../../db/history.js').History, 'page'>} parts.history
 * @param {Pick<import('../vitals/vitals.js').Vitals, 'series' | 'latest'>} parts.vitals
 * @param {Pick<import('../releases/registry.js').Releases, 'written' | 'parts'>} parts.releases
 * @param {{ isKept: boolean }} parts.keeper
 * @param {() => number} [parts.now]  wall clock, ms
 * @returns {() => Promise<Report>}
 */
export function createChecks ({ config, settings, environment, deck, history, vitals, releases, keeper, now = Date.now }) {
  /** The examination that is under way: whoever asks meanwhile gets the same report. @type {Promise<Report> | null} */
  let running = null

  return () => (running ??= examineNow().finally(() => { running = null }))

  async function examineNow () {
    // Most masters are never examined.
    const [{ examine }, { appNodeVersion }] = await Promise.all([import('../doctor/doctor.js'), import('../doctor/node-lines.js')])
    const { current } = settings
    const snapshot = deck.snapshot()
    return await examine({
      config: { ...current, releases: { ...current.releases, ...releases.parts() } },
      settings: settings.list(),
      configFile: configFileOf(config),
      name: appName(config),
      env: environment,
      known: await runningFacts(snapshot),
      nodeVersion: appNodeVersion(snapshot),
      pids: [process.pid, ...keeper.isKept ? [process.ppid] : []],
      now
    })
  }

  /** @param {import('../deck.js').Status} snapshot @returns {Promise<import('../doctor/facts.js').Known>} */
  async function runningFacts (snapshot) {
    const { master, workers, desiredWorkers, app, release } = snapshot
    const written = await Promise.race([releases.written().catch(() => null), timer(LOOK_WITHIN_MS, /** @type {const} */ ('unknown'), { ref: false })])
    return {
      health: deck.health(snapshot),
      master,
      isKept: keeper.isKept,
      desiredWorkers,
      workers: workers.map(({ id, pid }) => {
        const { rssBytes = null, openConnections = null } = (id === null ? null : vitals.latest(id)) ?? {}
        return { pid, rssBytes, openConnections }
      }),
      isServer: app.addresses.length > 0,
      releaseMode: release.build === undefined ? release.mode ?? 'live' : 'commit',
      historyProblem: snapshot.history.problem,
      written: written === 'unknown' || (written && written.files.length > 0) ? written : null,
      releaseBytes: written === 'unknown' ? null : written && written.bytes,
      ...fromHistory(master.startedAt)
    }
  }

  /** @param {string} startedAt @returns {Pick<Running, 'cutOff' | 'unanswered' | 'serverErrors' | 'longestMs' | 'newestEventAt'>} */
  function fromHistory (startedAt) {
    try {
      const [newest] = history.page({ limit: 1 }).items
      return { cutOff: findCutOff(startedAt), unanswered: findUnanswered(startedAt), ...fromVitals(), newestEventAt: newest ? Date.parse(newest.at) : null }
    } catch {
      // The history cannot be read, which is a finding of its own.
      return { cutOff: null, unanswered: [], serverErrors: null, longestMs: null, newestEventAt: null }
    }
  }

  /** @param {string} startedAt @returns {Running['cutOff']} */
  function findCutOff (startedAt) {
    const [changed] = history.page({ type: ['config.changed'], since: startedAt, limit: MAX_EVENTS }).items.filter(({ detail }) => detail?.changes?.some((/** @type {{ name: string }} */ { name }) => name === 'drain.deadlineMs'))
    const exits = history.page({ type: ['worker.exited'], since: changed?.at ?? startedAt, limit: MAX_EVENTS }).items
    const cut = exits.filter(({ cause, detail }) => DRAINED.includes(cause ?? '') && detail?.endedRequests > 0)
    return cut.length === 0 ? null : { at: cut[0].at, requests: Number(cut[0].detail?.endedRequests), count: cut.length }
  }

  /** @param {string} startedAt @returns {Running['unanswered'][number][]} */
  function findUnanswered (startedAt) {
    const events = history.page({ type: ['worker.unanswered'], since: startedAt, limit: MAX_EVENTS }).items
    return events.map(({ message, detail }) => ({ library: detail?.library ?? null, message: message ?? '' }))
  }

  /** @returns {Pick<Running, 'serverErrors' | 'longestMs'>} */
  function fromVitals () {
    const sinceMs = now() - MEMORY_MS
    const ready = history.page({ type: ['worker.ready'], since: new Date(sinceMs).toISOString(), limit: MAX_EVENTS }).items.map(({ at }) => Date.parse(at) / SECOND_MS)
    const { time, cluster: { requests5xx, latencyP99Ms } } = vitals.series({ sinceMs, stepMs: SECOND_MS, columns: ['requests5xx', 'latencyP99Ms'], slots: 'none' })
    const counted = { early: 0, later: 0 }
    for (const [index, second] of time.entries()) {
      const isEarly = ready.some((at) => second >= Math.floor(at) && second <= at + EARLY_S)
      counted[isEarly ? 'early' : 'later'] += requests5xx[index] ?? 0
    }
    return { serverErrors: counted, longestMs: latencyP99Ms.reduce((longest, ms) => Math.max(longest ?? 0, ms ?? 0), null) }
  }
}
