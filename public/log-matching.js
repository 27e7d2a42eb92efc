/**
 * Looks for a regular expression in lines. How long that takes depends on who wrote both: a link with `/(a+)+$/` could hang the page
 * for ever. So it runs in a thread of its own, which is ended when it has had its time.
 * @typedef {{ text: string, stream: 'stdout' | 'stderr' | null, shown: string }} Asked  `stream`: null: the line is wanted anyway; `shown`: the
 *   text in which hits are marked
 * @typedef {[number, number][] | null} Hits  null: the line is not wanted
 * @typedef {Hits[] | string} Answer  a text: why there is none, for the user to read
 */

const PATIENCE_MS = 5000
const TOO_SLOW = 'This regular expression takes too long: its matches are not marked, and new lines are left out. Try a simpler one.'
const NO_THREAD = 'The script that looks for regular expressions could not be loaded: matches are not marked, and new lines are left out. Load this page again.'

/**
 * @param {string} url of log-matcher.js
 * @param {import('./log-query.js').Wanted} wanted
 */
export function createMatching (url, wanted) {
  const thread = new Worker(url)
  const isReady = new Promise((resolve) => { thread.onmessage = resolve })
  /** @type {Promise<string>} */
  const failure = new Promise((resolve) => { thread.onerror = () => resolve(NO_THREAD) })
  /** @type {Promise<Answer>} */
  let last = Promise.resolve([])

  return {
    /** @param {Asked[]} lines @returns {Promise<Answer>} in the order of the calls; once it is a text, it is that from then on */
    find (lines) {
      last = last.then((answer) => typeof answer === 'string' ? answer : ask(lines))
      return last
    },

    end: () => thread.terminate()
  }

  /** @param {Asked[]} lines @returns {Promise<Answer>} */
  async function ask (lines) {
    if (lines.length === 0) return []
    return await Promise.race([failure, isReady.then(() => match(lines))])
  }

  /** @param {Asked[]} lines @returns {Promise<Answer>} */
  function match (lines) {
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        thread.terminate()
        resolve(TOO_SLOW)
      }, PATIENCE_MS)
      thread.onmessage = ({ data }) => {
        clearTimeout(timer)
        resolve(data)
      }
      thread.postMessage({ wanted, lines })
    })
  }
}
