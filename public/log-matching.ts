import type { Wanted } from './log-query.ts'

/**
 * Looks for a regular expression in lines. How long that takes depends on who wrote both: a link with `/(a+)+$/` could
 * hang the page for ever. So it runs in a thread of its own, which is ended when it has had its time.
 * `stream`: null: the line is wanted anyway; `shown`: the
 * text in which hits are marked
 */
export type Asked = { text: string, stream: 'stdout' | 'stderr' | null, shown: string }
/** null: the line is not wanted */
type Hits = [number, number][] | null
/** a text: why there is none, for the user to read */
type Answer = Hits[] | string

const PATIENCE_MS = 5000
const TOO_SLOW =
  'This regular expression takes too long: its matches are not marked, and new lines are left out. Try a simpler one.'
const NO_THREAD =
  'The script that looks for regular expressions could not be loaded: matches are not marked, and new lines are left out. Load this page again.'

/** `url`: of log-matcher.ts */
export function createMatching (url: string, wanted: Wanted) {
  const thread = new Worker(url)
  const isReady = new Promise((resolve) => {
    thread.onmessage = resolve
  })
  const failure: Promise<string> = new Promise((resolve) => {
    thread.onerror = () => resolve(NO_THREAD)
  })
  let last: Promise<Answer> = Promise.resolve([])

  return {
    /** @returns in the order of the calls; once it is a text, it is that from then on */
    find (lines: Asked[]): Promise<Answer> {
      last = last.then((answer) => typeof answer === 'string' ? answer : ask(lines))
      return last
    },

    end: () => thread.terminate()
  }

  async function ask (lines: Asked[]): Promise<Answer> {
    if (lines.length === 0) return []
    return await Promise.race([failure, isReady.then(() => match(lines))])
  }

  function match (lines: Asked[]): Promise<Answer> {
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
