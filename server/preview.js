import { DeckError, errorCode } from './errors.js'
import { strategyOf, strategyText } from './lifecycle/rollout/strategy.js'

/**
 * @typedef {object} Preview
 * @property {'deploy' | 'rollback'} kind
 * @property {string} from  the release that runs
 * @property {import('./releases/previews.js').Drafted | null} release  null: a refusal says why it cannot be told
 * @property {import('./releases/previews.js').Preview['build']} build  of a commit; null: unknown, or there is nothing to do
 * @property {import('./lifecycle/state.js').Release['changed']} changed
 * @property {import('./releases/previews.js').Preview['commits']} commits  null: unknown, or none
 * @property {{ added: number, changed: number, removed: number, items: { name: string, change: 'added' | 'changed' | 'removed' }[] } | null} files  `items`: the first; null: not known
 * @property {import('./config/settings.js').NewChange[]} options  that were configured anew since they were read
 * @property {{ workers: number, text: string, strategy: import('./lifecycle/rollout/strategy.js').Strategy, extraWorkers: number, extraBytes: number | null }} plan
 *   `extraWorkers`: how many at most run beside those that are replaced; `extraBytes`: the memory that these take, if as much as the largest one now; null: not known
 * @property {{ rollout: number, state: string, release: string | null, startedAt: string, tookMs: number }[]} last  rollouts of its kind and size, newest first
 * @property {string[]} warnings
 * @property {{ code: import('./errors.js').ErrorCode, message: string }[]} refusals  for which it would be refused; none: it would begin
 */

/** These refusals of a rollout end by themselves, and whoever has made a release of a commit waits for that. */
const BUSY = ['rollout-running', 'starting']
const MAX_FILES = 20
const MAX_LAST = 3

/** @param {unknown} error @returns {boolean} whether a rollout only has to wait */
export function isBusy (error) {
  return BUSY.includes(errorCode(error) ?? '')
}

/**
 * Tells what a rollout would do before anybody asks for it: by the drafts of the registry, the refusals of the cluster and its strategy.
 * @param {object} parts
 * @param {Pick<import('./cluster/supervisor.js').Supervisor, 'refusal' | 'snapshot'>} parts.supervisor
 * @param {Pick<import('./releases/registry.js').Releases, 'preview' | 'before'>} parts.releases
 * @param {Pick<import('../db/history.js').History, 'lastRollouts'>} parts.history
 * @param {Pick<import('./config/settings.js').Settings, 'current' | 'changesIn'>} parts.settings
 * @param {Pick<import('./jobs/jobs.js').Jobs, 'runToEnd'>} parts.jobs
 */
export function createPreview ({ supervisor, releases, history, settings, jobs }) {
  /**
   * @param {{ kind: 'deploy' | 'rollback', release?: string, path?: string, git?: string, isGuessAccepted?: boolean, strategy?: import('./lifecycle/rollout/strategy.js').StrategyWish, actor: string }} wanted
   * @returns {Promise<Preview>}
   */
  return async function preview ({ kind, release, path, git, isGuessAccepted, strategy: wish, actor }) {
    /** @type {Preview['refusals']} */
    const refusals = []
    const refuse = (/** @type {Preview['refusals'][number]} */ { code, message }) => { refusals.push({ code, message }) }
    const { release: { id: from }, desiredWorkers: workers, workers: rows } = supervisor.snapshot()
    const drafts = {
      deploy: () => releases.preview.ofDeploy({ path }, refuse),
      commit: () => releases.preview.ofCommit({ git: String(git), isGuessAccepted }, refuse, (run, work) => jobs.runToEnd({ ...run, actor, steps: work })),
      rollback: () => releases.preview.ofRollback(release ?? lastGood(from, refuse), refuse)
    }
    const refusal = supervisor.refusal({ type: 'rollout', kind, strategy: wish, actor })
    const isToWait = git !== undefined && isBusy(refusal)
    if (refusal && !isToWait) refuse(refusal)
    const { config, files, warnings, ...drafted } = await drafts[kind === 'deploy' && git !== undefined ? 'commit' : kind]()
    const strategy = strategyOf(kind, workers, settings.current.rollout, wish)
    return {
      kind,
      from,
      ...drafted,
      files: files && shownFiles(files),
      warnings: isToWait ? [...warnings, `once it is built, the deploy waits: ${refusal?.message}`] : warnings,
      options: config ? settings.changesIn(config.now, config.deployed) : [],
      plan: { workers, text: strategyText(strategy, workers), strategy, ...extraOf(strategy, { workers, rows }) },
      last: lastOf({ kind, slots: workers }),
      refusals
    }
  }

  /** @param {string} from @param {(error: DeckError) => void} refuse */
  function lastGood (from, refuse) {
    try {
      return releases.before(from)
    } catch (error) {
      if (!(error instanceof DeckError)) throw error
      refuse(error)
      return null
    }
  }

  /** @param {{ kind: 'deploy' | 'rollback', slots: number }} which @returns {Preview['last']} */
  function lastOf (which) {
    try {
      return history.lastRollouts({ ...which, limit: MAX_LAST }).map(({ id, state, to, startedAt, finishedAt }) => ({
        rollout: id, state, release: to, startedAt, tookMs: Math.max(0, Date.parse(finishedAt ?? startedAt) - Date.parse(startedAt))
      }))
    } catch {
      // The rest can be told without the history.
      return []
    }
  }
}

/** @param {import('./lifecycle/rollout/strategy.js').Strategy} strategy @param {{ workers: number, rows: { vitals: { rssBytes: number } | null }[] }} cluster */
function extraOf ({ order, surge, canary }, { workers, rows }) {
  // A canary serves beside all old workers, whatever the order of the others.
  const extraWorkers = Math.max(canary?.workers ?? 0, order === 'start-first' ? Math.min(surge, workers) : 0)
  const sizes = rows.flatMap(({ vitals }) => vitals?.rssBytes ?? [])
  return { extraWorkers, extraBytes: sizes.length > 0 ? extraWorkers * Math.max(...sizes) : null }
}

/** @param {import('./releases/file-differences.js').Differences} files @returns {Preview['files']} */
function shownFiles ({ added, changed, removed }) {
  const named = (/** @type {string[]} */ names, /** @type {'added' | 'changed' | 'removed'} */ change) => names.slice(0, MAX_FILES).map((name) => ({ name, change }))
  return {
    added: added.length,
    changed: changed.length,
    removed: removed.length,
    items: [...named(changed, 'changed'), ...named(added, 'added'), ...named(removed, 'removed')].slice(0, MAX_FILES)
  }
}
