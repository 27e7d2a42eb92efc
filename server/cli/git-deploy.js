import { DeckError, isErrorCode } from '../errors.js'
import { readableText } from '../system/one-line.js'
import { createApiClient } from './api-client.js'
import { watchRun } from './run.js'

/** @typedef {import('./commands.js').Context} Context */
/** @typedef {import('../api/jobs.js').Run} Run */

const UNCONFIRMED = 'build-unconfirmed'

/** @param {Pick<Context, 'options' | 'keep'>} context @throws {DeckError} usage */
export function checkCommitOptions ({ options: { git, path }, keep }) {
  if (git === undefined) return
  if (path !== undefined) throw new DeckError('usage', 'deploy: expected either --git or --path, received both')
  if (keep !== null) throw new DeckError('usage', '--git: expected with one app, received several')
}

/**
 * Deploys a commit: prints what its build writes until that has ended.
 * @param {Context} context @param {Record<string, unknown> | undefined} strategy
 * @returns {Promise<{ rollout: import('../api/rollouts.js').Rollout, context: Context }>} `context`: has its whole time for what follows
 * @throws {DeckError} what the run has failed of: build-failed, git-failed, build-unconfirmed, …
 */
export async function buildCommit (context, strategy) {
  const { options: { git, note, yes }, master, timeoutMs, findAgain } = context
  const order = { git, note, strategy }
  const run = yes ? await runOf(context, { ...order, guess: true }) : await runOf(context, order) ?? await runOf(context, { ...order, guess: true })
  // The build may have taken longer than a command may wait.
  const api = createApiClient(master, { timeoutMs, findAgain })
  return { rollout: await api.get(`/rollouts/${run?.rollout}`), context: { ...context, api } }
}

/**
 * @param {Context} context @param {Record<string, unknown> & { guess?: true }} order
 * @returns {Promise<Run | null>} once it has succeeded; null: somebody has accepted the guess, with which it is to be ordered again
 */
async function runOf (context, order) {
  try {
    // It is printed for people, also by the hook of a push, whose terminal is on another machine.
    const { write, writeError } = context
    const shown = { ...context, write: (/** @type {string} */ text) => write(readableText(text)), writeError: (/** @type {string} */ text) => writeError(readableText(text)) }
    const run = await watchRun(shown, await context.api.post('/releases', order))
    if (run.state === 'succeeded') return run
    throw new DeckError(isErrorCode(run.cause) ? run.cause : 'build-failed', `${String(run.reason)}. Nothing has changed`)
  } catch (error) {
    if (!(error instanceof DeckError && error.code === UNCONFIRMED) || order.guess) throw error
    if (await context.confirm(`${error.message}.\nBuild it in this way?`)) return null
    throw new DeckError(UNCONFIRMED, `${error.message} (--yes accepts)`, { cause: error })
  }
}
