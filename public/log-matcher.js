import { createHits, createLineFilter } from './log-query.js'

/** Runs in a thread of its own, see log-matching.js. */

addEventListener('message', ({ data: { wanted, lines } }) => {
  const findIn = createLineFilter(wanted)
  const findHits = createHits(wanted.q)
  globalThis.postMessage(lines.map((/** @type {import('./log-matching.js').Asked} */ { text, stream, shown }) => stream !== null && findIn(text, stream) < 0 ? null : findHits(shown)))
})
globalThis.postMessage('ready')
