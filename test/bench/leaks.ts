// Leaks in real workers, and whether the history names them: node test/bench/leaks.ts [name …]
// Each is on a deck of its own under load: its worker is recycled for its memory, and the event must name what held it,
// by the first of its holders. What no rule was made for stands below; no request may fail meanwhile. It also tells how
// much memory and time that took: of the heap, of the worker before and while it wrote it, of the process that read it,
// and of the file.
import { readdirSync, readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { startDeck } from '../support/deck.ts'
import { hammer } from '../support/load.ts'
import { createOwner } from '../support/owner.ts'
import type { Holder } from '../../server/diagnostics/heap-holders.ts'
import type { DeckEvent } from '../../server/events/stream.ts'

/** What the first holder has to name, by app. */
const LEAKS: Record<string, Record<string, RegExp>> = {
  'leaks.cjs': { closure: /undoSteps/, listener: /priceFeed/, map: /seenVisitors/, timer: /pollUpstream|pollState/,
    promises: /diskReady|lastWrite/, buffer: /uploadedParts/, sessions: /sessions/, cache: /renderedPages/,
    socket: /idleSockets/, orm: /identityMap/, modules: /loadCache|moduleMap|ModuleWrap|ModuleJob/i,
    text: /auditTrail/ },
  'leaks-in-an-app.cjs': { 'rate-limiter': /hits/, 'request-log': /recentRequests/, 'process-listener': /SIGUSR2/,
    memoize: /results/, linked: /newest/, queue: /jobs/ }
}
const LIMIT_BYTES = 160 * 1024 ** 2

type Examined = { holders?: (Holder & { name: string })[], heapBytes?: number, rssBytes?: number, writtenMs?: number }

const owner = createOwner()
const wanted = process.argv.slice(2)
let [right, tried, failed] = [0, 0, 0]
for (const [app, leaks] of Object.entries(LEAKS)) {
  for (const [leak, expected] of Object.entries(leaks)) {
    if (wanted.length > 0 && !wanted.includes(leak)) continue
    tried++
    const { event, failures, seconds, most } = await tryLeak(app, leak)
    const { holders = [], heapBytes = 0, rssBytes = 0, writtenMs = 0 } = event.detail as Examined
    const [holder] = holders
    const isRight = holder !== undefined && expected.test(`${holder.name} ${holder.path.join(' ')}`) &&
      expected.test(holder.name + holder.className)
    if (isRight) right++
    failed += failures.length
    console.log(
      `${isRight ? 'right' : 'WRONG'} ${leak}: ${event.message} (${failures.length} failed, ${seconds.toFixed(0)} s)`
    )
    console.log(
      `    heap ${inMB(heapBytes)}, written in ${(writtenMs / 1000).toFixed(1)} s; worker ${inMB(rssBytes)} before, ${
        inMB(most.worker)
      } at most; reader ${inMB(most.reader)} at most; file ${inMB(most.file)}`
    )
    if (!isRight) {
      for (const each of holders)
        console.log(`    ${each.bytes} ${each.count} ${each.className} ${each.file} ${each.path.join(' → ')}`)
    }
  }
}
console.log(`${right} of ${tried} named, ${failed} requests failed`)
process.exit(right === tried && failed === 0 ? 0 : 1)

async function tryLeak (app: string, leak: string) {
  const startedAt = performance.now()
  const deck = await startDeck(owner, app, { workers: 1, env: { LEAK: leak, PORT: '0' },
    flags: ['--recycle-max-rss-bytes', String(LIMIT_BYTES)] })
  const { workers: [{ id, pid }] } = await deck.until({ ready: 1 })
  const load = hammer(owner, await deck.appUrl(), { connections: 8, breathMs: 5 })
  const memory = watchMemory(path.join(deck.folder, 'heaps'), { worker: pid, master: deck.masterPid })
  const event = await untilExamined(deck, leak)
  const most = memory.stop()
  if (event.worker !== id) throw new Error(`expected worker ${id}, found ${event.worker}`)
  const { failures } = await load.stop()
  await owner.end()
  return { event, failures, most, seconds: (performance.now() - startedAt) / 1000 }
}

/** A heap of millions of objects takes V8 minutes where others want the CPU. */
async function untilExamined (deck: Awaited<ReturnType<typeof startDeck>>, leak: string,
  tries = 6): Promise<DeckEvent>
{
  try {
    return await deck.untilEvent(({ type }) => type === 'memory.examined', `what held the memory: ${leak}`)
  } catch (error) {
    if (tries === 1) throw error
    return untilExamined(deck, leak, tries - 1)
  }
}

/** `folder`: of the files. Returns the most bytes of each so far. */
function watchMemory (folder: string,
  { worker, master }: { worker: number, master: number }
): { stop: () => { worker: number, reader: number, file: number } } {
  const most = { worker: 0, reader: 0, file: 0 }
  const timer = setInterval(() => {
    most.worker = Math.max(most.worker, peakBytes(worker))
    for (const pid of childrenOf(master))
      if (readOr(`/proc/${pid}/cmdline`).includes('heap-look.js')) most.reader = Math.max(most.reader, peakBytes(pid))
    most.file = Math.max(most.file, ...filesIn(folder).map(sizeOf))
  }, 20)
  return { stop () {
    clearInterval(timer)
    return most
  } }
}

/** @returns since its start; 0: it has ended */
function peakBytes (pid: number): number {
  return Number(/^VmHWM:\s+(\d+)/m.exec(readOr(`/proc/${pid}/status`))?.[1] ?? 0) * 1024
}

function childrenOf (pid: number) {
  return readOr(`/proc/${pid}/task/${pid}/children`).split(' ').filter(Boolean).map(Number)
}

function filesIn (folder: string): string[] {
  try {
    return readdirSync(folder).map((name) => path.join(folder, name))
  } catch {
    return []
  }
}

function sizeOf (file: string) {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0
}

/** @returns '' where it is gone */
function readOr (file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}

function inMB (bytes: number) {
  return `${Math.round(bytes / 1024 ** 2)} MB`
}
