import { setTimeout as wait } from 'node:timers/promises'
import { DeckError } from '../errors.js'
import { oneLine } from '../system/one-line.js'

/** How long `--follow` looks for a master once the one that it followed is gone; the next one may be on its way. */
const RECONNECT_WITHIN_MS = 10_000
const RECONNECT_EVERY_MS = 250
const MAX_LINES = 1000

/** @typedef {{ slot: number, stream: string, text: string }} Entry */

/** @param {import('./commands.js').Context} context */
export async function logs (context) {
  const { api, options } = context
  const query = new URLSearchParams({ lines: String(checkedLines(options.lines, options.follow ? 0 : 1)) })
  for (const name of ['slot', 'stream']) if (options[name] !== undefined) query.set(name, options[name])
  const show = printer(context)
  if (options.follow) return await follow(context, query, show)
  const { items } = await api.get(`/logs?${query}`)
  for (const entry of items) show(entry)
}

/**
 * Until it is interrupted, or no master comes any more. The next master is asked to go on behind the last lines that this
 * one has shown.
 * @param {import('./commands.js').Context} context @param {URLSearchParams} query @param {(entry: Entry) => void} show
 */
async function follow ({ api, tell }, query, show) {
  /** @type {string | undefined} the id under which the master knows it */
  let place
  /** @type {number | null} since when there is none; null: there is one */
  let lostAt = -Infinity
  for (;;) {
    try {
      let lines = []
      for await (const message of api.stream(`/logs/stream?${query}`, { lastEventId: place })) {
        lostAt = null
        if (message.data !== undefined) lines.push(message)
        // Those before it belong to it: cut off in between, they come again.
        if (message.id === undefined) continue
        place = message.id
        lines.forEach(tellLine)
        lines = []
      }
    } catch (error) {
      const isLate = lostAt !== null && performance.now() - lostAt > RECONNECT_WITHIN_MS
      if (!(error instanceof DeckError && error.code === 'no-master') || isLate) throw error
    }
    lostAt ??= performance.now()
    await wait(RECONNECT_EVERY_MS)
  }

  function tellLine (/** @type {{ event: string, data: any }} */ { event, data }) {
    if (event === 'dropped') tell(`${Number(data.bytes)} bytes of slot ${Number(data.slot)}, ${oneLine(String(data.stream))}, left out: output is faster than the reader`)
    else if (event === 'message') show(data)
  }
}

/** @param {import('./commands.js').Context} context @returns {(entry: Entry) => void} */
function printer ({ options, print, isTerminal }) {
  if (options.json) return (entry) => print(JSON.stringify(entry))
  const isOne = options.slot !== undefined && options.stream !== undefined
  return ({ slot, stream, text }) => {
    // What is no terminal gets what the app has written.
    const shown = isTerminal ? oneLine(text) : text
    print(isOne ? shown : `${Number(slot)} ${stream === 'stderr' ? 'stderr' : 'stdout'} | ${shown}`)
  }
}

/** @param {string} lines @param {number} min */
function checkedLines (lines, min) {
  const count = /^\d{1,4}$/.test(lines) ? Number(lines) : NaN
  if (count >= min && count <= MAX_LINES) return count
  throw new DeckError('usage', `--lines: expected an integer from ${min} to ${MAX_LINES}, received ${JSON.stringify(lines)}`)
}
