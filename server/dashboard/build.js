import { readOr } from './read-or.js'

/** More than ever run at once. */
const LOOKED_AT = 20
const COMMAND = /^deploy --git (.+)$/

/**
 * The commit that is being built for a deploy.
 * @param {{ jobs: Pick<import('../deck.js').Deck['jobs'], 'runs'> }} deck
 * @returns {{ run: number, git: string, startedAt: string, actor: string } | null} the newest; null: none is
 */
export function buildOf ({ jobs }) {
  const { items } = readOr(() => jobs.runs(undefined, { limit: LOOKED_AT }), { items: [], next: null })
  const run = items.find(({ state, command }) => state === 'running' && COMMAND.test(command ?? ''))
  return run ? { run: run.id, git: COMMAND.exec(run.command ?? '')?.[1] ?? '', startedAt: run.startedAt, actor: run.actor } : null
}
