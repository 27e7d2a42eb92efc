import { styleText } from 'node:util'
import { isInTerminal, kindOf } from './events/kinds.js'
import { sentenceOf } from './events/sentences.js'
import { oneLine } from './system/one-line.js'

/** @type {Readonly<Record<import('./events/kinds.js').Tone, 'red' | 'yellow' | 'green' | 'cyan' | 'gray' | 'magenta'>>} */
const COLOURS = Object.freeze({ ok: 'green', info: 'cyan', drain: 'magenta', warn: 'yellow', bad: 'red', idle: 'gray' })

/**
 * The master's words for the person who started it.
 * @param {{ stdout: NodeJS.WritableStream & { isTTY?: boolean }, stderr: NodeJS.WritableStream }} options
 */
export function createTerminal ({ stdout, stderr }) {
  // EPIPE: nobody reads any more. The master goes on without a terminal.
  for (const stream of [stdout, stderr]) stream.on('error', () => {})
  const colour = (/** @type {any} */ style, /** @type {string} */ text) => stdout.isTTY ? styleText(style, text) : text
  const line = (/** @type {string} */ text) => { stdout.write(`${text}\n`) }
  let lastShown = ''

  /** What a worker has said that does not start. A terminal has it already (logs.mirror); the same once more says nothing new. @param {string[]} [lines] */
  function showLastLines (lines = []) {
    const text = lines.map((each) => `  | ${oneLine(each)}`).join('\n')
    if (stdout.isTTY || text === '' || text === lastShown) return
    lastShown = text
    line(text)
  }

  return {
    line,

    /** @param {string} text  why this master comes to nothing, or does less than it should */
    fail (text) { stderr.write(`clusterdeck: ${oneLine(text)}\n`) },

    /** @param {string} text of the app's own */
    quote (text) { line(colour('gray', oneLine(text))) },

    /** What a start has made of what it was told. @param {{ said: string | null, notes: string[] }} launch */
    resolved ({ said, notes }) {
      if (said !== null) line(oneLine(said))
      for (const note of notes) line(colour('gray', oneLine(`  ${note}`)))
    },

    /**
     * A link that signs in is for the person at the terminal alone: what is written elsewhere is read by others too.
     * @param {{ version: string, entry: string, workers: number, addresses: string[], admin: { publicUrl: string, signInLink: () => string }, bootMs: number }} start
     */
    started ({ version, entry, workers, addresses, admin, bootMs }) {
      line(colour('bold', `clusterdeck ${version}`) + `  ${workers} ${workers === 1 ? 'worker' : 'workers'} ready in ${bootMs} ms  ${oneLine(entry)}`)
      for (const address of addresses) line(`  app    ${colour('cyan', oneLine(address))}`)
      line(`  admin  ${colour('cyan', stdout.isTTY ? admin.signInLink() : admin.publicUrl)}`)
      line(colour('gray', stdout.isTTY ? '         (one-time link; `clusterdeck open` prints another)' : '         (`clusterdeck open` prints a link that signs in)'))
    },

    /** @param {import('./events/stream.js').DeckEvent} event */
    show (event) {
      if (!isInTerminal(event)) return
      line(`${colour('gray', event.at.slice(11, 19))} ${colour(COLOURS[kindOf(event).tone], event.type)} ${oneLine(sentenceOf(event))}`)
      showLastLines(event.detail?.lastLines)
    }
  }
}
