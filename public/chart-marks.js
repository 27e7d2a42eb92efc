/**
 * What happened while the vitals were as they were: deploys, and workers that ended without being asked to.
 * @typedef {{ second: number, tone: 'info' | 'ok' | 'bad', text: string }} Mark
 */

const DEPLOYS = 'rollout.started,rollout.succeeded,rollout.failed,rollout.rolled-back'
const MAX_EVENTS = 200
const WAIT_MS = 300

/**
 * Looks again whenever the page's list of recent events changes, which the server keeps up to date.
 * @param {{ recent: Element | null, faults: readonly string[], onChange: (marks: Mark[]) => void }} parts `faults`: causes of exits that nobody asked for
 */
export function createMarks ({ recent, faults, onChange }) {
  let sinceMs = 0
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer
  if (recent) {
    new MutationObserver(() => {
      clearTimeout(timer)
      timer = setTimeout(look, WAIT_MS)
    }).observe(recent, { childList: true, subtree: true })
  }

  return {
    /** @param {number} ms since the epoch */
    since (ms) {
      sinceMs = ms
      look()
    }
  }

  async function look () {
    try {
      const [rollouts, exits] = await Promise.all([read(DEPLOYS), read('worker.exited')])
      onChange([...rollouts.map(ofRollout), ...exits.filter(({ cause }) => faults.includes(cause)).map(ofExit)].sort((a, b) => a.second - b.second))
    } catch {
      // The master is away: it is looked again when the page changes.
    }
  }

  /** @returns {Promise<any[]>} newest first */
  async function read (/** @type {string} */ type) {
    const query = new URLSearchParams({ type, since: new Date(sinceMs).toISOString(), limit: String(MAX_EVENTS) })
    const response = await fetch(`/api/v1/events?${query}`, { headers: { Accept: 'application/json' } })
    if (!response.ok) throw new Error(String(response.status))
    return (await response.json()).items
  }
}

/** @param {any} event @returns {Mark} */
function ofRollout ({ at, type, cause, release, rollout }) {
  const outcome = type.slice('rollout.'.length)
  const tone = outcome === 'succeeded' ? 'ok' : outcome === 'started' ? 'info' : 'bad'
  return { second: Date.parse(at) / 1000, tone, text: `${cause} ${rollout}${release ? ` (${release})` : ''} ${outcome}` }
}

/** @param {any} event @returns {Mark} */
function ofExit ({ at, worker, slot, cause }) {
  return { second: Date.parse(at) / 1000, tone: 'bad', text: `worker ${worker} (slot ${slot}): ${cause}` }
}
