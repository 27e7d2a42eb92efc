import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { statSync } from 'node:fs'
import { constants } from 'node:os'
import { DeckError } from '../errors.ts'
import { take } from '../system/loan.ts'
import { identifyProcess } from '../system/process-identity.ts'
import { streamAgain } from './api-client.ts'
import { misuse } from './usage.ts'
import type { Writable } from 'node:stream'
import type { Context } from './commands.ts'
import type { Place, Run } from '../jobs/api.ts'

/** A closed terminal ends nobody: the run goes on, and is in the history. */
const SIGNALS: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM']

/**
 * Waits with the command until its run is known, and knows its number. Without a line the command has no run, and does
 * not begin.
 */
const SCRIPT = 'read -r CLUSTERDECK_RUN <&3 || exit 1; export CLUSTERDECK_RUN; exec 3<&-; exec "$@"'
/** Signals by which somebody may tell this process to end. */
const PASSED_ON: readonly NodeJS.Signals[] = ['SIGTERM', 'SIGHUP']

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
  let isAsked = false
  const onSignal = () => {
    // The timeout of this command may be over by now.
    context.anew().post(`/jobs/runs/${id}/end`, isAsked ? { isForced: true } : {}).catch(() => {})
    isAsked = true
  }
  for (const signal of SIGNALS) process.on(signal, onSignal)
  try {
    return await untilEnd(context, id)
  } finally {
    for (const signal of SIGNALS) process.off(signal, onSignal)
  }
}

/** @throws {DeckError} no-master */
async function untilEnd (context: Context, id: number): Promise<Run> {
  const open = (lastEventId: string | undefined) => context.api.stream(`/jobs/runs/${id}/stream`, { lastEventId })
  for await (const { event, data } of streamAgain(open, { hasAnswered: true })) {
    if (event === 'end') return data as Run
    if (data !== undefined) await show(context, event, data)
  }
  // It goes on until it fails.
  throw new DeckError('no-master', `the output of run ${id} has ended without its end`)
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

/**
 * Runs a command of the app as a child of this process, with its stdin, stdout and stderr: a console, or a program that
 * reads a file. The master knows that it runs, and how it ends. Returns the exit code, as of runCommand().
 * @throws {DeckError} usage, and what the master refuses
 */
async function runHere (context: Context, command: string[]): Promise<number> {
  checkPlace(context)
  const { api } = context
  const { cwd, variables } = await api.post<Place>('/jobs/place')
  const env = JSON.parse(await take(variables))
  const { TERM } = process.env
  const child = spawn('/bin/sh', ['-c', SCRIPT, 'sh', ...command], { cwd, env: { ...env, ...(TERM && { TERM }) },
    stdio: ['inherit', 'inherit', 'inherit', 'pipe'] })
  const exited = once(child, 'exit')
  const leave = passSignals(child)
  const gate = child.stdio[3] as Writable
  // EPIPE: it has ended meanwhile.
  gate.on('error', () => {})
  try {
    const run = await api.post<Run>('/jobs/runs', { command, process: identifyProcess(Number(child.pid)) })
    gate.end(`${run.id}\n`)
    const [code, signal] = await exited
    await tellEnd(context, run.id, { code, signal })
    return code ?? 128 + (constants.signals[signal as NodeJS.Signals] ?? 0)
  } finally {
    gate.end()
    leave()
  }
}

/** @throws {DeckError} usage */
function checkPlace ({ options, master }: Context) {
  const other = (['detach', 'json', 'url', 'member'] as const).find((name) => options[name] !== undefined)
  if (other) throw misuse('run', `--interactive without --${other}, as the command runs in this terminal`, 'both')
  const owner = master.dataDir === null ? null : statSync(master.dataDir).uid
  if (owner !== process.getuid?.())
    throw misuse('run --interactive',
      `to be the user of the app (uid ${owner}), as the command runs as a child of this one`,
      `uid ${process.getuid?.()}`)
}

/** A terminal sends Ctrl-C to both; what is sent to this process alone is passed on. */
function passSignals (child: ChildProcess) {
  const handlers: [NodeJS.Signals, () => void][] = [['SIGINT', () => {
    if (!process.stdin.isTTY) child.kill('SIGINT')
  }], ['SIGQUIT', () => {}], ...PASSED_ON.map((signal) =>
    [signal, () => {
      child.kill(signal)
    }] as [NodeJS.Signals, () => void]
  )]
  for (const [signal, handler] of handlers) process.on(signal, handler)
  return () => {
    for (const [signal, handler] of handlers) process.off(signal, handler)
  }
}

async function tellEnd ({ anew, tell }: Context, id: number, exit: { code: number | null, signal: string | null }) {
  try {
    // The timeout of this command may be over by now, and another master may be there.
    await anew().post(`/jobs/runs/${id}/ended`, exit)
  } catch (error) {
    if (!(error instanceof DeckError)) throw error
    tell(`the end of run ${id} is not on record: ${error.message}`)
  }
}
