import { readFileSync } from 'node:fs'
import path from 'node:path'
import { attempt, errorText } from '../../server/errors.ts'
import { createOwner } from '../support/owner.ts'
import { present } from '../support/present.ts'
import { createClients, type Failure } from './clients.ts'
import { examineEnd } from './end.ts'
import { findPlace, type Place } from './place.ts'
import { aim, open } from './protocols.ts'
import { createUpstream } from './upstream.ts'
import { startDeck, type Deck } from '../support/deck.ts'
import { until } from '../support/until.ts'
import type { Program } from './programs.ts'
import type { Row } from './report.ts'

/**
 * A second one of a program that goes elsewhere would do so at the very start, where the first one is quick, as under
 * node:cluster.
 */
const workersOf = ({ cannotBeReplaced }: Program) => cannotBeReplaced ? 1 : 2

export type Trial = Awaited<ReturnType<typeof begin>>

/**
 * Runs a program on a deck of its own, as a user would, and does to it all that happens in a year.
 * @param folder where it is installed
 */
export async function tryOut (program: Program, folder: string): Promise<Omit<Row, 'name'>> {
  const trial = await begin(program, folder)
  try {
    await start(trial)
    await everyWorkerAnswers(trial)
    if (program.cannotBeReplaced) await failToRollOut(trial)
    else await goThroughAll(trial)
  } catch (error) {
    trial.row.faults.push(errorText(error))
  } finally {
    await end(trial)
  }
  return trial.row
}

async function goThroughAll (trial: Trial) {
  await rollOut(trial)
  await loseWorker(trial)
  await loseMaster(trial)
  await everyWorkerAnswers(trial)
}

async function begin (program: Program, folder: string) {
  const upstream = await createUpstream()
  const place = await findPlace(folder, upstream.url)
  const mark = `GALLERY_STATE=${place.state}`
  const startedAt = performance.now()
  const deck = await launch(program, place).catch((error) => {
    upstream.close()
    throw error
  })
  const row: Omit<Row, 'name'> = { faults: [] }
  return { program, workers: workersOf(program), place, upstream, mark, startedAt, deck, row,
    clients: null as ReturnType<typeof createClients> | null, killed: [] as number[] }
}

/** As a user does. */
async function launch (program: Program, place: Place) {
  const { entry, start = [], flags, args, env } = program
  const owner = createOwner()
  const options = { workers: workersOf(program), cwd: place.folder, flags: [...start, ...flags?.(place) ?? []],
    args: args?.(place) ?? [], env: { PORT: String(place.port), GALLERY_STATE: place.state, ...env?.(place) } }
  return await startDeck(owner, entry ? path.join(place.folder, entry) : null, options).catch(async (error) => {
    await owner.end()
    throw error
  })
}

async function start (trial: Trial) {
  const { program: { asks }, place, row } = trial
  await untilReady(trial)
  row.readyMs = Math.round(performance.now() - trial.startedAt)
  await checkAddresses(trial, 'at the start')
  if (!asks) return
  const target = aim(asks, place)
  trial.clients = createClients((isFresh) => open(target, isFresh), target.expects)
}

async function untilReady ({ deck, workers }: Trial) {
  await deck.untilStatus(({ readyWorkers, workers: rows }) => {
    if (rows.some(({ restarts, state }) => restarts > 0 || state === 'backoff')) throw new Error('does not start')
    return readyWorkers === workers
  }, `${workers} ready workers`).catch(async (error) => {
    const [exit] = await deck.history('type=worker.exited&limit=1')
    throw new Error(exit ? `${error.message}: ${exit.message}` : error.message, { cause: error })
  })
}

/** The program listens where it was told to, and nowhere else. */
async function checkAddresses ({ program: { listens = ({ port }) => [String(port)] }, place, deck }: Trial,
  when: string)
{
  const { app: { addresses } } = await deck.status()
  const [found, wanted] = [addresses.map(nameOf), listens(place)]
  if (!found.every((name: string) => wanted.some((want) => fits(name, want))) ||
    !wanted.every((want) => found.some((name: string) => fits(name, want))))
  {
    throw new Error(
      `${when} it listens on ${addresses.join(', ') || 'nothing'}, expected ${[...wanted].join(', ') || 'nothing'}`
    )
  }
}

/** `want`: with a / at its end: any path below that folder */
function fits (name: string, want: string) {
  return want.endsWith('/') ? name.startsWith(want) : name === want
}

/** @returns its port, or its path */
function nameOf (address: string): string {
  return /:(\d+)\/?$/.exec(address)?.[1] ?? address.replace(/^unix:/, '')
}

/** By the pids of the answers, the vitals or, where the program is asked nothing, by what it writes. */
async function everyWorkerAnswers ({ program: { asks }, workers: wanted, deck, clients }: Trial) {
  const isHttp = (asks?.protocol ?? 'http').startsWith('http')
  const heard = clients?.pids ?? new Set()
  await until(async () => {
    const { workers } = await deck.status()
    for (const { pid, vitals } of workers) {
      if (Number(vitals?.[isHttp ? 'requestsPerSecond' : 'openConnections']) > 0) heard.add(present(pid))
    }
    if (!clients) await hear(deck, heard)
    for (const pid of heard) heard.add(parentOf(pid))
    return workers.length === wanted && workers.every(({ pid }) => heard.has(Number(pid)))
  }, 'every worker to answer')
}

/** What answers may be a child of the worker. Returns 0: it has none, or has ended. */
function parentOf (pid: number): number {
  // ENOENT: it has ended.
  return attempt(() => Number(/^PPid:\s*(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]), 0)
}

async function hear (deck: Deck, heard: Set<number>) {
  const { body } = await deck.api('/logs?stream=stdout&lines=10')
  for (const { text } of body.items) heard.add(Number(/\bpid (\d+)/.exec(text)?.[1]))
}

async function rollOut (trial: Trial) {
  const { deck, row } = trial
  for (const kind of ['deploy', 'deploy', 'restart'] as const) {
    const { state, reason } = await deck.rollout(kind)
    if (state !== 'succeeded') row.faults.push(`${kind} ${state}: ${reason}`)
    await deck.until({ ready: trial.workers })
  }
  await countFailuresInRollouts(trial)
}

async function countFailuresInRollouts (trial: Trial) {
  const failures = await failuresUntilNow(trial)
  trial.row.failedInRollouts = failures.length
  blame(trial, 'in rollouts', failures)
  await checkAddresses(trial, 'after rollouts')
}

/** The old workers stay, and nobody notices. */
async function failToRollOut (trial: Trial) {
  const { deck, row } = trial
  const pids = async () => (await deck.status()).workers.map(({ pid }) => pid).join()
  const before = await pids()
  const { state, reason } = await deck.rollout('restart')
  await deck.until({ ready: trial.workers })
  if (state !== 'failed' || !reason) row.faults.push(`a restart ${state}, expected it to fail with a reason`)
  if (await pids() !== before) row.faults.push('its workers are others')
  await countFailuresInRollouts(trial)
}

async function loseWorker (trial: Trial) {
  const { deck, row } = trial
  const { workers: [{ pid }] } = await deck.status()
  const killedAt = performance.now()
  process.kill(present(pid), 'SIGKILL')
  trial.killed.push(present(pid))
  await deck.untilEvent((event) => event.type === 'worker.exited' && event.pid === pid, `worker ${pid} to be gone`)
  const goneAt = performance.now()
  await deck.until({ ready: trial.workers })
  const { lost, others } = divide(await failuresUntilNow(trial), killedAt, goneAt)
  row.lostWithWorker = lost.length
  blame(trial, 'though the killed worker did not have them', others)
}

/**
 * What a process has accepted nobody else can answer: what it was asked before it was killed and, on connections that
 * it had, one request each before their clients could know.
 */
function divide (failures: Failure[], killedAt: number, goneAt: number) {
  const clients = new Set()
  const parts: Record<'lost' | 'others', Failure[]> = { lost: [], others: [] }
  for (const failure of failures) {
    const couldBeThere = failure.endedAt >= killedAt && failure.startedAt <= (failure.isFresh ? killedAt : goneAt) &&
      !clients.has(failure.client)
    if (couldBeThere) clients.add(failure.client)
    parts[couldBeThere ? 'lost' : 'others'].push(failure)
  }
  return parts
}

async function loseMaster (trial: Trial) {
  const { deck, row } = trial
  await deck.loseMaster()
  await deck.until({ ready: trial.workers })
  const failures = await failuresUntilNow(trial)
  row.failedWithMaster = failures.length
  blame(trial, 'as the master died', failures)
}

async function failuresUntilNow (trial: Trial) {
  await trial.clients?.settle()
  return takeFaults(trial)
}

/** @returns those of all failures that are a fault */
function takeFaults ({ clients, program, row }: Trial): Failure[] {
  const failures = clients?.takeFailures() ?? []
  if (!program.keptMayFail) return failures
  const faults = failures.filter(({ isFresh }) => isFresh)
  row.failedOnKept = (row.failedOnKept ?? 0) + failures.length - faults.length
  return faults
}

function blame ({ row }: Trial, when: string, failures: Failure[]) {
  if (failures.length === 0) return
  const counts = new Map()
  for (const { isFresh, reason } of failures) {
    const what = `${reason} (${isFresh ? 'new' : 'kept'} connection)`
    counts.set(what, (counts.get(what) ?? 0) + 1)
  }
  row.faults.push(
    `${failures.length} failed ${when}: ${[...counts].map(([what, count]) => `${count} × ${what}`).join(', ')}`
  )
}

async function end (trial: Trial) {
  const { deck, row, clients, upstream } = trial
  await clients?.stop()
  if (clients) {
    row.requests = clients.count()
    blame(trial, 'at the end', takeFaults(trial))
  }
  const startedAt = performance.now()
  const exit = await deck.stop()
  row.stopMs = Math.round(performance.now() - startedAt)
  if (exit.code !== 0) row.faults.push(`the deck ended with ${exit.signal ?? `code ${exit.code}`}`)
  row.faults.push(...examineEnd(trial))
  upstream.close()
}
