import { constants } from 'node:os'
import { setTimeout as wait } from 'node:timers/promises'
import { DeckError } from '../errors.js'
import { createApiClient } from './api-client.js'
import { runHere } from './run-here.js'

/** @typedef {import('./commands.js').Context} Context */
/** @typedef {import('../api/jobs.js').Run} Run */

/** How long the output of a run is looked for after the master that ran it has gone. */
const RECONNECT_WITHIN_MS = 10_000
const RECONNECT_EVERY_MS = 250
/** A closed terminal ends nobody: the run goes on, and is in the history. @type {readonly NodeJS.Signals[]} */
const SIGNALS = ['SIGINT', 'SIGTERM']

/**
 * Runs a command beside the workers of an app, and prints what it writes.
 * @param {Context} context @param {string[]} command
 * @returns {Promise<number>} its exit code; of one that was ended by a signal 128 and the signal's number, as shells have it
 */
export async function runCommand (context, command) {
  if (command.length === 0) throw new DeckError('usage', 'run: expected a command after --, received none')
  if (context.options.interactive) return await runHere(context, command)
  const run = await context.api.post('/jobs/runs', { command })
  if (!context.options.detach) return await followRun(context, run)
  context.answer(run, () => `run ${run.id} has started; "clusterdeck jobs runs ${run.id}" prints its output`)
  return 0
}

/** @param {Context} context @param {Run} run that has begun @returns {Promise<number>} as of runCommand() */
export async function followRun (context, run) {
  const { options, answer, tell } = context
  const ended = await watchRun(context, run)
  if (options.json) answer(ended, () => '')
  else if (ended.reason && (ended.code === null || ended.state === 'interrupted')) tell(ended.reason)
  return exitCodeOf(ended)
}

/**
 * Prints what a run writes. Ctrl-C ends it: at once where that comes twice.
 * @param {Context} context @param {Pick<Run, 'id'>} run that has begun @returns {Promise<Run>} once it has ended
 */
export async function watchRun (context, { id }) {
  const { master, findAgain, timeoutMs } = context
  let isAsked = false
  const onSignal = () => {
    // The timeout of this command may be over by now.
    createApiClient(master, { timeoutMs, findAgain }).post(`/jobs/runs/${id}/end`, isAsked ? { isForced: true } : {}).catch(() => {})
    isAsked = true
  }
  for (const signal of SIGNALS) process.on(signal, onSignal)
  try {
    return await untilEnd(context, id)
  } finally {
    for (const signal of SIGNALS) process.off(signal, onSignal)
  }
}

/** @param {Context} context @param {number} id @returns {Promise<Run>} */
async function untilEnd (context, id) {
  /** @type {string | undefined} */
  let place
  /** @type {number | null} null: a master answers */
  let lostAt = null
  for (;;) {
    try {
      for await (const { event, data, id: next } of context.api.stream(`/jobs/runs/${id}/stream`, { lastEventId: place })) {
        lostAt = null
        place = next ?? place
        if (event === 'end') return data
        if (data !== undefined) await show(context, event, data)
      }
    } catch (error) {
      const isLate = lostAt !== null && performance.now() - lostAt > RECONNECT_WITHIN_MS
      if (!(error instanceof DeckError && error.code === 'no-master') || isLate) throw error
    }
    lostAt ??= performance.now()
    await wait(RECONNECT_EVERY_MS)
  }
}

/** @param {Context} context @param {string} event @param {any} data */
async function show ({ options, write, writeError, tell }, event, data) {
  if (event === 'dropped') return tell(`${Number(data.chars)} characters skipped: output is faster than the reader`)
  if (data.stream === 'stderr' || options.json) writeError(data.text)
  else await write(data.text)
}

/** @param {Run} run */
function exitCodeOf ({ code, signal, state }) {
  if (signal !== null) return 128 + (constants.signals[/** @type {NodeJS.Signals} */ (signal)] ?? 0)
  if (code === null || (code === 0 && state !== 'succeeded')) return 1
  return code
}
