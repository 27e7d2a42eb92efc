/** @typedef {import('../state.js').Rollout} Rollout */

/**
 * What a rollout begins with once its turn has come.
 * @typedef {{ release: import('../state.js').Release | null, source: Record<string, unknown>, slots: number[] }} Plan
 */

/** @param {Pick<Rollout, 'plan'> | null} rollout @returns {boolean} whether rollouts of other apps come first */
export function awaitsTurn (rollout) {
  return rollout?.plan != null
}

/** @param {readonly string[]} apps whose rollouts come first */
export function turnText (apps) {
  return `waits for its turn: ${new Intl.ListFormat('en-GB').format(apps)} ${apps.length === 1 ? 'is' : 'are'} being rolled out`
}

/**
 * A rollout gives its turn up as soon as it only waits: for the end of its old workers, for the comparison of its canary, or for an operator.
 * @param {Rollout | null} rollout  as it is now, of whatever number @param {number} id of the one that has the turn
 */
export function needsTurn (rollout, id) {
  if (rollout?.id !== id) return false
  if (awaitsTurn(rollout)) return true
  const isReplaced = rollout.steps.length > 0 && rollout.progress.replaced === rollout.progress.total
  return rollout.canaryEndsAt === null && rollout.pausedAt === null && !isReplaced
}
