/**
 * What a run has written, for those who follow it: the last part of it, stream by stream, with places that they go on from.
 * @typedef {ReturnType<typeof createRunOutput>} RunOutput
 * @typedef {{ stream: 'stdout' | 'stderr', text: string }} Part
 */

/** @param {{ maxChars: number, before?: { text: string, written: number } }} how  `before`: what a master before has read, and how much that was in all */
export function createRunOutput ({ maxChars, before = { text: '', written: 0 } }) {
  /** @type {Part[]} */
  const parts = before.text === '' ? [] : [{ stream: 'stdout', text: before.text }]
  let kept = before.text.length
  /** How many characters have been written in all. */
  let written = Math.max(kept, before.written)

  return {
    get written () { return written },

    /** @param {Part['stream']} stream @param {string} text */
    add (stream, text) {
      const part = { stream, text: text.slice(-maxChars) }
      parts.push(part)
      kept += part.text.length
      written += text.length
      while (kept > maxChars) forgetSome(kept - maxChars)
    },

    text: () => parts.map(({ text }) => text).join(''),

    /**
     * @param {number} place  how many characters a reader has had
     * @returns {{ parts: Part[], place: number, missed: number }} `place`: where it goes on; `missed`: characters that are no longer kept
     */
    since (place) {
      // A master that has died may have shown more than it could keep.
      place = Math.min(place, written)
      const oldest = written - kept
      const missed = Math.max(0, oldest - place)
      let skipped = Math.max(0, place - oldest)
      const wanted = parts.flatMap(({ stream, text }) => {
        const rest = text.slice(skipped)
        skipped = Math.max(0, skipped - text.length)
        return rest === '' ? [] : [{ stream, text: rest }]
      })
      return { parts: wanted, place: written, missed }
    }
  }

  /** @param {number} surplus */
  function forgetSome (surplus) {
    const [oldest] = parts
    kept -= Math.min(surplus, oldest.text.length)
    oldest.text = oldest.text.slice(surplus)
    if (oldest.text === '') parts.shift()
  }
}
