import { DeckError } from '../errors.js'
import { oneLine } from '../system/one-line.js'
import { checkedDuration } from './duration.js'
import { rolloutText } from './output.js'
import { createProgress } from './progress.js'

/** @typedef {import('./commands.js').Context} Context */
/** @typedef {import('../config/steering.js').Steering} Steering */

/** How long one call waits for the end of a rollout; short enough to show its progress. */
const FOLLOW_WAIT = '250ms'
/** Of what a hook that failed has written; the history has more. */
const SHOWN_LINES = 20

/** @param {'restart' | 'deploy' | 'rollback'} kind */
export function rollout (kind) {
  return async (/** @type {Context} */ context, /** @type {string | undefined} */ argument) => {
    const { api, options, tell } = context
    const { path, note } = options
    const release = kind === 'rollback' ? argument : undefined
    const started = await api.post('/rollouts', { kind, release, path, note, strategy: strategyFrom(options) })
    if (options.wait) tell(oneLine(`rollout ${started.id} (${kind}) started`))
    await reportOn(started, context)
  }
}

/** What is done with the rollout that runs. @param {Steering} action */
export function steer (action) {
  return async (/** @type {Context} */ context) => {
    const { rollout } = await context.api.get('/status')
    if (!rollout) throw new DeckError('rollout-ended', 'no rollout is running')
    // What was aborted has not failed.
    await reportOn(await context.api.post(`/rollouts/${rollout.id}/${action}`), context, action === 'abort' ? ['rolled-back', 'failed'] : ['succeeded'])
  }
}

/**
 * Only what was said: the rest is as configured.
 * @param {Record<string, string | undefined>} options
 * @returns {Record<string, unknown> | undefined} as the API takes it, which checks the values
 */
function strategyFrom ({ surge, minReady, canary, canaryTime, onFailure }) {
  const duration = (/** @type {string} */ flag, /** @type {string | undefined} */ text) => text === undefined ? undefined : checkedDuration(flag, text)
  const trial = { workers: countFrom(canary), durationMs: duration('--canary-time', canaryTime) }
  const strategy = {
    surge: countFrom(surge),
    minReadyMs: duration('--min-ready', minReady),
    canary: trial.workers === undefined && trial.durationMs === undefined ? undefined : trial,
    onFailure
  }
  return Object.values(strategy).every((value) => value === undefined) ? undefined : strategy
}

/** @param {string | undefined} text @returns {number | string | undefined} what is no count is left for the API to refuse */
function countFrom (text) {
  return text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : text
}

/** @param {any} rollout @param {Context} context @param {string[]} [good] states that are a success */
async function reportOn (rollout, context, good = ['succeeded']) {
  const { options, print, tell } = context
  if (!options.wait) {
    print(options.json ? json(rollout) : rolloutText(rollout))
    return
  }
  const ended = await follow(rollout, context)
  for (const warning of ended.warnings ?? []) tell(`warning: ${oneLine(warning)}`)
  for (const line of outputOf(ended)) tell(`  | ${oneLine(line)}`)
  if (options.json) print(json(ended))
  if (ended.state === 'held') throw new DeckError('rollout-failed', `rollout ${ended.id} (${ended.kind}) is held: ${ended.reason}; continue with "clusterdeck retry" or "resume", or roll back with "abort"`)
  if (!good.includes(ended.state)) {
    throw new DeckError('rollout-failed', `rollout ${ended.id} (${ended.kind}) ${ended.state}: ${ended.reason ?? 'no reason was given'}`)
  }
  if (!options.json) print(rolloutText(ended))
}

/** @param {any} rollout @returns {string[]} the last lines of a hook that has made it fail */
function outputOf ({ hook }) {
  return (hook?.output ?? '').trimEnd().split('\n').filter(Boolean).slice(-SHOWN_LINES)
}

/**
 * @param {any} rollout @param {Context} context
 * @returns {Promise<any>} the rollout once it is done, or held until a person comes
 */
async function follow (rollout, { api, tell }) {
  const tellProgress = createProgress(rollout, tell)
  tellProgress(rollout)
  while (!rollout.done && rollout.state !== 'held') {
    rollout = await api.get(`/rollouts/${rollout.id}?wait=${FOLLOW_WAIT}`)
    tellProgress(rollout)
  }
  return rollout
}

/** @param {unknown} value */
function json (value) {
  return JSON.stringify(value, null, 2)
}
