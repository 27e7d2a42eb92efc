import assert from 'node:assert/strict'
import { createHeartbeat } from '../../../server/system/heartbeat.ts'
import { playScenes } from '../../support/scenes.ts'

const TICK_MS = 500

/** Workers that beat once a second, unless they are said to be stuck, and a master that may sleep. */
function watch ({ workers = [1, 2], timeoutMs = 10_000 } = {}) {
  let at = 1000
  let ticks = 0
  const queued = new Map(workers.map((worker) => [worker, 0]))
  const heartbeat = createHeartbeat({ timeoutMs, tickMs: TICK_MS, queuedMs: (worker) => queued.get(worker) ?? 0 })
  const stuck: Set<number> = new Set()
  heartbeat.tick(at, workers)

  return {
    heartbeat,
    stuck,
    run (ms: number,
      { queuedShare = 0 }: { queuedShare?: number } = {}): { worker: number, silentMs: number, afterMs: number }[]
    {
      const from = at
      const found = []
      while (at < from + ms) {
        at += TICK_MS
        for (const worker of workers) queued.set(worker, (queued.get(worker) ?? 0) + TICK_MS * queuedShare)
        if (++ticks % 2 === 0) { for (const worker of workers) if (!stuck.has(worker)) heartbeat.heard(worker) }
        found.push(...heartbeat.tick(at, workers).map((one) => ({ ...one, afterMs: at - from })))
      }
      return found
    },
    /** Nothing runs; what the workers have said meanwhile is read after the first tick. */
    sleep (ms: number) {
      at += ms
      return heartbeat.tick(at, workers)
    }
  }
}

/** ms: silence that is told, by worker and when since the line began */
playScenes(`
a limit that is set anew counts for what was silent before too
  1 is stuck; 5000 ms               → nothing
  limit 3000 ms; 5000 ms            → 1 after 500 ms
  limit 60000 ms; 2 is stuck; 30000 ms  → nothing
silence is told once, when it has lasted too long, and of those alone that are stuck
  60000 ms                          → nothing
  1 is stuck; 60000 ms              → 1 after 9500 ms
it does not grow while the machine sleeps or the master is stopped, however long
  5000 ms; asleep for 3600000 ms; 30000 ms  → nothing
it does not grow much while the master itself comes late again and again
  5000 ms; ${Array(9).fill('asleep for 8000 ms').join('; ')}  → nothing
it counts again after a sleep for one that is stuck indeed
  2 is stuck; asleep for 3600000 ms; 20000 ms  → 2 after 9000 ms
it does not count what a worker spends waiting for a CPU
  5000 ms; 1 is stuck; 2 is stuck; 60000 ms without a CPU  → nothing
  20000 ms                          → 1 after 2500 ms, 2 after 2500 ms
it is excused while somebody knows the reason, and counts anew after that
  1 is stuck; 4000 ms; 1 is excused; 100000 ms  → nothing
  1 is no longer excused; 9000 ms   → nothing
  2000 ms                           → 1 after 1000 ms
it ends with a word: whoever was silent and answers is told from whoever was not, and may be stuck again
  1 is stuck; 12000 ms              → 1 after 10000 ms
  1 says a word                     → it was silent
  1 says a word                     → nothing
  2 says a word                     → nothing
  20000 ms                          → 1 after 10000 ms
`, { open: () => ({ ...watch(), told: [] as string[] }),
  acts: { 'MS ms': (deck, ms) => tell(deck, deck.run(Number(ms))),
    'MS ms without a CPU': (deck, ms) => tell(deck, deck.run(Number(ms), { queuedShare: 0.95 })),
    'WORKER is stuck': ({ stuck }, worker) => stuck.add(Number(worker)),
    'asleep for MS ms': (deck, ms) => tell(deck, deck.sleep(Number(ms)).map((one) => ({ ...one, afterMs: 0 }))),
    'limit MS ms': ({ heartbeat }, ms) => heartbeat.setTimeoutMs(Number(ms)),
    'WORKER is excused': ({ heartbeat }, worker) => heartbeat.excuse(Number(worker), true),
    'WORKER is no longer excused': ({ heartbeat }, worker) => heartbeat.excuse(Number(worker), false),
    'WORKER says a word': ({ heartbeat, told }, worker) =>
      heartbeat.heard(Number(worker)) && told.push('it was silent') },
  see: ({ told }) => told.splice(0).join(', ') || 'nothing' })

function tell ({ told }: { told: string[] }, found: { worker: number, silentMs: number, afterMs: number }[]) {
  for (const { worker, silentMs, afterMs } of found) {
    assert.ok(silentMs >= 3000)
    told.push(`${worker} after ${afterMs} ms`)
  }
}
