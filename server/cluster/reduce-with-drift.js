import { reduce } from '../lifecycle/pool.js'

/** @typedef {import('../lifecycle/state.js').PoolState} PoolState */

/**
 * Whether the files of a release have changed is asked only where a worker is about to be forked on it, or a rollback is to go to
 * it; then it is decided once more, knowing the answer. What is deployed is meant as it is.
 * @param {PoolState} state @param {import('../lifecycle/state.js').Input} input
 * @param {(ids: string[]) => Record<string, import('../lifecycle/state.js').Drift>} look  at the files of releases
 * @returns {ReturnType<typeof reduce>}
 */
export function reduceWithDrift (state, input, look) {
  const isDeploy = input.type === 'rollout' ? input.kind === 'deploy' : input.type === 'release-prepared' && state.rollout?.kind === 'deploy'
  /** @type {ReturnType<typeof look>} */
  const changed = {}
  /** @type {Set<string>} */
  const asked = new Set()
  for (;;) {
    const result = reduce(state, { ...input, drift: changed })
    const news = isDeploy ? [] : releasesToAskAbout(result).filter((id) => !asked.has(id))
    if (news.length === 0) return result
    news.forEach((id) => asked.add(id))
    Object.assign(changed, look(news))
  }
}

/** @param {ReturnType<typeof reduce>} result @returns {string[]} the releases that new workers or a next master start on, and those that a rollback goes to */
function releasesToAskAbout ({ commands, state: { slots, rollout, guard } }) {
  const isUpgrade = commands.some(({ type }) => type === 'start-next')
  const forked = commands.map((command) => command.type === 'fork' ? command.release.id : null)
  const returned = rollout?.steps.map(({ state, from }) => state === 'reverting' ? from : null) ?? []
  const ids = [...forked, ...returned, guard?.isTripped ? guard.from : null, ...isUpgrade ? slots.map(({ release }) => release) : []]
  return [...new Set(ids)].filter((id) => id !== null)
}
