import { stripVTControlCharacters, styleText } from 'node:util'

/** Events that a person at the terminal wants to see; the history has all of them. */
const SHOWN = /** @type {Record<string, 'red' | 'yellow' | 'green' | 'cyan'>} */ ({
  'master.waiting': 'yellow',
  'worker.no-server': 'yellow',
  'worker.crash-looping': 'red',
  'worker.recovered': 'green',
  'worker.restarted': 'yellow',
  'worker.drifted': 'yellow',
  'slot.held': 'red',
  'slot.resumed': 'green',
  'master.upgrading': 'cyan',
  'master.upgraded': 'green',
  'master.upgrade-failed': 'red',
  'keeper.lost': 'red',
  'rollout.started': 'cyan',
  'rollout.succeeded': 'green',
  'rollout.held': 'red',
  'rollout.paused': 'yellow',
  'rollout.resumed': 'cyan',
  'rollout.judged': 'cyan',
  'rollout.aborting': 'yellow',
  'rollout.rolled-back': 'red',
  'rollout.failed': 'red',
  'scale.changed': 'cyan',
  'socket.unused': 'yellow',
  'history.degraded': 'red',
  'history.recovered': 'green',
  unexpected: 'yellow'
})

/**
 * The master's words for the person who started it.
 * @param {{ stdout: NodeJS.WritableStream & { isTTY?: boolean }, stderr: NodeJS.WritableStream }} options
 */
export function createTerminal ({ stdout, stderr }) {
  // EPIPE: nobody reads any more. The master goes on without a terminal.
  for (const stream of [stdout, stderr]) stream.on('error', () => {})
  const colour = (/** @type {any} */ style, /** @type {string} */ text) => stdout.isTTY ? styleText(style, text) : text
  const line = (/** @type {string} */ text) => { stdout.write(`${text}\n`) }

  return {
    line,

    /** @param {string} text  why this master comes to nothing, or does less than it should */
    fail (text) { stderr.write(`clusterdeck: ${clean(text)}\n`) },

    /** @param {string} text of the app's own */
    quote (text) { line(colour('gray', clean(text))) },

    /** @param {{ version: string, entry: string, workers: number, addresses: string[], signInLink: string, bootMs: number }} start */
    started ({ version, entry, workers, addresses, signInLink, bootMs }) {
      line(colour('bold', `clusterdeck ${version}`) + `  ${workers} ${workers === 1 ? 'worker' : 'workers'} ready in ${bootMs} ms  ${clean(entry)}`)
      for (const address of addresses) line(`  app    ${colour('cyan', clean(address))}`)
      line(`  admin  ${colour('cyan', signInLink)}`)
      line(colour('gray', '         (signs you in once; `clusterdeck open` makes another)'))
    },

    /** @param {import('./events/stream.js').DeckEvent} event */
    show (event) {
      const isResult = event.type === 'rollout.step' && /: (done|failed|reverted)$/.test(String(event.message))
      const isUnplannedExit = event.type === 'worker.exited' && ['crash', 'killed', 'boot-failure'].includes(String(event.cause))
      const style = isUnplannedExit ? 'red' : isResult ? 'cyan' : SHOWN[event.type]
      if (style) line(`${colour('gray', event.at.slice(11, 19))} ${colour(style, event.type)} ${clean(sentence(event))}`)
    }
  }
}

/** @param {import('./events/stream.js').DeckEvent} event */
function sentence (event) {
  if (event.type === 'worker.restarted') {
    return `slot ${event.slot}: a new worker on ${event.release} ${event.detail?.delayMs ? `in ${event.detail.delayMs} ms` : 'at once'}`
  }
  if (event.type.startsWith('rollout.')) {
    return [`${event.cause} ${event.rollout}`, event.message].filter(Boolean).join(': ')
  }
  return event.message ?? (event.slot ? `slot ${event.slot}` : '')
}

/** @param {string} text what an app threw or named may move a terminal's cursor */
function clean (text) {
  // eslint-disable-next-line no-control-regex
  return stripVTControlCharacters(text).replace(/[\u0000-\u001f\u007f-\u009f]+/g, ' ')
}
