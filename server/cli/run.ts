import { constants } from 'node:os'
import { setTimeout as wait } from 'node:timers/promises'
import { DeckError } from '../errors.ts'
import { createApiClient } from './api-client.ts'
import { runHere } from './run-here.ts'
import { misuse } from './usage.ts'
import type { Context } from './commands.ts'
import type { Run } from '../api/jobs.ts'

/** How long the output of a run is looked for after the master that ran it has gone. */
const RECONNECT_WITHIN_MS = 10_000
const RECONNECT_EVERY_MS = 250
/** A closed terminal ends nobody: the run goes on, and is in the history. */
const SIGNALS: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM']

/**
 * Runs a command beside the workers of an app, and prints what it writes. Returns its exit code; of one that was ended
 * by a signal 128 and the signal's number, as shells have it.
 */
export async function runCommand (context: Context, command: string[]): Promise<number> {
  if (command.length === 0) throw misuse('run', 'a command after --')
  if (context.options.interactive) return await runHere(context, command)
  const run = await context.api.post<Run>('/jobs/runs', { command })
  if (!context.options.detach) return await followRun(context, run)
  context.answer(run, () => `run ${run.id} has started; "clusterdeck jobs runs ${run.id}" prints its output`)
  return 0
}

/** `run`: that has begun @returns as of runCommand() */
export async function followRun (context: Context, run: Run): Promise<number> {
  const { options, answer, tell } = context
  const ended = await watchRun(context, run)
  if (options.json) answer(ended, () => '')
  else if (ended.reason && (ended.code === null || ended.state === 'interrupted')) tell(ended.reason)
  return exitCodeOf(ended)
}

/**
 * Prints what a run writes. Ctrl-C ends it: at once where that comes twice. `run`: that has begun. Returns once it has
 * ended.
 */
export async function watchRun (context: Context, { id }: Pick<Run, 'id'>): Promise<Run> {
  const { master, findAgain, timeoutMs } = context
  let isAsked = false
  const onSignal = () => {
    // The timeout of this command may be over by now.
    createApiClient(master, { timeoutMs, findAgain }).post(`/jobs/runs/${id}/end`, isAsked ? { isForced: true } : {})
      .catch(() => {})
    isAsked = true
  }
  for (const signal of SIGNALS) process.on(signal, onSignal)
  try {
    return await untilEnd(context, id)
  } finally {
    for (const signal of SIGNALS) process.off(signal, onSignal)
  }
}

async function untilEnd (context: Context, id: number): Promise<Run> {
  let place: string | undefined
  /** null: a master answers */
  let lostAt: number | null = null
  for (;;) {
    try {
      for await (const { event, data, id: next } of context.api.stream(`/jobs/runs/${id}/stream`, {
        lastEventId: place
      })) {
        lostAt = null
        place = next ?? place
        if (event === 'end') return data as Run
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

async function show ({ options, write, writeError, tell }: Context, event: string, data: unknown) {
  const { chars, stream, text } = Object(data)
  if (event === 'dropped') return tell(`${Number(chars)} characters skipped: output is faster than the reader`)
  if (stream === 'stderr' || options.json) writeError(text)
  else await write(text)
}

function exitCodeOf ({ code, signal, state }: Run) {
  if (signal !== null) return 128 + (constants.signals[signal as NodeJS.Signals] ?? 0)
  if (code === null || (code === 0 && state !== 'succeeded')) return 1
  return code
}
