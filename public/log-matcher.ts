import { createHits, createLineFilter } from './log-query.ts'
import type { Asked } from './log-matching.ts'

/** Runs in a thread of its own, see log-matching.ts. */

addEventListener('message', ({ data: { wanted, lines } }) => {
  const findIn = createLineFilter(wanted)
  const findHits = createHits(wanted.q)
  globalThis.postMessage(
    lines.map(({ text, stream, shown }: Asked) => stream !== null && findIn(text, stream) < 0 ? null : findHits(shown))
  )
})
globalThis.postMessage('ready')
