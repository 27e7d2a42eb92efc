import { chmodSync, writeFileSync } from 'node:fs'
import { rename, rm, writeFile } from 'node:fs/promises'
import { setTimeout } from 'node:timers'
import type { Profiler } from 'node:inspector'
import type { ToWorker } from './protocol.ts'
import type { Channel } from './channel.ts'

type Order = Extract<ToWorker, { type: 'diagnose' }>
type Profile = Profiler.Profile

/**
 * Continuous profiling takes a sample this often: each costs the process time, and a function that takes much time is
 * in many of them all the same.
 */
const SLICE_SAMPLE_US = 10_000

/** Writes what the master asks for into a file of the master's choice, and says when it is there. */
export function answerDiagnostics (channel: Channel) {
  channel.on('diagnose', async (order) => {
    const { id } = order
    try {
      await WRITERS[order.kind](order)
      channel.send({ type: 'diagnosed', id, error: null })
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error)
      channel.send({ type: 'diagnosed', id, error: text.slice(0, 500) })
    }
  })
  let isProfiling = false
  channel.on('profile', async ({ file, durationMs }) => {
    if (isProfiling) return
    isProfiling = true
    // The next slice is as good: a full disk must not end an app.
    await writeSlice(file, durationMs).catch(() => {})
    isProfiling = false
  })
}

/** Takes a slice and writes it: it is compressed in another thread, and has its name once it is whole. */
async function writeSlice (file: string, durationMs: number) {
  const profile = await takeProfile(durationMs, SLICE_SAMPLE_US)
  const { gzip } = await import('node:zlib')
  const content = await new Promise<Buffer>((resolve, reject) => {
    gzip(JSON.stringify(summed(profile)), (error, made) => {
      if (error) reject(error)
      else resolve(made)
    })
  })
  try {
    await writeFile(`${file}.part`, content, { mode: 0o600 })
    await rename(`${file}.part`, file)
  } catch (error) {
    await rm(`${file}.part`, { force: true })
    throw error
  }
}

/**
 * Makes one sample of the many of each function, as nobody asks a slice for their order. The result is a profile still,
 * without the time that taking it has cost.
 */
function summed ({ nodes, samples = [], timeDeltas = [], startTime, endTime }: Profile): Profile {
  const own = belowProfiler(nodes)
  const times: Map<number, number> = new Map()
  let elapsed = Math.max(0, timeDeltas[0] ?? 0)
  samples.forEach((node, index) => {
    // A sample holds until the next one; the clock of a profile may go back a little.
    const lasted = Math.max(0, index === samples.length - 1 ? endTime - startTime - elapsed : timeDeltas[index + 1])
    elapsed += lasted
    if (!own.has(node)) times.set(node, (times.get(node) ?? 0) + lasted)
  })
  const lasted = [...times.values()]
  return { nodes, samples: [...times.keys()], timeDeltas: [0, ...lasted.slice(0, -1)], startTime: 0,
    endTime: lasted.reduce((sum, each) => sum + each, 0) }
}

/** @returns the function that takes the profile, and all that it calls */
function belowProfiler (nodes: Profile['nodes']): Set<number> {
  const found = new Set(
    nodes.filter(({ callFrame }) => callFrame.functionName === takeProfile.name && callFrame.url === import.meta.url)
      .map(({ id }) => id)
  )
  // Parents come before their children.
  for (const { id, children = [] } of nodes) if (found.has(id)) { for (const child of children) found.add(child) }
  return found
}

async function takeProfile (durationMs: number, sampleUs?: number): Promise<Profile> {
  const { Session } = await import('node:inspector/promises')
  const session = new Session()
  session.connect()
  try {
    await session.post('Profiler.enable')
    if (sampleUs !== undefined) await session.post('Profiler.setSamplingInterval', { interval: sampleUs })
    await session.post('Profiler.start')
    // A profile must not keep a process running that would end.
    await new Promise((resolve) => {
      setTimeout(resolve, durationMs).unref()
    })
    return (await session.post('Profiler.stop')).profile
  } finally {
    session.disconnect()
  }
}

/** Each writer loads what it needs on demand, as most workers are never asked. */
const WRITERS: Record<Order['kind'], (order: Order) => Promise<void>> = { async 'cpu-profile' ({ file, durationMs }) {
  writeJson(file, await takeProfile(durationMs))
}, async 'heap-snapshot' ({ file }) {
  const { writeHeapSnapshot } = await import('node:v8')
  writeHeapSnapshot(file)
  chmodSync(file, 0o600)
}, async 'heap-statistics' ({ file }) {
  const v8 = await import('node:v8')
  writeJson(file, { at: new Date().toISOString(), pid: process.pid, memoryUsage: process.memoryUsage(),
    heapStatistics: v8.getHeapStatistics(), heapSpaces: v8.getHeapSpaceStatistics(),
    heapCode: v8.getHeapCodeStatistics(), resourceUsage: process.resourceUsage() })
}, async report ({ file }) {
  const { report } = process
  const before = report.excludeNetwork
  // Names are looked up for every open connection, which stops the process; Node before 20.13 cannot leave that out.
  if (before !== undefined) report.excludeNetwork = true
  try {
    const content: { environmentVariables?: unknown, header?: { networkInterfaces?: unknown } } = report.getReport()
    delete content.environmentVariables
    delete content.header?.networkInterfaces
    writeJson(file, content)
  } finally {
    if (before !== undefined) report.excludeNetwork = before
  }
} }

function writeJson (file: string, content: unknown) {
  writeFileSync(file, JSON.stringify(content), { mode: 0o600 })
}
