import { attempt, DeckError, errorCode } from '../errors.ts'
import { strategyOf, strategyText, type StrategyWish } from '../lifecycle/rollout/strategy.ts'
import { shownFiles } from '../releases/file-differences.ts'
import type { Preview, Strategy } from '../api/shapes.ts'
import type { Settings } from '../config/settings.ts'
import type { Supervisor } from '../cluster/supervisor.ts'
import type { Releases } from '../releases/registry.ts'
import type { History } from '../../db/history.ts'
import type { Jobs } from '../jobs/jobs.ts'

/** These refusals of a rollout end by themselves, and whoever has made a release of a commit waits for that. */
const BUSY = ['rollout-running', 'starting']
const MAX_LAST = 3

/** Tells whether a rollout only has to wait */
export function isBusy (error: unknown): boolean {
  return BUSY.includes(errorCode(error) ?? '')
}

/**
 * Tells what a rollout would do before anybody asks for it: by the drafts of the registry, the refusals of the cluster
 * and its strategy.
 */
export function createPreview (
  { supervisor, releases, history, settings, jobs }: { supervisor: Pick<Supervisor, 'refusal' | 'snapshot'>,
    releases: Pick<Releases, 'preview' | 'before'>, history: Pick<History, 'lastRollouts'>,
    settings: Pick<Settings, 'current' | 'changesIn'>, jobs: Pick<Jobs, 'runToEnd'> }
) {
  return async function preview (
    { kind, release, path, git, isGuessAccepted, strategy: wish, actor }: { kind: 'deploy' | 'rollback',
      release?: string, path?: string, git?: string, isGuessAccepted?: boolean, strategy?: StrategyWish, actor: string }
  ): Promise<Preview> {
    const refusals: Preview['refusals'] = []
    const refuse = ({ code, message }: Preview['refusals'][number]) => {
      refusals.push({ code, message })
    }
    const { release: { id: from }, desiredWorkers: workers, workers: rows } = supervisor.snapshot()
    const drafts = { deploy: () => releases.preview.ofDeploy({ path }, refuse),
      commit: () =>
        releases.preview.ofCommit({ git: String(git), isGuessAccepted }, refuse, (run, work) =>
          jobs.runToEnd({ ...run, actor, steps: work })),
      rollback: () => releases.preview.ofRollback(release ?? lastGood(from, refuse), refuse) }
    const refusal = supervisor.refusal({ type: 'rollout', kind, strategy: wish, actor })
    const isToWait = git !== undefined && isBusy(refusal)
    if (refusal && !isToWait) refuse(refusal)
    const { config, files, warnings, ...drafted } = await drafts
      [kind === 'deploy' && git !== undefined ? 'commit' : kind]()
    const strategy = strategyOf(kind, workers, settings.current.rollout, wish)
    return { kind, from, ...drafted, files: files && shownFiles(files),
      warnings: isToWait ? [...warnings, `once it is built, the deploy waits: ${refusal?.message}`] : warnings,
      options: config ? settings.changesIn(config.now, config.deployed) : [],
      plan: { workers, text: strategyText(strategy, workers), strategy, ...extraOf(strategy, { workers, rows }) },
      last: lastOf({ kind, slots: workers }), refusals }
  }

  function lastGood (from: string, refuse: (error: DeckError) => void) {
    try {
      return releases.before(from)
    } catch (error) {
      if (!(error instanceof DeckError)) throw error
      refuse(error)
      return null
    }
  }

  function lastOf (which: { kind: 'deploy' | 'rollback', slots: number }): Preview['last'] {
    // The rest can be told without the history.
    const last = attempt(() => history.lastRollouts({ ...which, limit: MAX_LAST }), [])
    return last.map(({ id, state, to, startedAt, finishedAt }) => ({ rollout: id, state, release: to, startedAt,
      tookMs: Math.max(0, Date.parse(finishedAt ?? startedAt) - Date.parse(startedAt)) })
    )
  }
}

function extraOf ({ order, surge, canary }: Strategy,
  { workers, rows }: { workers: number, rows: { vitals: { rssBytes: number } | null }[] })
{
  // A canary serves beside all old workers, whatever the order of the others.
  const extraWorkers = Math.max(canary?.workers ?? 0, order === 'start-first' ? Math.min(surge, workers) : 0)
  const sizes = rows.flatMap(({ vitals }) => vitals?.rssBytes ?? [])
  return { extraWorkers, extraBytes: sizes.length > 0 ? extraWorkers * Math.max(...sizes) : null }
}
