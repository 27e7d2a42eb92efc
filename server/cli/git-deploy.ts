import { DeckError, isErrorCode } from '../errors.ts'
import { readableText } from '../system/one-line.ts'
import { createApiClient } from './api-client.ts'
import { watchRun } from './run.ts'
import { misuse } from './usage.ts'
import type { Context } from './commands.ts'
import type { Run } from '../api/jobs.ts'
import type { Rollout } from '../api/rollouts.ts'

const UNCONFIRMED = 'build-unconfirmed'

/** @throws {DeckError} usage */
export function checkCommitOptions ({ options: { git, path }, keep }: Pick<Context, 'options' | 'keep'>) {
  if (git === undefined) return
  if (path !== undefined) throw misuse('deploy', 'either --git or --path', 'both')
  if (keep !== null) throw misuse('--git', 'with one app', 'several')
}

/**
 * Deploys a commit: prints what its build writes until that has ended.
 * @returns `context`: has its whole time for what follows
 * @throws {DeckError} what the run has failed of: build-failed, git-failed, build-unconfirmed, …
 */
export async function buildCommit (context: Context,
  strategy: Record<string, unknown> | undefined): Promise<{ rollout: Rollout, context: Context }>
{
  const { options: { git, note, yes }, master, timeoutMs, findAgain } = context
  const order = { git, note, strategy }
  const run = yes
    ? await runOf(context, { ...order, guess: true })
    : await runOf(context, order) ?? await runOf(context, { ...order, guess: true })
  // The build may have taken longer than a command may wait.
  const api = createApiClient(master, { timeoutMs, findAgain })
  return { rollout: await api.get(`/rollouts/${run?.rollout}`), context: { ...context, api } }
}

/** @returns once it has succeeded; null: somebody has accepted the guess, with which it is to be ordered again */
async function runOf (context: Context, order: Record<string, unknown> & { guess?: true }): Promise<Run | null> {
  try {
    // It is printed for people, also by the hook of a push, whose terminal is on another machine.
    const { write, writeError } = context
    const shown = { ...context, write: (text: string) => write(readableText(text)), writeError: (text: string) =>
      writeError(readableText(text)) }
    const run = await watchRun(shown, await context.api.post('/releases', order))
    if (run.state === 'succeeded') return run
    throw new DeckError(isErrorCode(run.cause) ? run.cause : 'build-failed',
      `${String(run.reason)}. Nothing has changed`)
  } catch (error) {
    if (!(error instanceof DeckError && error.code === UNCONFIRMED) || order.guess) throw error
    if (await context.confirm(`${error.message}.\nBuild it in this way?`)) return null
    throw new DeckError(UNCONFIRMED, `${error.message} (--yes accepts)`, { cause: error })
  }
}
