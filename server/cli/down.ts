import { setTimeout as wait } from 'node:timers/promises'
import { inStopOrder } from '../config/app-order.ts'
import { DeckError, onRefusal } from '../errors.ts'
import { isAlive, signalProcess } from '../system/process-identity.ts'
import { runningDeckAt } from '../system/running-decks.ts'
import { createApiClient, waitUntil } from './api-client.ts'
import { checkedApps, findApps } from './apps.ts'
import { isRunning } from './decks-table.ts'
import { findMasterAt, findRunning } from './find-master.ts'
import { callHost, expectHost, findHost, isOpen, listApps, stopInHost } from './host.ts'
import { appsOfHost } from './known-apps.ts'
import { formatTable, jsonText } from './output.ts'
import { misuse, timeoutOf } from './usage.ts'
import type { Place, Terminal } from './program.ts'
import type { AppView } from '../host/api-apps.ts'

const POLL_MS = 50
const ANSWER_WITHIN_MS = 2000

/**
 * Stops apps, each once those that depend on it have stopped; or ends the host, with all apps that are in it. `names`:
 * none: all of the config file.
 * @throws {DeckError} usage, invalid-config; no-master: no host runs; timed-out: some still run
 */
export async function downCommand (names: string[],
  options: { config?: string, timeout?: string, json?: true, all?: true }, terminal: Terminal)
{
  const { stdout, env, cwd } = terminal
  if (options.all) return await endHost(names, options, terminal)
  const { timeoutMs, text } = timeoutOf(options, env)
  const found = await findApps('down', options, terminal)
  const wanted = checkedApps('down', names, found)
  const apps = await appsOfHost(env)
  const outcomes = await inStopOrder(found.apps, wanted, async (name) => {
    const { dataDir } = found.apps.get(name)!
    const view = apps.find((each) => each.dataDir === dataDir)?.view
    return { name, ...view ? await stopApp(view, env, timeoutMs) : await stopDeck(dataDir, { env, cwd }, timeoutMs) }
  })
  const table = formatTable(['NAME', 'STATE'], outcomes.map(({ name, state, reason }) => [name, reason ?? state]))
  stdout.write(`${options.json ? jsonText(outcomes) : table}\n`)
  const going = outcomes.filter(({ state }) => state === 'running').map(({ name }) => name)
  if (going.length > 0) throw new DeckError('timed-out', `${going.join(', ')}: not stopped within ${text} (--timeout)`)
}

/** @throws {DeckError} usage, no-master, timed-out */
async function endHost (names: string[], { config, json, timeout }: { config?: string, json?: true, timeout?: string },
  { stdout, env }: Terminal)
{
  const other = names.length > 0 ? 'apps' : config === undefined ? null : '--config'
  if (other) throw misuse('down', `either ${other} or --all`, 'both')
  const master = expectHost(env)
  const host = callHost(master, { env, ...timeoutOf({ timeout }, env) })
  const apps = (await listApps(host)).filter(isOpen).map(({ name }) => name)
  await host.post('/host/stop')
  await waitUntil(() => findHost(env) === null && !master.recipient?.processes.some(isAlive), host)
  const text = apps.length === 0 ? 'the host has ended' : `the host has ended, with ${apps.join(', ')}`
  stdout.write(`${json ? jsonText({ state: 'stopped', apps }) : text}\n`)
}

/** Has the host stop an app; unlike the end of the host, that is remembered. */
async function stopApp ({ name, state }: AppView, env: Place['env'], timeoutMs: number): ReturnType<typeof stopDeck> {
  const master = findHost(env)
  if (state === 'stopped' || master === null) return { state: 'not running', reason: null }
  return await stopInHost(name, callHost(master, { env, timeoutMs }), env).then(
    () => ({ state: 'stopped', reason: null }),
    onRefusal(({ code, message }) => ({ state: 'running', reason: code === 'timed-out' ? 'still stopping' : message }))
  )
}

/** Lets the deck of a data folder finish its requests, and waits for its end. `dataDir`: absolute. */
async function stopDeck (dataDir: string, place: Place,
  timeoutMs: number): Promise<{ state: 'stopped' | 'not running' | 'running', reason: string | null }>
{
  if (!await isRunning(dataDir, place)) return { state: 'not running', reason: null }
  const processes = processesAt(dataDir, place)
  const isGone = () =>
    !processes.some(isAlive) && runningDeckAt(dataDir, place.env) === null && findRunning(dataDir, place.env) === null
  const signal = AbortSignal.timeout(timeoutMs)
  const problem = await askToStop(dataDir, place)
  while (!isGone()) {
    if (signal.aborted) return { state: 'running', reason: problem ?? 'still stopping' }
    await wait(POLL_MS)
  }
  return { state: 'stopped', reason: null }
}

function processesAt (dataDir: string, { env }: Place) {
  const { keeper = null, master = null } = runningDeckAt(dataDir, env) ?? {}
  return [keeper, master].filter((each) => each !== null)
}

/** @returns why it may not stop */
async function askToStop (dataDir: string, place: Place): Promise<string | null> {
  try {
    await createApiClient(await findMasterAt(dataDir, place), { timeoutMs: ANSWER_WITHIN_MS }).post('/stop')
    return null
  } catch (error) {
    if (!(error instanceof DeckError)) throw error
    // Where the master has just died or hangs, the keeper stops the deck.
    const alive = error.code === 'stopping' ? undefined : processesAt(dataDir, place).find(isAlive)
    if (alive) signalProcess(alive, 'SIGTERM')
    return error.message
  }
}
