import { reduce } from '../lifecycle/pool.ts'
import type { Drift, Input, PoolState } from '../lifecycle/state.ts'

/**
 * Whether the files of a release have changed is asked only where a worker is about to be forked on it, or a rollback
 * is to go to it; then it is decided once more, knowing the answer. What is deployed is meant as it is.
 * @param look at the files of releases
 */
export function reduceWithDrift (state: PoolState, input: Input,
  look: (ids: string[]) => Record<string, Drift>): ReturnType<typeof reduce>
{
  const isDeploy = input.type === 'rollout'
    ? input.kind === 'deploy'
    : input.type === 'release-prepared' && state.rollout?.kind === 'deploy'
  const changed: ReturnType<typeof look> = {}
  const asked: Set<string> = new Set()
  for (;;) {
    const result = reduce(state, { ...input, drift: changed })
    const news = isDeploy ? [] : releasesToAskAbout(result).filter((id) => !asked.has(id))
    if (news.length === 0) return result
    news.forEach((id) => asked.add(id))
    Object.assign(changed, look(news))
  }
}

/** @returns the releases that new workers or a next master start on, and those that a rollback goes to */
function releasesToAskAbout ({ commands, state: { slots, rollout, guard } }: ReturnType<typeof reduce>): string[] {
  const isUpgrade = commands.some(({ type }) => type === 'start-next')
  const forked = commands.map((command) => command.type === 'fork' ? command.release.id : null)
  const returned = rollout?.steps.map(({ state, from }) => state === 'reverting' ? from : null) ?? []
  const ids = [...forked, ...returned, guard?.isTripped ? guard.from : null,
    ...isUpgrade ? slots.map(({ release }) => release) : []]
  return [...new Set(ids)].filter((id) => id !== null)
}
