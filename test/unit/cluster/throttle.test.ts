import type { TestContext } from 'node:test'
import { createThrottle } from '../../../server/cluster/throttle.ts'
import { playScenes } from '../../support/scenes.ts'

function setUp (t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let at = 0
  const begun: [string, number][] = []
  const ends: (() => void)[] = []
  const pace = createThrottle({ everyMs: 1000, now: () => at, act (occasion: string, missed) {
    begun.push([occasion, missed])
    return new Promise((resolve) => ends.push(() => resolve(undefined)))
  } })
  return { pace, begun, end () {
    ends.shift()?.()
  }, pass (ms: number) {
    at += ms
    t.mock.timers.tick(ms)
  } }
}

playScenes(`
the first occasion is acted on at once, the last one of a storm once the time is up
  a comes; it ends; b comes; c comes; d comes; 999 ms  → a 0
  1 ms                            → a 0, d 2
nothing begins while it is busy, however long that takes
  a comes; 5000 ms; b comes; c comes  → a 0
  it ends                         → a 0, c 1
an occasion that comes late is acted on at once
  a comes; it ends; 1000 ms; b comes  → a 0, b 0
once it is stopped nothing begins any more
  a comes; b comes; it is stopped; c comes; it ends; 100000 ms  → a 0
`, { open: setUp, acts: { 'OCCASION comes': ({ pace }, occasion) => pace.offer(occasion), async 'it ends' ({ end }) {
  end()
  await new Promise((resolve) => setImmediate(resolve))
}, 'it is stopped': ({ pace }) => pace.stop(), 'MS ms': ({ pass }, ms) => pass(Number(ms)) },
  see: ({ begun }) => begun.map((each) => each.join(' ')).join(', ') })
