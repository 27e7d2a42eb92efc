import { DeckError } from '../errors.js'
import { oneLine } from '../system/one-line.js'
import { optionalDuration } from './duration.js'
import { buildCommit, checkCommitOptions } from './git-deploy.js'
import { rolloutText } from './output.js'
import { previewRollout } from './preview.js'
import { createProgress } from './progress.js'

/** @typedef {import('./commands.js').Context} Context */
/** @typedef {import('../config/steering.js').Steering} Steering */
/** @typedef {import('../api/rollouts.js').Rollout} Rollout */

/** How long one call waits for the end of a rollout; short enough to show its progress. */
const FOLLOW_WAIT = '250ms'
/** How many lines of a failed hook are shown; the history has more. */
const SHOWN_LINES = 20

/** @param {'restart' | 'deploy' | 'rollback'} kind */
export function rolloutCommand (kind) {
  return async (/** @type {Context} */ context, /** @type {string | undefined} */ argument) => {
    const { api, options, tell } = context
    const { path, note, git, yes: guess } = options
    checkCommitOptions(context)
    const strategy = strategyFrom(options)
    const release = kind === 'rollback' ? argument : undefined
    const order = { kind, release, path, note, strategy }
    if (options.dryRun) return await previewRollout(context, git === undefined ? order : { ...order, git, guess })
    if (git !== undefined) {
      const built = await buildCommit(context, strategy)
      return await reportOn(built.rollout, built.context)
    }
    const started = await api.post('/rollouts', order)
    if (options.wait) tell(oneLine(`rollout ${started.id} (${kind}) started`))
    await reportOn(started, context)
  }
}

/** Makes the command that pauses, resumes or otherwise steers the running rollout. @param {Steering} action */
export function steerCommand (action) {
  return async (/** @type {Context} */ context) => {
    const { rollout } = await context.api.get('/status')
    if (!rollout) throw new DeckError('rollout-ended', 'no rollout is running')
    const steered = await context.api.post(`/rollouts/${rollout.id}/${action}`)
    // An abort succeeds where the rollout has not.
    await reportOn(steered, context, action === 'abort' ? ['rolled-back', 'failed'] : ['succeeded'])
  }
}

/**
 * Names only what the flags say; the rest is as configured.
 * @param {import('./commands.js').Options} options
 * @returns {Record<string, unknown> | undefined} for the API, which checks the values
 */
function strategyFrom ({ surge, minReady, canary, canaryTime, onFailure }) {
  const trial = { workers: countFrom(canary), durationMs: optionalDuration('--canary-time', canaryTime) }
  const strategy = {
    surge: countFrom(surge),
    minReadyMs: optionalDuration('--min-ready', minReady),
    canary: trial.workers === undefined && trial.durationMs === undefined ? undefined : trial,
    onFailure
  }
  return Object.values(strategy).every((value) => value === undefined) ? undefined : strategy
}

/** @param {string | undefined} text @returns {number | string | undefined} the API refuses what is no count */
export function countFrom (text) {
  return text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : text
}

/** @param {Rollout} rollout @param {Context} context @param {string[]} [good] states that are a success */
async function reportOn (rollout, context, good = ['succeeded']) {
  const { options, answer, tell } = context
  if (!options.wait) return answer(rollout, () => rolloutText(rollout))
  const ended = await followRollout(rollout, context)
  for (const warning of ended.warnings ?? []) tell(`warning: ${oneLine(warning)}`)
  for (const line of outputOf(ended)) tell(`  | ${oneLine(line)}`)
  if (options.json) answer(ended, () => rolloutText(ended))
  if (ended.state === 'held') {
    const ways = 'continue with "clusterdeck retry" or "resume", or roll back with "abort"'
    throw new DeckError('rollout-failed', `rollout ${ended.id} (${ended.kind}) is held: ${ended.reason}; ${ways}`)
  }
  if (!good.includes(ended.state)) {
    throw new DeckError('rollout-failed', `rollout ${ended.id} (${ended.kind}) ${ended.state}: ${ended.reason ?? 'no reason was given'}`)
  }
  if (!options.json) answer(ended, () => rolloutText(ended))
}

/** @param {Rollout} rollout @returns {string[]} the last lines of a hook that has made it fail */
function outputOf ({ hook }) {
  return (hook?.output ?? '').trimEnd().split('\n').filter(Boolean).slice(-SHOWN_LINES)
}

/**
 * @param {Rollout} rollout @param {Context} context
 * @returns {Promise<Rollout>} the rollout once it is done or held
 */
async function followRollout (rollout, { api, tell }) {
  const tellProgress = createProgress(rollout, tell)
  tellProgress(rollout)
  while (!rollout.done && rollout.state !== 'held') {
    rollout = await api.get(`/rollouts/${rollout.id}?wait=${FOLLOW_WAIT}`)
    tellProgress(rollout)
  }
  return rollout
}
