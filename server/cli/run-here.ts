import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { statSync } from 'node:fs'
import { constants } from 'node:os'
import { DeckError } from '../errors.ts'
import { take } from '../system/loan.ts'
import { identifyProcess } from '../system/process-identity.ts'
import { createApiClient } from './api-client.ts'
import { misuse } from './usage.ts'
import type { Writable } from 'node:stream'
import type { Context } from './commands.ts'
import type { Place, Run } from '../api/jobs.ts'

/**
 * Waits with the command until its run is known, and knows its number. Without a line the command has no run, and does
 * not begin.
 */
const SCRIPT = 'read -r CLUSTERDECK_RUN <&3 || exit 1; export CLUSTERDECK_RUN; exec 3<&-; exec "$@"'
/** Signals by which somebody may tell this process to end. */
const PASSED_ON: readonly NodeJS.Signals[] = ['SIGTERM', 'SIGHUP']

/**
 * Runs a command of the app as a child of this process, with its stdin, stdout and stderr: a console, or a program that
 * reads a file. The master knows that it runs, and how it ends. Returns the exit code, as of runCommand().
 * @throws {DeckError} usage, and what the master refuses
 */
export async function runHere (context: Context, command: string[]): Promise<number> {
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

async function tellEnd ({ master, timeoutMs, findAgain, tell }: Context, id: number,
  exit: { code: number | null, signal: string | null })
{
  try {
    // The timeout of this command may be over by now, and another master may be there.
    await createApiClient(master, { timeoutMs, findAgain }).post(`/jobs/runs/${id}/ended`, exit)
  } catch (error) {
    if (!(error instanceof DeckError)) throw error
    tell(`the end of run ${id} is not on record: ${error.message}`)
  }
}
