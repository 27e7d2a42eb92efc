import { formatCommit, formatExactDuration } from '../../public/format.ts'
import { DeckError, isErrorCode } from '../errors.ts'
import { previewFacts } from './preview-facts.ts'
import { oneLine, readableText } from '../system/one-line.ts'
import { variablesOf } from '../cli/app-orders.ts'
import { nullOn } from '../cli/api-client.ts'
import { callHost, findHost } from '../cli/host.ts'
import { rolloutText, linesOf } from '../cli/output.ts'
import { createProgress } from '../cli/progress.ts'
import { watchRun } from '../cli/run.ts'
import { misuse, optionalDuration } from '../cli/usage.ts'
import type { Context, Options } from '../cli/commands.ts'
import type { Steering } from '../config/steering.ts'
import type { Rollout } from './api.ts'
import type { Status } from '../api/cluster.ts'
import type { Preview } from '../api/shapes.ts'
import type { Run } from '../jobs/api.ts'

/** How long one call waits for the end of a rollout; short enough to show its progress. */
const FOLLOW_WAIT = '250ms'
/** How long one call waits for the end of another rollout. */
const TURN_WAIT = '5s'
/** How many lines of a failed hook are shown; the history has more. */
const SHOWN_LINES = 20
const SHOWN_VARIABLES = 5

export function rolloutCommand (kind: 'restart' | 'deploy' | 'rollback') {
  return async (context: Context, argument: string | undefined) => {
    const { options, tell } = context
    const { path, note, git, yes: guess } = options
    checkCommitOptions(context)
    const strategy = strategyFrom(options)
    const release = kind === 'rollback' ? argument : undefined
    if (kind !== 'rollback') await takeVariables(context)
    const order = { kind: options.updateEnv ? 'deploy' : kind, release, path, note, strategy }
    if (options.dryRun) return await previewRollout(context, git === undefined ? order : { ...order, git, guess })
    if (git !== undefined) {
      const built = await buildCommit(context, strategy)
      return await reportOn(built.rollout, built.context)
    }
    const started = await beginInTurn(order, context)
    if (options.wait) tell(oneLine(`rollout ${started.id} (${kind}) started`))
    await reportOn(started, context)
  }
}

/** Begins a rollout; with --wait-for-turn once no other rollout of the app runs. */
async function beginInTurn (order: object, { api, options, tell }: Context): Promise<Rollout> {
  for (let told = 0;;) {
    const begun = await api.post<Rollout>('/rollouts', order).catch(
      options.waitForTurn ? nullOn('rollout-running') : undefined
    )
    if (begun) return begun
    const { rollout } = await api.get<Status>('/status')
    // It has ended meanwhile.
    if (rollout === null) continue
    if (rollout.id !== told) tell(`waits for the end of rollout ${rollout.id} (${rollout.kind})`)
    told = rollout.id
    await api.get(`/rollouts/${rollout.id}?wait=${TURN_WAIT}`)
  }
}

/**
 * Deploys what is on the disk of an app now, and waits for the end. `api`: of the app
 * @throws {DeckError} rollout-failed
 */
export async function deployNow (
  { api, tell }: Pick<Context, 'tell'> & { api: Pick<Context['api'], 'get' | 'post'> }
): Promise<Rollout> {
  const ended = await followRollout(await api.post<Rollout>('/rollouts', { kind: 'deploy' }), { api, tell })
  checkEnd(ended)
  return ended
}

/** An app of a host keeps the variables of the shell that has ordered it; with --update-env it gets those of this shell. */
async function takeVariables ({ master: { app }, options, env, tell }: Context) {
  const { updateEnv = false, dryRun, member } = options
  const host = findHost(env)
  if (host === null || app?.hostUrl !== host.url || member !== undefined) {
    if (updateEnv) throw misuse('--update-env', 'with an app of the host of this user', 'with another one')
    return
  }
  const isDry = !updateEnv || dryRun === true
  // Who may only deploy is told nothing of them.
  const { variables } =
    await callHost(host, { env }).put<{ variables: string[] }>(`/apps/${app.name}/variables?dryRun=${isDry}`, {
      env: variablesOf(env)
    }).catch(updateEnv ? undefined : nullOn()) ?? { variables: [] }
  const shown = variables.slice(0, SHOWN_VARIABLES).join(', ') + (variables.length > SHOWN_VARIABLES ? ', …' : '')
  if (shown === '') return
  if (updateEnv) return tell(`takes the variables of this shell: ${shown}`)
  tell(
    `the app keeps the variables that it was started with; this shell has others: ${shown} (--update-env takes them)`
  )
}

/** Makes the command that pauses, resumes or otherwise steers the running rollout. */
export function steerCommand (action: Steering) {
  return async (context: Context) => {
    const { rollout } = await context.api.get<Status>('/status')
    if (!rollout) throw new DeckError('rollout-ended', 'no rollout is running')
    const steered = await context.api.post<Rollout>(`/rollouts/${rollout.id}/${action}`)
    // An abort succeeds where the rollout has not.
    await reportOn(steered, context, action === 'abort' ? ['rolled-back', 'failed'] : ['succeeded'])
  }
}

/** Names only what the flags say; the rest is as configured. @returns for the API, which checks the values */
function strategyFrom (
  { surge, minReady, canary, canaryTime, onFailure }: Options
): Record<string, unknown> | undefined {
  const trial = { workers: countFrom(canary), durationMs: optionalDuration('--canary-time', canaryTime) }
  const strategy = { surge: countFrom(surge), minReadyMs: optionalDuration('--min-ready', minReady),
    canary: trial.workers === undefined && trial.durationMs === undefined ? undefined : trial, onFailure }
  return Object.values(strategy).every((value) => value === undefined) ? undefined : strategy
}

/** @returns the API refuses what is no count */
export function countFrom (text: string | undefined): number | string | undefined {
  return text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : text
}

/** `good`: states that are a success */
async function reportOn (rollout: Rollout, context: Context, good: string[] = ['succeeded']) {
  const { options, answer, tell } = context
  if (!options.wait) return answer(rollout, () => rolloutText(rollout))
  const ended = await followRollout(rollout, context)
  for (const warning of ended.warnings ?? []) tell(`warning: ${oneLine(warning)}`)
  for (const line of outputOf(ended)) tell(`  | ${oneLine(line)}`)
  if (options.json) answer(ended, () => rolloutText(ended))
  checkEnd(ended, good)
  const verdict = ended.verdicts?.at(-1)
  if (verdict) tell(oneLine(`${verdict.passed === null ? 'not judged' : 'judged'}: ${verdict.message}`))
  if (!options.json) answer(ended, () => rolloutText(ended))
}

/** @throws {DeckError} rollout-failed */
function checkEnd (ended: Rollout, good: string[] = ['succeeded']) {
  if (ended.state === 'held') {
    const ways = 'continue with "clusterdeck retry" or "resume", or roll back with "abort"'
    throw new DeckError('rollout-failed', `rollout ${ended.id} (${ended.kind}) is held: ${ended.reason}; ${ways}`)
  }
  if (!good.includes(ended.state))
    throw new DeckError('rollout-failed',
      `rollout ${ended.id} (${ended.kind}) ${ended.state}: ${ended.reason ?? 'no reason was given'}`)
}

/** @returns the last lines of a hook that has made it fail */
function outputOf ({ hook }: Rollout): string[] {
  return (hook?.output ?? '').trimEnd().split('\n').filter(Boolean).slice(-SHOWN_LINES)
}

async function followRollout (rollout: Rollout,
  { api, tell }: Pick<Context, 'tell'> & { api: Pick<Context['api'], 'get'> }): Promise<Rollout>
{
  const tellProgress = createProgress(rollout, tell)
  tellProgress(rollout)
  while (!rollout.done && rollout.state !== 'held') {
    rollout = await api.get(`/rollouts/${rollout.id}?wait=${FOLLOW_WAIT}`)
    tellProgress(rollout)
  }
  return rollout
}

const WIDTH = 14

/** Prints what a deploy or a rollback would do, and fails as that would. `order`: as for a rollout. */
async function previewRollout ({ api, answer }: Context, order: Record<string, unknown>) {
  const preview: Preview = await api.post('/rollouts/preview', order)
  answer(preview, () => previewText(preview))
  const [first] = preview.refusals
  if (!first) return
  throw new DeckError(isErrorCode(first.code) ? first.code : 'not-possible',
    `the ${preview.kind} would be refused: ${preview.refusals.map(({ message }) => message).join('; ')}`)
}

function previewText (preview: Preview) {
  const rows = [...previewFacts(preview, formatExactDuration).map(({ name, value }) => [name.toLowerCase(), value]),
    ...(preview.commits?.added.items ?? []).map((commit) => commitRow('+', commit)),
    ...(preview.commits?.removed.items ?? []).map((commit) => commitRow('-', commit)),
    ...preview.warnings.map((warning) => ['warning', warning])]
  return `${preview.kind}: a dry run, nothing was changed\n${linesOf(rows, WIDTH)}`
}

function commitRow (sign: '+' | '-',
  { commit, subject, author }: NonNullable<Preview['commits']>['added']['items'][number])
{
  return ['', `${sign} ${formatCommit(commit)} ${subject} (${author})`]
}

const UNCONFIRMED = 'build-unconfirmed'

/** @throws {DeckError} usage */
function checkCommitOptions ({ options: { git, path }, keep }: Pick<Context, 'options' | 'keep'>) {
  if (git === undefined) return
  if (path !== undefined) throw misuse('deploy', 'either --git or --path', 'both')
  if (keep !== null) throw misuse('--git', 'with one app', 'several')
}

/**
 * Deploys a commit: prints what its build writes until that has ended.
 * @returns `context`: has its whole time for what follows
 * @throws {DeckError} what the run has failed of: build-failed, git-failed, build-unconfirmed, …
 */
async function buildCommit (context: Context,
  strategy: Record<string, unknown> | undefined): Promise<{ rollout: Rollout, context: Context }>
{
  const { git, note, yes } = context.options
  const order = { git, note, strategy }
  const run = yes
    ? await runOf(context, { ...order, guess: true })
    : await runOf(context, order) ?? await runOf(context, { ...order, guess: true })
  // The build may have taken longer than a command may wait.
  const api = context.anew()
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
