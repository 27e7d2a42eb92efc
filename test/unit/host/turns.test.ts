import { mock } from 'node:test'
import { createTurns } from '../../../server/host/turns.ts'
import { playScenes } from '../../support/scenes.ts'

mock.timers.enable({ apis: ['setTimeout'] })

/** Lets promises be settled. */
const settle = async () => {
  for (let n = 0; n < 10; n++) await null
}

/** who has begun; at once: who was told so when they asked; taken: whose turn it is, as blog sees it */
playScenes(`
so many apps start at a time, in the order in which they ask; the next one starts when one is ready, has failed, or takes too long
  first asks; second asks; third asks; fourth asks; fifth asks  → first second
  second is over            → first second third
  third fails               → first second third fourth
  2999 ms                   → first second third fourth
  1 ms                      → first second third fourth fifth
one that has lost its turn gives none back later
  first asks; second asks; third asks; 3000 ms  → first second third
  first is over; fourth asks; fifth asks        → first second third fourth
whoever has a turn at once is told so at once; the others see whose turn it is, and one that gives up takes none
  shop asks; mail asks; gone asks; blog asks  → at once shop mail
  gone is over              → taken shop mail
                            → shop mail
  shop is over              → taken mail blog`, {
  open: () => ({ turns: createTurns({ atOnce: 2, turnMs: 3000 }),
    asked: {} as Record<string, PromiseWithResolvers<void>>, atOnce: [] as string[], begun: [] as string[] }),
  acts: { 'NAME asks' ({ turns, asked, atOnce, begun }, name) {
    asked[name] = Promise.withResolvers()
    const turn = turns.of(name).take(asked[name].promise)
    if (turn) turn.then(() => begun.push(name))
    else for (const list of [atOnce, begun]) list.push(name)
    return settle()
  }, 'NAME is over' ({ asked }, name) {
    asked[name].resolve()
    return settle()
  }, 'NAME fails' ({ asked }, name) {
    asked[name].reject(new Error(name))
    return settle()
  }, 'MS ms' (_, ms) {
    mock.timers.tick(Number(ms))
    return settle()
  } },
  see ({ turns, atOnce, begun }, expected) {
    if (expected.startsWith('at once')) return ['at once', ...atOnce].join(' ')
    return (expected.startsWith('taken') ? ['taken', ...turns.of('blog').taken()] : begun).join(' ')
  }
})
