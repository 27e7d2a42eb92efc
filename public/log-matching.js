/**
 * Looks for a regular expression in lines. How long that takes depends on who wrote both: a link with `/(a+)+$/` could hang the page
 * for ever. So it runs in a thread of its own, which is ended when it has had its time.
 * @typedef {{ text: string, stream: 'stdout' | 'stderr' | null, shown: string }} Asked  `stream`: null: the line is wanted anyway; `shown`: the
 *   text in which hits are marked
 * @typedef {[number, number][] | null} Hits  null: the line is not wanted
 */

const PATIENCE_MS = 5000

/**
 * @param {string} url of log-matcher.js
 * @param {import('./log-query.js').Wanted} wanted
 */
export function createMatching (url, wanted) {
  const thread = new Worker(url)
  const isReady = new Promise((resolve) => { thread.onmessage = resolve })
  /** @type {Promise<Hits[] | null>} */
  let last = Promise.resolve([])

  return {
    /** @param {Asked[]} lines @returns {Promise<Hits[] | null>} in the order of the calls; null, also from then on: it takes too long */
    find (lines) {
      last = last.then((answer) => answer && ask(lines))
      return last
    },

    end: () => thread.terminate()
  }

  /** @param {Asked[]} lines @returns {Promise<Hits[] | null>} */
  async function ask (lines) {
    if (lines.length === 0) return []
    await isReady
    return await new Promise((resolve) => {
      const timer = setTimeout(() => {
        thread.terminate()
        resolve(null)
      }, PATIENCE_MS)
      thread.onmessage = ({ data }) => {
        clearTimeout(timer)
        resolve(data)
      }
      thread.postMessage({ wanted, lines })
    })
  }
}
